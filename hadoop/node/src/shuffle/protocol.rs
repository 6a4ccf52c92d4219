//! The messages between clients and the merge process, version 1. All integers are big-endian.
//!
//! ```text
//!   request  "MGSH" ─ version u16 ─ kind u16 ─ length u32 ─ body
//!     1 merge   skip u64 ─ memory u64 ─ order: length u16, UTF-8 ─ count u32 ─ segments
//!               a segment: path: length u16, UTF-8 ─ offset u64 ─ raw u64 ─ part u64
//!     2 hello   nothing
//!   answer   frames: type u8 ─ length u32 ─ body
//!     1 data    bytes of the merged segment, in order
//!     2 end     records u64 ─ compares u64
//!     3 error   kind u16 ─ a sentence in UTF-8
//!     4 hello   version u16 ─ merges u32 ─ memory u64 ─ the product's version in UTF-8
//! ```
//!
//! One request at a time on a connection. A merge is answered by any number of data frames and one of
//! `end` or `error`. A bad request is answered by an error and the end of the connection. docs/formats.md
//! has the tables.

use super::{SegmentSpec, ShuffleError};
pub use crate::message::{BadMessage, FRAME_HEAD_BYTES, HEAD_BYTES, RequestHead, frame_head};
use crate::message::{BodyReader, DATA, FRAME_BODY_BYTES_MAX, Heads, frame, frame_of, push_text};

/// The only version there is.
pub const VERSION: u16 = 1;
/// The longest body of a request or frame, in bytes.
pub const BODY_BYTES_MAX: usize = FRAME_BODY_BYTES_MAX;
/// The most segments of one merge.
pub const SEGMENTS_MAX: usize = 4096;

const MERGE: u16 = 1;
const HELLO: u16 = 2;

const HEADS: Heads = Heads {
    magic: *b"MGSH",
    versions: VERSION..=VERSION,
    kinds: &[MERGE, HELLO],
    body_bytes_max: BODY_BYTES_MAX,
};
/// Bytes of a segment with an empty path.
const SEGMENT_BYTES_MIN: usize = 2 + 3 * 8;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShuffleRequest {
    /// To merge segments.
    Merge(MergeRequest),
    /// Asks for the version and the load.
    Hello,
}

/// A merge, as a client asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRequest {
    /// Bytes of the merged segment that are not to be sent.
    pub skip: u64,
    /// Bytes of memory that it may take.
    pub memory_bytes: u64,
    /// The description of the order.
    pub order: String,
    /// What to merge; of records with equal keys, those of an earlier segment come first.
    pub segments: Vec<SegmentSpec>,
}

/// A part of an answer. Data is sent without being copied into one: see [`frame_head`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeFrame {
    /// Bytes of the merged segment.
    Data(Vec<u8>),
    /// The merged segment was sent whole.
    End {
        /// Records of the merged segment, those that were skipped included.
        records: u64,
        /// Compares that it took.
        compares: u64,
    },
    /// It was not.
    Error {
        /// Why.
        kind: ShuffleErrorKind,
        /// The same, as a sentence.
        sentence: String,
    },
    /// The process.
    Hello {
        /// The highest version of this protocol that it speaks.
        version: u16,
        /// Merges that are running.
        merges: u32,
        /// Bytes of memory that are in use.
        memory_bytes: u64,
        /// The version of the product.
        product: String,
    },
}

/// Why there is no merged segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffleErrorKind {
    /// Too much is going on: come again.
    Busy = 1,
    /// A spill's bytes are not what they should be.
    Damaged = 2,
    /// A spill is not there.
    Missing = 3,
    /// The description means no order.
    Order = 4,
    /// A spill could not be read.
    Io = 5,
    /// The request is malformed, asks for files that may not be read, or gives too little memory.
    Request = 6,
}

const END: u8 = 2;
const ERROR: u8 = 3;
const HELLO_FRAME: u8 = 4;

impl ShuffleRequest {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// When it is not of this version. The connection is useless then.
    pub fn head(bytes: [u8; HEAD_BYTES]) -> Result<RequestHead, BadMessage> {
        HEADS.decode(bytes)
    }

    /// Reads the body of a request.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode(head: RequestHead, body: &[u8]) -> Result<Self, BadMessage> {
        let mut rest = BodyReader(body);
        let request = if head.kind == HELLO {
            ShuffleRequest::Hello
        } else {
            ShuffleRequest::Merge(MergeRequest::decode(&mut rest)?)
        };
        rest.end("request")?;
        Ok(request)
    }

    /// The whole request.
    ///
    /// # Errors
    /// When a text or the whole is too long for the protocol, or a path is not UTF-8.
    pub fn encode(&self) -> Result<Vec<u8>, BadMessage> {
        let mut body = Vec::new();
        let kind = match self {
            ShuffleRequest::Hello => HELLO,
            ShuffleRequest::Merge(merge) => {
                merge.encode(&mut body)?;
                MERGE
            }
        };
        HEADS.encode(VERSION, kind, &body)
    }
}

