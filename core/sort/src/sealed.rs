//! Small state files: pretty JSON, then a line with the checksum of all bytes before it.
//!
//! ```text
//!   { JSON, see docs/formats.md }\n
//!   crc32c 0123abcd\n
//! ```
//!
//! Manifests, journals and resume points have this form, so that a person can read them and a
//! damaged one is noticed.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::run::format::corrupt;

/// The last line.
const TAIL_BYTES: usize = "crc32c 01234567\n".len();

/// The bytes of the file that holds `content`.
pub(crate) fn seal(content: &impl Serialize) -> Vec<u8> {
    let mut out = serde_json::to_vec_pretty(content).expect("plain data");
    out.push(b'\n');
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(format!("crc32c {crc:08x}\n").as_bytes());
    out
}

/// Checks `bytes` and returns their value; `file` names them in errors, `noun` says what they
/// should be.
///
/// # Errors
/// [`crate::Error::Corrupt`].
pub(crate) fn unseal<T: DeserializeOwned>(file: &str, noun: &str, bytes: &[u8]) -> Result<T> {
    let split = bytes.len().checked_sub(TAIL_BYTES);
    let Some((body, tail)) = split.map(|at| bytes.split_at(at)) else {
        let detail = format!("{} bytes are too few for a {noun}", bytes.len());
        return Err(corrupt(file, 0, detail));
    };
    let expected = format!("crc32c {:08x}\n", crc32c::crc32c(body));
    if tail != expected.as_bytes() {
        let (found, expected) = (String::from_utf8_lossy(tail), expected.trim_end().to_owned());
        let detail = format!("'{}' found, '{expected}' expected", found.trim_end());
        return Err(corrupt(file, body.len() as u64, detail));
    }
    serde_json::from_slice(body).map_err(|e| corrupt(file, 0, format!("not a {noun}: {e}")))
}
