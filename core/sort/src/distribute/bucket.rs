//! A bucket on disk, read back and sorted: the second half of the distribution sort.
//!
//! ```text
//!   extents ──all reads in flight──► input ──check blocks──► tags ─► radix sort ─► gather ─► output
//! ```
//!
//! Records of one length are sorted in one of two ways. Where memory allows, they are sorted into a
//! second buffer ([`FixedBucket`]), which is faster for short records. Records of
//! [`IN_PLACE_RECORD_BYTES`] and more are sorted in place ([`sort_in_place`]), because that touches
//! half the memory. So are records for which a second buffer does not fit: sorting in place takes
//! 1.16 times the records' bytes at 100 bytes per record, instead of 2.16.
//!
//! A *piece* is read, sorted and handed out at once. It is a whole bucket, or a slice of a bucket
//! that has only one key, which needs no sort and may have any size.

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage};

use super::fixed::{FixedBucket, TAG_BYTES as FIXED_TAG_BYTES};
use crate::activity::{WorkerState, wait};
use crate::key::{DirectKey, Order};
use crate::prefix::prefix_at;
use crate::record::{Format, Framing, with_framing};
use crate::run::buffer_sort::{RECORDS_MAX, TAG_BYTES as IN_PLACE_TAG_BYTES, sort_in_place};
use crate::run::chunk::{Chunk, SPAN_BYTES};
use crate::run::extract::SLAB_TAGS;
use crate::run::form::{SortMemory, TAG_BYTES, sort_chunk};
use crate::run::format::corrupt;
use crate::run::gather::GatherRecords;
use crate::{Budget, Error, Result};

/// Bytes of one read.
const READ_BYTES: u64 = 1 << 20;
/// Records from this length on are sorted in place (docs/benchmarks.md).
const IN_PLACE_RECORD_BYTES: usize = 1000;
/// A bucket of one key is handed out in slices of at most about this.
const SLICE_BYTES_MAX: u64 = 4 << 20;
/// Room for encoded keys that each thread may leave unused at the end of its last stretch.
const KEY_SLACK_BYTES: u64 = 64 << 10;

/// Contiguous bytes of a bucket in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketExtent {
    /// Number of the file.
    pub(crate) file: u32,
    /// Where in the file it begins; a multiple of 4096.
    pub(crate) physical: u64,
    /// Whole blocks, except in the last extent of a bucket.
    pub(crate) bytes: u64,
}

/// Records whose keys are between two splitters, in input order.
#[derive(Debug, Clone)]
pub(crate) struct StoredBucket {
    /// No full key in it is below.
    pub(crate) lower: Vec<u8>,
    /// Whether all of its keys are `lower`.
    pub(crate) one_key: bool,
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// Bytes that encoded keys take while sorting, with their heads; 0 for direct keys.
    pub(crate) key_bytes: u64,
    /// Bytes of a block in its files.
    pub(crate) block_bytes: u32,
    /// In order of the records.
    pub(crate) extents: Vec<BucketExtent>,
    /// The checksums of its blocks, in order.
    pub(crate) crcs: Vec<u32>,
}

impl StoredBucket {
    /// Bytes of memory that the description holds.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let extents = self.extents.len() * size_of::<BucketExtent>();
        (size_of::<Self>() + self.lower.len() + extents + self.crcs.len() * 4) as u64
    }
}

/// Buckets in order, and their files.
pub(crate) struct BucketSet {
    pub(crate) files: Vec<Arc<dyn Storage>>,
    pub(crate) buckets: Vec<StoredBucket>,
    pub(crate) order: Arc<Order>,
    pub(crate) unique: bool,
    /// No record is longer: how much of a bucket of one key is looked at for its first.
    pub(crate) record_bytes_max: u64,
    /// In what slices a bucket of one key is handed out, about.
    pub(crate) slice_bytes: u64,
}

/// The slices of buckets of one key that suit a budget, in bytes.
pub(crate) fn slice_bytes(budget: &Budget) -> u64 {
    (budget.limit_bytes() / 32).clamp(4096, SLICE_BYTES_MAX)
}

/// The part of a bucket that is sorted and handed out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketPiece {
    pub(crate) bucket: usize,
    /// Where in the bucket it begins.
    pub(crate) from: u64,
    pub(crate) bytes: u64,
    /// Where in the output its bucket's piece begins, were no duplicates removed.
    pub(crate) output: u64,
    /// Whether it is a slice of a bucket of one key.
    pub(crate) slice: bool,
}

