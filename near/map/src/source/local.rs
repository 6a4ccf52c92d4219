//! Records whose borders a worker finds for itself: lines, and records of fixed length, in a storage.
//!
//! ```text
//!                s                         e            the range, without its bytes before and after
//!    ────┬───────┼──┬──────────┬───────────┼────┬────
//!        │    s-1│  │ first    │           │e-1 │ last
//!                   └──── records of the range ─┘
//! ```
//!
//! A line begins at 0 and after every terminator. So the first record of the range begins after the
//! first terminator from `s - 1` on, and the last one ends with the first terminator from `e - 1` on,
//! wherever that is.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memrchr};
use merganser_sort::record::{Format, SplitRule};
use merganser_sort::{Budget, Error};
use merganser_storage::Storage;

use super::super::chunk_buffer::WorkerBuffer;
use super::{SLACK_BYTES, shrunk, too_long};

/// The distance from a range that is read to the bytes that the storage is asked to read ahead. A worker
/// maps at most a few GB per second, and a disk answers within some milliseconds.
const AHEAD_BYTES: u64 = 8 << 20;

/// The kernel copies several times as fast if source and target have the same place in a line of the processor's
/// cache, which has this many bytes: 13 GB per second instead of 3 on an EPYC.
const ALIKE_BYTES: u64 = 64;

/// A storage of lines or records of fixed length.
pub(super) struct Local {
    storage: Arc<dyn Storage>,
    size: u64,
    range: Range<u64>,
    format: Format,
}

impl Local {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        range: Option<Range<u64>>,
        format: Format,
    ) -> Self {
        let size = storage.size();
        let Range { start, end } = range.unwrap_or(0..size);
        Local { storage, size, range: start.min(size)..end.min(size), format }
    }

    /// Where its first range begins.
    pub(super) fn start(&self) -> u64 {
        match self.format.split_rule() {
            SplitRule::Multiples { bytes } => next_multiple(self.range.start, bytes as u64),
            _ => self.range.start,
        }
    }

    /// The next range, of about `chunk_bytes`; `next` moves behind it.
    pub(super) fn next(&self, next: &mut u64, chunk_bytes: usize) -> Option<Range<u64>> {
        let start = *next;
        if start >= self.range.end {
            return None;
        }
        let len = match self.format.split_rule() {
            SplitRule::Multiples { bytes } => (chunk_bytes / bytes).max(1) as u64 * bytes as u64,
            _ => chunk_bytes as u64,
        };
        let end = start.saturating_add(len).min(self.range.end);
        *next = end;
        Some(start..end)
    }

    /// Has the storage read the bytes that are [`AHEAD_BYTES`] behind `range`; before the first range, all
    /// bytes up to there.
    pub(super) fn read_ahead(&self, range: &Range<u64>) {
        let first = range.start == self.start();
        let from = if first { range.end } else { range.start.saturating_add(AHEAD_BYTES) };
        let to = range.end.saturating_add(AHEAD_BYTES).min(self.range.end);
        if from < to {
            self.storage.read_ahead(from, to - from);
        }
    }

    /// Reads the records of `range`: the place of the first one, and where they are in the buffer.
    pub(super) fn read(
        &self,
        range: Range<u64>,
        buffer: &mut WorkerBuffer,
        budget: &Budget,
    ) -> Result<(u64, Range<usize>), Error> {
        buffer.shrink()?;
        match self.format.split_rule() {
            SplitRule::Multiples { bytes } => self.read_fixed(range, bytes as u64, buffer, budget),
            SplitRule::Behind { delimiter } => self.read_lines(range, delimiter, buffer, budget),
            SplitRule::FromTheFront => unreachable!("their borders are not local"),
        }
    }

    fn read_fixed(
        &self,
        range: Range<u64>,
        record: u64,
        buffer: &mut WorkerBuffer,
        budget: &Budget,
    ) -> Result<(u64, Range<usize>), Error> {
        let Range { start, end } = range;
        // The end of the caller's range may be inside a record, which belongs to it then.
        let end = next_multiple(end, record);
        if end > self.size {
            let whole = self.size / record * record;
            return Err(Error::LastRecord {
                file: self.storage.name().to_owned(),
                offset: whole,
                detail: "its last record is cut short",
            });
        }
        let len = (end - start) as usize;
        let base = (start % ALIKE_BYTES) as usize;
        let grown = buffer.grow(base + len, 0, budget);
        grown.map_err(|e| too_long(self.storage.name(), start, buffer.len(), e))?;
        self.fill(buffer, start, base, base + len)?;
        Ok((start, base..base + len))
    }

    fn read_lines(
        &self,
        range: Range<u64>,
        delimiter: u8,
        buffer: &mut WorkerBuffer,
        budget: &Budget,
    ) -> Result<(u64, Range<usize>), Error> {
        let Range { start, end } = range;
        let from = start.saturating_sub(1);
        // The bytes of the storage begin here in the buffer.
        let base = (from % ALIKE_BYTES) as usize;
        // One byte stays for a terminator that the last line of the file has not.
        let room = (buffer.len() - base) as u64 - 1;
        let mut have = (end - from + SLACK_BYTES as u64).min(room).min(self.size - from) as usize;
        self.fill(buffer, from, base, base + have)?;
        let last = (end - 1 - from) as usize;
        let first = if start == 0 {
            0
        } else {
            let Some(at) = memchr(delimiter, &buffer.bytes()[base..base + last]) else {
                return Ok((start, 0..0));
            };
            at + 1
        };
        let offset = from + first as u64;
        let mut sought = last;
        loop {
            if let Some(at) = memchr(delimiter, &buffer.bytes()[base + sought..base + have]) {
                return Ok((offset, base + first..base + sought + at + 1));
            }
            sought = have;
            if from + have as u64 == self.size {
                buffer.bytes_mut()[base + have] = delimiter;
                return Ok((offset, base + first..base + have + 1));
            }
            // A long line: twice as much each time, so that it is not searched for too often.
            let more = have.max(SLACK_BYTES) as u64;
            let wanted = have + more.min(self.size - from - have as u64) as usize;
            if let Err(error) = buffer.grow(base + wanted + 1, base + have, budget) {
                let begun = &buffer.bytes()[base..base + last];
                let line = memrchr(delimiter, begun).map_or(first, |at| at + 1);
                let fits = buffer.len();
                return Err(too_long(self.storage.name(), from + line as u64, fits, error));
            }
            self.fill(buffer, from + have as u64, base + have, base + wanted)?;
            have = wanted;
        }
    }

    /// Reads the bytes `from..to` of the buffer.
    fn fill(
        &self,
        buffer: &mut WorkerBuffer,
        offset: u64,
        from: usize,
        to: usize,
    ) -> Result<(), Error> {
        let read = buffer.read(&*self.storage, offset, from, to)?;
        if read < to - from {
            return Err(shrunk(&*self.storage, offset + read as u64, self.size));
        }
        Ok(())
    }
}

