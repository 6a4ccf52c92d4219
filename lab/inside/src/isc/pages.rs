//! The pages of one split that are in the device's memory or on their way, in the order of the split.
//!
//! ```text
//!   mapped    ├─ taken ─┼─ here ─┬─ coming ─┬─ here ─┬─ coming ─┤ not asked ───┤
//!                       ▲ next                                  ▲ asked
//! ```
//!
//! Several pages are asked for at once, so that all channels work. They come in any order and are
//! taken in the order of their places.

use std::collections::VecDeque;
use std::io;

use merganser_storage::Buffer;

use super::command::DeviceSplit;

/// A read to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitRead {
    /// The first byte on the device.
    pub(super) offset: u64,
    /// The number of bytes.
    pub(super) len: usize,
    /// The mapped bytes in it.
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A page whose turn has come.
#[derive(Debug)]
pub(super) struct SplitPage {
    pub(super) buffer: Buffer,
    /// The mapped bytes in it.
    pub(super) from: usize,
    pub(super) to: usize,
    /// The place of the first of them in the split.
    pub(super) at: u64,
}

#[derive(Debug)]
struct PageSlot {
    token: u64,
    read: SplitRead,
    at: u64,
    content: Option<io::Result<Buffer>>,
}

/// The pages of one split.
#[derive(Debug)]
pub(super) struct SplitPages {
    split: DeviceSplit,
    page_bytes: u64,
    pages_max: usize,
    /// Mapped bytes before this place in the split have been asked for.
    asked: u64,
    /// The extent in which that place is, and its start in the split.
    extent: usize,
    extent_at: u64,
    slots: VecDeque<PageSlot>,
}

impl SplitPages {
    pub(super) fn new(split: DeviceSplit, page_bytes: u64, pages_max: usize) -> Self {
        let asked = split.mapped().start;
        SplitPages {
            split,
            page_bytes,
            pages_max,
            asked,
            extent: 0,
            extent_at: 0,
            slots: VecDeque::new(),
        }
    }

    pub(super) fn split(&self) -> &DeviceSplit {
        &self.split
    }

    /// Whether all of the split was taken.
    pub(super) fn ended(&self) -> bool {
        self.slots.is_empty() && self.asked == self.split.mapped().end
    }

    /// The next read, if there is room for its page and anything left to read: a page, or the part
    /// of it that the extent has and that is mapped, in whole sectors.
    pub(super) fn next_read(&mut self) -> Option<SplitRead> {
        let end = self.split.mapped().end;
        if self.slots.len() >= self.pages_max || self.asked == end {
            return None;
        }
        let mut extent = self.split.extents[self.extent];
        while self.asked >= self.extent_at + extent.bytes {
            self.extent_at += extent.bytes;
            self.extent += 1;
            extent = self.split.extents[self.extent];
        }
        let sector = super::command::SECTOR_BYTES;
        let within = self.asked - self.extent_at;
        let left = (end - self.extent_at).min(extent.bytes);
        let first = extent.offset + within / sector * sector;
        let page_end = ((extent.offset + within) / self.page_bytes + 1) * self.page_bytes;
        let last = page_end.min(extent.offset + left.next_multiple_of(sector));
        Some(SplitRead {
            offset: first,
            len: (last - first) as usize,
            from: (within % sector) as usize,
            to: (last.min(extent.offset + left) - first) as usize,
        })
    }

    /// `read` was started.
    pub(super) fn started(&mut self, token: u64, read: SplitRead) {
        self.slots.push_back(PageSlot { token, read, at: self.asked, content: None });
        self.asked += (read.to - read.from) as u64;
    }

    /// A read has ended.
    pub(super) fn arrived(&mut self, token: u64, buffer: Buffer, result: io::Result<usize>) {
        let slot = self.slots.iter_mut().find(|slot| slot.token == token);
        let slot = slot.expect("it was started");
        slot.content = Some(match result {
            Ok(bytes) if bytes >= slot.read.to => Ok(buffer),
            Ok(bytes) => {
                let reason = format!("the device ended after {bytes} bytes of a page");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason))
            }
            Err(error) => Err(error),
        });
    }

    /// Takes the next page, if it is here.
    ///
    /// # Errors
    /// When it could not be read; the text names its place.
    pub(super) fn take(&mut self) -> Option<Result<SplitPage, String>> {
        self.slots.front()?.content.as_ref()?;
        let PageSlot { read, at, content, .. } = self.slots.pop_front()?;
        Some(match content? {
            Ok(buffer) => Ok(SplitPage { buffer, from: read.from, to: read.to, at }),
            Err(error) => Err(format!("byte {} of the device: read: {error}", read.offset)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::ByteExtent;
    use super::*;

    fn pages(split: (u64, u64, u64), extents: &[(u64, u64)]) -> SplitPages {
        let (bytes, start_offset, end_offset) = split;
        let extent = |&(offset, bytes)| ByteExtent { offset, bytes };
        let extents = extents.iter().map(extent).collect();
        let split = DeviceSplit { input: 0, place: 0, bytes, start_offset, end_offset, extents };
        SplitPages::new(split, 4096, 2)
    }

    /// Starts all reads that there is room for.
    fn start(pages: &mut SplitPages) -> Vec<(u64, usize, usize, usize)> {
        let mut reads = Vec::new();
        while let Some(read) = pages.next_read() {
            pages.started(read.offset, read);
            reads.push((read.offset, read.len, read.from, read.to));
        }
        reads
    }

    fn arrive(pages: &mut SplitPages, offset: u64) {
        pages.arrived(offset, Buffer::new(4096), Ok(4096));
    }

    #[test]
    fn pages_are_read_ahead_and_taken_in_order() {
        // 10,000 bytes without 100 at the start and 500 at the end, which are not mapped; two extents,
        // and the first one begins in the middle of a page.
        let mut pages = pages((10_000, 100, 500), &[(2048, 6144), (20_480, 4096)]);
        assert_eq!(start(&mut pages), [(2048, 2048, 100, 2048), (4096, 4096, 0, 4096)]);
        arrive(&mut pages, 4096);
        assert!(pages.take().is_none(), "the first page is not here");
        arrive(&mut pages, 2048);
        assert_eq!(pages.take().expect("here").expect("good").at, 100);
        // Of the last page only the sectors with mapped bytes.
        assert_eq!(start(&mut pages), [(20_480, 3584, 0, 3356)]);
        assert_eq!(pages.take().expect("here").expect("good").at, 2048);
        assert!(!pages.ended());
        arrive(&mut pages, 20_480);
        assert_eq!(pages.take().expect("here").expect("good").at, 6144);
        assert!(pages.ended());
    }

    #[test]
    fn a_split_without_mapped_bytes_reads_nothing() {
        let mut pages = pages((4096, 4096, 0), &[(0, 4096)]);
        assert_eq!(start(&mut pages), []);
        assert!(pages.ended());
    }

    #[test]
    fn an_error_names_the_place() {
        let mut pages = pages((8192, 0, 0), &[(8192, 8192)]);
        start(&mut pages);
        pages.arrived(8192, Buffer::new(4096), Ok(100));
        let said = pages.take().expect("here").expect_err("short");
        assert_eq!(
            said,
            "byte 8192 of the device: read: the device ended after 100 bytes of a page"
        );
    }
}
