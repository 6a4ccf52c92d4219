//! The pages of one chunk that are in the device's memory, and the records in them.
//!
//! ```text
//!   chunk   ├─ merged ──────┤                                            asked ▼
//!   pages                ├─ page ──────────┼─ page ──────────┼─ on its way ──┤ room … ┤
//!   records              │ merged ├─ whole ┼──┤ a record that spans pages
//!   carry                                └──┴──┘ is copied together here, and is a segment of its own
//! ```
//!
//! Pages are read whole, as they are on flash; records begin and end anywhere. A step may merge one
//! stretch of whole records: the records that end in the first page, or the record in the carry.

use std::collections::VecDeque;
use std::io;

use merganser_sort::record::Format;
use merganser_storage::Buffer;

use super::descriptor::{SECTOR_BYTES, SortedChunk};

/// A read that the buffer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRead {
    /// The first byte on the device.
    pub(super) offset: u64,
    /// The number of bytes: a page, or the part of it in an extent.
    pub(super) len: usize,
    /// The start of the chunk's next bytes in it …
    from: usize,
    /// … and their end.
    to: usize,
}

/// Whether a chunk has records to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Supply {
    /// [`ChunkBuffer::segment`] has records.
    Ready,
    /// It has no records until a page arrives.
    Dry,
    /// The chunk has ended.
    Ended,
}

#[derive(Debug)]
struct BufferedPage {
    token: u64,
    /// The start and the end in the buffer of the chunk's bytes that are not merged.
    at: usize,
    end: usize,
    /// The end of the last record that ends in it, once it is known.
    whole: Option<usize>,
    content: PageContent,
}

#[derive(Debug)]
enum PageContent {
    Awaited,
    Here(Buffer),
    Failed(io::Error),
}

/// The buffer of one chunk.
#[derive(Debug)]
pub(super) struct ChunkBuffer {
    chunk: SortedChunk,
    /// The start of each extent in the chunk.
    starts: Vec<u64>,
    format: Format,
    page_bytes: u64,
    pages_max: usize,
    pages: VecDeque<BufferedPage>,
    /// Pages that are used up but not free yet: the processor may still copy from them.
    used: Vec<Buffer>,
    /// Reads in flight whose bytes are no longer wanted.
    stale: usize,
    /// Pages before this position in the chunk have been requested.
    asked: u64,
    /// Records before this position in the chunk are merged.
    merged: u64,
    carry: Vec<u8>,
    carry_at: usize,
    carry_whole: bool,
    /// Bytes copied into the carry since the last call of `carried`.
    copied: u64,
}

impl ChunkBuffer {
    /// An empty buffer of at most `pages_max` pages.
    pub(super) fn new(
        chunk: SortedChunk,
        format: Format,
        page_bytes: u64,
        pages_max: usize,
    ) -> Self {
        let mut start = 0;
        let mut starts = Vec::new();
        for extent in &chunk.extents {
            starts.push(start);
            start += extent.sectors * SECTOR_BYTES;
        }
        ChunkBuffer {
            chunk,
            starts,
            format,
            page_bytes,
            pages_max,
            pages: VecDeque::new(),
            used: Vec::new(),
            stale: 0,
            asked: 0,
            merged: 0,
            carry: Vec::new(),
            carry_at: 0,
            carry_whole: false,
            copied: 0,
        }
    }

    /// Drops the pages in memory, and continues from `position`. A record begins there, unless this
    /// is the only chunk that has not ended.
    pub(super) fn restart(&mut self, position: u64) {
        for page in self.pages.drain(..) {
            self.stale += usize::from(matches!(page.content, PageContent::Awaited));
        }
        self.used.clear();
        self.carry.clear();
        self.copied = 0;
        (self.asked, self.merged) = (position, position);
    }

    /// Records before this position in the chunk are merged.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// Bytes of the chunk.
    pub(super) fn bytes(&self) -> u64 {
        self.chunk.bytes
    }

    /// Pages in memory or in flight.
    pub(super) fn at_hand(&self) -> usize {
        self.pages.len()
    }

