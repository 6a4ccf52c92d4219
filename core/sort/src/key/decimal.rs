//! Decimal numbers in texts, compared by their digits: nothing is rounded, whatever their length.
//!
//! ```text
//! number    [+-] digits [. digits] [e [+-] digits]    a digit before or behind the point; white space around it
//!           [+-] inf | infinity                       in any case; beyond all other numbers
//! ```
//! NaN and hexadecimal digits are no numbers. `1`, `1.0` and `10e-1` are one number, and so are `0` and `-0`.
//! `numeric` orders the front of a text as `sort -n` does, without exponents; this is for whole texts.
//!
//! A number has a key, whose byte order is the order of numbers, and its text can be made again from it:
//!
//! ```text
//! zero       80
//! positive   C0 + p   0.DDD · 10^p, p from -1F to 1F; else A0 or E0 and p with its sign bit flipped, 8 bytes
//!            then the digits, two a byte as 1 + value, the last one padded with 0
//!            00
//! infinity   F0
//! negative   the complement of its absolute value
//! ```

use std::cmp::Ordering;

use super::numeric::{complement, digits, skip_zeros};

/// A number, as its digits in a text.
///
/// The digits are `front` and then `back`, without zeros at either end; the number is 0.DDD · 10^`point`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal<'a> {
    negative: bool,
    point: i64,
    front: &'a [u8],
    back: &'a [u8],
}

/// The `point` of infinity, whose digit is 1.
const INFINITE: i64 = i64::MAX;
/// The exponents of numbers are nearer to 0 than this, those of their texts with one digit before the point.
const EXPONENT_END: i64 = 1 << 56;
/// An exponent in a text counts as this if it is larger: no text has enough digits to come back to a number.
const EXPONENT_MOST: i64 = 1 << 58;

const KEY_ZERO: u8 = 0x80;
const KEY_INFINITE: u8 = 0xf0;
/// The first byte of a positive number with `point` 0, and the farthest `point` that it can tell.
const KEY_NEAR: i64 = 0xc0;
const NEAR_MOST: i64 = 0x1f;
const KEY_SMALL: u8 = 0xa0;
const KEY_LARGE: u8 = 0xe0;
const KEY_END: u8 = 0;

/// Zeros behind the digits, and behind the point before them, that are written out rather than told by an
/// exponent.
const ZEROS_BEHIND_MOST: i64 = 21;
const ZEROS_BEFORE_MOST: i64 = 5;

