//! Pieces of buckets, sorted on all cores and handed out in order.
//!
//! ```text
//!   next piece ──claim memory──► worker: reads of its next piece under way while it sorts this one
//!                (in order)             └──► sorted ──in order──► reader ──buffer──► free
//! ```
//!
//! Memory is the only back-pressure: a worker begins a piece when the piece's memory is free.
//! Pieces claim memory in order, so the piece that the reader waits for always has its own.

use std::sync::Arc;

use merganser_storage::{ALIGNMENT, Buffer, Completions};
use parking_lot::Mutex;

use super::bucket::{BucketPiece, BucketSet, LoadingPiece, PieceMemory, PieceSorter};
use crate::budget::Reservation;
use crate::pipeline::Workers;
use crate::pipeline::ordered::{Claim, Desk, Pipeline, Stage};
use crate::portion::{Portion, Portions, Start, Ticket};
use crate::{Budget, Result};

/// Sorted pieces that may wait for the reader or be on their way to a file, beyond those at work.
const PIECES_AHEAD: u64 = 3;

/// A worker's next pieces are read ahead from this size up: smaller ones keep no disk busy.
const READ_AHEAD_BYTES: u64 = 8 << 20;

/// Space is given back in about this many steps.
const DISCARDS: u64 = 24;

/// How a stream works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamOptions {
    pub(crate) threads: usize,
    /// If given, each piece is placed in its buffer as in a file that has this many bytes before
    /// it.
    pub(crate) align: Option<u64>,
    /// Whether to give back the space of buckets once they are read.
    pub(crate) discard: bool,
}

/// An ordered stream of sorted pieces.
pub(crate) struct PieceStream {
    pieces: Pipeline<PieceStage>,
    _memory: Reservation,
}

/// The least memory in which all of `pieces` can be streamed, one at a time, in bytes.
pub(crate) fn least_memory_bytes(set: &BucketSet, pieces: &[BucketPiece]) -> u64 {
    pieces.iter().map(|piece| set.least_memory(piece).total()).max().unwrap_or(0)
}

/// The most memory that a stream of `pieces` puts to use, in bytes.
pub(crate) fn useful_memory_bytes(set: &BucketSet, pieces: &[BucketPiece], threads: usize) -> u64 {
    let of = |piece: &BucketPiece| set.memory(piece, threads);
    let total = pieces.iter().map(|p| of(p).total()).max().unwrap_or(0);
    let output = pieces.iter().map(|p| of(p).output).max().unwrap_or(0);
    let ahead = 1 + READ_AHEAD_BYTES.div_ceil(output.max(1));
    (1 + ahead) * threads as u64 * total + PIECES_AHEAD * output
}

/// The least memory of a stream whose reader keeps `held` portions while it waits for the next one, in
/// bytes.
pub(crate) fn holding_memory_bytes(
    set: &BucketSet,
    pieces: &[BucketPiece],
    threads: usize,
    held: u64,
) -> u64 {
    let total =
        |piece: &BucketPiece| set.memory(piece, 1).total().max(set.memory(piece, threads).total());
    let most = pieces.iter().map(|piece| (total(piece), set.memory(piece, 1).output));
    let (total, output) = most.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    total + held * output
}

/// Memory of a stream that reads ahead for a reader that may stop at any time, in bytes: each thread
/// sorts a piece and reads the next one.
pub(crate) fn read_ahead_memory_bytes(
    set: &BucketSet,
    pieces: &[BucketPiece],
    threads: usize,
    held: u64,
) -> u64 {
    let one = |piece: &BucketPiece| set.memory(piece, 1);
    let total = pieces.iter().map(|piece| one(piece).total()).max().unwrap_or(0);
    let output = pieces.iter().map(|piece| one(piece).output).max().unwrap_or(0);
    2 * threads as u64 * total + (PIECES_AHEAD + held) * output
}

/// The length of most pieces' buffers: the longest piece of those up to twice the median. Buffers of
/// one length are used again as they are, those of many lengths cost page faults.
fn usual_bytes(pieces: &[BucketPiece]) -> u64 {
    let mut lengths: Vec<u64> = pieces.iter().map(|piece| piece.bytes).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let usual = lengths.partition_point(|bytes| *bytes <= 2 * median);
    usual.checked_sub(1).map_or(0, |i| lengths[i])
}

impl PieceStream {
    /// Streams `pieces` of `set` in at most `room` bytes of `budget`.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) with the least that works.
    pub(crate) fn new(
        set: Arc<BucketSet>,
        pieces: Vec<BucketPiece>,
        room: u64,
        options: StreamOptions,
        budget: &Budget,
    ) -> Result<Self> {
        let useful = useful_memory_bytes(&set, &pieces, options.threads);
        let room = room.min(useful).max(least_memory_bytes(&set, &pieces));
        let memory = budget.reserve(room, "sorting buckets")?;
        let stage = PieceStage {
            set,
            options,
            budget: budget.clone(),
            room,
            usual_bytes: usual_bytes(&pieces),
            pieces,
            read: Mutex::default(),
        };
        let workers = Workers::new(options.threads.max(1));
        let pieces = Pipeline::new(stage, PieceSource::default(), workers)?;
        Ok(PieceStream { pieces, _memory: memory })
    }
}