    /// The next read, if there is room for a page and a page left to read.
    pub(super) fn next_read(&self) -> Option<PageRead> {
        let occupied = self.pages.len() + self.used.len() + self.stale;
        if occupied >= self.pages_max || self.asked == self.chunk.bytes {
            return None;
        }
        let (offset, extent_end) = self.on_device(self.asked);
        let extent_start = extent_end - self.extent_bytes(self.asked);
        let first = (offset / self.page_bytes * self.page_bytes).max(extent_start);
        let end = ((offset / self.page_bytes + 1) * self.page_bytes).min(extent_end);
        let left = self.chunk.bytes - self.asked;
        let from = (offset - first) as usize;
        let to = (end - first).min(offset - first + left) as usize;
        Some(PageRead { offset: first, len: (end - first) as usize, from, to })
    }

    /// The address on the device of byte `position` of the chunk, and the end of its extent.
    fn on_device(&self, position: u64) -> (u64, u64) {
        let number = self.extent_of(position);
        let bytes = self.chunk.extents[number].bytes();
        (bytes.start + (position - self.starts[number]), bytes.end)
    }

    fn extent_of(&self, position: u64) -> usize {
        self.starts.partition_point(|start| *start <= position) - 1
    }

    fn extent_bytes(&self, position: u64) -> u64 {
        self.chunk.extents[self.extent_of(position)].sectors * SECTOR_BYTES
    }

    /// Memory for `read`.
    pub(super) fn buffer(&mut self, read: &PageRead, free: &mut Vec<Buffer>) -> Buffer {
        let fits = free.last().is_some_and(|buffer| buffer.len() == read.len);
        if fits { free.pop().expect("there is a last") } else { Buffer::new(read.len) }
    }

    /// `read` was submitted.
    pub(super) fn asked(&mut self, token: u64, read: &PageRead) {
        let PageRead { from, to, .. } = *read;
        self.asked += (to - from) as u64;
        let content = PageContent::Awaited;
        self.pages.push_back(BufferedPage { token, at: from, end: to, whole: None, content });
    }

    /// A read has ended; a buffer that is no longer wanted goes to `free`.
    pub(super) fn arrived(
        &mut self,
        token: u64,
        buffer: Buffer,
        result: io::Result<usize>,
        free: &mut Vec<Buffer>,
    ) {
        let Some(page) = self.pages.iter_mut().find(|page| page.token == token) else {
            self.stale -= 1;
            free.push(buffer);
            return;
        };
        page.content = match result {
            Ok(bytes) if bytes >= page.end => PageContent::Here(buffer),
            Ok(bytes) => {
                let reason = format!("the device ended after {bytes} bytes of a page");
                PageContent::Failed(io::Error::new(io::ErrorKind::UnexpectedEof, reason))
            }
            Err(error) => PageContent::Failed(error),
        };
    }

    /// Makes ready what can be merged next. With `alone` set, no other chunk has anything left, and
    /// bytes do not have to be divided into records.
    ///
    /// # Errors
    /// A page that could not be read, or a record that does not end in the chunk.
    pub(super) fn supply(&mut self, alone: bool) -> io::Result<Supply> {
        loop {
            if !self.carry.is_empty() && (self.carry_whole || alone) {
                return Ok(Supply::Ready);
            }
            let Some(page) = self.pages.front_mut() else {
                if self.merged == self.chunk.bytes {
                    return Ok(Supply::Ended);
                }
                if self.merged + self.carry.len() as u64 == self.chunk.bytes {
                    return Err(self.broken());
                }
                return Ok(Supply::Dry);
            };
            let bytes = match &mut page.content {
                PageContent::Awaited => return Ok(Supply::Dry),
                PageContent::Here(buffer) => &buffer[page.at..page.end],
                PageContent::Failed(error) => {
                    let failed = io::Error::new(error.kind(), error.to_string());
                    return Err(self.unread(&failed));
                }
            };
            if !self.carry.is_empty() {
                let taken = complete(&mut self.carry, bytes, self.format);
                self.carry_whole = taken.whole;
                self.copied += taken.bytes as u64;
                page.at += taken.bytes;
                self.retire();
                continue;
            }
            if alone {
                page.whole = Some(page.end);
            }
            let whole = *page.whole.get_or_insert_with(|| {
                let mut cuts = Vec::new();
                self.format.cut(bytes, usize::MAX, &mut cuts);
                page.at + cuts.last().copied().unwrap_or(0)
            });
            if page.at < whole {
                return Ok(Supply::Ready);
            }
            // The rest of the page is the start of a record that ends in another page.
            self.carry.extend_from_slice(bytes);
            self.carry_at = 0;
            self.carry_whole = false;
            self.copied += bytes.len() as u64;
            page.at = page.end;
            self.retire();
        }
    }

