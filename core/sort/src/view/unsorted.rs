//! Unsorted buckets: each is read and sorted when its bytes are wanted.
//!
//! ```text
//!   read at random ──► kept pieces ──miss──► read one bucket, sort it with all cores, keep it
//!   stream         ──► pieces sorted ahead on all cores, in order
//! ```
//!
//! Places need no merge: bytes and records of every bucket are known, so a place in the output is a
//! place in a certain bucket.

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of, usize_of_u32};
use merganser_storage::{Buffer, Completions, Operation, Storage};

use super::making::{Making, Measure, Origin, Purpose, Space};
use super::memory::{HELD, KeptPiece, ReadMemory};
use crate::bound::Bound;
use crate::distribute::bucket::{BucketPiece, BucketSet, PieceMemory, PieceSorter, StoredBucket};
use crate::distribute::stream::{
    PieceStream, StreamOptions, holding_memory_bytes, read_ahead_memory_bytes, useful_memory_bytes,
};
use crate::distribute::stream_room;
use crate::portion::{Portion, Portions, Start};
use crate::record::{Framing, with_framing};
use crate::run::release::ignore_unsupported;
use crate::{Budget, Error, Result, shares};

/// Neighbouring buckets of unsorted segments.
pub(super) struct UnsortedBuckets {
    /// Number of the section in the view.
    section: usize,
    set: Arc<BucketSet>,
    pieces: Vec<BucketPiece>,
    /// Bytes and records before each bucket, and of all.
    starts: Vec<Measure>,
    /// Memory that a read at random takes at most.
    random_bytes: u64,
}

impl UnsortedBuckets {
    /// The buckets of `set`, section number `section`.
    pub(super) fn new(
        section: usize,
        set: BucketSet,
        pieces: Vec<BucketPiece>,
        budget: &Budget,
        threads: usize,
    ) -> Self {
        let mut starts = vec![Measure::default()];
        for bucket in &set.buckets {
            let Measure { bytes, records } = *starts.last().expect("never empty");
            starts.push(Measure { bytes: bytes + bucket.bytes, records: records + bucket.records });
        }
        let most = pieces.iter().map(|piece| alone(&set, piece, budget, threads).1.total()).max();
        let random_bytes = most.unwrap_or(0);
        UnsortedBuckets { section, set: Arc::new(set), pieces, starts, random_bytes }
    }

    /// All of them together.
    pub(super) fn size(&self) -> Measure {
        *self.starts.last().expect("never empty")
    }

    /// The piece that holds the byte at `place`, which is before the end.
    fn piece_at(&self, place: u64) -> usize {
        self.pieces.partition_point(|piece| piece.output <= place) - 1
    }

    /// Piece `number`, sorted now unless it is kept.
    fn get(&self, memory: &ReadMemory, number: usize) -> Result<Arc<KeptPiece>> {
        memory.kept.get((self.section, number), || self.sort(memory, number))
    }

    fn sort(&self, memory: &ReadMemory, number: usize) -> Result<KeptPiece> {
        let piece = self.pieces[number];
        let (threads, need) = alone(&self.set, &piece, &memory.budget, memory.threads);
        let mut reserved = memory.reserve(need.total(), "reading a view at random")?;
        let mut sorter = PieceSorter::new(&memory.budget, threads);
        let (len, buffer) = if need.in_place {
            let buffer = Buffer::try_new(usize_of(need.output))?;
            let loaded = self.set.load(piece, buffer).finish()?;
            sorter.sort_in_place(&self.set, piece, loaded, 0)?
        } else {
            let input = Buffer::try_new(usize_of(need.input))?;
            let mut buffer = Buffer::try_new(usize_of(need.output))?;
            let loaded = self.set.load(piece, input).finish()?;
            let (len, _) = sorter.sort(&self.set, piece, loaded, &mut buffer, 0)?;
            (len, buffer)
        };
        drop(sorter);
        reserved.shrink_to(need.output);
        Ok(KeptPiece { buffer, len, _memory: reserved })
    }