impl Portions for PieceStream {
    /// The next sorted piece.
    fn next(&mut self) -> Result<Option<Portion>> {
        self.pieces.next()
    }

    fn recycle(&mut self, buffer: Buffer, ticket: Ticket) {
        self.pieces.give_back(|source| {
            if !buffer.is_empty() {
                source.free.push(buffer);
            }
            source.used -= ticket.claimed;
        });
    }

    /// Whether [`Portions::next`] would wait: the next piece may be waiting for memory.
    fn wants_buffers(&self) -> bool {
        !self.pieces.is_ready()
    }

    fn is_at_end(&self) -> bool {
        self.pieces.is_at_end()
    }
}

/// How pieces are sorted.
struct PieceStage {
    set: Arc<BucketSet>,
    pieces: Vec<BucketPiece>,
    options: StreamOptions,
    budget: Budget,
    room: u64,
    usual_bytes: u64,
    /// Buckets whose space is to be given back, and their bytes.
    read: Mutex<(Vec<usize>, u64)>,
}

/// Memory that pieces claim.
#[derive(Default)]
struct PieceSource {
    next_piece: usize,
    used: u64,
    /// The part of it for buffers of sorted pieces that were not allocated yet.
    untaken: u64,
    /// The last one to come back is the first to go: a cache may still hold it.
    free: Vec<Buffer>,
}

/// The memory that a worker keeps from piece to piece.
struct KeptMemory {
    inputs: Vec<Buffer>,
    sorter: Option<(usize, PieceSorter)>,
    discards: Discards,
}

impl KeptMemory {
    fn sorter(&mut self, threads: usize, budget: &Budget) -> &mut PieceSorter {
        let fresh = || (threads, PieceSorter::new(budget, threads));
        let (of, sorter) = self.sorter.get_or_insert_with(fresh);
        if *of != threads {
            (*of, *sorter) = fresh();
        }
        sorter
    }
}

/// Space of buckets that is being given back.
struct Discards {
    set: Arc<BucketSet>,
    completions: Completions,
    in_flight: usize,
}

impl Drop for Discards {
    fn drop(&mut self) {
        // If a file system can't give space back, the sort takes more space but is correct.
        while self.in_flight > 0 {
            let _ = self.completions.wait(&*self.set.files[0].clock());
            self.in_flight -= 1;
        }
    }
}

/// A piece that has its memory.
struct ClaimedPiece {
    number: usize,
    memory: PieceMemory,
    threads: usize,
    /// The buffer that it is read into, where it is sorted there.
    own: Option<Buffer>,
}

/// A piece whose reads are under way, or have ended.
struct BegunPiece<R> {
    number: usize,
    memory: PieceMemory,
    threads: usize,
    reads: R,
}

impl Stage for PieceStage {
    type Source = PieceSource;
    type Item = ClaimedPiece;
    type Begun = BegunPiece<LoadingPiece>;
    type Loaded = BegunPiece<Buffer>;
    type Kept = KeptMemory;
    type Made = Portion;

    const ROLE: &'static str = "bucket";
    const AHEAD: u64 = READ_AHEAD_BYTES;
    const EAGER: bool = false;

    fn keep(&self) -> Result<KeptMemory> {
        let set = Arc::clone(&self.set);
        let discards = Discards { set, completions: Completions::new(), in_flight: 0 };
        Ok(KeptMemory { inputs: Vec::new(), sorter: None, discards })
    }

    /// Claims the memory of the next piece.
    fn claim(&self, source: &mut PieceSource) -> Result<Claim<ClaimedPiece>> {
        let number = source.next_piece;
        let Some(piece) = self.pieces.get(number) else { return Ok(Claim::End) };
        // A piece that leaves no room for a second one is sorted by all threads together, if
        // that fits.
        let one = self.memory(piece);
        let all = self.set.memory(piece, self.options.threads);
        let alone = 2 * one.total() > self.room && all.total() <= self.room;
        // Where a second buffer does not fit, it is sorted in place.
        let short = self.set.memory_in_place(piece).filter(|_| one.total() > self.room);
        let (memory, threads) = match short {
            Some(short) => (short, self.options.threads),
            None if alone => (all, self.options.threads),
            None => (one, 1),
        };
        if source.used + memory.total() > self.room {
            return Ok(Claim::Later);
        }
        source.next_piece += 1;
        source.used += memory.total();
        let own = memory.in_place.then(|| take(&mut source.free, memory.output as usize));
        let own = own.transpose()?;
        if own.is_none() {
            source.untaken += memory.output;
        }
        let free = |source: &PieceSource| source.free.iter().map(|b| b.len() as u64).sum::<u64>();
        while source.used - source.untaken + free(source) > self.room && !source.free.is_empty() {
            source.free.remove(0);
        }
        Ok(Claim::Item(ClaimedPiece { number, memory, threads, own }))
    }

