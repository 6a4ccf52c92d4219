//! How values of one key become one.

use serde::{Deserialize, Serialize};

use super::types::Type;

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
    /// The type of combined values, where those handed out are of type `of`.
    #[must_use]
    pub fn result_type(self, of: Type) -> Type {
        if self == Combine::Count { Type::I64 } else { of }
    }

    /// Combines `with` into `value`, both of type `of`. [`Combine::Count`] adds counts;
    /// [`Combine::First`] keeps `value`; [`Combine::None`] is not for this.
    ///
    /// # Errors
    /// A sum that leaves 64 bits.
    pub fn fold(self, of: Type, value: &mut Vec<u8>, with: &[u8]) -> Result<(), ValueOverflow> {
        let mut combined = Combined::new(self, of);
        combined.begin(value);
        combined.fold(with);
        let result = combined.finish()?;
        if result != value {
            value.clear();
            value.extend_from_slice(result);
        }
        Ok(())
    }
}

/// The values of one key, combined one after the other. A sum may leave 64 bits on the way, if it is back
/// at the end: so it does not depend on the order of the values.
#[derive(Debug, Clone)]
pub struct Combined {
    combine: Combine,
    of: Type,
    sum: i128,
    bytes: Vec<u8>,
}

impl Combined {
    /// No value yet, of the type `of`.
    pub fn new(combine: Combine, of: Type) -> Self {
        Combined { combine, of, sum: 0, bytes: Vec::new() }
    }

    /// How values become one.
    pub fn combine(&self) -> Combine {
        self.combine
    }

    fn adds(&self) -> bool {
        matches!(self.combine, Combine::Sum | Combine::Count)
    }

    /// The first value of a key.
    pub fn begin(&mut self, value: &[u8]) {
        if self.adds() {
            self.sum = i128::from(number(value));
        } else {
            set(&mut self.bytes, value);
        }
    }

    /// One more.
    pub fn fold(&mut self, with: &[u8]) {
        let replaces = match self.combine {
            Combine::Sum | Combine::Count => {
                self.sum += i128::from(number(with));
                return;
            }
            Combine::Min => is_less(self.of, with, &self.bytes),
            Combine::Max => is_less(self.of, &self.bytes, with),
            Combine::First => false,
            Combine::None => unreachable!("all values are kept"),
        };
        if replaces {
            set(&mut self.bytes, with);
        }
    }

    /// The value so far; for a sum, what was there before [`Combined::finish`].
    pub fn value(&self) -> &[u8] {
        &self.bytes
    }

    /// The value of the key as values that are combined again: a sum that left 64 bits is several.
    pub fn parts(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.adds() {
            return each(&self.bytes);
        }
        loop {
            let part = self.sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            each(&(part as i64).to_le_bytes());
            self.sum -= part;
            if self.sum == 0 {
                return;
            }
        }
    }

    /// The value of the key.
    ///
    /// # Errors
    /// A sum that leaves 64 bits.
    pub fn finish(&mut self) -> Result<&[u8], ValueOverflow> {
        if self.adds() {
            let sum = i64::try_from(self.sum).map_err(|_| ValueOverflow)?;
            set(&mut self.bytes, &sum.to_le_bytes());
        }
        Ok(&self.bytes)
    }
}

/// Makes `to` hold `bytes`, with no more room than the longest that it has held: so the memory is known.
pub fn set(to: &mut Vec<u8>, bytes: &[u8]) {
    to.clear();
    to.reserve_exact(bytes.len());
    to.extend_from_slice(bytes);
}

/// A value as a number; 0 for bytes that are not a number.
fn number(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

fn is_less(of: Type, a: &[u8], b: &[u8]) -> bool {
    let float = |value: &[u8]| value.try_into().map_or(0.0, f64::from_le_bytes);
    match of {
        Type::I64 => number(a) < number(b),
        Type::F64 => float(a).total_cmp(&float(b)).is_lt(),
        Type::Text | Type::Bytes | Type::Decimal => a < b,
    }
}
