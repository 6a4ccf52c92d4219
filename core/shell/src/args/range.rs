//! Half-open ranges of records or bytes.

use std::str::FromStr;

use super::{TypedCount, TypedSize};

/// `A..B`, `A..` or `..B`, counted from 0, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedRange {
    /// The first; 0 when left out.
    pub start: u64,
    /// One past the last; `None` when left out: to the end.
    pub end: Option<u64>,
}

impl TypedRange {
    /// A range of records, with the units of [`TypedCount`].
    ///
    /// # Errors
    /// When it is no range.
    pub fn of_records(typed: &str) -> Result<Self, String> {
        Self::parse(typed, |text| TypedCount::from_str(text).map(|count| count.0))
    }

    /// A range of bytes, with the units of [`TypedSize`].
    ///
    /// # Errors
    /// When it is no range.
    pub fn of_bytes(typed: &str) -> Result<Self, String> {
        Self::parse(typed, |text| TypedSize::from_str(text).map(|size| size.0))
    }

    fn parse(typed: &str, number: fn(&str) -> Result<u64, String>) -> Result<Self, String> {
        let (start, end) = typed.split_once("..").ok_or_else(|| {
            format!("'{typed}' is no range: write A..B, A.. or ..B, counted from 0")
        })?;
        let start = if start.is_empty() { 0 } else { number(start)? };
        let end = if end.is_empty() { None } else { Some(number(end)?) };
        match end {
            Some(end) if end < start => Err(format!("'{typed}' ends before it begins")),
            _ => Ok(TypedRange { start, end }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TypedRange;

    #[test]
    fn either_end_may_be_left_out() {
        let table = [
            ("1..5", TypedRange { start: 1, end: Some(5) }),
            ("7..", TypedRange { start: 7, end: None }),
            ("..3", TypedRange { start: 0, end: Some(3) }),
            ("..", TypedRange { start: 0, end: None }),
            ("4..4", TypedRange { start: 4, end: Some(4) }),
        ];
        for (typed, span) in table {
            assert_eq!(TypedRange::of_bytes(typed), Ok(span), "{typed}");
            assert_eq!(TypedRange::of_records(typed), Ok(span), "{typed}");
        }
        assert_eq!(TypedRange::of_bytes("1K..2K"), Ok(TypedRange { start: 1024, end: Some(2048) }));
        assert_eq!(
            TypedRange::of_records("1K..2K"),
            Ok(TypedRange { start: 1000, end: Some(2000) })
        );
        for typed in ["", "5", "5..4", "a..b", "1...2", "-1..3"] {
            assert!(TypedRange::of_bytes(typed).is_err(), "{typed}");
        }
    }
}
