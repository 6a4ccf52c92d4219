//! One pass: records that all fit into memory, whose tags are parted by key range while the records
//! are being read, so that the first of them can be written as soon as the last one has come.
//!
//! ```text
//!   reader ─┬─ before a read: memory is backed ──► workers (whoever has nothing to part)
//!           └─ spans as they arrive ─────────────► workers: tag, bucket ──► blocks of tags, a chain a bucket
//!                                                                                │ all is read
//!   output ◄── pieces ◄── gather ◄── sort a bucket's tags ◄── workers, bucket after bucket
//! ```
//!
//! Reading all, then sorting all, then writing all keeps either the disk or the cores waiting. Here
//! tags are made and parted, and memory is backed (a system that hands out zeroed pages takes as long
//! for that as a disk for reading into them), beside the reads; a bucket's tags, some tens of
//! thousands, are sorted in a cache right before they are gathered, beside the writes.
//!
//! Records stay where they were read, tags take 16 bytes each and no scratch of that size. A chain
//! holds the tags that one worker made, in input order, in blocks of [`BLOCK_TAGS`].
//!
//! Where it does not suit, because places to sample cannot be found, because tags are more than the
//! sample said, or because one bucket is too large for the memory to sort it in, [`OnePass::read`]
//! says so, and the chunk is sorted as any other.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use storage::{Backing, Buffer};

use super::partition::{Partition, SampleKey};
use super::sampling::{Places, RECORDS_A_PLACE, records_at};
use crate::activity::{self, Activity, State, Team, wait};
use crate::key::{Order, Place};
use crate::plan::Sample;
use crate::record::{Format, Framing, with_framing};
use crate::run::Input;
use crate::run::form::{ChunkView, Gather, Place as PlacePiece, SortMemory, put_key};
use crate::run::format::PIECE_BYTES;
use crate::run::input::{Chunk, ChunkReader, Follower};
use crate::run::tag::{Tag, Tagged, sort_tagged, word_at};
use crate::run::word::{Alphabet, LEARN_BYTES};
use crate::run::writer::{Piece, WriteBehind};
use crate::{Error, Progress, Result};

/// Tags that a bucket is to have: 512 KiB, and as much to sort them in.
const BUCKET_TAGS: u64 = 32 << 10;
/// Bytes of records that a bucket is to have where those are long.
const BUCKET_BYTES: u64 = 4 << 20;
/// Most buckets: a cache line of each is being written.
const BUCKETS_MAX: u64 = 2048;
/// Less data than this is not worth a sample.
const TOTAL_BYTES_MIN: u64 = 16 << 20;
/// Places looked at for each bucket.
const PLACES_A_BUCKET: u64 = 2;
/// Tags of a block.
const BLOCK_TAGS: usize = 64;
/// Memory that is backed at a time: a huge page.
const STEP_BYTES: usize = 2 << 20;
/// So much memory is backed ahead of the reads before anything else is done.
const BACKED_AHEAD_BYTES: usize = 64 << 20;

/// How many buckets suit so much data; none where it is not worth it.
fn buckets(sample: Sample, total_bytes: u64) -> Option<u64> {
    let records = (total_bytes as f64 / sample.record_bytes) as u64;
    let buckets = (records / BUCKET_TAGS).max(total_bytes / BUCKET_BYTES).min(BUCKETS_MAX);
    (total_bytes >= TOTAL_BYTES_MIN).then_some(buckets)
}

/// Where keys are looked for to choose so many buckets by.
fn places(inputs: &[Input], format: Format, sample: Sample, buckets: u64) -> Option<Places> {
    Places::new(inputs, format, sample.record_bytes, PLACES_A_BUCKET * buckets)
}

/// How tags are parted.
pub(crate) struct OnePass<'a> {
    order: &'a Order,
    threads: usize,
    partition: Partition,
    alphabet: Option<Alphabet>,
}

