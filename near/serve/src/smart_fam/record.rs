//! The bodies of requests and answers.

use serde::{Deserialize, Serialize};

use merganser_map::frame::{self, FrameError, RecordFrame};

/// Begins every record.
pub const MAGIC: [u8; 4] = *b"MGsf";
/// The longest body: a result of 64 KiB in hexadecimal digits, and room for the rest.
pub const BODY_MAX: usize = 160 << 10;

/// A call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// Arguments of the SSDlet, a JSON object.
    pub args: serde_json::Value,
    /// Files, as paths below the node's data folder.
    pub inputs: Vec<String>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallAnswer {
    /// How.
    pub outcome: CallOutcome,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum CallOutcome {
    /// The result itself.
    Inline {
        /// Whether it is rows, each with the lengths of key and value (u32) before them, or records.
        keyed: bool,
        /// The bytes, in hexadecimal digits.
        hex: String,
    },
    /// The result is in the file of this client and number.
    File {
        /// As above.
        keyed: bool,
        /// Its length.
        bytes: u64,
        /// Its checksum.
        crc32c: u32,
    },
    /// There is no result.
    Failed {
        /// Why, in a sentence.
        error: String,
    },
}

/// The record of a request or an answer.
///
/// # Errors
/// One that is longer than [`BODY_MAX`].
pub(super) fn encode(id: u64, value: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    frame::encode(MAGIC, id, value, BODY_MAX)
}

/// The record at the start of `bytes`; `None` while it is not whole.
///
/// # Errors
/// Bytes that are no record.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<(RecordFrame<'_>, usize)>, FrameError> {
    RecordFrame::decode(MAGIC, BODY_MAX, bytes)
}

/// Bytes as hexadecimal digits.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The bytes of hexadecimal digits; `None` for other text.
pub(super) fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let byte = |&[a, b]: &[u8; 2]| Some((digit(a)? << 4 | digit(b)?) as u8);
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_result_in_an_answer_fits() {
        let hex = to_hex(&vec![0xAB; super::super::INLINE_MAX]);
        let answer = CallAnswer { outcome: CallOutcome::Inline { keyed: true, hex: hex.clone() } };
        let record = encode(u64::MAX, &answer).expect("it fits");
        let (frame, _) = decode(&record).expect("good").expect("whole");
        assert_eq!(frame.value(), Ok(answer));
        assert_eq!(from_hex(&hex).expect("digits").len(), super::super::INLINE_MAX);
        assert_eq!((from_hex("0"), from_hex("0g")), (None, None));
    }
}
