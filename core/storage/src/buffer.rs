//! Page-aligned memory that the kernel can transfer into directly.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rustix::mm::Advice;

use crate::page_size;

/// Alignment of every fresh [`Buffer`], in bytes: enough for direct I/O on any block device.
pub const ALIGNMENT: usize = 4096;

/// Bytes of a page that the system calls huge.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes of any other page.
pub(crate) const SMALL_PAGE_BYTES: usize = 4096;

/// Mappings from this size on ask for huge pages where those are not slower: a gather out of 4 KiB
/// pages spends more time in the TLB than in the copy.
const HUGE_FROM: usize = 4 << 20;

/// An exclusively owned stretch of page-aligned, initially zero memory.
///
/// Like `BytesMut`: [`Buffer::split_off`] cuts it in two that share one mapping but no byte, so
/// that pieces of one large buffer can be in flight at once, and [`Buffer::unsplit`] joins
/// neighbours again. The mapping goes back to the system when its last piece drops.
#[derive(Debug)]
pub struct Buffer {
    mapping: Arc<Mapping>,
    start: usize,
    len: usize,
}

#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: a mapping is plain memory; who may touch which byte is decided by the disjoint `Buffer`s.
unsafe impl Send for Mapping {}
// SAFETY: as above; `Mapping` itself hands out no reference to its bytes.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            pages::unmap(self.base, self.len);
        }
    }
}

/// Zeroed pages: of the system, or for a small buffer, of the allocator. A mapping of one page costs several times as much
/// as its bytes: two calls and a fault.
mod pages {
    use rustix::mm::Advice;

    /// Buffers from this size on are mappings of their own.
    const MAPPED_FROM: usize = 64 << 10;

    /// Miri, which interprets the program, has no mappings.
    fn is_mapped(len: usize) -> bool {
        len >= MAPPED_FROM && !cfg!(miri)
    }

    /// `len` zeroed bytes on a page boundary; `None` when the system refuses them.
    pub(super) fn map(len: usize) -> Option<*mut u8> {
        if is_mapped(len) { super::mapped::map(len) } else { super::allocated::map(len) }
    }

    /// Gives back what [`map`] gave, all of it, once.
    pub(super) fn unmap(base: *mut u8, len: usize) {
        if is_mapped(len) {
            super::mapped::unmap(base, len);
        } else {
            super::allocated::unmap(base, len);
        }
    }

    /// Tells the kernel how `len` bytes from `at` on will be used, of the `mapped` ones that [`map`] gave. It may know
    /// better.
    pub(super) fn advise(mapped: usize, at: *mut u8, len: usize, advice: Advice) {
        if is_mapped(mapped) {
            super::mapped::advise(at, len, advice);
        } else {
            super::allocated::advise(at, len, advice);
        }
    }
}

/// Pages of the system.
mod mapped {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    pub(super) fn map(len: usize) -> Option<*mut u8> {
        // SAFETY: an anonymous private mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            mmap_anonymous(std::ptr::null_mut(), len, protection, flags)
        };
        Some(base.ok()?.cast())
    }

    pub(super) fn unmap(base: *mut u8, len: usize) {
        // SAFETY: `base` and `len` are what `mmap` returned and was asked for, unmapped once.
        let _ = unsafe { munmap(base.cast(), len) };
    }

    pub(super) fn advise(at: *mut u8, len: usize, advice: Advice) {
        // SAFETY: the callers pass a range of one live mapping, and only advice that leaves its
        // bytes valid: as they are, or zero in a range that the caller borrows exclusively.
        let _ = unsafe { madvise(at.cast(), len, advice) };
    }
}

/// Memory of the allocator.
mod allocated {
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use rustix::mm::Advice;

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len, super::ALIGNMENT).ok()
    }

    pub(super) fn map(len: usize) -> Option<*mut u8> {
        // SAFETY: the callers ask for one byte or more.
        let base = unsafe { alloc_zeroed(layout(len)?) };
        (!base.is_null()).then_some(base)
    }

    pub(super) fn unmap(base: *mut u8, len: usize) {
        let layout = layout(len).expect("it was allocated with this");
        // SAFETY: `base` came from `map` with the same length, and is given back once.
        unsafe { dealloc(base, layout) };
    }

    pub(super) fn advise(at: *mut u8, len: usize, advice: Advice) {
        if matches!(advice, Advice::LinuxDontNeed) {
            // SAFETY: the caller borrows these bytes exclusively.
            unsafe { at.write_bytes(0, len) };
        }
    }
}