impl<'a> OnePass<'a> {
    /// For `inputs` of `total_bytes`; `None` where it is not worth it, or keys at random places cannot
    /// be found.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn plan(
        inputs: &[Input],
        order: &'a Order,
        sample: Sample,
        total_bytes: u64,
        threads: usize,
    ) -> Result<Option<Self>> {
        match buckets(sample, total_bytes) {
            Some(buckets) => Self::with_buckets(inputs, order, sample, buckets, threads),
            None => Ok(None),
        }
    }

    /// Bytes that [`OnePass::plan`] reads of `inputs`.
    pub(crate) fn sample_bytes(
        inputs: &[Input],
        format: Format,
        sample: Sample,
        total_bytes: u64,
    ) -> u64 {
        let buckets = buckets(sample, total_bytes);
        let places = buckets.and_then(|buckets| places(inputs, format, sample, buckets));
        places.map_or(0, Places::bytes)
    }

    fn with_buckets(
        inputs: &[Input],
        order: &'a Order,
        sample: Sample,
        buckets: u64,
        threads: usize,
    ) -> Result<Option<Self>> {
        let descending = order.direct().is_some_and(|key| key.descending);
        // Full keys, which order records, and the keys that words are made of.
        let (mut full, mut plain) = (Vec::new(), Vec::new());
        let Some(places) = places(inputs, order.format(), sample, buckets) else {
            return Ok(None);
        };
        records_at(places, inputs, order.format(), |mut bytes| {
            let mut held = 0;
            for _ in 0..RECORDS_A_PLACE {
                let Some(len) = order.format().record_len(bytes) else { break };
                let (record, rest) = bytes.split_at(len);
                let mut key = Vec::new();
                match order.direct() {
                    Some(direct) => key.extend_from_slice(direct.place.of(record)),
                    None => order.encode(record, &mut key),
                }
                key.truncate(LEARN_BYTES);
                let mut all = Vec::new();
                order.encode_full(record, &mut all);
                held += key.len() + all.len() + 2 * size_of::<SampleKey>();
                plain.push(key);
                full.push(all);
                bytes = rest;
            }
            held
        })?;
        let keys: Vec<&[u8]> = plain.iter().map(|key| &key[..]).collect();
        let short = |place| matches!(place, Place::Range { len, .. } if len <= 8);
        let alphabet = match order.direct() {
            Some(direct) if short(direct.place) => None,
            _ => Alphabet::learn(&keys),
        };
        let flip = if descending { u64::MAX } else { 0 };
        let keys = full.into_iter().zip(&plain);
        let mut keys: Vec<SampleKey> = keys
            .map(|(key, plain)| SampleKey {
                key,
                prefix: word_at(alphabet.as_ref(), plain, 0) ^ flip,
            })
            .collect();
        let partition = Partition::choose(&mut keys, buckets as usize);
        Ok(Some(OnePass { order, threads, partition, alphabet }))
    }

    /// Bytes of memory that it takes beside that of the chunk and of [`SortMemory`].
    pub(crate) fn memory_bytes(&self, memory: &mut SortMemory) -> u64 {
        // Vectors of block numbers grow by doubling.
        let lists = memory.parts().0.len() / BLOCK_TAGS * 2 * size_of::<u32>();
        let chains = self.threads * self.partition.buckets() * (size_of::<Open<'_>>() + 64);
        (lists + chains + seams_max(self.threads) * PIECE_BYTES) as u64
            + self.partition.memory_bytes()
    }

    /// Fills `chunk`, of which a fill reads `read_bytes`, and parts its tags. `None` when the chunk,
    /// though filled, has to be sorted otherwise, or is not the last.
    ///
    /// # Errors
    /// As [`ChunkReader::fill`].
    pub(crate) fn read(
        self,
        reader: &mut ChunkReader,
        chunk: &mut Chunk,
        read_bytes: usize,
        memory: &mut SortMemory,
        progress: &dyn Progress,
    ) -> Result<Option<Parted<'a>>> {
        let (pool, scratch, keys) = memory.parts();
        let sorted_at_once = scratch.len() / self.threads / 2;
        let room = Room {
            blocks: Mutex::new(pool.chunks_exact_mut(BLOCK_TAGS).enumerate()),
            arena: Mutex::new((0, &mut keys[..])),
            full: AtomicBool::new(false),
        };
        let (backing, reads) = chunk.backing(read_bytes);
        let work = Work::new(backing, reads);
        let here = Activity::here();
        let (filled, workers) = std::thread::scope(|scope| {
            let start = |_| {
                let (one, work, room, here) = (&self, &work, &room, &here);
                let body = move || {
                    let _worker = here.enroll("part");
                    one.part(work, room)
                };
                std::thread::Builder::new().name("part".to_owned()).spawn_scoped(scope, body)
            };
            let workers = (0..self.threads).map(start).collect::<std::io::Result<Vec<_>>>();
            let _reading = activity::enter("read");
            let mut feed = Feed { work: &work };
            let filled = match &workers {
                Ok(_) => reader.fill_followed(chunk, Some(&mut feed), progress),
                Err(_) => Ok(()),
            };
            work.close();
            let workers = workers.map(|workers| {
                let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
                    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                workers.into_iter().map(join).collect::<Vec<_>>()
            });
            (filled, workers)
        });
        let workers = workers?;
        filled?;
        chunk.rejoin(work.done());
        if room.full.into_inner() || !reader.finished() {
            return Ok(None);
        }
        let mut buckets = Vec::with_capacity(self.partition.buckets());
        let (mut records, mut bytes) = (0, 0);
        let mut chains: Vec<_> = workers.into_iter().map(Vec::into_iter).collect();
        for number in 0..self.partition.buckets() {
            let parts = chains.iter_mut().map(|c| c.next().expect("a chain a bucket"));
            let (chains, part_bytes): (Vec<Chain>, Vec<u64>) = parts.unzip();
            let bucket = Bucket {
                one_key: self.partition.lower(number).1,
                tags: chains.iter().map(|chain| chain.tags).sum(),
                chains,
                first_record: records,
                start: bytes,
            };
            if bucket.tags > sorted_at_once && !bucket.one_key {
                return Ok(None);
            }
            records += bucket.tags as u64;
            bytes += part_bytes.iter().sum::<u64>();
            buckets.push(bucket);
        }
        let OnePass { order, alphabet, .. } = self;
        Ok(Some(Parted { order, alphabet, buckets, records, bytes }))
    }

    /// Parts spans until there are no more, and backs memory meanwhile. Returns the chain, and the bytes of
    /// its records, of each bucket.
    fn part<'p>(&self, work: &Work, room: &Room<'p>) -> Vec<(Chain, u64)> {
        let _alarm = Alarm(work);
        let fresh = || Open { room: [].iter_mut(), blocks: Vec::new(), bytes: 0 };
        let mut own = Own {
            open: (0..self.partition.buckets()).map(|_| fresh()).collect(),
            keys: (0, &mut []),
            key: Vec::new(),
            full: Vec::new(),
        };
        while let Some(task) = work.next() {
            match task {
                Task::Back(step) => work.back(step),
                Task::Part(span) => {
                    let done = room.full.load(Ordering::Relaxed)
                        || with_framing!(self.order.format(), framing => {
                            self.part_span(framing, &span, &mut own, room)
                        });
                    if !done {
                        room.full.store(true, Ordering::Relaxed);
                    }
                    work.give_back(span);
                }
            }
        }
        let chain = |open: Open<'_>| {
            let tags = open.blocks.len() * BLOCK_TAGS - open.room.len();
            (Chain { blocks: open.blocks, tags }, open.bytes)
        };
        own.open.into_iter().map(chain).collect()
    }

    /// False when there is no room for all tags or keys.
    fn part_span<'p, F: Framing>(
        &self,
        framing: F,
        span: &Span,
        own: &mut Own<'p>,
        room: &Room<'p>,
    ) -> bool {
        let (order, alphabet) = (self.order, self.alphabet.as_ref());
        let direct = order.direct();
        let flip = if direct.is_some_and(|key| key.descending) { u64::MAX } else { 0 };
        let Own { open, keys, key, full } = own;
        let bytes = &span.bytes[span.from..];
        let mut at = 0;
        while at < bytes.len() {
            let len = framing.next(&bytes[at..]).expect("spans hold whole records");
            let record = &bytes[at..at + len];
            let position = span.at + span.from + at;
            let tag = if let Some(direct) = direct {
                let word = word_at(alphabet, direct.place.of(record), 0);
                Tag::new(word ^ flip, position as u64, len)
            } else {
                key.clear();
                order.encode(record, key);
                let Some(place) = put_key(key, position, keys, &room.arena) else { return false };
                Tag::new(word_at(alphabet, key, 0), place, len)
            };
            let bucket = self.partition.bucket_of(tag.prefix(), || {
                full.clear();
                order.encode_full(record, full);
                full
            });
            let open = &mut open[bucket];
            let slot = match open.room.next() {
                Some(slot) => slot,
                None => {
                    let next = room.blocks.lock().expect("held for a moment only").next();
                    let Some((number, block)) = next else { return false };
                    open.blocks.push(number as u32);
                    open.room = block.iter_mut();
                    open.room.next().expect("a block holds some")
                }
            };
            *slot = tag;
            open.bytes += len as u64;
            at += len;
        }
        true
    }
}