    /// Where the first record of `bucket` begins for which `wanted`; the bucket's end without one.
    fn find(
        &self,
        memory: &ReadMemory,
        bucket: usize,
        mut wanted: impl FnMut(&[u8]) -> bool,
    ) -> Result<u64> {
        if bucket >= self.set.buckets.len() {
            return Ok(self.size().bytes);
        }
        let first = self.pieces.partition_point(|piece| piece.bucket < bucket);
        let mut place = self.starts[bucket].bytes;
        // A slice of a bucket of one key may end within a record.
        let mut begun: Vec<u8> = Vec::new();
        for number in first..self.pieces.len() {
            if self.pieces[number].bucket != bucket {
                break;
            }
            let piece = self.get(memory, number)?;
            let bytes = piece.bytes();
            let joined;
            let mut rest = bytes;
            if !begun.is_empty() {
                begun.extend_from_slice(bytes);
                joined = std::mem::take(&mut begun);
                rest = &joined;
            }
            let found = with_framing!(self.set.order.format(), framing => loop {
                let Some(len) = framing.next(rest) else { break false };
                if wanted(&rest[..len]) {
                    break true;
                }
                place += u64_of(len);
                rest = &rest[len..];
            });
            if found {
                return Ok(place);
            }
            begun = rest.to_vec();
        }
        // All of the bucket was read, so the rest is a record whose end is that of the bucket.
        while let Some(len) = self.set.order.format().first_len(&begun) {
            if wanted(&begun[..len]) {
                break;
            }
            place += u64_of(len);
            begun.drain(..len);
        }
        Ok(place)
    }

    /// The pieces that hold the bytes of `range`, which is not empty.
    fn pieces_of(&self, range: &Range<u64>) -> Vec<BucketPiece> {
        let (first, last) = (self.piece_at(range.start), self.piece_at(range.end - 1));
        let mut pieces = self.pieces[first..=last].to_vec();
        // A bucket of one key can be read from any block on.
        if let Some(piece) = pieces.first_mut().filter(|piece| piece.slice) {
            let block_bytes = u64::from(self.set.buckets[piece.bucket].block_bytes);
            let skipped = (range.start - piece.output) / block_bytes * block_bytes;
            piece.from += skipped;
            piece.bytes -= skipped;
            piece.output += skipped;
        }
        pieces
    }
}

/// How many of `threads` threads sort `piece` for a read at random, and in what memory: in little where
/// it is much of the budget.
fn alone(
    set: &BucketSet,
    piece: &BucketPiece,
    budget: &Budget,
    threads: usize,
) -> (usize, PieceMemory) {
    let most = budget.limit_bytes() / 2;
    let all = set.memory(piece, threads);
    if all.total() <= most {
        return (threads, all);
    }
    let one = set.memory(piece, 1);
    let less = set.memory_in_place(piece).filter(|_| one.total() > most);
    (1, less.unwrap_or(one))
}

impl Making for UnsortedBuckets {
    fn storages(&self) -> Vec<Arc<dyn Storage>> {
        self.set.files.clone()
    }

    fn portions(
        &self,
        memory: &ReadMemory,
        origin: Origin<'_>,
        end: u64,
        align: Option<u64>,
        purpose: Purpose,
    ) -> Result<Box<dyn Portions>> {
        let pieces = self.pieces_of(&(origin.place()..end));
        let (set, threads, budget) = (&self.set, memory.threads, &memory.budget);
        let options = StreamOptions { threads, align, discard: false };
        let start = |room| {
            PieceStream::new(Arc::clone(set), pieces.clone(), room, options, budget)
                .map(|stream| Box::new(stream) as Box<dyn Portions>)
        };
        if purpose == Purpose::Whole {
            return start(stream_room(budget)).or_else(|error| match error {
                Error::Memory { .. } => {
                    // Pieces kept for reads at random go first, then streams that read ahead.
                    memory.make_room(u64::MAX);
                    memory.give_up_ahead();
                    start(stream_room(budget))
                }
                other => Err(other),
            });
        }
        let wanted = read_ahead_memory_bytes(set, &pieces, threads, u64_of(HELD))
            .min(useful_memory_bytes(set, &pieces, threads));
        let least = holding_memory_bytes(set, &pieces, threads, u64_of(HELD));
        memory.make_room(shares::for_stream(wanted.max(least)) + self.random_bytes);
        let room = stream_room(budget).min(budget.free_bytes().saturating_sub(self.random_bytes));
        if room < least {
            let limit_bytes = budget.limit_bytes();
            let least_bytes = limit_bytes + least - room;
            return Err(Error::Memory { owner: "reading a view ahead", least_bytes, limit_bytes });
        }
        start(room.min(wanted.max(least)))
    }

    /// Where a bucket begins, or a block of a bucket of one key.
    fn can_resume_at(&self, place: u64, bound: Option<&Bound>) -> bool {
        if bound.is_some() {
            return false;
        }
        let bucket = self.starts.partition_point(|start| start.bytes <= place) - 1;
        let within = place - self.starts[bucket].bytes;
        let bucket = self.set.buckets.get(bucket);
        within == 0
            || bucket.is_some_and(|bucket| {
                bucket.one_key && within.is_multiple_of(u64::from(bucket.block_bytes))
            })
    }