impl MergeRequest {
    fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        let (skip, memory_bytes) = (rest.u64()?, rest.u64()?);
        let order = rest.text()?;
        let count = rest.u32()? as usize;
        if count > SEGMENTS_MAX || count > rest.0.len() / SEGMENT_BYTES_MIN {
            return Err(BadMessage(format!(
                "{count} segments are more than {SEGMENTS_MAX}, or than the request has bytes for"
            )));
        }
        let mut segments = Vec::with_capacity(count);
        for _ in 0..count {
            let path = rest.text()?.into();
            let [offset, raw, part] = [rest.u64()?, rest.u64()?, rest.u64()?];
            segments.push(SegmentSpec { path, offset, raw, part });
        }
        Ok(MergeRequest { skip, memory_bytes, order, segments })
    }

    fn encode(&self, body: &mut Vec<u8>) -> Result<(), BadMessage> {
        body.extend(self.skip.to_be_bytes());
        body.extend(self.memory_bytes.to_be_bytes());
        push_text(&self.order, body)?;
        body.extend((self.segments.len() as u32).to_be_bytes());
        for SegmentSpec { path, offset, raw, part } in &self.segments {
            let text = path.to_str();
            let text = text.ok_or_else(|| {
                BadMessage(format!("{}: the protocol's paths are UTF-8", path.display()))
            })?;
            push_text(text, body)?;
            [offset, raw, part].iter().for_each(|number| body.extend(number.to_be_bytes()));
        }
        Ok(())
    }
}

impl MergeFrame {
    /// The whole frame.
    ///
    /// # Panics
    /// When its body is longer than [`BODY_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        frame(|bytes| match self {
            MergeFrame::Data(data) => {
                bytes.extend(data);
                DATA
            }
            MergeFrame::End { records, compares } => {
                bytes.extend(records.to_be_bytes());
                bytes.extend(compares.to_be_bytes());
                END
            }
            MergeFrame::Error { kind, sentence } => {
                bytes.extend((*kind as u16).to_be_bytes());
                bytes.extend(sentence.as_bytes());
                ERROR
            }
            MergeFrame::Hello { version, merges, memory_bytes, product } => {
                bytes.extend(version.to_be_bytes());
                bytes.extend(merges.to_be_bytes());
                bytes.extend(memory_bytes.to_be_bytes());
                bytes.extend(product.as_bytes());
                HELLO_FRAME
            }
        })
    }

    /// Reads a frame that begins `bytes`, and how long it is; `None` when it does not end within them.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadMessage> {
        let Some((kind, body)) = frame_of(bytes)? else { return Ok(None) };
        let mut rest = BodyReader(body);
        let frame = match kind {
            DATA => MergeFrame::Data(std::mem::take(&mut rest.0).to_vec()),
            END => MergeFrame::End { records: rest.u64()?, compares: rest.u64()? },
            ERROR => {
                let kind = rest.u16()?;
                let kind = ShuffleErrorKind::of_number(kind)
                    .ok_or_else(|| BadMessage(format!("there are no errors of kind {kind}")))?;
                MergeFrame::Error { kind, sentence: rest.rest_of_text()? }
            }
            HELLO_FRAME => MergeFrame::Hello {
                version: rest.u16()?,
                merges: rest.u32()?,
                memory_bytes: rest.u64()?,
                product: rest.rest_of_text()?,
            },
            _ => return Err(BadMessage(format!("there are no frames of type {kind}"))),
        };
        rest.end("frame")?;
        Ok(Some((frame, FRAME_HEAD_BYTES + body.len())))
    }
}

impl ShuffleErrorKind {
    fn of_number(number: u16) -> Option<Self> {
        use ShuffleErrorKind::{Busy, Damaged, Io, Missing, Order, Request};
        [Busy, Damaged, Missing, Order, Io, Request].into_iter().find(|kind| *kind as u16 == number)
    }
}