    /// Whole records in order, after [`Supply::Ready`]; otherwise empty.
    pub(super) fn segment(&self) -> &[u8] {
        if !self.carry.is_empty() {
            return &self.carry[self.carry_at..];
        }
        match self.pages.front() {
            Some(BufferedPage {
                at,
                whole: Some(whole),
                content: PageContent::Here(buffer),
                ..
            }) => &buffer[*at..*whole],
            _ => &[],
        }
    }

    /// Whether anything follows the segment.
    pub(super) fn more(&self) -> bool {
        self.merged + (self.segment().len() as u64) < self.chunk.bytes
    }

    /// The first `bytes` of the segment are merged.
    pub(super) fn merge(&mut self, bytes: usize) {
        self.merged += bytes as u64;
        if !self.carry.is_empty() {
            self.carry_at += bytes;
            if self.carry_at == self.carry.len() {
                self.carry.clear();
            }
        } else if bytes > 0 {
            self.pages.front_mut().expect("the segment is in it").at += bytes;
            self.retire();
        }
    }

    fn retire(&mut self) {
        if self.pages.front().is_some_and(|page| page.at == page.end)
            && let Some(BufferedPage { content: PageContent::Here(buffer), .. }) =
                self.pages.pop_front()
        {
            self.used.push(buffer);
        }
    }

    /// The processor has copied everything from the pages that are used up; returns their number.
    pub(super) fn release_used(&mut self, free: &mut Vec<Buffer>) -> usize {
        let count = self.used.len();
        free.append(&mut self.used);
        count
    }

    /// Bytes of memory for the record that spans pages, in addition to the pages.
    pub(super) fn carry_bytes(&self) -> u64 {
        self.carry.len() as u64
    }

    /// Bytes copied into the carry since this was last called.
    pub(super) fn take_copied(&mut self) -> u64 {
        std::mem::take(&mut self.copied)
    }

    fn broken(&self) -> io::Error {
        let (at, (on_device, _)) = (self.merged, self.on_device(self.merged));
        let reason = format!(
            "the record that begins at its byte {at} (byte {on_device} of the device) does not end \
             in it"
        );
        io::Error::new(io::ErrorKind::InvalidData, reason)
    }

    /// A page could not be read. It is the first one, because pages are examined in order.
    fn unread(&self, error: &io::Error) -> io::Error {
        let at = self.merged + self.carry.len() as u64;
        let (on_device, _) = self.on_device(at);
        let reason = format!("its byte {at} (byte {on_device} of the device): read: {error}");
        io::Error::new(error.kind(), reason)
    }
}

/// What [`complete`] did.
pub(crate) struct Completed {
    /// Bytes that it moved.
    pub(crate) bytes: usize,
    /// Whether the carry is a whole record.
    pub(crate) whole: bool,
}

