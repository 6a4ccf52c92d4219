//! Numbers with a size suffix, as GNU `sort -h` compares them: first by sign, then by suffix,
//! then as numbers. `900K` is less than `1M`, and so is `2000K`: suffixes are compared, not values.
//!
//! ```text
//! 80 + rank of the suffix (minus it for a negative number)    the number as in `numeric`
//! ```
//! Suffixes in rising order: no suffix, K or k, M, G, T, P, E, Z, Y, R, Q. A number that is zero
//! has no suffix.

use super::numeric;

/// Appends the number at the front of `text`; with `fold`, any suffix may be in lower case.
#[inline]
pub(super) fn encode(text: &[u8], fold: bool, out: &mut Vec<u8>) {
    let text = numeric::skip_blanks(text);
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let rank = suffix_rank(digits, fold);
    out.push(if negative { 0x80 - rank } else { 0x80 + rank });
    numeric::encode(text, out);
}

fn suffix_rank(text: &[u8], fold: bool) -> u8 {
    let (whole, mut rest) = text.split_at(numeric::digits(text));
    let mut fraction: &[u8] = &[];
    if let [b'.', behind @ ..] = rest {
        (fraction, rest) = behind.split_at(numeric::digits(behind));
    }
    let is_zero = !whole.iter().chain(fraction).any(|&digit| digit != b'0');
    let Some(&suffix) = rest.first().filter(|_| !is_zero) else { return 0 };
    let suffix = if fold { suffix.to_ascii_uppercase() } else { suffix };
    rank_of(suffix).unwrap_or(0)
}

/// Whether the byte is a suffix of size.
pub(super) fn is_suffix(byte: u8) -> bool {
    rank_of(byte).is_some()
}

fn rank_of(suffix: u8) -> Option<u8> {
    Some(match suffix {
        b'K' | b'k' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        b'E' => 6,
        b'Z' => 7,
        b'Y' => 8,
        b'R' => 9,
        b'Q' => 10,
        _ => return None,
    })
}
