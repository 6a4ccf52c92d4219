//! The fields of messages between Hadoop's processes and this one: big-endian integers, texts and bytes with
//! their length in front, and the heads of requests and frames.
//!
//! ```text
//!   request  magic 4 ─ version u16 ─ kind u16 ─ length u32 ─ body
//!   frame    type u8 ─ length u32 ─ body                             text   length u16 ─ UTF-8
//! ```
//!
//! The reader takes checked slices out of borrowed bytes, and has the errors of its protocols, as those of
//! `export/nbd/wire.rs` and `active_sort/descriptor.rs` have. `bytes::Buf` takes checked integers but no borrowed
//! slice, so all of them would stay, with another error to convert.

use std::ops::RangeInclusive;

/// Bytes of a request before its body.
pub const HEAD_BYTES: usize = 12;

/// Bytes of a frame before its body.
pub const FRAME_HEAD_BYTES: usize = 5;
/// The longest body of a frame, in bytes.
pub const FRAME_BODY_BYTES_MAX: usize = 1 << 20;
/// The type of frames with data.
pub(crate) const DATA: u8 = 1;
/// The longest sentence of an error, in bytes.
const SENTENCE_BYTES_MAX: usize = 4096;

/// Why bytes are no message. One sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadMessage(pub(crate) String);

/// The part of a request before its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    pub(crate) version: u16,
    pub(crate) kind: u16,
    /// Bytes of the body.
    pub body_bytes: usize,
}

/// The heads of one protocol's requests.
pub(crate) struct Heads {
    pub(crate) magic: [u8; 4],
    /// The versions that are spoken.
    pub(crate) versions: RangeInclusive<u16>,
    /// The kinds of requests.
    pub(crate) kinds: &'static [u16],
    /// The longest body, in bytes.
    pub(crate) body_bytes_max: usize,
}

impl Heads {
    /// Reads a head.
    pub(crate) fn decode(&self, bytes: [u8; HEAD_BYTES]) -> Result<RequestHead, BadMessage> {
        let Heads { magic, versions, kinds, body_bytes_max } = self;
        let mut rest = BodyReader(&bytes);
        let found: [u8; 4] = rest.array()?;
        if found != *magic {
            let (magic, found) = (magic.escape_ascii(), found.escape_ascii());
            return Err(BadMessage(format!("a request begins with {magic}, not with {found}")));
        }
        let version = rest.u16()?;
        if !versions.contains(&version) {
            let (first, last) = (versions.start(), versions.end());
            let spoken = if first == last { String::new() } else { format!("s {first} to") };
            return Err(BadMessage(format!(
                "a request of version {version}; this process speaks version{spoken} {last}"
            )));
        }
        let kind = rest.u16()?;
        if !kinds.contains(&kind) {
            return Err(BadMessage(format!("there are no requests of kind {kind}")));
        }
        let body_bytes = rest.u32()? as usize;
        if body_bytes > *body_bytes_max {
            return Err(BadMessage(format!(
                "a request's body has at most {body_bytes_max} bytes, not {body_bytes}"
            )));
        }
        Ok(RequestHead { version, kind, body_bytes })
    }

    /// A whole request of `version`.
    pub(crate) fn encode(
        &self,
        version: u16,
        kind: u16,
        body: &[u8],
    ) -> Result<Vec<u8>, BadMessage> {
        if body.len() > self.body_bytes_max {
            return Err(BadMessage(format!("{} bytes are too many for a request", body.len())));
        }
        let mut bytes = self.magic.to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        Ok(bytes)
    }
}

/// The rest of a body.
pub(crate) struct BodyReader<'a>(pub(crate) &'a [u8]);

impl<'a> BodyReader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], BadMessage> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| BadMessage("it ends before all that it announces".to_owned()))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadMessage> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadMessage> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, BadMessage> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BadMessage> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadMessage> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, BadMessage> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn text(&mut self) -> Result<String, BadMessage> {
        let len = usize::from(self.u16()?);
        text_of(self.take(len)?)
    }

    pub(crate) fn rest_of_text(&mut self) -> Result<String, BadMessage> {
        text_of(std::mem::take(&mut self.0))
    }

    /// Checks that nothing follows; `what` was read.
    pub(crate) fn end(&self, what: &str) -> Result<(), BadMessage> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(BadMessage(format!("{} bytes follow what the {what} says", self.0.len())))
    }
}

fn text_of(bytes: &[u8]) -> Result<String, BadMessage> {
    let text = str::from_utf8(bytes);
    text.map(str::to_owned).map_err(|_| BadMessage("a text that is not UTF-8".to_owned()))
}

pub(crate) fn push_text(text: &str, out: &mut Vec<u8>) -> Result<(), BadMessage> {
    let len = u16::try_from(text.len())
        .map_err(|_| BadMessage(format!("a text of {} bytes is too long", text.len())))?;
    out.extend(len.to_be_bytes());
    out.extend(text.as_bytes());
    Ok(())
}

/// The head of a data frame of `len` bytes.
///
/// # Panics
/// When those are more than [`FRAME_BODY_BYTES_MAX`].
#[must_use]
pub fn frame_head(len: usize) -> [u8; FRAME_HEAD_BYTES] {
    head_of(DATA, len)
}

/// The head of a frame whose body has `len` bytes.
///
/// # Panics
/// When those are more than [`FRAME_BODY_BYTES_MAX`].
fn head_of(kind: u8, len: usize) -> [u8; FRAME_HEAD_BYTES] {
    assert!(len <= FRAME_BODY_BYTES_MAX, "frames are kept short");
    let [a, b, c, d] = (len as u32).to_be_bytes();
    [kind, a, b, c, d]
}

/// A whole frame, whose body `write` appends; it gives the type.
///
/// # Panics
/// As [`head_of`].
pub(crate) fn frame(write: impl FnOnce(&mut Vec<u8>) -> u8) -> Vec<u8> {
    let mut bytes = vec![0; FRAME_HEAD_BYTES];
    let kind = write(&mut bytes);
    let head = head_of(kind, bytes.len() - FRAME_HEAD_BYTES);
    bytes[..FRAME_HEAD_BYTES].copy_from_slice(&head);
    bytes
}

/// The type and the body of a frame that begins `bytes`; `None` when it does not end within them.
///
/// # Errors
/// When it is too long.
pub(crate) fn frame_of(bytes: &[u8]) -> Result<Option<(u8, &[u8])>, BadMessage> {
    let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else {
        return Ok(None);
    };
    let [kind, len @ ..] = *head;
    let len = u32::from_be_bytes(len) as usize;
    if len > FRAME_BODY_BYTES_MAX {
        return Err(BadMessage(format!("a frame of {len} bytes, which is too long")));
    }
    Ok(rest.get(..len).map(|body| (kind, body)))
}

/// A sentence for a client, cut where it is longer than clients want to log: paths may be long.
pub(crate) fn sentence(mut sentence: String) -> String {
    if sentence.len() > SENTENCE_BYTES_MAX {
        sentence.truncate(sentence.floor_char_boundary(SENTENCE_BYTES_MAX));
    }
    sentence
}
