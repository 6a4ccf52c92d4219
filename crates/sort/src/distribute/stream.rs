//! Pieces of buckets, sorted on all cores and handed out in order.
//!
//! ```text
//!   next piece ──claim memory──► worker: reads of its next piece under way while it sorts this one
//!                (in order)             └──► sorted ──in order──► reader ──buffer──► free
//! ```
//!
//! Memory is all of the back-pressure: a worker begins a piece when what the piece takes is free,
//! pieces claim it in order, and so the piece that the reader waits for always has its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use storage::{ALIGNMENT, Buffer, Completions};

use super::bucket::{BucketSet, Loading, Piece, PieceMemory, PieceSorter};
use crate::activity::{self, Activity, wait};
use crate::budget::Reservation;
use crate::portion::{Portion, Portions, Start, Ticket};
use crate::{Budget, Error, Result};

/// Sorted pieces that may wait for the reader or be on their way to a file, beyond those at work.
const PIECES_AHEAD: u64 = 3;

/// Reads of a worker's next pieces are under way from so many bytes up: fewer keep no disk busy.
const READ_AHEAD_BYTES: u64 = 8 << 20;

/// Space is given back in about so many steps.
const DISCARDS: u64 = 24;

/// How a stream works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamOptions {
    pub(crate) threads: usize,
    /// Each piece lies in its buffer as it will in a file in which that many bytes come before.
    pub(crate) align: Option<u64>,
    /// Whether to give back the space of buckets once they are read.
    pub(crate) discard: bool,
}

/// An ordered stream of sorted pieces.
pub(crate) struct PieceStream {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    set: Arc<BucketSet>,
    pieces: Vec<Piece>,
    options: StreamOptions,
    budget: Budget,
    room: u64,
    usual_bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
    _memory: Reservation,
}

#[derive(Default)]
struct State {
    next_piece: usize,
    next_out: usize,
    used: u64,
    /// Of that, for buffers of sorted pieces that nobody has taken yet.
    untaken: u64,
    /// The last one to come back is the first to go: a cache may still hold it.
    free: Vec<Buffer>,
    sorted: BTreeMap<usize, Result<Portion>>,
    /// Buckets whose space is to be given back, and their bytes.
    read: (Vec<usize>, u64),
    stop: bool,
    broken: bool,
}

/// The least memory in which all of `pieces` can be streamed, one at a time, in bytes.
pub(crate) fn least_memory_bytes(set: &BucketSet, pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| set.least_memory(piece).total()).max().unwrap_or(0)
}

/// The most memory that a stream of `pieces` puts to use, in bytes.
pub(crate) fn useful_memory_bytes(set: &BucketSet, pieces: &[Piece], threads: usize) -> u64 {
    let of = |piece: &Piece| set.memory(piece, threads);
    let total = pieces.iter().map(|p| of(p).total()).max().unwrap_or(0);
    let output = pieces.iter().map(|p| of(p).output).max().unwrap_or(0);
    let ahead = 1 + READ_AHEAD_BYTES.div_ceil(output.max(1));
    (1 + ahead) * threads as u64 * total + PIECES_AHEAD * output
}

/// The least memory of a stream whose reader keeps `held` portions while it waits for the next one, in
/// bytes.
pub(crate) fn holding_memory_bytes(
    set: &BucketSet,
    pieces: &[Piece],
    threads: usize,
    held: u64,
) -> u64 {
    let total =
        |piece: &Piece| set.memory(piece, 1).total().max(set.memory(piece, threads).total());
    let most = pieces.iter().map(|piece| (total(piece), set.memory(piece, 1).output));
    let (total, output) = most.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    total + held * output
}

/// Memory of a stream that reads ahead for a reader that may stop at any time, in bytes: each thread
/// sorts a piece and reads the next one.
pub(crate) fn read_ahead_memory_bytes(
    set: &BucketSet,
    pieces: &[Piece],
    threads: usize,
    held: u64,
) -> u64 {
    let one = |piece: &Piece| set.memory(piece, 1);
    let total = pieces.iter().map(|piece| one(piece).total()).max().unwrap_or(0);
    let output = pieces.iter().map(|piece| one(piece).output).max().unwrap_or(0);
    2 * threads as u64 * total + (PIECES_AHEAD + held) * output
}