/// Memory that a piece takes from its first read to its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PieceMemory {
    /// Records as they were read.
    pub(crate) input: u64,
    /// One of the two arrays of tags.
    pub(crate) tags: u64,
    /// Encoded keys.
    pub(crate) keys: u64,
    /// Records in order; as they were read, too, if they are sorted there.
    pub(crate) output: u64,
    pub(crate) in_place: bool,
}

impl PieceMemory {
    /// The memory for a bucket of `bytes` bytes.
    pub(crate) fn of_piece(bytes: u64, records: u64, key_bytes: u64, threads: usize) -> Self {
        let spans = bytes / SPAN_BYTES as u64 + threads as u64 + 2;
        let tags = (records + spans * SLAB_TAGS as u64) * TAG_BYTES as u64;
        // A stretch of keys ends where the next one does not fit: less than that one is lost.
        let keys = if key_bytes > 0 { 2 * key_bytes + threads as u64 * KEY_SLACK_BYTES } else { 0 };
        PieceMemory {
            input: bytes.next_multiple_of(4096),
            tags: tags.next_multiple_of(4096),
            keys: keys.next_multiple_of(4096),
            output: bytes.next_multiple_of(4096) + 4096,
            in_place: false,
        }
    }

    /// For a bucket of `bytes` bytes that is sorted in place.
    fn in_place(bytes: u64, records: u64) -> Self {
        let tags = (records * IN_PLACE_TAG_BYTES as u64).div_ceil(2).next_multiple_of(4096);
        PieceMemory { input: 0, tags, in_place: true, ..Self::of_piece(bytes, 0, 0, 1) }
    }

    pub(crate) fn total(&self) -> u64 {
        self.input + 2 * self.tags + self.keys + self.output
    }
}

impl BucketSet {
    /// All pieces, in output order.
    pub(crate) fn pieces(&self) -> Vec<BucketPiece> {
        let mut pieces = Vec::with_capacity(self.buckets.len());
        let mut output = 0;
        for (number, bucket) in self.buckets.iter().enumerate() {
            let block_bytes = u64::from(bucket.block_bytes);
            let (step, end) = match (bucket.one_key, self.unique) {
                (false, _) => (bucket.bytes, bucket.bytes),
                (true, false) => (self.slice_bytes.next_multiple_of(block_bytes), bucket.bytes),
                // Duplicates are removed, so the first record is enough.
                (true, true) => {
                    let first = self.record_bytes_max.next_multiple_of(block_bytes);
                    (first, first.min(bucket.bytes))
                }
            };
            let mut from = 0;
            while from < end {
                let bytes = step.min(end - from);
                let (slice, output) = (bucket.one_key, output + from);
                pieces.push(BucketPiece { bucket: number, from, bytes, output, slice });
                from += bytes;
            }
            output += bucket.bytes;
        }
        pieces
    }

    /// Memory for `piece`, sorted by `threads` threads.
    pub(crate) fn memory(&self, piece: &BucketPiece, threads: usize) -> PieceMemory {
        let bucket = &self.buckets[piece.bucket];
        if piece.slice {
            let mut memory = PieceMemory::of_piece(piece.bytes, 0, 0, threads);
            memory.tags = 0;
            return memory;
        }
        let fixed = self.fixed(bucket);
        if fixed.is_some_and(|(record_bytes, _)| record_bytes >= IN_PLACE_RECORD_BYTES)
            && let Some(memory) = self.memory_in_place(piece)
        {
            return memory;
        }
        if threads == 1 && fixed.is_some() {
            let mut memory = PieceMemory::of_piece(bucket.bytes, 0, 0, threads);
            memory.tags = (bucket.records * FIXED_TAG_BYTES / 2).next_multiple_of(4096);
            return memory;
        }
        PieceMemory::of_piece(bucket.bytes, bucket.records, bucket.key_bytes, threads)
    }

    /// Memory for `piece` if it can be sorted in place, by any number of threads.
    pub(crate) fn memory_in_place(&self, piece: &BucketPiece) -> Option<PieceMemory> {
        let bucket = &self.buckets[piece.bucket];
        let can =
            !piece.slice && bucket.records <= RECORDS_MAX as u64 && self.fixed(bucket).is_some();
        can.then(|| PieceMemory::in_place(bucket.bytes, bucket.records))
    }

    /// The least memory for `piece`.
    pub(crate) fn least_memory(&self, piece: &BucketPiece) -> PieceMemory {
        self.memory_in_place(piece).unwrap_or_else(|| self.memory(piece, 1))
    }

    /// Length and key of the records of `bucket` where these let one thread sort it as a
    /// [`FixedBucket`].
    fn fixed(&self, bucket: &StoredBucket) -> Option<(usize, DirectKey)> {
        match (self.order.format(), self.order.direct()) {
            (Format::Fixed { bytes }, Some(key))
                if !self.unique && bucket.bytes == bucket.records * bytes as u64 =>
            {
                Some((bytes, key))
            }
            _ => None,
        }
    }

