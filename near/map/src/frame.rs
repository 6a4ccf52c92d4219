//! A frame: one message of JSON with a length, a number and a checksum, in a file that grows or at an
//! address of a device.
//!
//! ```text
//!    0 ┌ magic, 4 bytes ┬ body length u32 ┬ id u64 ┬ CRC32C u32 ┐
//!   20 ├ body: JSON ─────────────────────────────────────────────┤
//! ```
//!
//! Integers are little-endian. The CRC covers magic, length, id and body. docs/formats.md has the table.
//! The log files of smartFAM and the commands to a device are frames with magics of their own.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes before the body.
pub const HEAD_BYTES: usize = 20;

/// A checked frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFrame<'a> {
    /// The number of the message; its meaning is the user's.
    pub id: u64,
    /// The JSON.
    pub body: &'a [u8],
}

/// Why bytes are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// They begin in another way.
    #[error("there is no record: it begins with {found:02x?} instead of {expected:02x?}")]
    Magic {
        /// What they begin with.
        found: [u8; 4],
        /// What a frame begins with.
        expected: [u8; 4],
    },
    /// The body is longer than the reader takes.
    #[error("a record of {bytes} bytes is longer than the {max} that are read")]
    Length {
        /// Bytes of the body.
        bytes: u64,
        /// The most.
        max: usize,
    },
    /// The checksum does not fit.
    #[error("the CRC is {found:08x}, that of the bytes {expected:08x}")]
    Checksum {
        /// In the frame.
        found: u32,
        /// Of its bytes.
        expected: u32,
    },
    /// The body is not what it should be.
    #[error("{0}")]
    Body(String),
}

impl<'a> RecordFrame<'a> {
    /// The frame at the start of `bytes`, and its whole length; `None` if it does not end in them.
    ///
    /// # Errors
    /// Bytes that can't become a frame, however many follow.
    pub fn decode(
        magic: [u8; 4],
        body_max: usize,
        bytes: &'a [u8],
    ) -> Result<Option<(RecordFrame<'a>, usize)>, FrameError> {
        let begun = &bytes[..bytes.len().min(4)];
        if begun != &magic[..begun.len()] {
            let mut found = [0; 4];
            found[..begun.len()].copy_from_slice(begun);
            return Err(FrameError::Magic { found, expected: magic });
        }
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let u32_at =
            |at: usize| u32::from_le_bytes(*head[at..].first_chunk().expect("in the head"));
        let body_bytes = u32_at(4) as usize;
        if body_bytes > body_max {
            return Err(FrameError::Length { bytes: body_bytes as u64, max: body_max });
        }
        let Some(body) = bytes[HEAD_BYTES..].get(..body_bytes) else { return Ok(None) };
        let id = u64::from_le_bytes(*head[8..].first_chunk().expect("in the head"));
        let (found, expected) = (u32_at(16), checksum(&head[..16], body));
        if found != expected {
            return Err(FrameError::Checksum { found, expected });
        }
        Ok(Some((RecordFrame { id, body }, HEAD_BYTES + body_bytes)))
    }

    /// The body as a value.
    ///
    /// # Errors
    /// Bytes that are not its JSON.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_slice(self.body).map_err(|e| FrameError::Body(e.to_string()))
    }
}

/// A frame with `value` as its body.
///
/// # Errors
/// A body longer than `body_max`.
pub fn encode(
    magic: [u8; 4],
    id: u64,
    value: &impl Serialize,
    body_max: usize,
) -> Result<Vec<u8>, FrameError> {
    let body = serde_json::to_vec(value).map_err(|e| FrameError::Body(e.to_string()))?;
    if body.len() > body_max || u32::try_from(body.len()).is_err() {
        return Err(FrameError::Length { bytes: body.len() as u64, max: body_max });
    }
    let mut out = Vec::with_capacity(HEAD_BYTES + body.len());
    out.extend(magic);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(id.to_le_bytes());
    out.extend(checksum(&out, &body).to_le_bytes());
    out.extend(body);
    Ok(out)
}

fn checksum(head: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 4] = *b"test";

    #[test]
    fn a_frame_comes_back_and_what_follows_is_left() {
        let mut bytes = encode(MAGIC, 7, &["a", "b"], 100).expect("short");
        let len = bytes.len();
        bytes.extend(b"more");
        let (frame, end) = RecordFrame::decode(MAGIC, 100, &bytes).expect("good").expect("whole");
        assert_eq!((frame.id, end), (7, len));
        assert_eq!(frame.value::<Vec<String>>(), Ok(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_torn_frame_is_none_at_every_byte() {
        let bytes = encode(MAGIC, u64::MAX, &"text", 100).expect("short");
        for end in 0..bytes.len() {
            assert_eq!(RecordFrame::decode(MAGIC, 100, &bytes[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let bytes = encode(MAGIC, 1, &"text", 100).expect("short");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let found = RecordFrame::decode(MAGIC, 100, &changed);
            // A longer length makes it wait for more.
            assert!(matches!(found, Err(_) | Ok(None)), "{at}: {found:?}");
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_refused_at_once() {
        let mut bytes = encode(MAGIC, 1, &"text", 100).expect("short");
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        let refused = FrameError::Length { bytes: u64::from(u32::MAX), max: 100 };
        assert_eq!(RecordFrame::decode(MAGIC, 100, &bytes), Err(refused));
        assert!(encode(MAGIC, 1, &"x".repeat(99), 100).is_err());
    }
}
