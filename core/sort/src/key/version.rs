//! Version order, as GNU `sort -V` has it: runs of digits compare as numbers, `~` comes before
//! everything, even the end, letters before other bytes, and suffixes like `.tar.gz` count only
//! where the rest is equal.
//!
//! # From a comparison to a byte string
//! The comparison walks both texts in step: a stretch of other bytes one by one, then a stretch of
//! digits as a number, and again. Where one text stands at a digit or at its end, it loses against
//! every other byte but `~`; and digit against end is decided by the number, so a number that is
//! zero is as good as the end. A text is therefore the endless sequence
//!
//! ```text
//! stretch, number, stretch, number, ..., "", 0, "", 0, ...
//! ```
//! compared element by element, and the task is to write it finitely. Only the very first stretch
//! of a text, or one behind its end, can be empty. So a zero is followed by a byte or by the
//! endless tail, and one look ahead decides on which side of the endless tail the text sorts:
//!
//! ```text
//! 01            ~
//! 02            the number 0, and ~ behind it: less than the endless tail
//! 03            the endless tail
//! 04            the number 0, and another byte behind it: more than the endless tail
//! 05 count ...  a larger number: its pairs of digits counted, then the pairs
//! 06 to 39      letters, in ASCII order
//! 3A to FA      all other bytes, in order
//! ```
//! Behind `03` nothing is compared, so the string is self-delimiting.
//!
//! # The whole key
//! ```text
//! 00 empty   01 "."   02 ".."   03 begins with a dot   04 anything else
//! for the last two: the text without its suffix, then the rest
//! ```
//! GNU compares the texts without suffixes, and on a tie the whole texts. On a tie the encodings
//! are equal up to `03`. So comparing the whole texts means comparing the rest: the zero that was
//! part of the tail, if there was one, and the suffix.

use super::numeric::{digits, push_count, push_pairs, skip_zeros};

const TILDE: u8 = 1;
const ZERO_TILDE: u8 = 2;
const TAIL: u8 = 3;
const ZERO_OTHER: u8 = 4;
const NUMBER: u8 = 5;
const LETTERS: u8 = 6;
const OTHERS: u8 = LETTERS + 52;

/// [`RANKS`]`[byte]` is the encoding of a byte that is not a digit.
const RANKS: [u8; 256] = {
    let mut ranks = [0; 256];
    let (mut letter, mut other) = (LETTERS, OTHERS);
    let mut byte = 0;
    while byte < 256 {
        let is = byte as u8;
        if is == b'~' {
            ranks[byte] = TILDE;
        } else if is.is_ascii_alphabetic() {
            ranks[byte] = letter;
            letter += 1;
        } else if !is.is_ascii_digit() {
            ranks[byte] = other;
            other += 1;
        }
        byte += 1;
    }
    ranks
};

/// Appends the version that is all of `text`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let class = match text {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    out.push(class);
    if class < 3 {
        return;
    }
    let stem = &text[..stem_len(text)];
    push_sequence(stem, out);
    // A suffix begins with a dot, so digits at the end of the stem are a whole number.
    let zeros = stem.iter().rev().take_while(|&&byte| byte == b'0').count();
    let is_number = zeros < stem.len() && stem[stem.len() - zeros - 1].is_ascii_digit();
    let tail = if is_number { stem.len() } else { stem.len() - zeros };
    push_sequence(&text[tail..], out);
}

/// Appends the sequence of `text` with its tail; `text` may begin inside a longer one, at the end
/// of a stretch.
fn push_sequence(mut text: &[u8], out: &mut Vec<u8>) {
    while let [first, ..] = text {
        if !first.is_ascii_digit() {
            out.push(RANKS[usize::from(*first)]);
            text = &text[1..];
            continue;
        }
        let number = skip_zeros(text);
        let (number, rest) = number.split_at(digits(number));
        text = rest;
        if !number.is_empty() {
            out.push(NUMBER);
            push_count(0, number.len().div_ceil(2), out);
            push_pairs(number, out);
        } else if let [next, ..] = text {
            out.push(if *next == b'~' { ZERO_TILDE } else { ZERO_OTHER });
        }
    }
    out.push(TAIL);
}

/// Length of `text` without its suffix, which is the longest end that matches
/// `(\.[A-Za-z~][A-Za-z0-9~]*)*`. It may be all of `text`, as in GNU coreutils 9.1.
fn stem_len(text: &[u8]) -> usize {
    let mut suffix = text.len();
    let mut end = text.len();
    // Each turn finds the last dot before `end` and checks whether `.[A-Za-z~][A-Za-z0-9~]*` is in
    // between.
    while let Some(dot) = memchr::memrchr(b'.', &text[..end]) {
        let extension = &text[dot + 1..end];
        let matches =
            extension.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'~')
                && extension.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'~');
        if !matches {
            break;
        }
        (suffix, end) = (dot, dot);
    }
    suffix
}