    /// Starts all reads of `piece` into `memory`, which is at least as long.
    pub(crate) fn load(self: &Arc<Self>, piece: BucketPiece, memory: Buffer) -> LoadingPiece {
        let bucket = &self.buckets[piece.bucket];
        let wanted = piece.from..piece.from + piece.bytes;
        let mut loading = LoadingPiece {
            set: Arc::clone(self),
            piece,
            memory: Some(memory),
            reads: Vec::new(),
            arrived: Vec::new(),
            in_flight: 0,
            completions: Completions::new(),
        };
        let mut start = 0;
        for extent in &bucket.extents {
            let end = start + extent.bytes;
            let mut at = start.max(wanted.start);
            let to = end.min(wanted.end);
            while at < to {
                let len = (to - at).min(READ_BYTES);
                loading.submit(extent.file, extent.physical + (at - start), len as usize);
                at += len;
            }
            start = end;
        }
        loading
    }

    /// Gives back the space of `bucket`, which will not be read again. If the file system can't
    /// give it back, the sort only takes more space.
    pub(crate) fn discard(&self, bucket: usize, completions: &Completions) -> usize {
        for extent in &self.buckets[bucket].extents {
            let len = extent.bytes.next_multiple_of(4096);
            let operation = Operation::Discard { offset: extent.physical, len };
            self.files[extent.file as usize].submit(0, operation, completions);
        }
        self.buckets[bucket].extents.len()
    }
}

/// A piece whose reads are under way.
pub(crate) struct LoadingPiece {
    set: Arc<BucketSet>,
    pub(crate) piece: BucketPiece,
    /// The rest of the buffer, which no read has taken.
    memory: Option<Buffer>,
    /// File, place and length of each read.
    reads: Vec<(u32, u64, usize)>,
    arrived: Vec<Option<Buffer>>,
    in_flight: usize,
    completions: Completions,
}

impl LoadingPiece {
    fn submit(&mut self, file: u32, offset: u64, len: usize) {
        let mut buffer = self.memory.take().expect("there until the end");
        self.memory = Some(buffer.split_off(len.next_multiple_of(4096)));
        let token = self.reads.len() as u64;
        self.reads.push((file, offset, len));
        self.arrived.push(None);
        self.in_flight += 1;
        let operation = Operation::Read { offset, buffer };
        self.set.files[file as usize].submit(token, operation, &self.completions);
    }

    /// Waits for all reads and checks every block. The bytes are at the front of the buffer.
    pub(crate) fn finish(mut self) -> Result<Buffer> {
        let mut failed = Ok(());
        while self.in_flight > 0 {
            let clock = self.set.files[0].clock();
            let done = {
                let _waiting = wait(WorkerState::Reading);
                self.completions.wait(&*clock)
            };
            self.in_flight -= 1;
            let read = done.token as usize;
            let (file, offset, len) = self.reads[read];
            match (done.result, done.buffer) {
                (Ok(n), _) if n < len => {
                    let name = self.set.files[file as usize].name();
                    let text = format!("{} bytes are missing at the end", len - n);
                    failed = failed.and(Err(corrupt(name, offset + n as u64, text)));
                }
                (Ok(_), buffer) => self.arrived[read] = buffer,
                (Err(e), _) => failed = failed.and(Err(Error::Io(e))),
            }
        }
        failed?;
        let mut parts = self.arrived.drain(..).map(|part| part.expect("all reads have arrived"));
        let rest = self.memory.take().expect("there until the end");
        let mut whole = match parts.next() {
            Some(mut first) => {
                for part in parts {
                    first.unsplit(part).expect("parts were split off in this order");
                }
                first
            }
            None => return Ok(rest),
        };
        whole.unsplit(rest).expect("the rest follows the parts");
        self.check(&whole)?;
        Ok(whole)
    }

    fn check(&self, bytes: &[u8]) -> Result<()> {
        let bucket = &self.set.buckets[self.piece.bucket];
        let block_bytes = u64::from(bucket.block_bytes);
        let first = (self.piece.from / block_bytes) as usize;
        let blocks = bytes[..self.piece.bytes as usize].chunks(block_bytes as usize);
        for (number, block) in blocks.enumerate() {
            let (found, expected) = (crc32c::crc32c(block), bucket.crcs[first + number]);
            if found != expected {
                let at = self.piece.from + number as u64 * block_bytes;
                let (file, offset) = self.place_of(at);
                let detail = format!("block CRC {found:08x} found, {expected:08x} expected");
                return Err(corrupt(file, offset, detail));
            }
        }
        Ok(())
    }

