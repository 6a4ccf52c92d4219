//! The types of keys and values.

use serde::{Deserialize, Serialize};

/// The type of a key or a value. Keys are compared byte by byte, whatever their type. A number is stored in another way
/// as a key ([`key_of_i64`](crate::reduced::key_of_i64), [`key_of_f64`](crate::reduced::key_of_f64)), so that keys are in
/// the order of numbers.
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
