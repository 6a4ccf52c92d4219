//! Decimal numbers of any length, as GNU `sort -n` reads them: blanks, `-`, digits, `.`, digits,
//! whatever follows is ignored; no digits at all is zero. Nothing is rounded. (GNU sort 9.1 also
//! skips bytes `80` inside a number, which it takes for the separator of thousands that the C
//! locale does not have; here they end it.)
//!
//! ```text
//! zero        80
//! positive    81 + p      p pairs of digits before the point, p < 6F
//!             F0 p p p p p p p p   for more of them, big-endian
//!             then the digits, two a byte as 1 + value, aligned at the point
//!             (both ends padded with 0), pairs of zeros at the end left out
//!             00
//! negative    the complement of its absolute value
//! ```
//! The number of pairs before the point comes first because it outweighs every digit; the first
//! of them is never zero. `00` ends the digits and is smaller than any pair.

const ZERO: u8 = 0x80;
/// First byte of a number with a [`push_count`]ed number of pairs.
const POSITIVE: u8 = 0x81;
const PAIR_END: u8 = 0;

/// Appends the number at the front of `text`.
#[inline]
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let text = skip_blanks(text);
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let number = Decimal::parse(text);
    let mark = out.len();
    number.encode(out);
    if negative && out[mark] != ZERO {
        complement(&mut out[mark..]);
    }
}

/// The bytes behind leading blanks (GNU's: space, tab and newline).
#[inline]
pub(super) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
    &text[blanks..]
}

/// Blanks, which separate fields when no separator is given, and which `-b` ignores.
#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// Turns an encoded element round.
#[inline]
pub(super) fn complement(encoded: &mut [u8]) {
    for byte in encoded {
        *byte = !*byte;
    }
}

/// Number of digits at the front of `text`.
#[inline]
pub(super) fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// `text` without the zeros at its front.
#[inline]
pub(super) fn skip_zeros(text: &[u8]) -> &[u8] {
    let zeros = text.iter().take_while(|&&byte| byte == b'0').count();
    &text[zeros..]
}

/// Digits before and behind the point, without zeros at the far ends.
struct Decimal<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Decimal<'a> {
    #[inline]
    fn parse(text: &'a [u8]) -> Self {
        let text = skip_zeros(text);
        let (whole, rest) = text.split_at(digits(text));
        let mut fraction: &[u8] = match rest {
            [b'.', rest @ ..] => &rest[..digits(rest)],
            _ => &[],
        };
        while let [rest @ .., b'0'] = fraction {
            fraction = rest;
        }
        Decimal { whole, fraction }
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        if self.whole.is_empty() && self.fraction.is_empty() {
            out.push(ZERO);
            return;
        }
        push_count(POSITIVE, self.whole.len().div_ceil(2), out);
        push_pairs(self.whole, out);
        if self.fraction.is_empty() {
            // The first pair is not zero, so this stops at it or before.
            while out.last() == Some(&1) {
                out.pop();
            }
        } else {
            let (pairs, odd) = self.fraction.as_chunks::<2>();
            out.extend(pairs.iter().map(pair));
            if let [digit] = odd {
                out.push(pair(&[*digit, b'0']));
            }
        }
        out.push(PAIR_END);
    }
}

/// Appends the pair count of a number, such that more pairs are a larger byte string: one byte
/// from `base` on, or `F0` and eight bytes.
#[inline]
pub(super) fn push_count(base: u8, pairs: usize, out: &mut Vec<u8>) {
    const MANY: u8 = 0xf0;
    match u8::try_from(pairs) {
        Ok(few) if few < MANY - base => out.push(base + few),
        _ => {
            out.push(MANY);
            out.extend_from_slice(&(pairs as u64).to_be_bytes());
        }
    }
}

/// Appends digits two a byte, the first one alone when their number is odd.
#[inline]
pub(super) fn push_pairs(digits: &[u8], out: &mut Vec<u8>) {
    let (odd, pairs) = digits.as_rchunks::<2>();
    if let [digit] = odd {
        out.push(pair(&[b'0', *digit]));
    }
    out.extend(pairs.iter().map(pair));
}

#[inline]
fn pair(&[tens, ones]: &[u8; 2]) -> u8 {
    (tens - b'0') * 10 + (ones - b'0') + 1
}