    /// File and place of byte `at` of the bucket.
    fn place_of(&self, mut at: u64) -> (&str, u64) {
        for extent in &self.set.buckets[self.piece.bucket].extents {
            if at < extent.bytes {
                return (self.set.files[extent.file as usize].name(), extent.physical + at);
            }
            at -= extent.bytes;
        }
        ("bucket", at)
    }
}

impl Drop for LoadingPiece {
    fn drop(&mut self) {
        // Buffers in flight belong to the kernel until they come back.
        while self.in_flight > 0 {
            let _ = self.completions.wait(&*self.set.files[0].clock());
            self.in_flight -= 1;
        }
    }
}

/// Sorts pieces, one after the other, and keeps its memory between them.
pub(crate) struct PieceSorter {
    budget: Budget,
    threads: usize,
    memory: Option<(PieceMemory, SortMemory)>,
    /// For records of one length: tags, and counts of digits.
    fixed: (Buffer, Vec<u32>),
}

impl PieceSorter {
    /// Sorts with `threads` threads. The caller reserves the memory; [`BucketSet::memory`] says how
    /// much a piece takes.
    pub(crate) fn new(budget: &Budget, threads: usize) -> Self {
        PieceSorter {
            budget: budget.clone(),
            threads,
            memory: None,
            fixed: (Buffer::empty(), Vec::new()),
        }
    }

    /// Tags and keys for `need`: those of the piece before, if they are large enough.
    fn memory(&mut self, need: PieceMemory) -> Result<&mut SortMemory> {
        let fits = |have: &PieceMemory| {
            let enough = have.tags >= need.tags && have.keys >= need.keys;
            enough && have.tags + have.keys <= 2 * (need.tags + need.keys) + (1 << 20)
        };
        if !self.memory.as_ref().is_some_and(|(have, _)| fits(have)) {
            self.memory = None;
            let tags = || Buffer::try_new(need.tags as usize);
            let keys = Buffer::try_new(need.keys as usize)?;
            self.memory = Some((need, SortMemory::new(tags()?, tags()?, keys, &self.budget)));
        }
        Ok(&mut self.memory.as_mut().expect("just made").1)
    }

    /// Sorts the loaded records of `piece` in place, or from `pad` on. Returns their bytes and the
    /// buffer.
    ///
    /// # Errors
    /// When the system has no memory for the tags.
    pub(crate) fn sort_in_place(
        &mut self,
        set: &BucketSet,
        piece: BucketPiece,
        mut records: Buffer,
        pad: usize,
    ) -> Result<(usize, Buffer)> {
        let bucket = &set.buckets[piece.bucket];
        let (len, threads) = (piece.bytes as usize, self.threads);
        let tags = self.tags(bucket.records as usize * IN_PLACE_TAG_BYTES)?;
        sort_in_place(&mut records[..len], &set.order, tags, threads);
        if pad > 0 {
            records.copy_within(..len, pad);
        }
        Ok((len, records))
    }

    /// Tags for records of one length: those of the piece before, if they are enough.
    fn tags(&mut self, need: usize) -> Result<&mut Buffer> {
        let tags = &mut self.fixed.0;
        if tags.len() < need || tags.len() > 4 * need {
            *tags = Buffer::empty();
            *tags = Buffer::try_new(need.next_multiple_of(4096))?;
        }
        Ok(tags)
    }