    fn give_up(&self, kept: &mut KeptMemory) {
        kept.inputs.clear();
        kept.sorter = None;
    }

    fn begin(&self, kept: &mut KeptMemory, item: ClaimedPiece) -> Result<Self::Begun> {
        let ClaimedPiece { number, memory, threads, own } = item;
        let input = match own {
            Some(own) => own,
            None => take(&mut kept.inputs, memory.input as usize)?,
        };
        let reads = self.set.load(self.pieces[number], input);
        Ok(BegunPiece { number, memory, threads, reads })
    }

    fn weight(&self, begun: &Self::Begun) -> u64 {
        begun.reads.piece.bytes
    }

    fn load(&self, kept: &mut KeptMemory, begun: Self::Begun) -> Result<Self::Loaded> {
        let BegunPiece { number, memory, threads, reads } = begun;
        let bucket = reads.piece.bucket;
        let input = reads.finish()?;
        let last = self.pieces.get(number + 1).is_none_or(|next| next.bucket != bucket);
        if self.options.discard && last {
            for bucket in self.was_read(bucket) {
                let discards = &mut kept.discards;
                discards.in_flight += self.set.discard(bucket, &discards.completions);
            }
        }
        Ok(BegunPiece { number, memory, threads, reads: input })
    }

    fn make(
        &self,
        kept: &mut KeptMemory,
        loaded: Self::Loaded,
        desk: Desk<'_, Self>,
    ) -> Result<Portion> {
        let BegunPiece { number, memory, threads, reads: input } = loaded;
        let piece = self.pieces[number];
        let pad = self.options.align.map_or(0, |base| (base + piece.output) as usize % ALIGNMENT);
        let sorter = kept.sorter(threads, &self.budget);
        let (buffer, len) = if memory.in_place {
            let (len, buffer) = sorter.sort_in_place(&self.set, piece, input, pad)?;
            (buffer, len)
        } else {
            let mut output = desk.source(|source| {
                source.untaken -= memory.output;
                take(&mut source.free, memory.output as usize)
            })?;
            let (len, input) = sorter.sort(&self.set, piece, input, &mut output, pad)?;
            kept.inputs.push(input);
            (output, len)
        };
        desk.source(|source| source.used -= memory.total() - memory.output);
        let ticket = Ticket { claimed: memory.output, link: 0 };
        let (output_offset, start) = (piece.output, Start::Here);
        Ok(Portion { buffer, pad, len, output_offset, ticket, start })
    }
}

impl PieceStage {
    /// Memory for `piece`, sorted by one thread: in buffers of the usual length where memory is not
    /// short.
    fn memory(&self, piece: &BucketPiece) -> PieceMemory {
        let exact = self.set.memory(piece, 1);
        let usual = PieceMemory::of_piece(self.usual_bytes, 0, 0, 1);
        let input = if exact.in_place { 0 } else { usual.input.max(exact.input) };
        let usual = PieceMemory { input, output: usual.output.max(exact.output), ..exact };
        if 4 * usual.total() <= self.room { usual } else { exact }
    }

    /// Bucket number `bucket` was read. Which buckets' space to give back now: many at once, for
    /// punching a hole waits for all reads of the file that are in flight, and new ones for it.
    fn was_read(&self, bucket: usize) -> Vec<usize> {
        let total: u64 = self.set.buckets.iter().map(|bucket| bucket.bytes).sum();
        let mut read = self.read.lock();
        let (buckets, bytes) = &mut *read;
        buckets.push(bucket);
        *bytes += self.set.buckets[bucket].bytes;
        if *bytes < total / DISCARDS {
            return Vec::new();
        }
        *bytes = 0;
        std::mem::take(buckets)
    }
}

/// The smallest of `free` that has `len` bytes, of equal ones the last, with no memory beyond them;
/// or a new one.
fn take(free: &mut Vec<Buffer>, len: usize) -> Result<Buffer> {
    let fits = (0..free.len()).rev().filter(|i| free[*i].len() >= len);
    match fits.min_by_key(|i| free[*i].len()) {
        Some(i) => {
            let mut buffer = free.remove(i);
            let end = buffer.len();
            buffer.release(len..end);
            Ok(buffer)
        }
        None => {
            free.pop();
            Ok(Buffer::try_new(len)?)
        }
    }
}