fn next_multiple(n: u64, of: u64) -> u64 {
    n.div_ceil(of).saturating_mul(of)
}

#[cfg(test)]
mod tests {
    use merganser_storage::memory::MemoryStorage;
    use merganser_storage::{Clock, Completions, Operation, StorageExt};
    use parking_lot::Mutex;

    use super::*;

    /// A storage that keeps the advice that it gets.
    struct Advised(Arc<MemoryStorage>, Mutex<Vec<Range<u64>>>);

    impl Storage for Advised {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn size(&self) -> u64 {
            self.0.size()
        }

        fn clock(&self) -> Arc<dyn Clock> {
            self.0.clock()
        }

        fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
            self.0.submit(token, operation, completions);
        }

        fn read_ahead(&self, offset: u64, len: u64) {
            self.1.lock().push(offset..offset + len);
        }
    }

    /// A file whose reads are at the same place in a line of the cache as the memory that they go to.
    struct Alike(Arc<MemoryStorage>);

    impl Storage for Alike {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn size(&self) -> u64 {
            self.0.size()
        }

        fn clock(&self) -> Arc<dyn Clock> {
            self.0.clock()
        }

        fn submit(&self, _: u64, _: Operation, _: &Completions) {
            panic!("it is read at once");
        }

        fn read_now(&self, offset: u64, out: &mut [u8]) -> Option<std::io::Result<usize>> {
            assert_eq!(offset % ALIKE_BYTES, out.as_ptr() as u64 % ALIKE_BYTES, "slow to copy");
            Some(self.0.read_at(offset, out))
        }
    }

    #[test]
    fn reads_are_fast_to_copy() {
        let mut bytes = b"a few bytes\n".repeat(20_000);
        // One that makes the buffer grow.
        bytes.extend(vec![b'x'; 200_000]);
        let budget = Budget::new(8 << 20);
        for format in [Format::Lines { delimiter: b'\n' }, Format::Fixed { bytes: 4 }] {
            let storage: Arc<dyn Storage> =
                Arc::new(Alike(MemoryStorage::from_bytes("alike", &bytes)));
            let local = Local::new(storage, Some(13..bytes.len() as u64), format);
            let mut buffer = WorkerBuffer::new(64 << 10, &budget).expect("fits");
            let mut next = local.start();
            while let Some(range) = local.next(&mut next, 40_001) {
                local.read(range, &mut buffer, &budget).expect("reads");
            }
        }
    }

    #[test]
    fn each_byte_behind_the_first_range_is_asked_for_once_and_in_time() {
        const CHUNK: u64 = 1 << 20;
        for size in [0, 1, CHUNK, CHUNK + 1, AHEAD_BYTES, AHEAD_BYTES + 1, 3 * AHEAD_BYTES + 77] {
            for start in [0, 13, CHUNK + 5] {
                let memory = MemoryStorage::from_bytes("lines", &vec![b'x'; size as usize]);
                let advised = Arc::new(Advised(memory, Mutex::default()));
                let format = Format::Lines { delimiter: b'\n' };
                let storage = Arc::clone(&advised) as Arc<dyn Storage>;
                let local = Local::new(storage, Some(start..size), format);
                let mut next = local.start();
                let mut asked_to = None;
                while let Some(range) = local.next(&mut next, CHUNK as usize) {
                    assert!(
                        asked_to.is_none_or(|to| range.end <= to),
                        "{range:?} was not asked for"
                    );
                    local.read_ahead(&range);
                    let mut first_end = asked_to.unwrap_or(range.end);
                    for advice in advised.1.lock().drain(..) {
                        assert_eq!(advice.start, first_end);
                        first_end = advice.end;
                    }
                    asked_to = Some(first_end);
                }
                assert_eq!(asked_to.unwrap_or(size.max(start)), size.max(start));
            }
        }
    }
}
