//! Where a session writes its result on the device (PUT): pages appended over a list of extents,
//! without a file system.

use std::collections::BTreeSet;

use merganser_storage::Buffer;
use merganser_storage::near::Inside;

use super::Tokens;
use super::command::ByteExtent;

/// The longest write, in bytes; a multiple of every page.
const WRITE_BYTES: usize = 1 << 20;

/// An output on the device.
#[derive(Debug)]
pub(super) struct Area {
    extents: Vec<ByteExtent>,
    page_bytes: usize,
    /// Bytes that do not fill a page yet.
    tail: Vec<u8>,
    /// The extent that is written to, and the bytes of it that were.
    extent: usize,
    within: u64,
    under_way: BTreeSet<u64>,
}

impl Area {
    /// The area of `extents`.
    ///
    /// # Errors
    /// Extents that are not whole pages.
    pub(super) fn new(extents: Vec<ByteExtent>, page_bytes: u64) -> Result<Area, String> {
        let cut = |e: &&ByteExtent| {
            !e.offset.is_multiple_of(page_bytes) || !e.bytes.is_multiple_of(page_bytes)
        };
        if let Some(ByteExtent { offset, bytes }) = extents.iter().find(cut) {
            return Err(format!(
                "PUT: {bytes} bytes at {offset} are no whole pages of {page_bytes} bytes"
            ));
        }
        let page_bytes = page_bytes as usize;
        let (tail, under_way) = (Vec::new(), BTreeSet::new());
        Ok(Area { extents, page_bytes, tail, extent: 0, within: 0, under_way })
    }

    /// Whether writes are under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Bytes of memory that wait for more to fill a page.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.tail.len() as u64
    }

    /// Appends `bytes`, and starts to write all whole pages.
    ///
    /// # Errors
    /// When the extents are full.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<(), String> {
        self.tail.extend_from_slice(bytes);
        let whole = self.tail.len() / self.page_bytes * self.page_bytes;
        self.start(whole, tokens, inside)
    }

    /// Fills the last page with zeros and starts to write it.
    ///
    /// # Errors
    /// When the extents are full.
    pub(super) fn finish(
        &mut self,
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<(), String> {
        let whole = self.tail.len().next_multiple_of(self.page_bytes);
        self.tail.resize(whole, 0);
        self.start(whole, tokens, inside)
    }

    /// A write has ended.
    pub(super) fn written(&mut self, token: u64) {
        self.under_way.remove(&token);
    }

    /// Starts to write the first `whole` bytes of the tail.
    fn start(
        &mut self,
        whole: usize,
        tokens: &mut Tokens<'_>,
        inside: &mut dyn Inside,
    ) -> Result<(), String> {
        let mut at = 0;
        while at < whole {
            let Some(extent) = self.extents.get(self.extent) else {
                let all: u64 = self.extents.iter().map(|extent| extent.bytes).sum();
                return Err(format!("PUT: the result is longer than the {all} bytes for it"));
            };
            let room = extent.bytes - self.within;
            if room == 0 {
                (self.extent, self.within) = (self.extent + 1, 0);
                continue;
            }
            let len =
                (whole - at).min(WRITE_BYTES).min(usize::try_from(room).unwrap_or(usize::MAX));
            let mut buffer = Buffer::new(len);
            buffer.copy_from_slice(&self.tail[at..at + len]);
            let token = tokens.next();
            self.under_way.insert(token);
            inside.write(token, extent.offset + self.within, buffer);
            self.within += len as u64;
            at += len;
        }
        self.tail.drain(..whole);
        Ok(())
    }
}