impl From<&ShuffleError> for ShuffleErrorKind {
    fn from(error: &ShuffleError) -> Self {
        match error {
            ShuffleError::Missing { .. } => ShuffleErrorKind::Missing,
            ShuffleError::Damaged { .. } => ShuffleErrorKind::Damaged,
            // To come again would change nothing about too little memory.
            ShuffleError::Refused { .. } | ShuffleError::Memory { .. } => ShuffleErrorKind::Request,
            ShuffleError::Busy { .. } => ShuffleErrorKind::Busy,
            ShuffleError::Io { .. } | ShuffleError::Output { .. } | ShuffleError::Failed => {
                ShuffleErrorKind::Io
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> Result<ShuffleRequest, BadMessage> {
        let (head, body) = bytes.split_first_chunk().expect("a head");
        let head = ShuffleRequest::head(*head)?;
        assert_eq!(head.body_bytes, body.len());
        ShuffleRequest::decode(head, body)
    }

    fn merge() -> ShuffleRequest {
        let path = "/d/spill_0.out".into();
        ShuffleRequest::Merge(MergeRequest {
            skip: 7,
            memory_bytes: 1 << 20,
            order: "text".to_owned(),
            segments: vec![SegmentSpec { path, offset: 16, raw: 1000, part: 1004 }],
        })
    }

    #[test]
    fn requests_are_pinned() {
        let hello = b"MGSH\x00\x01\x00\x02\x00\x00\x00\x00";
        assert_eq!(ShuffleRequest::Hello.encode().expect("short"), hello);
        assert_eq!(decode(hello), Ok(ShuffleRequest::Hello));
        let bytes = b"MGSH\x00\x01\x00\x01\x00\x00\x00\x42\
            \x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x10\x00\x00\
            \x00\x04text\x00\x00\x00\x01\
            \x00\x0e/d/spill_0.out\x00\x00\x00\x00\x00\x00\x00\x10\
            \x00\x00\x00\x00\x00\x00\x03\xe8\x00\x00\x00\x00\x00\x00\x03\xec";
        assert_eq!(merge().encode().expect("short"), bytes);
        assert_eq!(decode(bytes), Ok(merge()));
    }

    #[test]
    fn frames_are_pinned() {
        let error =
            MergeFrame::Error { kind: ShuffleErrorKind::Missing, sentence: "gone".to_owned() };
        let hello = MergeFrame::Hello {
            version: 1,
            merges: 3,
            memory_bytes: 258,
            product: "0.1.0".to_owned(),
        };
        let pinned: [(MergeFrame, &[u8]); 4] = [
            (MergeFrame::Data(b"ab".to_vec()), b"\x01\x00\x00\x00\x02ab"),
            (
                MergeFrame::End { records: 5, compares: 256 },
                b"\x02\x00\x00\x00\x10\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\x01\0",
            ),
            (error, b"\x03\x00\x00\x00\x06\x00\x03gone"),
            (hello, b"\x04\x00\x00\x00\x13\x00\x01\0\0\0\x03\0\0\0\0\0\0\x01\x020.1.0"),
        ];
        for (frame, bytes) in pinned {
            assert_eq!(frame.encode(), bytes);
            for len in 0..bytes.len() {
                assert_eq!(MergeFrame::decode(&bytes[..len]), Ok(None), "{frame:?}, {len}");
            }
            assert_eq!(MergeFrame::decode(bytes), Ok(Some((frame, bytes.len()))));
        }
        assert_eq!(frame_head(2), b"\x01\x00\x00\x00\x02"[..]);
    }

    #[test]
    fn bad_requests_are_told() {
        let whole = merge().encode().expect("short");
        let told = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let (head, body) = bytes.split_first_chunk().expect("a head");
            ShuffleRequest::head(*head)
                .and_then(|h| ShuffleRequest::decode(h, body))
                .expect_err("bad")
                .to_string()
        };
        assert_eq!(told(0, b'm'), "a request begins with MGSH, not with mGSH");
        assert_eq!(told(5, 2), "a request of version 2; this process speaks version 1");
        assert_eq!(told(7, 9), "there are no requests of kind 9");
        assert_eq!(told(8, 1), "a request's body has at most 1048576 bytes, not 16777282");
        assert_eq!(told(7, 2), "66 bytes follow what the request says");
        assert_eq!(told(30, 0xff), "a text that is not UTF-8");
        assert!(told(34, 0xff).contains("segments are more than"));
        assert!(told(29, 0xff).contains("ends before all that it announces"));
        for len in 0..whole.len() - HEAD_BYTES {
            let head = RequestHead { version: VERSION, kind: MERGE, body_bytes: len };
            ShuffleRequest::decode(head, &whole[HEAD_BYTES..][..len]).expect_err("it was cut");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(
            kind in 0_u16..4, body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(request) = ShuffleRequest::decode(RequestHead { version: VERSION, kind, body_bytes: body.len() }, &body) {
                prop_assert_eq!(decode(&request.encode().expect("it was short")), Ok(request));
            }
            let _ = MergeFrame::decode(&body);
        }
    }
}
