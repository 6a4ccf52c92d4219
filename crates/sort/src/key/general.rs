//! Floating-point numbers in text, as GNU `sort -g` reads them on x86: white space and what
//! `strtold` takes (decimal and hexadecimal floats, `inf`, `nan`), rounded to an 80-bit float.
//!
//! Ten bytes: exponent and significand of the 80-bit float, sign made to sort as in `binary`.
//! `-inf` is the least number and leaves room below it:
//!
//! ```text
//! 0000 0000000000000000    no number
//! 0000 0000000000000001    -nan
//! 0000 0000000000000002    nan
//! ...                      numbers; -0 is 0
//! ```
//! NaNs differ by nothing but their sign; GNU sort's order among them changes from version to
//! version (9.1 compares bytes it never set). On machines whose `long double` is not the 80-bit
//! one, GNU sort rounds differently, so there it can order numbers differently that agree in their
//! first 15 digits.

use super::extended::Extended;

/// Appends the number at the front of `text`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (exponent, significand) = match parse(text) {
        Value::None => (0, 0),
        Value::Nan { negative } => (0, if negative { 1 } else { 2 }),
        Value::Number { negative: true, size } if size != Extended::ZERO => {
            (!(0x8000 | size.exponent), !size.significand)
        }
        Value::Number { size, .. } => (0x8000 | size.exponent, size.significand),
    };
    out.extend_from_slice(&exponent.to_be_bytes());
    out.extend_from_slice(&significand.to_be_bytes());
}

enum Value {
    None,
    Nan { negative: bool },
    Number { negative: bool, size: Extended },
}

fn parse(text: &[u8]) -> Value {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(space).count()..];
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if let Some(word) = text.first_chunk::<3>() {
        if word.eq_ignore_ascii_case(b"inf") {
            return Value::Number { negative, size: Extended::INFINITY };
        }
        if word.eq_ignore_ascii_case(b"nan") {
            return Value::Nan { negative };
        }
    }
    let size = match text {
        [b'0', b'x' | b'X', rest @ ..] => hexadecimal(rest).or(Some(Extended::ZERO)),
        _ => decimal(text),
    };
    size.map_or(Value::None, |size| Value::Number { negative, size })
}

/// The digits before and behind a point, and the rest.
fn split_point(text: &[u8], is_digit: fn(&u8) -> bool) -> (&[u8], &[u8], &[u8]) {
    let digits = |text: &[u8]| text.iter().take_while(|&byte| is_digit(byte)).count();
    let (whole, rest) = text.split_at(digits(text));
    match rest {
        [b'.', behind @ ..] => {
            let (fraction, rest) = behind.split_at(digits(behind));
            (whole, fraction, rest)
        }
        _ => (whole, &[], rest),
    }
}

/// The exponent at the front of `text`, 0 without one.
fn exponent(text: &[u8], letter: u8) -> i64 {
    let Some((first, text)) = text.split_first() else { return 0 };
    if !first.eq_ignore_ascii_case(&letter) {
        return 0;
    }
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    // Far beyond any exponent, and far from overflow when a number of digits is added.
    const MOST: i64 = 1 << 56;
    let size = text
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |size, digit| (size * 10 + i64::from(digit - b'0')).min(MOST));
    if negative { -size } else { size }
}

fn decimal(text: &[u8]) -> Option<Extended> {
    let (whole, fraction, rest) = split_point(text, u8::is_ascii_digit);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Some(Extended::from_decimal(whole, fraction, exponent(rest, b'e')))
}

/// The number behind `0x`; `None` when no digit follows.
fn hexadecimal(text: &[u8]) -> Option<Extended> {
    let (whole, fraction, rest) = split_point(text, u8::is_ascii_hexdigit);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Some(Extended::from_hexadecimal(whole, fraction, exponent(rest, b'p')))
}