fn out_of_memory(len: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        format!(
            "the system has no memory for a buffer of {len} bytes; use less, or raise what the process may have (ulimit -v)"
        ),
    )
}

impl Buffer {
    /// `len` zeroed bytes, aligned to [`ALIGNMENT`]. From 4 MiB on they are aligned to huge pages, and backed by
    /// those where [`BufferPages`](page_size::BufferPages) says that they are better. From 64 KiB on,
    /// memory is only committed when touched.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`] when the system refuses that much address space.
    pub fn try_new(len: usize) -> io::Result<Self> {
        if len >= HUGE_FROM {
            return Self::advised(len, page_size::advice(len));
        }
        if len == 0 {
            return Ok(Buffer::empty());
        }
        let base = pages::map(len).ok_or_else(|| out_of_memory(len))?;
        Ok(Buffer { mapping: Arc::new(Mapping { base, len }), start: 0, len })
    }

    /// `len` zeroed bytes, aligned to huge pages, of the kind of pages that `advice` asks for.
    pub(crate) fn advised(len: usize, advice: Advice) -> io::Result<Self> {
        // No object is larger than `isize::MAX`, whatever the kernel would map.
        let mapped = len.checked_add(HUGE_PAGE_BYTES).filter(|len| isize::try_from(*len).is_ok());
        let Some((mapped, base)) = mapped.and_then(|mapped| Some((mapped, pages::map(mapped)?)))
        else {
            return Err(out_of_memory(len));
        };
        let mapping = Mapping { base, len: mapped };
        pages::advise(mapped, base, mapped, advice);
        let start = mapping.base.align_offset(HUGE_PAGE_BYTES);
        Ok(Buffer { mapping: Arc::new(mapping), start, len })
    }

    /// As [`Buffer::try_new`], where the buffer is small or the caller cannot continue without it.
    ///
    /// # Panics
    /// When the system refuses that much address space.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self::try_new(len).unwrap_or_else(|error| panic!("{error}"))
    }

    /// No bytes, which take no memory.
    #[must_use]
    pub fn empty() -> Self {
        let mapping =
            Arc::new(Mapping { base: std::ptr::without_provenance_mut(ALIGNMENT), len: 0 });
        Buffer { mapping, start: 0, len: 0 }
    }

    /// Cuts at `at`: `self` keeps the bytes before, the rest is returned.
    ///
    /// # Panics
    /// When `at` is beyond the end.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Buffer {
        assert!(at <= self.len, "split at {at} of a buffer of {} bytes", self.len);
        let tail = Buffer {
            mapping: Arc::clone(&self.mapping),
            start: self.start + at,
            len: self.len - at,
        };
        self.len = at;
        tail
    }

    /// Joins `next`, which must be what directly followed `self` before a split.
    ///
    /// # Errors
    /// Gives `next` back when it is not the neighbour.
    pub fn unsplit(&mut self, next: Buffer) -> Result<(), Buffer> {
        if Arc::ptr_eq(&self.mapping, &next.mapping) && self.start + self.len == next.start {
            self.len += next.len;
            Ok(())
        } else {
            Err(next)
        }
    }

    /// Gives the pages that lie wholly inside `range` back to the system; they read as zeros
    /// afterwards.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    pub fn release(&mut self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.len, "release outside the buffer");
        let base = self.as_mut_ptr().addr();
        let from = (base + range.start).next_multiple_of(ALIGNMENT);
        let to = (base + range.end) / ALIGNMENT * ALIGNMENT;
        if to > from {
            // Whole pages inside this exclusively borrowed buffer; a private anonymous mapping reads
            // as zeros after this advice, which is a valid content.
            let at = self[from - base..].as_mut_ptr();
            pages::advise(self.mapping.len, at, to - from, Advice::LinuxDontNeed);
        }
    }

    /// The memory behind this buffer, for any thread to back before it is used.
    #[must_use]
    pub fn backing(&self) -> Backing {
        Backing { mapping: Arc::clone(&self.mapping), start: self.start, len: self.len }
    }

    pub(crate) fn raw(&mut self) -> (*mut u8, usize) {
        (self.as_mut_ptr(), self.len)
    }
}

