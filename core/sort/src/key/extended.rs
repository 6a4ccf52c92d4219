//! The size of an 80-bit float (x87 extended precision), and correctly rounded conversion to it.
//!
//! ```text
//! 15 bits exponent, biased by 16383   64 bits significand, its first bit written out
//! ```
//! Rounding is to nearest, ties to even. Numbers of up to 19 digits and small exponents, which is
//! nearly all there are, take one multiplication or division of 128 bits; for others the quotient
//! of two long integers is taken bit by bit.

use std::cmp::Ordering;

/// A size (no sign), never NaN. Sizes compare like `(exponent, significand)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extended {
    /// Biased; 0 for zero and subnormal numbers.
    pub(super) exponent: u16,
    pub(super) significand: u64,
}

const BIAS: i64 = 16383;
/// Exponent of the last bit of a subnormal number.
const LEAST_BIT: i64 = 1 - BIAS - 63;

impl Extended {
    pub(super) const ZERO: Extended = Extended { exponent: 0, significand: 0 };
    pub(super) const INFINITY: Extended = Extended { exponent: 0x7fff, significand: 1 << 63 };

    /// Nearest to `bits` · 2^`exponent`. With `more`, the exact value is larger by less than one in
    /// the last place of `bits`.
    fn nearest(bits: u128, exponent: i64, more: bool) -> Self {
        if bits == 0 {
            // `more` is set only for quotients with all 128 bits and numbers of that length.
            return Extended::ZERO;
        }
        let shift = bits.leading_zeros();
        let bits = bits << shift;
        // Exponent of the first bit, and of the last one that is kept.
        let first = exponent.saturating_add(127 - i64::from(shift));
        let last = (first - 63).max(LEAST_BIT);
        if first > BIAS {
            return Extended::INFINITY;
        }
        let kept = first - last + 1;
        if kept < 0 {
            return Extended::ZERO;
        }
        // Between 64 and 128 bits are dropped.
        let dropped = 128 - kept as u32;
        let (significand, rest) = if dropped == 128 {
            (0, bits)
        } else {
            ((bits >> dropped) as u64, bits << (128 - dropped))
        };
        let up = match rest.cmp(&(1 << 127)) {
            Ordering::Less => false,
            Ordering::Equal => more || significand & 1 == 1,
            Ordering::Greater => true,
        };
        let (significand, last) = match significand.checked_add(u64::from(up)) {
            Some(significand) => (significand, last),
            None => (1 << 63, last + 1),
        };
        let exponent = last + 63 + BIAS;
        if exponent > 2 * BIAS {
            Extended::INFINITY
        } else if significand >> 63 == 0 {
            Extended { exponent: 0, significand }
        } else {
            Extended { exponent: exponent as u16, significand }
        }
    }

    /// Nearest to the decimal digits `whole`.`fraction` · 10^`exponent`.
    pub(super) fn from_decimal(whole: &[u8], fraction: &[u8], exponent: i64) -> Self {
        let mut digits = Digits::new(whole, fraction);
        let exponent = exponent.saturating_sub(digits.dropped_fraction as i64);
        let exponent = exponent.saturating_add(digits.dropped_zeros as i64);
        let count = digits.len() as i64;
        // The number is less than 10^point and at least 10^(point - 1).
        let point = exponent.saturating_add(count);
        if count == 0 || point < -4950 {
            return Extended::ZERO;
        }
        if point > 4933 {
            return Extended::INFINITY;
        }
        if count <= 19 && exponent.unsigned_abs() <= 27 {
            let size = digits.next_word(count as usize);
            let power = 5_u64.pow(exponent.unsigned_abs() as u32);
            if exponent >= 0 {
                return Self::nearest(u128::from(size) * u128::from(power), exponent, false);
            }
            let shift = 64 + size.leading_zeros();
            let dividend = u128::from(size) << shift;
            let (quotient, rest) = (dividend / u128::from(power), dividend % u128::from(power));
            return Self::nearest(quotient, exponent - i64::from(shift), rest != 0);
        }
        Self::from_long_decimal(digits, exponent)
    }

