//! Text of any length as a self-delimiting byte string.
//!
//! ```text
//! end of text   00
//! byte 00       01 01
//! byte 01       01 02
//! other byte    itself
//! ```
//! The end is smaller than anything that can follow in a longer text, and no encoded byte but the
//! end is `00`, so no encoded text is a prefix of another. Text without the bytes `00` and `01`,
//! which is nearly all text, is copied as it is.

use memchr::memchr2;

const END: u8 = 0;
const ESCAPE: u8 = 1;

/// Appends `text` and its end.
#[inline]
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    push(text, out);
    end(out);
}

/// Appends a part of a text.
#[inline]
pub(super) fn push(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr2(END, ESCAPE, text) {
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(&[ESCAPE, text[at] + 1]);
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}

/// Appends the text that `encoded` stands for, an encoding without its end; `None` if it is no encoding.
pub(super) fn decode(mut encoded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    while let Some(at) = memchr2(END, ESCAPE, encoded) {
        out.extend_from_slice(&encoded[..at]);
        let escaped = encoded.get(at + 1).filter(|_| encoded[at] == ESCAPE)?;
        out.push(escaped.checked_sub(1).filter(|byte| *byte <= ESCAPE)?);
        encoded = &encoded[at + 2..];
    }
    out.extend_from_slice(encoded);
    Some(())
}

/// Appends one byte of a text.
#[inline]
pub(super) fn push_byte(byte: u8, out: &mut Vec<u8>) {
    if byte <= ESCAPE {
        out.push(ESCAPE);
        out.push(byte + 1);
    } else {
        out.push(byte);
    }
}

/// Appends the end of a text.
#[inline]
pub(super) fn end(out: &mut Vec<u8>) {
    out.push(END);
}
