//! Ranges of numbers, by decimal arithmetic.
//!
//! *x* is in the range that begins at *start + n·width*, with the largest *n* for which that is not above *x*. All three
//! are integers of one scale, the larger one of `start` and `width`: the digits of *x* behind it don't change the
//! range.
//!
//! ```text
//!   width 0.1, scale 1     0.3 → 3     3 - (3 mod 1) = 3  → 0.3       -0.05 → -1 → -0.1
//! ```

use merganser_sort::key::decimal::{Decimal, OwnedDecimal, SCALED_DIGITS_MOST, push_scaled_key};

/// Ranges of one width.
#[derive(Debug, Clone, Copy)]
pub(super) struct EqualRanges {
    scale: u32,
    start: i128,
    width: i128,
}

impl EqualRanges {
    /// Ranges of `width`; one of them begins at `start`, or at 0.
    pub(super) fn new(start: Option<&OwnedDecimal>, width: &OwnedDecimal) -> Result<Self, String> {
        let width = width.get();
        let scale_of = |number: &Decimal<'_>| number.scale();
        let scale = scale_of(&width).max(start.map_or(0, |start| scale_of(&start.get())));
        let few = u32::try_from(scale).ok().filter(|scale| *scale < SCALED_DIGITS_MOST);
        let scaled = few.and_then(|scale| {
            let start = start.map_or(Some(0), |start| start.get().floor_scaled(scale))?;
            Some(EqualRanges { scale, start, width: width.floor_scaled(scale)? })
        });
        match scaled {
            Some(ranges) if ranges.width > 0 => Ok(ranges),
            Some(_) => Err("give a number above 0".to_owned()),
            None => Err(format!(
                "ranges have at most {SCALED_DIGITS_MOST} digits before and behind the point; give a shorter number"
            )),
        }
    }

    /// Numbers of up to this many digits before the point have a range.
    pub(super) fn digits_most(&self) -> u32 {
        SCALED_DIGITS_MOST - self.scale
    }

    /// Appends the key of the range of `number`; false if it is too large for one. An infinity is by itself.
    pub(super) fn push_key(&self, number: &Decimal<'_>, key: &mut Vec<u8>) -> bool {
        if number.is_infinite() {
            number.push_key(key);
            return true;
        }
        let Some(size) = number.floor_scaled(self.scale) else { return false };
        let behind = size - self.start;
        let rest = match (i64::try_from(behind), i64::try_from(self.width)) {
            (Ok(behind), Ok(width)) => behind.rem_euclid(width).into(),
            _ => behind.rem_euclid(self.width),
        };
        push_scaled_key(size - rest, self.scale, key);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> OwnedDecimal {
        Decimal::parse(text.as_bytes()).expect("a number").into()
    }

    fn begin(start: &str, width: &str, of: &str) -> Option<String> {
        let ranges = EqualRanges::new(Some(&number(start)), &number(width)).expect("a width");
        let mut key = Vec::new();
        let found = ranges.push_key(&number(of).get(), &mut key);
        found.then(|| OwnedDecimal::of_key(&key).expect("a key").get().to_string())
    }

    #[test]
    fn a_range_holds_its_lower_end() {
        for (start, width, of, expected) in [
            ("1", "2.5", "1", "1"),
            ("1", "2.5", "3.4", "1"),
            ("1", "2.5", "3.5", "3.5"),
            ("1", "2.5", "0.9", "-1.5"),
            ("1", "2.5", "-1.5", "-1.5"),
            ("0", "0.1", "0.3", "0.3"),
            ("0", "0.1", "0.7", "0.7"),
            ("0", "0.1", "0.69999999999999999999999999999999999999999", "0.6"),
            ("0", "0.1", "-0.00000000000000000000000000000000000001", "-0.1"),
            ("0.05", "0.1", "0.149", "0.05"),
            ("0", "1e3", "1234567890123456789", "1234567890123456000"),
            ("0", "10", "-inf", "-inf"),
            ("0", "1e-7", "0.0000003", "3e-7"),
        ] {
            assert_eq!(begin(start, width, of).as_deref(), Some(expected), "{start} {width} {of}");
        }
        assert_eq!(begin("0", "10", "1e300"), None);
        assert_eq!(begin("0", "0.01", "1e34"), None);
        for (width, told) in
            [("0", "above 0"), ("-1", "above 0"), ("1e40", "digits"), ("1e-40", "digits")]
        {
            let error = EqualRanges::new(None, &number(width)).expect_err(width);
            assert!(error.contains(told), "{width}: {error}");
        }
    }

    proptest! {
        /// Numbers of three digits behind the point, against whole numbers.
        #[test]
        fn any_number_is_in_its_range(of in -10_i64.pow(15)..10_i64.pow(15), start in -5000_i64..5000, width in 1_i64..5000) {
            let text = |thousandths: i64| OwnedDecimal::of_scaled(thousandths.into(), 3).get().to_string();
            let expected = (of - start).div_euclid(width) * width + start;
            prop_assert_eq!(begin(&text(start), &text(width), &text(of)), Some(text(expected)));
        }
    }
}
