//! The frames of an LZ4 file.

use std::io::{self, Read};

use lz4_flex::frame::FrameDecoder;

use super::PackedBytes;
use crate::run::magic::{self, Codec, ContentKind, Deed};

/// The bytes of a frame's header that tell its memory: magic, flags, size of blocks.
pub(super) const HEADER_BYTES: usize = 6;
/// The decoder holds a block as it is stored, and two with the window before them.
const BLOCKS: u64 = 3;
const WINDOW_BYTES: u64 = 64 << 10;

/// The memory that a frame with this header takes.
pub(super) fn memory_bytes(header: &[u8]) -> u64 {
    // 4: 64 KiB, 5: 256 KiB, 6: 1 MiB, 7: 4 MiB. The decoder refuses others.
    let size = u32::from(header.get(5).map_or(7, |byte| byte >> 4 & 7)).clamp(4, 7);
    BLOCKS * (1 << (8 + 2 * size)) + WINDOW_BYTES
}

/// All frames, one after the other; skippable ones are skipped.
pub(super) struct Lz4Frames {
    decoder: FrameDecoder<Ahead>,
    memory_bytes: u64,
    within: bool,
}

impl Lz4Frames {
    /// Frames that take no more memory than `memory_bytes`.
    pub(super) fn new(bytes: PackedBytes, memory_bytes: u64) -> Self {
        let ahead = Ahead { bytes, seen: Vec::new(), at: 0, ended: false };
        Lz4Frames { decoder: FrameDecoder::new(ahead), memory_bytes, within: false }
    }

    /// Goes to the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        let ahead = self.decoder.get_mut();
        loop {
            let head = ahead.look(2 * HEADER_BYTES)?;
            if head.is_empty() {
                return Ok(false);
            }
            match magic::of_head(head, ContentKind::Binary).map(|magic| magic.deed) {
                Some(Deed::Skip) => ahead.skip_frame()?,
                Some(Deed::Unpack(Codec::Lz4))
                    if head.len() >= HEADER_BYTES && memory_bytes(head) > self.memory_bytes =>
                {
                    return Err(super::more_memory_than_first());
                }
                // Other bytes, and a header that is cut, are an error of the decoder.
                _ => return Ok(true),
            }
        }
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            self.within = true;
            let read = self.decoder.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            // For the decoder, a frame ends where its input does, too.
            if self.decoder.get_ref().ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.within = false;
        }
    }
}

/// Bytes, with a look at those that come next.
struct Ahead {
    bytes: PackedBytes,
    /// Bytes that were looked at, and how many of them were taken.
    seen: Vec<u8>,
    at: usize,
    /// A read found the end.
    ended: bool,
}

impl Ahead {
    /// The next bytes: `len` of them, or all if fewer are left.
    fn look(&mut self, len: usize) -> io::Result<&[u8]> {
        self.seen.drain(..self.at);
        self.at = 0;
        let missing = len.saturating_sub(self.seen.len()) as u64;
        self.bytes.by_ref().take(missing).read_to_end(&mut self.seen)?;
        Ok(&self.seen)
    }

    /// Takes a skippable frame, which is next.
    fn skip_frame(&mut self) -> io::Result<()> {
        let mut header = [0; 8];
        self.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        let wanted = u64::from(u32::from_le_bytes([a, b, c, d]));
        let skipped = io::copy(&mut self.by_ref().take(wanted), &mut io::sink())?;
        if skipped < wanted { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut left = &self.seen[self.at..];
        if !left.is_empty() {
            let read = left.read(out)?;
            self.at += read;
            return Ok(read);
        }
        loop {
            match self.bytes.read(out) {
                // The decoder would lose the part of a header that it has.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(read) => {
                    self.ended = read == 0 && !out.is_empty();
                    return Ok(read);
                }
            }
        }
    }
}