impl<'a> Decimal<'a> {
    /// Reads a whole text; `None` if it is no number, or one whose exponent is 2^56 or more, or -2^56 or less.
    #[must_use]
    #[inline]
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let text = text.trim_ascii();
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (whole, rest) = text.split_at(digits(text));
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => rest.split_at(digits(rest)),
            _ => (&rest[..0], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            let word = |word: &[u8]| text.eq_ignore_ascii_case(word);
            let infinite = Decimal { negative, point: INFINITE, front: b"1", back: b"" };
            return (word(b"inf") || word(b"infinity")).then_some(infinite);
        }
        let exponent = if rest.is_empty() { 0 } else { exponent(rest)? };
        let whole = skip_zeros(whole);
        let fraction = without_end_zeros(fraction);
        let (point, front, back) = if whole.is_empty() {
            let front = skip_zeros(fraction);
            (front.len() as i64 - fraction.len() as i64, front, &fraction[..0])
        } else if fraction.is_empty() {
            (whole.len() as i64, without_end_zeros(whole), fraction)
        } else {
            (whole.len() as i64, whole, fraction)
        };
        if front.is_empty() {
            return Some(Decimal { negative: false, point: 0, front, back });
        }
        let point = point + exponent;
        is_near(point).then_some(Decimal { negative, point, front, back })
    }

    fn is_zero(&self) -> bool {
        self.front.is_empty()
    }

    /// Whether it is an infinity.
    #[must_use]
    pub fn is_infinite(&self) -> bool {
        self.point == INFINITE
    }

    /// -1, 0 or 1.
    fn sign(&self) -> i8 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.front.iter().chain(self.back).copied()
    }

    fn compare_digits(&self, other: &Self) -> Ordering {
        if self.back.is_empty() && other.back.is_empty() {
            self.front.cmp(other.front)
        } else {
            self.digits().cmp(other.digits())
        }
    }

    /// The largest integer that is not above itself times 10^`scale`; `None` if that has more than
    /// [`SCALED_DIGITS_MOST`] digits, or it is an infinity.
    #[must_use]
    pub fn floor_scaled(&self, scale: u32) -> Option<i128> {
        let kept = if self.is_zero() { 0 } else { self.point.saturating_add(scale.into()) };
        if kept > SCALED_DIGITS_MOST.into() {
            return None;
        }
        let mut left = self.digits();
        // Half of the time of a histogram would be these steps in 128 bits.
        if kept <= WORD_DIGITS {
            let size = (0..kept).fold(0_i64, |size, _| {
                size * 10 + left.next().map_or(0, |digit| i64::from(digit - b'0'))
            });
            let is_cut = left.next().is_some();
            let size = if self.negative { -size - i64::from(is_cut) } else { size };
            return Some(size.into());
        }
        let size = (0..kept).fold(0_i128, |size, _| {
            size * 10 + left.next().map_or(0, |digit| i128::from(digit - b'0'))
        });
        let is_cut = left.next().is_some();
        Some(if self.negative { -size - i128::from(is_cut) } else { size })
    }

    /// Digits behind the point.
    #[must_use]
    pub fn scale(&self) -> u64 {
        let digits = (self.front.len() + self.back.len()) as i64;
        digits.saturating_sub(self.point).max(0).cast_unsigned()
    }

    /// Appends its key.
    #[inline]
    pub fn push_key(&self, key: &mut Vec<u8>) {
        if self.is_zero() {
            return key.push(KEY_ZERO);
        }
        let mark = key.len();
        if self.is_infinite() {
            key.push(KEY_INFINITE);
        } else {
            self.push_size(key);
        }
        if self.negative {
            complement(&mut key[mark..]);
        }
    }

    fn push_size(&self, key: &mut Vec<u8>) {
        if self.point.abs() <= NEAR_MOST {
            key.push((KEY_NEAR + self.point) as u8);
        } else {
            key.push(if self.point < 0 { KEY_SMALL } else { KEY_LARGE });
            key.extend_from_slice(&(self.point ^ i64::MIN).to_be_bytes());
        }
        let mut tens = None;
        for digit in self.digits().map(|digit| digit - b'0') {
            match tens.take() {
                None => tens = Some(digit),
                Some(tens) => key.push(tens * 10 + digit + 1),
            }
        }
        key.extend(tens.map(|tens| tens * 10 + 1));
        key.push(KEY_END);
    }
}

/// Digits that fit into 64 bits with a sign.
const WORD_DIGITS: i64 = 18;

/// The most digits of [`Decimal::floor_scaled`].
pub const SCALED_DIGITS_MOST: u32 = 36;

impl Ord for Decimal<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let size = || self.point.cmp(&other.point).then_with(|| self.compare_digits(other));
        match self.sign().cmp(&other.sign()) {
            Ordering::Equal if self.negative => size().reverse(),
            Ordering::Equal => size(),
            different => different,
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal<'_> {}

fn without_end_zeros(mut digits: &[u8]) -> &[u8] {
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    digits
}

/// Whether a number may have this point.
fn is_near(point: i64) -> bool {
    point > 1 - EXPONENT_END && point <= EXPONENT_END
}

/// The exponent that `text` is, `e` included; at most [`EXPONENT_MOST`] in size.
fn exponent(text: &[u8]) -> Option<i64> {
    let [b'e' | b'E', text @ ..] = text else { return None };
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if text.is_empty() || digits(text) < text.len() {
        return None;
    }
    let step = |size: i64, digit: &u8| (size * 10 + i64::from(digit - b'0')).min(EXPONENT_MOST);
    let size = text.iter().fold(0, step);
    Some(if negative { -size } else { size })
}

/// Appends the key of `size` / 10^`scale`.
#[inline]
pub fn push_scaled_key(size: i128, scale: u32, key: &mut Vec<u8>) {
    scaled(size, scale, &mut [0; SIZE_DIGITS]).push_key(key);
}

/// The most digits of a number of 128 bits.
const SIZE_DIGITS: usize = 39;

/// The number `size` / 10^`scale`, whose digits are put into `digits`.
fn scaled(size: i128, scale: u32, digits: &mut [u8; SIZE_DIGITS]) -> Decimal<'_> {
    let mut left = size.unsigned_abs();
    let mut start = digits.len();
    let mut put = |digit: u8| {
        start -= 1;
        digits[start] = b'0' + digit;
    };
    while left > u64::MAX.into() {
        put((left % 10) as u8);
        left /= 10;
    }
    let mut left = left as u64;
    while left > 0 {
        put((left % 10) as u8);
        left /= 10;
    }
    let digits = &digits[start..];
    let point = digits.len() as i64 - i64::from(scale);
    let front = without_end_zeros(digits);
    Decimal { negative: size < 0, point, front, back: &front[..0] }
}