/// The length of most pieces' buffers: the longest piece of those up to twice the median. Buffers of
/// one length are used again as they are, those of many lengths cost page faults.
fn usual_bytes(pieces: &[Piece]) -> u64 {
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
    /// [`Error::Memory`] with the least that works.
    pub(crate) fn new(
        set: Arc<BucketSet>,
        pieces: Vec<Piece>,
        room: u64,
        options: StreamOptions,
        budget: &Budget,
    ) -> Result<Self> {
        let useful = useful_memory_bytes(&set, &pieces, options.threads);
        let room = room.min(useful).max(least_memory_bytes(&set, &pieces));
        let memory = budget.reserve(room, "sorting buckets")?;
        let shared = Arc::new(Shared {
            set,
            options,
            budget: budget.clone(),
            room,
            usual_bytes: usual_bytes(&pieces),
            pieces,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            _memory: memory,
        });
        let workers = (0..options.threads)
            .map(|_| {
                let (shared, here) = (Arc::clone(&shared), Activity::here());
                let work = move || {
                    let _worker = here.enroll("bucket");
                    shared.work();
                };
                std::thread::Builder::new().name("bucket".to_owned()).spawn(work)
            })
            .collect::<std::io::Result<_>>()?;
        Ok(PieceStream { shared, workers })
    }
}

impl Portions for PieceStream {
    /// The next sorted piece.
    fn next(&mut self) -> Result<Option<Portion>> {
        let mut state = self.shared.lock();
        loop {
            assert!(!state.broken, "a sorting thread panicked");
            let number = state.next_out;
            if number == self.shared.pieces.len() {
                return Ok(None);
            }
            if let Some(sorted) = state.sorted.remove(&number) {
                state.next_out += 1;
                return sorted.map(Some);
            }
            if state.stop {
                // A later piece failed, and nobody sorts this one any more.
                let failed = state.sorted.iter().find(|(_, s)| s.is_err()).map(|(n, _)| *n);
                let failed = failed.and_then(|n| state.sorted.remove(&n));
                return failed.unwrap_or(Err(Error::Cancelled)).map(Some);
            }
            let _waiting = wait(activity::State::Input);
            state = self.shared.changed.wait(state).expect("workers do not panic");
        }
    }

    fn recycle(&mut self, buffer: Buffer, ticket: Ticket) {
        let mut state = self.shared.lock();
        state.free.push(buffer);
        state.used -= ticket.claimed;
        self.shared.changed.notify_all();
    }

    /// Whether [`Portions::next`] would wait: the next piece may be waiting for memory.
    fn wants_buffers(&self) -> bool {
        let state = self.shared.lock();
        let number = state.next_out;
        let ready =
            number == self.shared.pieces.len() || state.sorted.contains_key(&number) || state.stop;
        !ready
    }

    fn is_at_end(&self) -> bool {
        self.shared.lock().next_out == self.shared.pieces.len()
    }
}

impl Drop for PieceStream {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A panic of a worker was reported by itself, and went on in the reader.
            let _ = worker.join();
        }
    }
}

/// What a worker keeps from piece to piece.
struct Kept {
    inputs: Vec<Buffer>,
    sorter: Option<(usize, PieceSorter)>,
}

impl Kept {
    fn clear(&mut self) {
        self.inputs.clear();
        self.sorter = None;
    }

    fn sorter(&mut self, threads: usize, budget: &Budget) -> &mut PieceSorter {
        let fresh = || (threads, PieceSorter::new(budget, threads));
        let (of, sorter) = self.sorter.get_or_insert_with(fresh);
        if *of != threads {
            (*of, *sorter) = fresh();
        }
        sorter
    }
}