/// Moves bytes from the start of `page` to the end of `carry`, until it is a whole record or the
/// page is empty. It examines a few bytes first, because most records end soon.
pub(crate) fn complete(carry: &mut Vec<u8>, page: &[u8], format: Format) -> Completed {
    let before = carry.len();
    let mut bytes = 0;
    let mut look = 256;
    while bytes < page.len() {
        let end = look.min(page.len());
        carry.extend_from_slice(&page[bytes..end]);
        if let Some(len) = format.record_len(carry) {
            carry.truncate(len);
            return Completed { bytes: len - before, whole: true };
        }
        bytes = end;
        look *= 4;
    }
    Completed { bytes, whole: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active_sort::descriptor::SectorExtent;

    const LINES: Format = Format::Lines { delimiter: b'\n' };

    /// A buffer over `device`, whose chunk has `bytes` in the given extents; pages of 1,024 bytes.
    fn buffer(bytes: u64, extents: &[(u64, u64)]) -> ChunkBuffer {
        let extents =
            extents.iter().map(|&(first, sectors)| SectorExtent { first, sectors }).collect();
        ChunkBuffer::new(SortedChunk { bytes, extents }, LINES, 1024, 3)
    }

    /// Reads whatever there is room for, and supplies.
    fn fill(buffer: &mut ChunkBuffer, device: &[u8], reads: &mut Vec<(u64, usize)>) -> Supply {
        while let Some(read) = buffer.next_read() {
            reads.push((read.offset, read.len));
            let token = read.offset;
            let mut memory = buffer.buffer(&read, &mut Vec::new());
            memory.copy_from_slice(&device[read.offset as usize..][..read.len]);
            buffer.asked(token, &read);
            buffer.arrived(token, memory, Ok(read.len), &mut Vec::new());
        }
        buffer.supply(false).expect("good")
    }

    #[test]
    fn pages_and_records_of_a_scattered_chunk() {
        // Sectors 1 and 2, then 5 to 7: pages of two sectors are met at odd places.
        let lines: Vec<u8> = (0..200).flat_map(|n| format!("line {n:05}\n").into_bytes()).collect();
        let mut device = vec![b'x'; 10 * 512];
        device[512..3 * 512].copy_from_slice(&lines[..1024]);
        device[5 * 512..5 * 512 + 1176].copy_from_slice(&lines[1024..2200]);
        let mut buffer = buffer(2200, &[(1, 2), (5, 3)]);
        let (mut reads, mut seen, mut copied) = (Vec::new(), Vec::new(), 0);
        while fill(&mut buffer, &device, &mut reads) == Supply::Ready {
            let segment = buffer.segment().to_vec();
            assert!(segment.ends_with(b"\n") && segment.len().is_multiple_of(11));
            assert_eq!(buffer.more(), seen.len() + segment.len() < 2200);
            seen.extend_from_slice(&segment);
            buffer.merge(segment.len());
            buffer.release_used(&mut Vec::new());
            copied += buffer.take_copied();
        }
        assert_eq!(buffer.supply(false).expect("good"), Supply::Ended);
        assert_eq!(seen, lines);
        assert_eq!(reads, [(512, 512), (1024, 512), (2560, 512), (3072, 1024)]);
        assert_eq!(copied, 33, "three records span pages");
    }

    #[test]
    fn a_restart_begins_inside_a_page_and_drops_what_is_on_its_way() {
        let device: Vec<u8> = (0..256).flat_map(|n| format!("{n:07}\n").into_bytes()).collect();
        let mut buffer = buffer(2048, &[(0, 4)]);
        let read = buffer.next_read().expect("room");
        buffer.asked(7, &read);
        buffer.restart(1600);
        buffer.arrived(7, Buffer::new(1024), Ok(1024), &mut Vec::new());
        assert_eq!(fill(&mut buffer, &device, &mut Vec::new()), Supply::Ready);
        assert_eq!(buffer.segment(), &device[1600..]);
        assert_eq!((buffer.merged(), buffer.more()), (1600, false));
    }

    #[test]
    fn a_record_without_end_and_a_failing_page_are_errors() {
        let device = vec![b'x'; 2048];
        let mut endless = buffer(2000, &[(0, 4)]);
        while let Some(read) = endless.next_read() {
            endless.asked(read.offset, &read);
            let mut memory = Buffer::new(read.len);
            memory.copy_from_slice(&device[..read.len]);
            endless.arrived(read.offset, memory, Ok(read.len), &mut Vec::new());
        }
        let error = endless.supply(false).expect_err("no line ends");
        assert!(error.to_string().contains("begins at its byte 0 (byte 0 of the device)"));
        let mut failing = buffer(2000, &[(2, 4)]);
        let read = failing.next_read().expect("room");
        failing.asked(1, &read);
        assert_eq!(failing.supply(false).expect("waits"), Supply::Dry);
        let result = Err(io::Error::other("uncorrectable"));
        failing.arrived(1, Buffer::new(read.len), result, &mut Vec::new());
        let error = failing.supply(false).expect_err("a bad page");
        assert_eq!(error.to_string(), "its byte 0 (byte 1024 of the device): read: uncorrectable");
    }
}