/// Memory for tags and encoded keys that workers take from.
struct Room<'p> {
    blocks: Mutex<std::iter::Enumerate<std::slice::ChunksExactMut<'p, Tag>>>,
    arena: Mutex<(usize, &'p mut [u8])>,
    /// It did not do.
    full: AtomicBool,
}

/// What a worker keeps while it parts.
struct Own<'p> {
    open: Vec<Open<'p>>,
    /// Room for encoded keys, and where it lies.
    keys: (usize, &'p mut [u8]),
    key: Vec<u8>,
    full: Vec<u8>,
}

/// A chain that grows.
struct Open<'p> {
    /// What is left of its last block.
    room: std::slice::IterMut<'p, Tag>,
    bytes: u64,
    blocks: Vec<u32>,
}

/// Records as they arrived: whole ones from `from` of `bytes` on, which lie at `at` in the chunk.
struct Span {
    at: usize,
    bytes: Buffer,
    from: usize,
}

enum Task {
    Part(Span),
    /// Back the memory of this step.
    Back(usize),
}

/// What there is to do beside the reads.
struct Work {
    backing: Backing,
    /// What of the chunk is read into.
    reads: Range<usize>,
    steps: usize,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    spans: VecDeque<Span>,
    done: Vec<Span>,
    /// The first step that nobody backs or has backed.
    next_step: usize,
    being_backed: Vec<usize>,
    /// The step up to which reads have been asked for.
    wanted: usize,
    closed: bool,
    broken: bool,
}

