//! The result of a map as a view: rows, each a key with its value, which are combined when they are read.
//!
//! ```text
//!   records of a view ──► cutter ──► reducer ──► rows, each key once
//!                         whole      neighbours of one key become one
//! ```
//!
//! ```text
//!   combine     how values of one key become one        carry     bytes between two pieces
//!   encoding    rows as records of a run, and back      cutter    records in bytes that come in pieces
//!   number_key  numbers as keys                         reducer   records become rows
//!   rows        rows of several streams, merged         written   a result, as it is written
//!   view        a result, as it is read                 error     why one can't be
//! ```
//!
//! The programs that make such a result stand above the engine. Its reader is here, since every command that reads
//! a view reads it.

mod carry;
mod combine;
mod cutter;
mod encoding;
mod error;
mod number_key;
mod reducer;
mod rows;
mod view;
mod written;

use serde::{Deserialize, Serialize};

pub use carry::{CARRY_BYTES, Carry};
pub use combine::{Combine, Combined, ValueOverflow, set};
pub use cutter::RecordCutter;
pub use encoding::{Encoding, PLACE_BYTES};
pub use error::ResultError;
pub use number_key::{f64_of_key, i64_of_key, key_of_f64, key_of_i64};
pub use reducer::{REDUCER_BYTES, Reducer};
pub use rows::{RowMerge, RowStream};
pub use view::{ResultDescription, ResultRow, ResultRows, ResultView, order};
pub use written::{WRITER_BYTES, mark_unreduced, write_reduced, write_run};

/// The type of a key or a value. Keys are compared byte by byte, whatever their type. A number is stored
/// in another way as a key ([`key_of_i64`], [`key_of_f64`]), so that keys are in the order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// Any bytes; shown as text.
    Text,
    /// Any bytes; shown in hexadecimal digits.
    Bytes,
    /// A signed number of 8 bytes, little-endian.
    I64,
    /// A floating-point number of 8 bytes, little-endian.
    F64,
    /// A decimal number of any length; keys only, in the form of
    /// [`Decimal::push_key`](crate::key::decimal::Decimal::push_key).
    Decimal,
}
