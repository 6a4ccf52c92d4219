//! The protocol's numbers and messages: bytes to values and back, with no input or output.
//!
//! After "The NBD protocol" (`doc/proto.md` of NetworkBlockDevice/nbd), whose names the constants
//! have. All integers are big-endian.

/// Begins the server's greeting (`NBDMAGIC`).
pub(super) const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Follows it, and begins every option (`IHAVEOPT`).
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Begins every reply to an option.
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins every request.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// What server and client may say of themselves in the greeting; the same bits both ways.
pub(super) mod greeting {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
    pub(crate) const NO_ZEROES: u16 = 1 << 1;
}

/// What the server says of an export.
pub(super) mod transmission {
    pub(crate) const HAS_FLAGS: u16 = 1 << 0;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Options that a client can send before it has chosen an export.
pub(super) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of replies to options.
pub(super) mod option_reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    const ERROR: u32 = 1 << 31;
    pub(crate) const ERR_UNSUP: u32 = ERROR + 1;
    pub(crate) const ERR_INVALID: u32 = ERROR + 3;
    pub(crate) const ERR_UNKNOWN: u32 = ERROR + 6;
    pub(crate) const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// Kinds of information about an export.
pub(super) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// The one kind of metadata there is: which blocks are allocated.
pub(super) const BASE_ALLOCATION: &str = "base:allocation";
/// The number that stands for it in replies.
pub(super) const BASE_ALLOCATION_ID: u32 = 1;

pub(super) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

pub(super) mod command_flag {
    /// Durable before it is answered.
    pub(crate) const FUA: u16 = 1 << 0;
    /// Zeros must not be holes.
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    /// Don't fragment: at most one chunk of content.
    pub(crate) const DF: u16 = 1 << 2;
    /// Only one extent.
    pub(crate) const REQ_ONE: u16 = 1 << 3;
}

/// The numbers of errors; those of Linux.
pub(super) mod errno {
    pub(crate) const PERM: u32 = 1;
    pub(crate) const IO: u32 = 5;
    pub(crate) const NOMEM: u32 = 12;
    pub(crate) const INVAL: u32 = 22;
    pub(crate) const NOSPC: u32 = 28;
    pub(crate) const NOTSUP: u32 = 95;
    pub(crate) const OVERFLOW: u32 = 75;
}

/// The last chunk of a structured reply.
const CHUNK_DONE: u16 = 1 << 0;

mod chunk {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = ERROR_BIT + 1;
    pub(crate) const ERROR_OFFSET: u16 = ERROR_BIT + 2;
}

/// The longest string that the protocol knows, in bytes: names and messages.
pub(super) const STRING_BYTES_MAX: usize = 4096;

/// One request of the transmission phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NbdRequest {
    pub(super) flags: u16,
    pub(super) command: u16,
    /// The client's name for it, which the reply repeats.
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) len: u32,
}

impl NbdRequest {
    pub(super) const BYTES: usize = 28;

    /// `None` when it does not begin as a request does.
    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut fields = WireFields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(NbdRequest {
            flags: fields.u16()?,
            command: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            len: fields.u32()?,
        })
    }
}

/// Takes fields off the front of bytes; `None` where they end early.
pub(super) struct WireFields<'a>(pub(super) &'a [u8]);

impl<'a> WireFields<'a> {
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A length and that number of bytes.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len as usize)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }
}

/// One reply to an option; its data are the `parts` end to end.
pub(super) fn option_reply(option: u32, kind: u32, parts: &[&[u8]]) -> Vec<u8> {
    let data = parts.concat();
    let mut out = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(u32::try_from(data.len()).expect("strings are short").to_be_bytes());
    out.extend(data);
    out
}