impl Work {
    fn new(backing: Backing, reads: Range<usize>) -> Self {
        let steps = reads.end.div_ceil(STEP_BYTES);
        let queue = Queue { next_step: reads.start / STEP_BYTES, ..Queue::default() };
        Work { backing, reads, steps, queue: Mutex::new(queue), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait<'q>(&self, queue: MutexGuard<'q, Queue>, state: State) -> MutexGuard<'q, Queue> {
        let _waiting = wait(state);
        self.changed.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What to do next; `None` when all is done.
    fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            let due = queue.wanted + BACKED_AHEAD_BYTES / STEP_BYTES;
            let left = queue.next_step < self.steps && !queue.closed;
            if left && (queue.next_step < due || queue.spans.is_empty()) {
                let step = queue.next_step;
                queue.next_step += 1;
                queue.being_backed.push(step);
                return Some(Task::Back(step));
            }
            if let Some(span) = queue.spans.pop_front() {
                return Some(Task::Part(span));
            }
            if queue.closed {
                return None;
            }
            queue = self.wait(queue, State::Input);
        }
    }

    /// Backs the memory of a step that was taken.
    fn back(&self, step: usize) {
        let from = (step * STEP_BYTES).max(self.reads.start);
        self.backing.back(from..((step + 1) * STEP_BYTES).min(self.reads.end));
        self.lock().being_backed.retain(|other| *other != step);
        self.changed.notify_all();
    }

    fn give_back(&self, span: Span) {
        self.lock().done.push(span);
    }

    /// Nothing more is read.
    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// All that was handed out, in order.
    fn done(&self) -> impl Iterator<Item = Buffer> {
        let mut spans = std::mem::take(&mut self.lock().done);
        spans.sort_unstable_by_key(|span| span.at);
        spans.into_iter().map(|span| span.bytes)
    }
}

/// Wakes the reader when a worker panics.
struct Alarm<'a>(&'a Work);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().broken = true;
            self.0.changed.notify_all();
        }
    }
}

/// The reader's side of [`Work`].
struct Feed<'a> {
    work: &'a Work,
}