/// The memory of a [`Buffer`], whoever holds its bytes.
#[derive(Debug, Clone)]
pub struct Backing {
    mapping: Arc<Mapping>,
    start: usize,
    len: usize,
}

impl Backing {
    /// Has the system back `range` with memory now, so that its first use, also by a device, does not
    /// wait for that. The content stays. A system that cannot do it (Linux before 5.14) backs the bytes
    /// when they are used.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    pub fn back(&self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.len, "backing outside the buffer");
        let from = (self.start + range.start) / ALIGNMENT * ALIGNMENT;
        let to = self.start + range.end;
        if range.is_empty() {
            return;
        }
        // The pages begin in this mapping, which is a whole number of them and stays until `self`
        // drops. Populating pages changes no content, so it does not matter who uses them.
        let base = self.mapping.base.wrapping_add(from);
        pages::advise(self.mapping.len, base, to - from, Advice::LinuxPopulateWrite);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start..start + len` is inside the mapping (kept by `new` and `split_off`), is
        // initialised (the kernel zeroes it) and belongs to this buffer alone.
        unsafe { std::slice::from_raw_parts(self.mapping.base.add(self.start), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.base.add(self.start), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_disjoint_and_join_again() {
        let mut whole = Buffer::new(10_000);
        assert_eq!(whole.as_ptr() as usize % ALIGNMENT, 0);
        let mut tail = whole.split_off(4096);
        let mut end = tail.split_off(4096);
        whole.fill(1);
        tail.fill(2);
        end.fill(3);
        let end = whole.unsplit(end).expect_err("not neighbours");
        whole.unsplit(tail).expect("neighbours");
        whole.unsplit(end).expect("neighbours");
        assert_eq!((whole[4095], whole[4096], whole[8192], whole.len()), (1, 2, 3, 10_000));
    }

    #[test]
    fn a_large_buffer_is_huge_page_aligned_and_an_empty_one_is_free() {
        assert_eq!(Buffer::new(8 << 20).as_ptr() as usize % (2 << 20), 0);
        assert!(Buffer::new(0).is_empty());
    }

    #[test]
    fn f16_more_than_there_is_is_an_error() {
        for len in [isize::MAX as usize, usize::MAX, 1 << 60] {
            let error = Buffer::try_new(len).expect_err("no machine has that");
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
            assert!(error.to_string().contains(&len.to_string()), "{error}");
        }
        assert_eq!(Buffer::try_new(5).expect("five bytes").len(), 5);
        assert_eq!(Buffer::try_new(0).expect("none").len(), 0);
    }

    #[test]
    fn backing_changes_no_byte_whoever_holds_it() {
        let mut whole = Buffer::new(3 * ALIGNMENT + 100);
        whole.fill(7);
        let backing = whole.backing();
        let tail = whole.split_off(5000);
        std::thread::scope(|scope| {
            scope.spawn(|| whole.fill(8));
            backing.back(0..3 * ALIGNMENT + 100);
            backing.back(10..10);
        });
        assert!(whole.iter().all(|byte| *byte == 8) && tail.iter().all(|byte| *byte == 7));
        drop((whole, tail));
        backing.back(1..2);
    }

    #[test]
    fn released_pages_read_as_zeros_and_edges_stay() {
        // One of the allocator, and a mapping of its own.
        for len in [3 * ALIGNMENT, 64 << 10] {
            let mut b = Buffer::new(len);
            assert!(b.iter().all(|byte| *byte == 0));
            b.fill(7);
            b.release(10..2 * ALIGNMENT + 5);
            assert_eq!((b[ALIGNMENT - 1], b[ALIGNMENT], b[2 * ALIGNMENT]), (7, 0, 7));
        }
    }
}