    fn from_long_decimal(mut digits: Digits<'_>, exponent: i64) -> Self {
        // No number of at most 64 bits, and no middle between two, has more digits than this. So
        // for the digits behind them it only matters whether there are any.
        const MOST: usize = 11_600;
        let count = digits.len();
        let mut dividend = Long::default();
        let mut left = count.min(MOST);
        while left > 0 {
            let step = left.min(19);
            dividend.multiply_add(10_u64.pow(step as u32), digits.next_word(step));
            left -= step;
        }
        let mut exponent = exponent;
        if count > MOST {
            dividend.multiply_add(10, 1);
            exponent += (count - MOST) as i64 - 1;
        }
        let mut divisor = Long::one();
        let scaled = if exponent >= 0 { &mut dividend } else { &mut divisor };
        let mut power = exponent.unsigned_abs();
        while power > 0 {
            let step = power.min(27) as u32;
            scaled.multiply_add(5_u64.pow(step), 0);
            power -= u64::from(step);
        }
        // Shift until the quotient is at least 1 and less than 2, then take 128 bits of it.
        let mut shift = divisor.bits() as i64 - dividend.bits() as i64;
        dividend.shift_left(shift.max(0) as usize);
        divisor.shift_left((-shift).max(0) as usize);
        if dividend.cmp(&divisor) == Ordering::Less {
            dividend.shift_left(1);
            shift += 1;
        }
        let mut quotient = 0_u128;
        for _ in 0..128 {
            quotient <<= 1;
            if dividend.cmp(&divisor) != Ordering::Less {
                dividend.subtract(&divisor);
                quotient |= 1;
            }
            dividend.shift_left(1);
        }
        Self::nearest(quotient, exponent - shift - 127, !dividend.is_zero())
    }

    /// Nearest to the hexadecimal digits `whole`.`fraction` · 2^`exponent`.
    pub(super) fn from_hexadecimal(whole: &[u8], fraction: &[u8], exponent: i64) -> Self {
        let mut bits = 0_u128;
        let mut more = false;
        let mut exponent = exponent.saturating_sub(4 * fraction.len() as i64);
        for &digit in whole.iter().chain(fraction) {
            let value = (digit as char).to_digit(16).expect("a hexadecimal digit");
            if bits >> 124 == 0 {
                bits = bits << 4 | u128::from(value);
            } else {
                more |= value != 0;
                exponent = exponent.saturating_add(4);
            }
        }
        Self::nearest(bits, exponent, more)
    }
}

/// The digits of a decimal number without zeros at either end.
struct Digits<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    /// Digits behind the point, zeros right behind it included, zeros at the end not.
    dropped_fraction: usize,
    /// Zeros at the end of `whole` that were left out.
    dropped_zeros: usize,
}

impl<'a> Digits<'a> {
    fn new(whole: &'a [u8], fraction: &'a [u8]) -> Self {
        let mut whole = super::numeric::skip_zeros(whole);
        let mut fraction = trim_end(fraction);
        let dropped_fraction = fraction.len();
        let mut dropped_zeros = 0;
        if whole.is_empty() {
            fraction = super::numeric::skip_zeros(fraction);
        }
        if fraction.is_empty() {
            let trimmed = trim_end(whole);
            dropped_zeros = whole.len() - trimmed.len();
            whole = trimmed;
        }
        Digits { whole, fraction, dropped_fraction, dropped_zeros }
    }

    fn len(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    /// Takes the next `count` digits, at most 19, as a number.
    fn next_word(&mut self, count: usize) -> u64 {
        let from_whole = count.min(self.whole.len());
        let (whole, rest) = self.whole.split_at(from_whole);
        self.whole = rest;
        let (fraction, rest) = self.fraction.split_at(count - from_whole);
        self.fraction = rest;
        whole.iter().chain(fraction).fold(0, |word, digit| word * 10 + u64::from(digit - b'0'))
    }
}

fn trim_end(mut digits: &[u8]) -> &[u8] {
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    digits
}

/// An unsigned integer of any length, least word first, without zero words at the end.
#[derive(Default)]
struct Long {
    words: Vec<u64>,
}

impl Long {
    fn one() -> Self {
        Long { words: vec![1] }
    }

    fn is_zero(&self) -> bool {
        self.words.is_empty()
    }

    fn bits(&self) -> usize {
        self.words.last().map_or(0, |last| self.words.len() * 64 - last.leading_zeros() as usize)
    }

    fn multiply_add(&mut self, factor: u64, summand: u64) {
        let mut carry = summand;
        for word in &mut self.words {
            let product = u128::from(*word) * u128::from(factor) + u128::from(carry);
            *word = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry > 0 {
            self.words.push(carry);
        }
    }

    fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 64), 0);
        self.words.splice(0..0, std::iter::repeat_n(0, bits / 64));
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let by_len = self.words.len().cmp(&other.words.len());
        by_len.then_with(|| self.words.iter().rev().cmp(other.words.iter().rev()))
    }

    /// `self` is at least `other`.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (at, word) in self.words.iter_mut().enumerate() {
            let subtrahend = other.words.get(at).copied().unwrap_or(0);
            let (difference, under) = word.overflowing_sub(subtrahend);
            let (difference, under_again) = difference.overflowing_sub(u64::from(borrow));
            *word = difference;
            borrow = under || under_again;
        }
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}