impl Follower for Feed<'_> {
    fn before_read(&mut self, end: usize) {
        let end = end.div_ceil(STEP_BYTES).min(self.work.steps);
        let mut queue = self.work.lock();
        queue.wanted = end;
        while queue.next_step < end {
            let step = queue.next_step;
            queue.next_step += 1;
            drop(queue);
            self.work.back(step);
            queue = self.work.lock();
        }
        while queue.being_backed.iter().any(|step| *step < end) && !queue.broken {
            queue = self.work.wait(queue, State::Memory);
        }
        drop(queue);
        self.work.changed.notify_one();
    }

    fn arrived(&mut self, at: usize, bytes: Buffer, from: usize) {
        self.work.lock().spans.push_back(Span { at, bytes, from });
        self.work.changed.notify_one();
    }
}

/// Tags that one worker made for one bucket, in input order.
struct Chain {
    /// Numbers of blocks of the pool.
    blocks: Vec<u32>,
    tags: usize,
}

impl Chain {
    /// From tag `from` on, the tags of a block.
    fn block<'t>(&self, from: usize, pool: &'t [Tag]) -> &'t [Tag] {
        if from == self.tags {
            return &[];
        }
        let at = self.blocks[from / BLOCK_TAGS] as usize * BLOCK_TAGS;
        let end = (self.tags - from / BLOCK_TAGS * BLOCK_TAGS).min(BLOCK_TAGS);
        &pool[at + from % BLOCK_TAGS..at + end]
    }
}

/// Records of a key range.
struct Bucket {
    /// One a worker.
    chains: Vec<Chain>,
    one_key: bool,
    tags: usize,
    /// Number of its first record, and where that begins, in the output.
    first_record: u64,
    start: u64,
}

impl Bucket {
    /// Copies as many tags as fit to the front of `out`, from those `taken` on of each chain, which go on
    /// behind them. Returns how many. Those of a bucket of one key come in input order.
    fn copy(
        &self,
        taken: &mut [usize],
        view: &ChunkView<'_>,
        pool: &[Tag],
        out: &mut [Tag],
    ) -> usize {
        let mut filled = 0;
        if !self.one_key {
            for (chain, taken) in self.chains.iter().zip(taken) {
                while *taken < chain.tags {
                    let block = chain.block(*taken, pool);
                    out[filled..filled + block.len()].copy_from_slice(block);
                    filled += block.len();
                    *taken += block.len();
                }
            }
            return filled;
        }
        while filled < out.len() {
            let next = self.chains.iter().enumerate().filter_map(|(number, chain)| {
                let tag = *chain.block(taken[number], pool).first()?;
                Some((view.position(tag), number, tag))
            });
            let Some((_, number, tag)) = next.min_by_key(|(position, ..)| *position) else { break };
            out[filled] = tag;
            filled += 1;
            taken[number] += 1;
        }
        filled
    }
}

/// All records of the inputs, parted.
pub(crate) struct Parted<'a> {
    order: &'a Order,
    alphabet: Option<Alphabet>,
    buckets: Vec<Bucket>,
    records: u64,
    bytes: u64,
}

impl Parted<'_> {
    /// With the chunk that the records lie in, and the memory that holds the tags.
    pub(crate) fn of<'c>(
        &'c self,
        chunk: &'c Chunk,
        memory: &'c mut SortMemory,
    ) -> PartedChunk<'c> {
        let (pool, scratch, keys) = memory.parts();
        let view = ChunkView {
            bytes: chunk.bytes(),
            keys,
            order: self.order,
            alphabet: self.alphabet.as_ref(),
        };
        PartedChunk { parted: self, view, pool, scratch }
    }
}

/// Parted records that can be gathered in order.
pub(crate) struct PartedChunk<'c> {
    parted: &'c Parted<'c>,
    view: ChunkView<'c>,
    pool: &'c [Tag],
    scratch: &'c mut [Tag],
}

