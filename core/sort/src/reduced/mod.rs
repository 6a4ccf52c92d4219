//! The result of a map as a view: rows, each a key with its value, which are combined when they are read.
//!
//! ```text
//!   records of a view ──► cutter ──► reducer ──► rows, each key once
//!                         whole      neighbours of one key become one
//! ```
//!
//! ```text
//!   encoding    rows as records of a run, and back      reducer   records become rows
//!   number_key  numbers as keys                         written   a result, as it is written
//!   view        a result, as it is read
//! ```
//!
//! The programs that make such a result stand above the engine. Its reader is here, since every command that reads
//! a view reads it.

mod encoding;
mod number_key;
mod reducer;
mod view;
mod written;

#[doc(hidden)]
pub use encoding::{Encoding, PLACE_BYTES};
pub use number_key::{f64_of_key, i64_of_key, key_of_f64, key_of_i64};
#[doc(hidden)]
pub use reducer::{REDUCER_BYTES, Reducer};
pub use view::{ResultDescription, ResultRow, ResultRows, ResultView, order};
#[doc(hidden)]
pub use written::{write_reduced, write_unreduced};