    /// Sorts the loaded `input` of `piece` into `output` from `pad` on. Returns the bytes written
    /// there and the records, and gives the input's memory back.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are not the records that were counted.
    pub(crate) fn sort(
        &mut self,
        set: &BucketSet,
        piece: BucketPiece,
        input: Buffer,
        output: &mut Buffer,
        pad: usize,
    ) -> Result<(usize, Buffer)> {
        let len = piece.bytes as usize;
        if piece.slice {
            let mut len = len;
            if set.unique {
                let framed =
                    with_framing!(set.order.format(), framing => framing.first(&input[..len]));
                len = framed.expect("the first record was stored whole");
            }
            output[pad..pad + len].copy_from_slice(&input[..len]);
            return Ok((len, input));
        }
        let bucket = &set.buckets[piece.bucket];
        let format = set.order.format();
        if self.threads == 1
            && let Some((record_bytes, key)) = set.fixed(bucket)
        {
            let next = set.buckets.get(piece.bucket + 1);
            let high = next.map_or(u64::MAX, |next| prefix_at(&next.lower, 0));
            let bounds = (prefix_at(&bucket.lower, 0), high);
            let need = 2 * set.memory(&piece, 1).tags as usize;
            self.tags(need)?;
            let (tags, counts) = &mut self.fixed;
            let records = FixedBucket { bytes: &input[..len], record_bytes, key, bounds };
            records.sort(tags, counts, &mut output[pad..pad + len]);
            return Ok((len, input));
        }
        let mut cuts = Vec::new();
        format.cut_whole(&input[..len], SPAN_BYTES, &mut cuts);
        let malformed = |detail: &str| {
            let first = bucket.extents.first();
            let name = first.map_or("bucket", |e| set.files[e.file as usize].name());
            corrupt(name, first.map_or(0, |e| e.physical), detail.to_owned())
        };
        if cuts.last().copied().unwrap_or(0) != len {
            return Err(malformed("a bucket does not end with a record"));
        }
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let spans: Vec<Range<usize>> =
            starts.zip(cuts.iter().copied()).map(|(a, b)| a..b).collect();
        let threads = self.threads;
        let need = PieceMemory::of_piece(bucket.bytes, bucket.records, bucket.key_bytes, threads);
        let memory = self.memory(need)?;
        let chunk = Chunk::of_buffer(input, spans);
        let sorted = sort_chunk(&chunk, None, &set.order, set.unique, threads, memory)?;
        if sorted.resume.is_some() || !set.unique && sorted.records() != bucket.records {
            return Err(malformed("a bucket has not the records that were counted"));
        }
        let bytes = sorted.bytes() as usize;
        sorted.gather_into(&mut output[pad..pad + bytes], threads);
        Ok((bytes, chunk.into_buffer()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::OrderSpec;

    /// One bucket of `count` records of `record_bytes` bytes, and its records, in no order.
    fn one(count: usize, record_bytes: usize) -> (BucketSet, Buffer) {
        let mut spec = OrderSpec::new(Format::Fixed { bytes: record_bytes });
        spec.keys.push("1:4".to_owned());
        let order = Arc::new(spec.compile(None).expect("compiles"));
        let bytes = count * record_bytes;
        let bucket = StoredBucket {
            lower: Vec::new(),
            one_key: false,
            bytes: bytes as u64,
            records: count as u64,
            key_bytes: 0,
            block_bytes: 4096,
            extents: Vec::new(),
            crcs: Vec::new(),
        };
        let set = BucketSet {
            files: Vec::new(),
            buckets: vec![bucket],
            order,
            unique: false,
            record_bytes_max: 0,
            slice_bytes: 4096,
        };
        let memory = set.least_memory(&set.pieces()[0]);
        let mut records = Buffer::new(memory.output as usize);
        let random = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) >> 20;
        for (i, record) in records[..bytes].chunks_mut(record_bytes).enumerate() {
            record[1..5].copy_from_slice(&random(i).to_be_bytes());
            record[5..].fill(i as u8);
        }
        (set, records)
    }

    #[test]
    fn in_place_takes_a_quarter_more_than_the_records() {
        for (count, record_bytes) in [(40_000, 100), (400_000, 100), (4_000, 1000)] {
            let (set, _) = one(count, record_bytes);
            let least = set.least_memory(&set.pieces()[0]).total() as f64;
            let bytes = (count * record_bytes) as f64;
            assert!(least <= 1.25 * bytes, "{count} of {record_bytes}: {least}");
        }
        let way = |record_bytes| {
            let (set, _) = one(100, record_bytes);
            set.memory(&set.pieces()[0], 1).in_place
        };
        assert!(!way(100) && !way(999) && way(1000) && way(5000));
    }

    #[test]
    fn both_ways_give_the_same_bytes() {
        for (count, record_bytes, pad) in [(5000, 100, 0), (5000, 16, 100), (300, 1000, 4095)] {
            let (set, records) = one(count, record_bytes);
            let (piece, budget) = (set.pieces()[0], Budget::new(1 << 30));
            let mut input = Buffer::new(records.len());
            input.copy_from_slice(&records);
            let mut output = Buffer::new(records.len());
            let mut sorter = PieceSorter::new(&budget, 1);
            let sorted = sorter.sort(&set, piece, input, &mut output, pad).expect("sorts");
            for threads in 1..=2 {
                let mut again = Buffer::new(records.len());
                again.copy_from_slice(&records);
                let mut sorter = PieceSorter::new(&budget, threads);
                let (len, again) =
                    sorter.sort_in_place(&set, piece, again, pad).expect("there is memory");
                assert_eq!(len, sorted.0);
                assert!(again[pad..pad + len] == output[pad..pad + len], "{record_bytes}");
            }
        }
    }
}