impl Gather for PartedChunk<'_> {
    fn records(&self) -> u64 {
        self.parted.records
    }

    fn bytes(&self) -> u64 {
        self.parted.bytes
    }

    fn gather(
        &mut self,
        block_bytes: u32,
        fences: bool,
        behinds: &mut [WriteBehind],
        place: &PlacePiece<'_>,
    ) -> Result<()> {
        let PartedChunk { parted, view, pool, scratch } = self;
        let gathering = Gathering {
            parted,
            view: *view,
            pool,
            block_bytes,
            fences,
            next: AtomicUsize::new(0),
            seams: Mutex::new(Seams {
                parked: HashMap::new(),
                spare: (0..seams_max(behinds.len())).map(|_| Buffer::new(PIECE_BYTES)).collect(),
            }),
            place,
        };
        let area = scratch.len() / behinds.len();
        let (first, others) = behinds.split_first_mut().expect("at least one");
        let mut areas = scratch.chunks_exact_mut(area);
        let own = areas.next().expect("one a thread");
        let gathering = &gathering;
        let team = &Team::here();
        std::thread::scope(|scope| {
            let start = |(behind, area)| {
                scope.spawn(move || {
                    let _member = team.join();
                    gathering.work(behind, area)
                })
            };
            let workers: Vec<_> = others.iter_mut().zip(areas).map(start).collect();
            let mut result = gathering.work(first, own);
            for worker in workers {
                let one = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                // That others gave up is no reason.
                if matches!(result, Ok(()) | Err(Error::Cancelled)) && one.is_err() {
                    result = one;
                }
            }
            result
        })
    }
}

/// Pieces that several buckets lie in, at most at once: two for each bucket that is being gathered, and
/// the one behind the last of them.
fn seams_max(threads: usize) -> usize {
    2 * threads + 1
}

/// Pieces of which some buckets have filled their parts.
struct Seams {
    /// By number, with the bytes that are there.
    parked: HashMap<u64, (Piece, usize)>,
    spare: Vec<Buffer>,
}

struct Gathering<'g> {
    parted: &'g Parted<'g>,
    view: ChunkView<'g>,
    pool: &'g [Tag],
    block_bytes: u32,
    fences: bool,
    /// The bucket that is sorted next.
    next: AtomicUsize,
    seams: Mutex<Seams>,
    place: &'g PlacePiece<'g>,
}

/// Where a bucket's output stands.
struct Cursor {
    at: u64,
    record: u64,
    /// The piece being filled, and from where on.
    piece: Option<(Piece, usize)>,
}