/// What a worker holds of a piece that it has begun.
struct Begun<'a> {
    number: usize,
    memory: PieceMemory,
    threads: usize,
    loading: Loading<'a>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("workers do not panic")
    }

    /// Claims the memory of the next piece, waiting for it when `patient`, and starts its reads.
    fn begin(&self, patient: bool, kept: &mut Kept) -> Option<Begun<'_>> {
        let mut state = self.lock();
        let (number, memory, threads) = loop {
            let number = state.next_piece;
            if state.stop || number == self.pieces.len() {
                return None;
            }
            let piece = &self.pieces[number];
            // A piece that leaves no room for a second one is sorted by all threads together, if
            // that fits.
            let one = self.memory(piece);
            let all = self.set.memory(piece, self.options.threads);
            let alone = 2 * one.total() > self.room && all.total() <= self.room;
            // Where a second buffer does not fit, it is sorted where it lies.
            let short = self.set.memory_in_place(piece).filter(|_| one.total() > self.room);
            let (memory, threads) = match short {
                Some(short) => (short, self.options.threads),
                None if alone => (all, self.options.threads),
                None => (one, 1),
            };
            if state.used + memory.total() <= self.room {
                break (number, memory, threads);
            }
            if !patient {
                return None;
            }
            // What others wait for may be what is kept here.
            kept.clear();
            let _waiting = wait(activity::State::Memory);
            state = self.changed.wait(state).expect("workers do not panic");
        };
        state.next_piece += 1;
        state.used += memory.total();
        let own = memory.in_place.then(|| take(&mut state.free, memory.output as usize));
        if own.is_none() {
            state.untaken += memory.output;
        }
        let free = |state: &State| state.free.iter().map(|b| b.len() as u64).sum::<u64>();
        while state.used - state.untaken + free(&state) > self.room && !state.free.is_empty() {
            state.free.remove(0);
        }
        drop(state);
        let input = own.unwrap_or_else(|| take(&mut kept.inputs, memory.input as usize));
        let loading = self.set.load(self.pieces[number], input);
        Some(Begun { number, memory, threads, loading })
    }

    /// Memory for `piece`, sorted by one thread: in buffers of the usual length where memory is not
    /// short.
    fn memory(&self, piece: &Piece) -> PieceMemory {
        let exact = self.set.memory(piece, 1);
        let usual = PieceMemory::of(self.usual_bytes, 0, 0, 1);
        let input = if exact.in_place { 0 } else { usual.input.max(exact.input) };
        let usual = PieceMemory { input, output: usual.output.max(exact.output), ..exact };
        if 4 * usual.total() <= self.room { usual } else { exact }
    }

    /// A buffer for the sorted piece that `memory` was claimed for.
    fn output(&self, memory: PieceMemory) -> Buffer {
        let mut state = self.lock();
        state.untaken -= memory.output;
        take(&mut state.free, memory.output as usize)
    }

    /// Bucket number `bucket` was read. Which buckets' space to give back now: many at once, for
    /// punching a hole waits for all reads of the file that are in flight, and new ones for it.
    fn read(&self, bucket: usize) -> Vec<usize> {
        let total: u64 = self.set.buckets.iter().map(|bucket| bucket.bytes).sum();
        let mut state = self.lock();
        let (buckets, bytes) = &mut state.read;
        buckets.push(bucket);
        *bytes += self.set.buckets[bucket].bytes;
        if *bytes < total / DISCARDS {
            return Vec::new();
        }
        *bytes = 0;
        std::mem::take(buckets)
    }

    fn work(&self) {
        let _alarm = Alarm(self);
        let mut kept = Kept { inputs: Vec::new(), sorter: None };
        let discarded = Completions::new();
        let mut discards = 0;
        let mut begun = VecDeque::new();
        let mut ahead_bytes = 0;
        loop {
            let now = begun.pop_front().or_else(|| {
                ahead_bytes = 0;
                self.begin(true, &mut kept)
            });
            let Some(Begun { number, memory, threads, loading }) = now else { break };
            let piece = loading.piece;
            ahead_bytes -= piece.bytes.min(ahead_bytes);
            let loaded = loading.finish();
            while ahead_bytes < READ_AHEAD_BYTES
                && let Some(next) = self.begin(false, &mut kept)
            {
                ahead_bytes += next.loading.piece.bytes;
                begun.push_back(next);
            }
            let pad =
                self.options.align.map_or(0, |base| (base + piece.output) as usize % ALIGNMENT);
            let sorted = loaded.and_then(|input| {
                let next = self.pieces.get(number + 1);
                let last = next.is_none_or(|next| next.bucket != piece.bucket);
                if self.options.discard && last {
                    for bucket in self.read(piece.bucket) {
                        discards += self.set.discard(bucket, &discarded);
                    }
                }
                let sorter = kept.sorter(threads, &self.budget);
                let (buffer, len) = if memory.in_place {
                    let (len, buffer) = sorter.sort_in_place(&self.set, piece, input, pad);
                    (buffer, len)
                } else {
                    let mut output = self.output(memory);
                    let (len, input) = sorter.sort(&self.set, piece, input, &mut output, pad)?;
                    kept.inputs.push(input);
                    (output, len)
                };
                let ticket = Ticket { claimed: memory.output, link: 0 };
                let (output_offset, start) = (piece.output, Start::Here);
                Ok(Portion { buffer, pad, len, output_offset, ticket, start })
            });
            let failed = sorted.is_err();
            let mut state = self.lock();
            state.used -= memory.total() - memory.output;
            state.sorted.insert(number, sorted);
            let stop = state.stop || failed;
            state.stop |= failed;
            drop(state);
            self.changed.notify_all();
            if stop {
                break;
            }
        }
        drop(begun);
        // What a file system can't give back costs space, not correctness.
        while discards > 0 {
            let _ = discarded.wait(&*self.set.files[0].clock());
            discards -= 1;
        }
    }
}

/// The smallest of `free` that has `len` bytes, of equal ones the last, with no memory beyond them;
/// or a new one.
fn take(free: &mut Vec<Buffer>, len: usize) -> Buffer {
    let fits = (0..free.len()).rev().filter(|i| free[*i].len() >= len);
    match fits.min_by_key(|i| free[*i].len()) {
        Some(i) => {
            let mut buffer = free.remove(i);
            let end = buffer.len();
            buffer.release(len..end);
            buffer
        }
        None => {
            free.pop();
            Buffer::new(len)
        }
    }
}

/// Wakes the reader when a worker panics.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let state = self.0.state.lock();
            let mut state = state.unwrap_or_else(std::sync::PoisonError::into_inner);
            (state.broken, state.stop) = (true, true);
            drop(state);
            self.0.changed.notify_all();
        }
    }
}
