//! How values of one key become one.

use serde::{Deserialize, Serialize};

use super::Type;

/// How values of one key become one. Every way is associative and commutative, so that the result does
/// not depend on threads, spills or nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// The sum of numbers (`i64`). A sum that leaves 64 bits is an error.
    Sum,
    /// The smallest value (numbers; else in byte order).
    Min,
    /// The largest value (numbers; else in byte order).
    Max,
    /// How many values there are; the values themselves are dropped. The result is an `i64`.
    Count,
    /// The value that comes first in the inputs.
    First,
    /// All values are kept; those of one key are in byte order.
    None,
}

/// A sum left 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sum is larger than a signed number of 64 bits can hold")]
pub struct ValueOverflow;

impl Combine {
    /// Combines `with` into `value`, both of type `of`. [`Combine::Count`] adds counts;
    /// [`Combine::First`] keeps `value`; [`Combine::None`] is not for this.
    ///
    /// # Errors
    /// A sum that leaves 64 bits.
    pub fn fold(self, of: Type, value: &mut Vec<u8>, with: &[u8]) -> Result<(), ValueOverflow> {
        let replaces = match self {
            Combine::Sum | Combine::Count => {
                let sum = number(value).checked_add(number(with)).ok_or(ValueOverflow)?;
                value.clear();
                value.extend_from_slice(&sum.to_le_bytes());
                return Ok(());
            }
            Combine::Min => is_less(of, with, value),
            Combine::Max => is_less(of, value, with),
            Combine::First => false,
            Combine::None => unreachable!("all values are kept"),
        };
        if replaces {
            value.clear();
            value.extend_from_slice(with);
        }
        Ok(())
    }
}

/// A value as a number; 0 for bytes that are none.
fn number(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

fn is_less(of: Type, a: &[u8], b: &[u8]) -> bool {
    let float = |value: &[u8]| value.try_into().map_or(0.0, f64::from_le_bytes);
    match of {
        Type::I64 => number(a) < number(b),
        Type::F64 => float(a).total_cmp(&float(b)).is_lt(),
        Type::Text | Type::Bytes => a < b,
    }
}
