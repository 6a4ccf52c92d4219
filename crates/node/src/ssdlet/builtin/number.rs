//! Numbers in texts.

use std::cmp::Ordering;

/// A number as a text has it. Whole numbers of 64 bits are compared exactly.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i64),
    Float(f64),
}

impl Number {
    /// A decimal number, space around it left out; not a NaN.
    pub(super) fn parse(text: &[u8]) -> Option<Number> {
        let text = std::str::from_utf8(text.trim_ascii()).ok()?;
        if let Ok(whole) = text.parse() {
            return Some(Number::Whole(whole));
        }
        text.parse().ok().filter(|float: &f64| !float.is_nan()).map(Number::Float)
    }

    pub(super) fn as_f64(self) -> f64 {
        match self {
            Number::Whole(whole) => whole as f64,
            Number::Float(float) => float,
        }
    }

    pub(super) fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()).expect("neither is NaN"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_compared() {
        let compare = |a: &str, b: &str| {
            let number = |text: &str| Number::parse(text.as_bytes()).expect("a number");
            number(a).compare(number(b))
        };
        assert_eq!(compare("9007199254740993", "9007199254740992"), Ordering::Greater);
        assert_eq!(compare(" 1.50 ", "3e0"), Ordering::Less);
        assert_eq!(compare("-0", "0.0"), Ordering::Equal);
        assert_eq!(compare("inf", "99999999999999999999"), Ordering::Greater);
        for text in ["", " ", "nan", "1,5", "0x10", "1 2", "\u{ff11}"] {
            assert!(Number::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Number::parse(b"\xff").is_none());
    }
}