    fn portion_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).max().unwrap_or(0)
    }

    fn kept_until(&self, memory: &ReadMemory, mut place: u64, enough: u64) -> u64 {
        let first =
            if place < self.size().bytes { self.piece_at(place) } else { self.pieces.len() };
        for (number, piece) in self.pieces.iter().enumerate().skip(first) {
            if place >= enough || !memory.kept.has((self.section, number)) {
                break;
            }
            place = piece.output + piece.bytes;
        }
        place
    }

    /// A sorted piece stays for reads at random.
    fn keep(&self, memory: &ReadMemory, place: u64, portion: Portion) -> Option<Portion> {
        let number = self.piece_at(place);
        let piece = &self.pieces[number];
        let whole = (piece.output, piece.bytes) == (place, u64_of(portion.len));
        if !whole || portion.pad > 0 {
            return Some(portion);
        }
        memory.keep_passed((self.section, number), portion)
    }

    fn read_at(&self, memory: &ReadMemory, place: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let at = place + u64_of(done);
            let number = self.piece_at(at);
            let piece = self.get(memory, number)?;
            let from = usize_of(at - self.pieces[number].output);
            let n = (piece.len - from).min(out.len() - done);
            out[done..done + n].copy_from_slice(&piece.bytes()[from..from + n]);
            done += n;
        }
        Ok(())
    }

    fn place_of_record(&self, memory: &ReadMemory, record: u64) -> Result<u64> {
        let bucket = self.starts.partition_point(|start| start.records <= record) - 1;
        let mut skip = record - self.starts[bucket].records;
        self.find(memory, bucket, |_| {
            let here = skip == 0;
            skip = skip.saturating_sub(1);
            here
        })
    }

    fn place_of_key(&self, memory: &ReadMemory, key: &[u8]) -> Result<u64> {
        let buckets = &self.set.buckets;
        let above = buckets.partition_point(|bucket| &bucket.lower[..] <= key);
        let Some(bucket) = above.checked_sub(1) else { return Ok(0) };
        if buckets[bucket].one_key {
            let above = &buckets[bucket].lower[..] < key;
            return Ok(self.starts[bucket + usize::from(above)].bytes);
        }
        let mut own = Vec::new();
        self.find(memory, bucket, |record| {
            own.clear();
            self.set.order.encode_full(record, &mut own);
            own[..] >= *key
        })
    }

    fn verify_all(
        &self,
        memory: &ReadMemory,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let most = self.pieces.iter().map(|piece| piece.bytes.next_multiple_of(4096)).max();
        let most = most.unwrap_or(0);
        let _memory = memory.reserve(most, "checking a view")?;
        let mut buffer = Buffer::try_new(usize_of(most))?;
        for piece in &self.pieces {
            buffer = self.set.load(*piece, buffer).finish()?;
            progress(piece.bytes)?;
        }
        Ok(())
    }

    fn space(&self, place: u64, _step: u64) -> Box<dyn Space + '_> {
        Box::new(UnsortedSpace {
            set: &self.set,
            upto: place,
            completions: Completions::new(),
            in_flight: 0,
        })
    }
}

/// Space of the buckets, from `upto` on.
struct UnsortedSpace<'a> {
    set: &'a BucketSet,
    upto: u64,
    completions: Completions,
    in_flight: usize,
}

impl UnsortedSpace<'_> {
    /// `part` begins with a block of `bucket` and ends with one.
    fn release_part(&mut self, bucket: &StoredBucket, part: Range<u64>) -> Result<()> {
        let mut start = 0;
        for extent in &bucket.extents {
            let (from, to) = (part.start.max(start), part.end.min(start + extent.bytes));
            if from < to {
                let offset = extent.physical + (from - start);
                let len = (to - from).next_multiple_of(4096);
                let file = &self.set.files[usize_of_u32(extent.file)];
                file.submit(0, Operation::Discard { offset, len }, &self.completions);
                self.in_flight += 1;
                while let Some(done) = self.completions.poll() {
                    self.in_flight -= 1;
                    ignore_unsupported(done.result)?;
                }
            }
            start += extent.bytes;
        }
        Ok(())
    }
}

impl Space for UnsortedSpace<'_> {
    fn release(&mut self, place: u64, _start: &Start) -> Result<()> {
        let set = self.set;
        let mut start = 0;
        for bucket in &set.buckets {
            let end = start + bucket.bytes;
            let (from, to) = (self.upto.max(start), place.min(end));
            if from < to {
                self.release_part(bucket, from - start..to - start)?;
            }
            start = end;
        }
        self.upto = place.max(self.upto);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        while self.in_flight > 0 {
            let done = self.completions.wait(&*self.set.files[0].clock());
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }
}
