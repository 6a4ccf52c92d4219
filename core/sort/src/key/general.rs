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

/// Bytes of the number at the front of `text`, as `strtold` takes it: with its sign, and nothing
/// when there is no number.
pub(super) fn len(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let number = &text[sign..];
    let begins = |word: &[u8]| {
        number.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word))
    };
    let len = if begins(b"infinity") {
        b"infinity".len()
    } else if begins(b"inf") || begins(b"nan") {
        3 + if begins(b"nan") { nan_payload_len(&number[3..]) } else { 0 }
    } else {
        match number {
            [b'0', b'x' | b'X', rest @ ..] => {
                digits_len(rest, u8::is_ascii_hexdigit, b'p').map_or(1, |len| 2 + len)
            }
            _ => digits_len(number, u8::is_ascii_digit, b'e').unwrap_or(0),
        }
    };
    if len == 0 { 0 } else { sign + len }
}

/// Bytes of digits, point and exponent; `None` without a digit.
fn digits_len(text: &[u8], is_digit: fn(&u8) -> bool, letter: u8) -> Option<usize> {
    let (whole, fraction, rest) = split_point(text, is_digit);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match rest {
        [first, rest @ ..] if first.eq_ignore_ascii_case(&letter) => {
            let sign = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
            let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 { 0 } else { 1 + sign + digits }
        }
        _ => 0,
    };
    Some(text.len() - rest.len() + exponent)
}

/// Bytes of `(WORD)` behind `nan`.
fn nan_payload_len(text: &[u8]) -> usize {
    let Some(word) = text.strip_prefix(b"(") else { return 0 };
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let len = word.iter().take_while(is_word).count();
    if word.get(len) == Some(&b')') { len + 2 } else { 0 }
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