/// A number with its own digits.
#[derive(Debug, Clone)]
pub struct OwnedDecimal {
    negative: bool,
    point: i64,
    digits: Vec<u8>,
}

impl OwnedDecimal {
    /// The number `size` / 10^`scale`.
    #[must_use]
    pub fn of_scaled(size: i128, scale: u32) -> Self {
        scaled(size, scale, &mut [0; SIZE_DIGITS]).into()
    }

    /// The number.
    #[must_use]
    #[inline]
    pub fn get(&self) -> Decimal<'_> {
        let (negative, point) = (self.negative, self.point);
        Decimal { negative, point, front: &self.digits, back: b"" }
    }

    /// The number of a key that [`Decimal::push_key`] made; `None` for other bytes.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Option<Self> {
        let negative = key.first().is_some_and(|first| *first < KEY_ZERO);
        let mut size = key.to_vec();
        if negative {
            complement(&mut size);
        }
        let infinite = || OwnedDecimal { negative, point: INFINITE, digits: b"1".to_vec() };
        let (point, pairs) = match &size[..] {
            [KEY_ZERO] if !negative => {
                return Some(OwnedDecimal { negative: false, point: 0, digits: Vec::new() });
            }
            [KEY_INFINITE] => return Some(infinite()),
            [KEY_SMALL | KEY_LARGE, rest @ ..] => {
                let (point, pairs) = rest.split_first_chunk::<8>()?;
                (i64::from_be_bytes(*point) ^ i64::MIN, pairs)
            }
            [near, pairs @ ..] if *near > KEY_SMALL && *near < KEY_LARGE => {
                (i64::from(*near) - KEY_NEAR, pairs)
            }
            _ => return None,
        };
        let pairs = pairs.strip_suffix(&[KEY_END]).filter(|_| is_near(point))?;
        let mut digits = Vec::with_capacity(2 * pairs.len());
        for pair in pairs {
            let pair = pair.checked_sub(1).filter(|pair| *pair < 100)?;
            digits.extend([pair / 10 + b'0', pair % 10 + b'0']);
        }
        if digits.first() == Some(&b'0') {
            return None;
        }
        digits.truncate(without_end_zeros(&digits).len());
        let number = OwnedDecimal { negative, point, digits };
        // Only one key stands for a number.
        let mut again = Vec::with_capacity(key.len());
        number.get().push_key(&mut again);
        (again == key).then_some(number)
    }
}

impl From<Decimal<'_>> for OwnedDecimal {
    fn from(number: Decimal<'_>) -> Self {
        let Decimal { negative, point, .. } = number;
        OwnedDecimal { negative, point, digits: number.digits().collect() }
    }
}