/// A simple reply; without an error the bytes of a read follow.
pub(super) fn simple_reply(cookie: u64, error: u32) -> Vec<u8> {
    let mut out = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(error.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out
}

/// The chunk that says only that a request is done.
pub(super) fn done_chunk(cookie: u64) -> Vec<u8> {
    chunk_head(cookie, chunk::NONE, true, 0)
}

/// The head of a chunk of `len` bytes of content from `offset` on, which follow.
pub(super) fn data_chunk(cookie: u64, last: bool, offset: u64, len: usize) -> Vec<u8> {
    let mut out = chunk_head(cookie, chunk::OFFSET_DATA, last, 8 + len);
    out.extend(offset.to_be_bytes());
    out
}

/// One extent of `len` bytes that hold data.
pub(super) fn status_chunk(cookie: u64, len: u32) -> Vec<u8> {
    let mut out = chunk_head(cookie, chunk::BLOCK_STATUS, true, 12);
    out.extend(BASE_ALLOCATION_ID.to_be_bytes());
    out.extend(len.to_be_bytes());
    out.extend(0u32.to_be_bytes());
    out
}

/// The failure of a whole request.
pub(super) fn error_chunk(cookie: u64, error: u32, why: &str) -> Vec<u8> {
    let why = cut(why);
    let mut out = chunk_head(cookie, chunk::ERROR, true, 6 + why.len());
    out.extend(error.to_be_bytes());
    out.extend((why.len() as u16).to_be_bytes());
    out.extend(why.as_bytes());
    out
}

/// The failure of the content from `offset` on.
pub(super) fn error_offset_chunk(
    cookie: u64,
    last: bool,
    error: u32,
    why: &str,
    offset: u64,
) -> Vec<u8> {
    let why = cut(why);
    let mut out = chunk_head(cookie, chunk::ERROR_OFFSET, last, 14 + why.len());
    out.extend(error.to_be_bytes());
    out.extend((why.len() as u16).to_be_bytes());
    out.extend(why.as_bytes());
    out.extend(offset.to_be_bytes());
    out
}

fn chunk_head(cookie: u64, kind: u16, last: bool, payload_bytes: usize) -> Vec<u8> {
    let payload_bytes = u32::try_from(payload_bytes).expect("a part of a request");
    let mut out = Vec::with_capacity(28);
    out.extend(STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend(if last { CHUNK_DONE } else { 0 }.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(payload_bytes.to_be_bytes());
    out
}

/// As much of a message as a string of the protocol may hold.
fn cut(why: &str) -> &str {
    &why[..why.floor_char_boundary(STRING_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_these_bytes() {
        let cookie = 0x0102_0304_0506_0708;
        assert_eq!(
            simple_reply(cookie, errno::INVAL),
            b"\x67\x44\x66\x98\0\0\0\x16\x01\x02\x03\x04\x05\x06\x07\x08"
        );
        let head = |flags: &[u8], kind: &[u8], len: &[u8]| {
            [b"\x66\x8e\x33\xef", flags, kind, b"\x01\x02\x03\x04\x05\x06\x07\x08", len].concat()
        };
        assert_eq!(done_chunk(cookie), head(b"\0\x01", b"\0\0", b"\0\0\0\0"));
        assert_eq!(
            data_chunk(cookie, false, 0x1_0000_0000, 512),
            [head(b"\0\0", b"\0\x01", b"\0\0\x02\x08"), b"\0\0\0\x01\0\0\0\0".to_vec()].concat()
        );
        assert_eq!(
            status_chunk(cookie, 4096),
            [head(b"\0\x01", b"\0\x05", b"\0\0\0\x0c"), b"\0\0\0\x01\0\0\x10\0\0\0\0\0".to_vec()]
                .concat()
        );
        assert_eq!(
            error_chunk(cookie, errno::PERM, "no"),
            [head(b"\0\x01", b"\x80\x01", b"\0\0\0\x08"), b"\0\0\0\x01\0\x02no".to_vec()].concat()
        );
        assert_eq!(
            error_offset_chunk(cookie, true, errno::IO, "no", 9),
            [
                head(b"\0\x01", b"\x80\x02", b"\0\0\0\x10"),
                b"\0\0\0\x05\0\x02no\0\0\0\0\0\0\0\x09".to_vec()
            ]
            .concat()
        );
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let why = "ü".repeat(3000);
        assert_eq!(error_chunk(1, errno::IO, &why).len(), 20 + 6 + STRING_BYTES_MAX);
        let why = format!("x{why}");
        assert_eq!(error_chunk(1, errno::IO, &why).len(), 20 + 6 + STRING_BYTES_MAX - 1);
    }

    #[test]
    fn a_request_is_28_bytes() {
        let bytes = b"\x25\x60\x95\x13\0\x04\0\0\x01\x02\x03\x04\x05\x06\x07\x08\
            \0\0\0\x01\0\0\0\0\0\0\x10\0";
        let request = NbdRequest {
            flags: command_flag::DF,
            command: command::READ,
            cookie: 0x0102_0304_0506_0708,
            offset: 1 << 32,
            len: 4096,
        };
        assert_eq!(NbdRequest::decode(bytes), Some(request));
        let mut other = *bytes;
        other[3] ^= 1;
        assert_eq!(NbdRequest::decode(&other), None);
    }
}