impl Gathering<'_> {
    fn work(&self, behind: &mut WriteBehind, area: &mut [Tag]) -> Result<()> {
        let half = area.len() / 2;
        let (tags, scratch) = area.split_at_mut(half);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(bucket) = self.parted.buckets.get(number) else { return Ok(()) };
            let done = self.bucket(bucket, tags, &mut scratch[..half], behind);
            if done.is_err() {
                self.next.store(self.parted.buckets.len(), Ordering::Relaxed);
                return done;
            }
        }
    }

    fn bucket(
        &self,
        bucket: &Bucket,
        tags: &mut [Tag],
        scratch: &mut [Tag],
        behind: &mut WriteBehind,
    ) -> Result<()> {
        let mut cursor = Cursor { at: bucket.start, record: bucket.first_record, piece: None };
        let mut taken = vec![0; bucket.chains.len()];
        loop {
            let count = bucket.copy(&mut taken, &self.view, self.pool, tags);
            if count == 0 {
                break;
            }
            let tags = &mut tags[..count];
            if !bucket.one_key {
                sort_tagged(tags, &mut scratch[..count], &self.view, 1);
            }
            self.fill(tags, &mut cursor, behind)?;
        }
        match cursor.piece.take() {
            Some((piece, from)) => self.finish(cursor.at - 1, piece, from, behind),
            None => Ok(()),
        }
    }

    /// Copies the records of `tags` into pieces.
    fn fill(&self, tags: &[Tag], cursor: &mut Cursor, behind: &mut WriteBehind) -> Result<()> {
        for (i, tag) in tags.iter().enumerate() {
            self.view.prefetch_records(tags, i);
            let record = self.view.record(*tag);
            let mut rest = record;
            while !rest.is_empty() {
                let (piece, _) = match &mut cursor.piece {
                    Some(piece) => piece,
                    none => {
                        let from = (cursor.at % PIECE_BYTES as u64) as usize;
                        let buffer = behind.buffer()?;
                        none.insert((Piece::beginning_at(buffer, self.block_bytes, from), from))
                    }
                };
                if self.fences && rest.len() == record.len() {
                    let number = cursor.record;
                    piece.begin_record(number, |key| self.view.order.encode_full(record, key));
                }
                let n = piece.fill(rest);
                rest = &rest[n..];
                cursor.at += n as u64;
                if piece.space() == 0 {
                    let (piece, from) = cursor.piece.take().expect("being filled");
                    self.finish(cursor.at - 1, piece, from, behind)?;
                }
            }
            cursor.record += 1;
        }
        Ok(())
    }

    /// Places a piece, in which the output's byte `within` lies, if it is whole from `from` on with what
    /// other buckets have put there.
    fn finish(
        &self,
        within: u64,
        piece: Piece,
        from: usize,
        behind: &mut WriteBehind,
    ) -> Result<()> {
        let number = within / PIECE_BYTES as u64;
        let whole = (self.parted.bytes - number * PIECE_BYTES as u64).min(PIECE_BYTES as u64);
        let part = from..piece.filled();
        if part.len() as u64 == whole {
            return (self.place)(number, piece, behind);
        }
        let mut seams = self.seams.lock().expect("no panic here");
        let Seams { parked, spare } = &mut *seams;
        let Some((other, there)) = parked.get_mut(&number) else {
            parked.insert(number, (piece, part.len()));
            // As many buffers as before.
            behind.put_back(spare.pop().unwrap_or_else(|| Buffer::new(PIECE_BYTES)));
            return Ok(());
        };
        *there += part.len();
        let complete = *there as u64 == whole;
        let buffer = other.join(piece, part);
        if !complete {
            behind.put_back(buffer);
            return Ok(());
        }
        spare.push(buffer);
        let (piece, _) = parked.remove(&number).expect("just found");
        drop(seams);
        (self.place)(number, piece, behind)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use storage::memory::MemoryStorage;
    use storage::{Storage, StorageExt};

    use super::*;
    use crate::key::OrderSpec;
    use crate::{Budget, Silent};

    const LINES: Format = Format::Lines { delimiter: b'\n' };

    fn order(format: Format, keys: &[&str]) -> Order {
        let mut spec = OrderSpec::new(format);
        spec.keys = keys.iter().map(|key| (*key).to_owned()).collect();
        spec.compile(None).expect("an order")
    }

    fn records(bytes: &[u8], format: Format) -> Vec<&[u8]> {
        let mut ends = Vec::new();
        format.cut(bytes, 1, &mut ends);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect()
    }

    /// All of `inputs` in order; `None` where one pass does not suit. `tags` says for how many there is
    /// room.
    fn sorted(
        inputs: &[Vec<u8>],
        order: &Order,
        (buckets, threads, tags): (u64, usize, usize),
    ) -> Option<Vec<u8>> {
        let stored = inputs.iter().map(|bytes| MemoryStorage::from_bytes("input", bytes));
        let inputs: Vec<Input> = stored.map(|storage| Input::Storage(storage as _)).collect();
        let total: u64 = inputs.iter().filter_map(Input::size).sum();
        let sample = Sample { record_bytes: 20.0, key_bytes: 8.0, fence_key_bytes: 8.0 };
        let one = OnePass::with_buckets(&inputs, order, sample, buckets, threads);
        let one = one.expect("reads")?;
        let read_bytes = (total as usize + 8192 * (inputs.len() + 1)).next_multiple_of(4096);
        let mut chunk = Chunk::new(read_bytes.max(65536));
        let mut reader = ChunkReader::new(inputs, order.format(), read_bytes.max(65536));
        let room = || Buffer::new(tags * size_of::<Tag>());
        let keys = Buffer::new((64 << 10) * threads + 40 * tags);
        let mut memory = SortMemory::new(room(), room(), keys, &Budget::new(1 << 30));
        let parted = one
            .read(&mut reader, &mut chunk, read_bytes.max(65536), &mut memory, &Silent)
            .expect("reads");
        assert_eq!(chunk.data_bytes() as u64, total, "the chunk is whole either way");
        let parted = parted?;
        let out = MemoryStorage::new("out");
        let behind = || {
            WriteBehind::new(Arc::clone(&out) as Arc<dyn Storage>, vec![Buffer::new(PIECE_BYTES)])
        };
        let mut behinds: Vec<_> = (0..threads).map(|_| behind()).collect();
        let place = |number, piece: Piece, behind: &mut WriteBehind| {
            let (buffer, len) = piece.into_bytes();
            behind.write(number * PIECE_BYTES as u64, buffer, len)
        };
        let mut parted = parted.of(&chunk, &mut memory);
        parted.gather(4096, false, &mut behinds, &place).expect("writes");
        behinds.iter_mut().try_for_each(WriteBehind::drain).expect("writes");
        assert_eq!((parted.bytes(), out.size()), (total, total));
        Some(out.read_vec(0, total as usize).expect("reads"))
    }

    fn check(inputs: &[Vec<u8>], order: &Order, buckets: u64, threads: usize) {
        let all = inputs.concat();
        let mut expected = records(&all, order.format());
        let blocks = threads * (buckets as usize + 1) * BLOCK_TAGS;
        let tags = 2 * threads * expected.len() + blocks;
        expected.sort_by(|a, b| order.compare(a, b));
        let found = sorted(inputs, order, (buckets, threads, tags)).expect("suits");
        assert!(found == expected.concat(), "{}, {buckets} buckets", order.spec());
    }

    #[test]
    fn words_of_two_files_come_in_order() {
        let inputs = [b"pear\nfig\n".to_vec(), b"plum\nfig\napple\n".to_vec()];
        let found = sorted(&inputs, &order(LINES, &[]), (3, 2, 1000)).expect("suits");
        assert_eq!(found, b"apple\nfig\nfig\npear\nplum\n");
    }

    #[test]
    fn every_tiny_input() {
        let order = order(Format::Fixed { bytes: 2 }, &["0:1"]);
        for count in 0..=4u32 {
            for code in 0..3usize.pow(count) {
                let record = |i: u32| [[0, 7, 255][code / 3usize.pow(i) % 3], i as u8];
                check(&[(0..count).flat_map(record).collect()], &order, 3, 2);
            }
        }
    }

    #[test]
    fn pieces_that_buckets_share_and_long_records() {
        let fixed = order(Format::Fixed { bytes: 100 }, &["0:10"]);
        let record = |i: u32, values: u32| {
            let mut record = vec![i as u8; 100];
            let key = i.wrapping_mul(2_654_435_761) % values;
            record[..8].copy_from_slice(b"the same");
            record[4..8].copy_from_slice(&key.to_be_bytes());
            record
        };
        for values in [1, 2, 1000, u32::MAX] {
            let bytes: Vec<u8> = (0..35_000).flat_map(|i| record(i, values)).collect();
            for (buckets, threads) in [(1, 1), (3, 2), (400, 3)] {
                check(&[bytes.clone(), bytes[..5000].to_vec()], &fixed, buckets, threads);
            }
        }
        let line = |i: usize| format!("{:07}{}\n", i * 7919 % 100, "x".repeat(i * i * 3000));
        check(&[(0..30).flat_map(|i| line(i).into_bytes()).collect()], &order(LINES, &[]), 8, 2);
    }

    #[test]
    fn what_does_not_suit_leaves_the_chunk_whole() {
        let fixed = order(Format::Fixed { bytes: 4 }, &["0:4"]);
        let bytes: Vec<u8> = (0..40_000u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(sorted(&[bytes], &fixed, (4, 2, 20_000)), None);
        let keyed = order(Format::Keyed, &[]);
        assert_eq!(sorted(&[Vec::new()], &keyed, (4, 2, 1000)), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_the_standard_stable_sort(
            lines in prop::collection::vec(prop::collection::vec(97u8..101, 0..30), 1..3000),
            split in 0usize..3000, threads in 1usize..4, buckets in 1u64..60, kind in 0usize..5,
        ) {
            let split = split % lines.len();
            let part = |lines: &[Vec<u8>]| -> Vec<u8> {
                lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
            };
            let inputs = [part(&lines[..split]), part(&lines[split..])];
            let mut spec = OrderSpec::new(LINES);
            match kind {
                0 => {}
                1 => spec.options.push('r'),
                2 => spec.keys.push("1.2,1.9".to_owned()),
                3 => spec.keys.push("1,1r".to_owned()),
                _ => spec.options.push('f'),
            }
            check(&inputs, &spec.compile(None).expect("an order"), buckets, threads);
        }
    }
}