impl std::fmt::Display for Decimal<'_> {
    /// All digits. Far from the point it has an exponent: `1.5e300`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.is_infinite() {
            return write!(f, "{sign}inf");
        }
        let digits: String = self.digits().map(char::from).collect();
        let (len, point) = (digits.len() as i64, self.point);
        let zeros = |count: i64| "0".repeat(usize::try_from(count).expect("not below 0"));
        if point > len.saturating_add(ZEROS_BEHIND_MOST) || point < -ZEROS_BEFORE_MOST {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            write!(f, "{sign}{first}{dot}{rest}e{}", point - 1)
        } else if point >= len {
            write!(f, "{sign}{digits}{}", zeros(point - len))
        } else if point > 0 {
            let (whole, fraction) = digits.split_at(point as usize);
            write!(f, "{sign}{whole}.{fraction}")
        } else {
            write!(f, "{sign}0.{}{digits}", zeros(-point))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Decimal<'_> {
        Decimal::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is a number"))
    }

    fn key(text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        number(text).push_key(&mut key);
        key
    }

    #[test]
    fn numbers_are_in_the_order_of_their_digits() {
        let ascending = [
            "-inf",
            "-1e72057594037927935",
            "-0.1e72057594037927935",
            "-1e40",
            "-123456789012345678901234567890",
            "-123456789012345678901234567889.5",
            "-10",
            "-9.99",
            "-1.5",
            "-1",
            "-0.05",
            "-1e-300",
            "0",
            "1e-72057594037927935",
            "1e-300",
            "0.05",
            "0.5",
            "0.7",
            "0.70000000000000000000000000000000000001",
            "1",
            "1.05",
            "1.5",
            "9.99",
            "10",
            "9007199254740992",
            "9007199254740993",
            "1234567890123456788",
            "1234567890123456789",
            "1234567890123456789.1",
            "1e40",
            "1e300",
            "Infinity",
        ];
        for (a, left) in ascending.iter().enumerate() {
            for (b, right) in ascending.iter().enumerate() {
                assert_eq!(number(left).cmp(&number(right)), a.cmp(&b), "{left} {right}");
                assert_eq!(key(left).cmp(&key(right)), a.cmp(&b), "keys of {left} {right}");
            }
        }
        for same in [
            &["0", "-0", "0.0", "+0", "0e99999999999999999999", ".0", "0.", "00"][..],
            &[
                "1",
                "1.0",
                "01",
                "+1",
                " 1\t",
                "10e-1",
                "0.1e1",
                "1.",
                "1E0",
                "1e+00000000000000000000000000",
            ],
            &["-120", "-1.2e2", "-12E1", "-0120.000"],
            &[".5", "0.5", "5e-1", "0.50"],
            &["1e72057594037927935", "0.01e72057594037927937", "100e72057594037927933"],
            &["-1e-72057594037927935", "-100e-72057594037927937"],
            &["inf", "Infinity", "+INF"],
        ] {
            for text in same {
                assert_eq!(key(text), key(same[0]), "{text}");
                assert_eq!(number(text), number(same[0]), "{text}");
            }
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "",
            " ",
            "-",
            "+",
            ".",
            "e1",
            "1e",
            "1e+",
            "1e1.5",
            "nan",
            "NaN",
            "0x10",
            "1,5",
            "1 2",
            "1_000",
            "--1",
            "+-1",
            "1-",
            "infinit",
            "inf1",
            "\u{ff11}",
            "1\0",
            "1e72057594037927936",
            "10e72057594037927935",
            "0.1e-72057594037927935",
            "1e99999999999999999999",
            "-1e-99999999999999999999",
            "\u{feff}1",
            "١",
        ] {
            assert!(Decimal::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(Decimal::parse(b"\xff").is_none());
    }

    #[test]
    fn keys_give_the_digits_again() {
        for (typed, shown) in [
            ("0.1", "0.1"),
            ("-0", "0"),
            ("007.50", "7.5"),
            ("1e3", "1000"),
            ("1e20", "100000000000000000000"),
            ("1e300", "1e300"),
            ("-1.25e-30", "-1.25e-30"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1234567890123456789", "1234567890123456789"),
            ("1234567890123456780", "1234567890123456780"),
            ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
            ("-inf", "-inf"),
            ("INFINITY", "inf"),
        ] {
            assert_eq!(number(typed).to_string(), shown);
            let again = OwnedDecimal::of_key(&key(typed)).expect("a key");
            assert_eq!(again.get().to_string(), shown);
        }
        for bytes in [
            &b""[..],
            b"\x80\0",
            b"\xc1",
            b"\xc1\0",
            b"\xc1\x01\0",
            b"\xc1\x66\0",
            b"\xff",
            b"\xe0\0\0",
            b"\x3e",
            b"\x7f",
            b"\xa1\x02\0",
        ] {
            assert!(OwnedDecimal::of_key(bytes).is_none(), "{bytes:?}");
        }
        // Exponents end before 2^56, and begin behind -2^56.
        let far =
            |point: i64| [&[KEY_LARGE][..], &(point ^ i64::MIN).to_be_bytes(), b"\x0b\0"].concat();
        assert!(OwnedDecimal::of_key(&far(1 << 62)).is_none());
        assert!(OwnedDecimal::of_key(&far(i64::MAX)).is_none());
        assert!(OwnedDecimal::of_key(&far(EXPONENT_END + 1)).is_none());
        assert_eq!(far(EXPONENT_END), key("1e72057594037927935"));
        assert!(OwnedDecimal::of_key(&far(EXPONENT_END)).is_some());
        let small = |point: i64| [&[KEY_SMALL][..], &far(point)[1..]].concat();
        assert!(OwnedDecimal::of_key(&small(i64::MIN)).is_none());
        assert!(OwnedDecimal::of_key(&small(1 - EXPONENT_END)).is_none());
        assert_eq!(small(2 - EXPONENT_END), key("1e-72057594037927935"));
        // Near points have one byte.
        assert!(OwnedDecimal::of_key(b"\xe0\x80\0\0\0\0\0\0\x01\x0b\0").is_none());
    }

    #[test]
    fn numbers_are_scaled_and_cut_downwards() {
        for (text, scale, floor) in [
            ("1.25", 1, Some(12)),
            ("-1.25", 1, Some(-13)),
            ("-1.2", 1, Some(-12)),
            ("1e3", 2, Some(100_000)),
            ("0.04", 1, Some(0)),
            ("-0.04", 1, Some(-1)),
            ("-1e-300", 3, Some(-1)),
            ("0", 9, Some(0)),
            ("1e35", 0, Some(10_i128.pow(35))),
            ("1e35", 1, None),
            ("inf", 0, None),
        ] {
            assert_eq!(number(text).floor_scaled(scale), floor, "{text}");
        }
        for (size, scale, shown) in
            [(30, 2, "0.3"), (-5, 0, "-5"), (0, 3, "0"), (7, 1, "0.7"), (1200, 1, "120")]
        {
            assert_eq!(OwnedDecimal::of_scaled(size, scale).get().to_string(), shown);
        }
        assert_eq!(
            [number("1.25").scale(), number("100").scale(), number("1e-3").scale()],
            [2, 0, 3]
        );
    }

    /// A number below 10^18 with three digits behind the point, times 1000.
    fn naive(text: &str) -> i128 {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        sign * format!("{whole}{fraction:0<3}").parse::<i128>().expect("digits")
    }

    proptest! {
        #[test]
        fn order_and_keys_are_those_of_scaled_integers(
            a in "-?[0-9]{1,18}(\\.[0-9]{1,3})?", b in "-?[0-9]{1,18}(\\.[0-9]{1,3})?", shift in -40_i64..40,
        ) {
            let expected = naive(&a).cmp(&naive(&b));
            let (a, b) = (format!("{a}e{shift}"), format!("{b}e{shift}"));
            prop_assert_eq!(number(&a).cmp(&number(&b)), expected);
            prop_assert_eq!(key(&a).cmp(&key(&b)), expected);
        }

        #[test]
        fn texts_of_numbers_are_the_same_numbers(text in "[+-]?[0-9]{0,30}\\.?[0-9]{1,30}(e-?[0-9]{1,3})?") {
            let again = OwnedDecimal::of_key(&key(&text)).expect("a key");
            prop_assert_eq!(again.get(), number(&text));
            let shown = again.get().to_string();
            prop_assert_eq!(number(&shown), number(&text));
        }

        #[test]
        fn a_key_is_of_one_number(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            if let Some(number) = OwnedDecimal::of_key(&bytes) {
                prop_assert_eq!(key(&number.get().to_string()), bytes);
            }
        }
    }
}
