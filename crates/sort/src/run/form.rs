//! A chunk becomes a run: tags out, tags sorted, records gathered in tag order into write buffers.
//!
//! ```text
//!   chunk ──spans──► extract (all cores) ──tags──► sort ──► settle equal prefixes ──► gather ──► pieces
//!          per input byte:  read 1, write 16/len       move 16/len a pass        read 1, write 1
//! ```
//!
//! The gather, not the sort, costs most: each record is a cache miss. Chunks lie on huge pages, and
//! records are prefetched [`AHEAD`] tags early.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_storage::Buffer;
use merganser_storage::thread::spawn_or_run;

use super::format::PIECE_BYTES;
use super::input::Chunk;
use super::piece::Piece;
use super::settle::{Tagged, sort_tagged, word_at};
use super::tag::Tag;
use super::word::{Alphabet, LEARN_BYTES};
use super::write_behind::WriteBehind;
use crate::access::resort_bytes;
use crate::activity::{Team, leave};
use crate::budget::Reservation;
use crate::key::{self, Order};
use crate::record::{Framing, with_framing};
use crate::{Budget, Error, Result};

/// How many tags ahead the gather asks for records.
const AHEAD: usize = 24;
/// Tags that a thread takes at a time while extracting. Each span leaves half of one unused.
pub(crate) const SLAB_TAGS: usize = 64;
/// Bytes of encoded keys that a thread takes at a time.
const SLAB_BYTES: usize = 64 << 10;
/// Before each encoded key: the record's place and length, and the key's length.
pub(crate) const ENTRY_HEAD_BYTES: usize = 12;

/// Bytes of one tag.
pub(crate) const TAG_BYTES: usize = size_of::<Tag>();

/// The memory in which chunks are sorted, used again for every chunk.
pub(crate) struct SortMemory {
    budget: Budget,
    /// Of `keys`, once they had to grow for one long key.
    grown: Option<Reservation>,
    tags: Buffer,
    scratch: Buffer,
    keys: Buffer,
    /// Of the chunk being sorted.
    alphabet: Option<Alphabet>,
}

impl SortMemory {
    /// Room for tags and, for orders whose keys are encoded, for those; the caller has reserved it.
    /// A key that is longer than all of that takes its room from `budget`.
    pub(crate) fn new(tags: Buffer, scratch: Buffer, keys: Buffer, budget: &Budget) -> Self {
        assert_eq!(tags.len(), scratch.len());
        SortMemory { budget: budget.clone(), grown: None, tags, scratch, keys, alphabet: None }
    }

    /// Memory for tags, as much again, and memory for encoded keys.
    pub(crate) fn parts(&mut self) -> (&mut [Tag], &mut [Tag], &mut Buffer) {
        (as_tags(&mut self.tags), as_tags(&mut self.scratch), &mut self.keys)
    }

    /// Makes room for the encoded key of `record`, which alone was too long.
    fn grow(&mut self, order: &Order, record: &[u8]) -> Result<()> {
        let mut key = Vec::new();
        order.encode(record, &mut key);
        let need = (ENTRY_HEAD_BYTES + key.len()).next_multiple_of(4096);
        self.grown = None;
        self.grown = Some(self.budget.reserve(need as u64, "the key of one record")?);
        self.keys = Buffer::try_new(need)?;
        Ok(())
    }
}

/// Where in a chunk sorting goes on: span, and byte in the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resume {
    span: usize,
    at: usize,
}

/// A sorted chunk, or the first part of one: tags in order, and what they point to.
pub(crate) struct Sorted<'a> {
    tags: &'a [Tag],
    view: ChunkView<'a>,
    order: &'a Order,
    pieces: Vec<PieceStart>,
    bytes: u64,
    /// Where the next part begins, when memory for tags or keys did not hold all of the chunk.
    pub(crate) resume: Option<Resume>,
}

/// The first byte of a piece: in which record, and how far into it.
#[derive(Clone, Copy)]
struct PieceStart {
    tag: usize,
    skip: usize,
}

/// What tags point to: records in the chunk, directly or through an encoded key's head.
#[derive(Clone, Copy)]
pub(crate) struct ChunkView<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) keys: &'a [u8],
    pub(crate) order: &'a Order,
    pub(crate) alphabet: Option<&'a Alphabet>,
}

impl<'a> ChunkView<'a> {
    #[inline]
    fn head(&self, tag: Tag) -> (u64, usize) {
        let at = tag.place() as usize;
        let place = u64::from_le_bytes(self.keys[at..at + 8].try_into().expect("a head"));
        let len = u32::from_le_bytes(self.keys[at + 8..at + 12].try_into().expect("a head"));
        (place, len as usize)
    }

    #[inline]
    pub(crate) fn record(&self, tag: Tag) -> &'a [u8] {
        let place =
            if self.order.direct().is_some() { tag.place() } else { self.head(tag).0 } as usize;
        &self.bytes[place..place + self.length(tag, place)]
    }

    #[inline]
    fn length(&self, tag: Tag, place: usize) -> usize {
        let len = tag.length();
        if len < Tag::LONG {
            return len;
        }
        self.order.format().record_len(&self.bytes[place..]).expect("whole records")
    }
}

impl ChunkView<'_> {
    /// Asks for the memory of a record some places behind the `i`-th of `tags`, which are gathered in
    /// their order.
    #[inline]
    pub(crate) fn prefetch_records(&self, tags: &[Tag], i: usize) {
        let direct = self.order.direct().is_some();
        if !direct && let Some(tag) = tags.get(i + 2 * AHEAD) {
            prefetch(self.keys, tag.place() as usize);
        }
        if let Some(tag) = tags.get(i + AHEAD) {
            let place = if direct { tag.place() } else { self.head(*tag).0 } as usize;
            let len = tag.length();
            prefetch(self.bytes, place);
            if len > 64 {
                prefetch(self.bytes, place + 64);
            }
        }
    }
}

impl Tagged for ChunkView<'_> {
    #[inline]
    fn key(&self, tag: Tag) -> &[u8] {
        match self.order.direct() {
            Some(key) => key.place.of(self.record(tag)),
            None => {
                let at = tag.place() as usize + ENTRY_HEAD_BYTES;
                &self.keys[at..at + self.head(tag).1]
            }
        }
    }

    fn descending(&self) -> bool {
        self.order.direct().is_some_and(|key| key.descending)
    }

    #[inline]
    fn position(&self, tag: Tag) -> u64 {
        if self.order.direct().is_some() { tag.place() } else { self.head(tag).0 }
    }

    #[inline]
    fn last_resort(&self, tag: Tag) -> Option<(&[u8], bool)> {
        self.order.last_resort().map(|descending| (resort_bytes(self.record(tag)), descending))
    }

    fn prefix_decides(&self) -> bool {
        let direct = self.order.direct();
        direct.is_some_and(|key| matches!(key.place, key::Place::Range { len, .. } if len <= 8))
    }

    fn alphabet(&self) -> Option<&Alphabet> {
        self.alphabet
    }

    #[inline]
    fn prefetch(&self, tag: Tag, depth: usize) {
        match self.order.direct() {
            Some(_) => prefetch(self.bytes, tag.place() as usize + depth),
            None => prefetch(self.keys, tag.place() as usize + ENTRY_HEAD_BYTES + depth),
        }
    }

    fn as_dyn(&self) -> &dyn Tagged {
        self
    }
}

/// Sorts `chunk` from `from` on (or from its start) with `threads` threads. With `unique`, only
/// the first of equal keys stays.
pub(crate) fn sort_chunk<'a>(
    chunk: &'a Chunk,
    from: Option<Resume>,
    order: &'a Order,
    unique: bool,
    threads: usize,
    memory: &'a mut SortMemory,
) -> Result<Sorted<'a>> {
    memory.alphabet = learn_alphabet(chunk, order);
    let mut extracting = threads;
    let (mut count, resume) = loop {
        let SortMemory { tags, scratch, keys, alphabet, .. } = &mut *memory;
        let alphabet = alphabet.as_ref();
        let (tags, scratch) = (as_tags(tags), as_tags(scratch));
        let mut count = 0;
        let resume = with_framing!(order.format(), framing => {
            extract(chunk, from, framing, order, alphabet, extracting, (scratch, keys), |part| {
                tags[count..count + part.len()].copy_from_slice(part);
                count += part.len();
            })
        });
        let Some(stuck) = resume.filter(|_| count == 0) else { break (count, resume) };
        if extracting > 1 {
            // Other threads had all the room, perhaps.
            extracting = 1;
        } else {
            let rest = &chunk.bytes()[stuck.at..chunk.spans[stuck.span].end];
            let len = order.format().record_len(rest).expect("spans hold whole records");
            memory.grow(order, &rest[..len])?;
        }
    };
    let SortMemory { tags, scratch, keys, alphabet, .. } = memory;
    let (tags, scratch) = (as_tags(tags), as_tags(scratch));
    let view = ChunkView { bytes: chunk.bytes(), keys, order, alphabet: alphabet.as_ref() };
    sort_tagged(&mut tags[..count], &mut scratch[..count], &view, threads);
    if unique {
        let mut kept = usize::from(count > 0);
        for i in 1..count {
            if view.key(tags[i]) != view.key(tags[kept - 1]) {
                tags[kept] = tags[i];
                kept += 1;
            }
        }
        count = kept;
    }
    let tags = &tags[..count];
    let (pieces, bytes) = piece_starts(tags, &view);
    Ok(Sorted { tags, view, order, pieces, bytes, resume })
}

/// How many keys an alphabet is learned from.
const LEARN_KEYS: usize = 2048;
/// And the longest record that is looked at.
const LEARN_RECORD_BYTES: usize = 64 << 10;

/// The alphabet of the keys of `chunk`, when words of it hold more than bytes do.
fn learn_alphabet(chunk: &Chunk, order: &Order) -> Option<Alphabet> {
    if order
        .direct()
        .is_some_and(|key| matches!(key.place, key::Place::Range { len, .. } if len <= 8))
    {
        return None;
    }
    let each = LEARN_KEYS.div_ceil(chunk.spans.len().max(1));
    let mut keys = Vec::new();
    let mut ends = Vec::new();
    for span in &chunk.spans {
        let mut rest = &chunk.bytes()[span.clone()];
        for _ in 0..each {
            let Some(len) = order.format().record_len(rest) else { break };
            // Memory for long keys is not set aside.
            if len <= LEARN_RECORD_BYTES {
                let start = keys.len();
                match order.direct() {
                    Some(direct) => keys.extend_from_slice(direct.place.of(&rest[..len])),
                    None => order.encode(&rest[..len], &mut keys),
                }
                keys.truncate(start + LEARN_BYTES);
                ends.push(keys.len());
            }
            rest = &rest[len..];
        }
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let keys: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &keys[start..*end]).collect();
    Alphabet::learn(&keys)
}

/// One span's tags, in the slabs they were put in.
type SpanTags<'s> = Vec<(&'s mut [Tag], usize)>;

/// Makes the tags of all records from `from` on, as far as memory reaches, and hands them to
/// `take` in input order.
#[allow(clippy::too_many_arguments, reason = "the door of one hot loop")]
fn extract<F: Framing>(
    chunk: &Chunk,
    from: Option<Resume>,
    framing: F,
    order: &Order,
    alphabet: Option<&Alphabet>,
    threads: usize,
    (slabs, keys): (&mut [Tag], &mut Buffer),
    mut take: impl FnMut(&[Tag]),
) -> Option<Resume> {
    let first = from.map_or(0, |r| r.span);
    let span = |i: usize| -> Range<usize> {
        match from {
            Some(r) if r.span == i => r.at..chunk.spans[i].end,
            _ => chunk.spans[i].clone(),
        }
    };
    let bytes = chunk.bytes();
    let direct = order.direct();
    let flip = if direct.is_some_and(|key| key.descending) { u64::MAX } else { 0 };
    let slabs = Mutex::new(slabs.chunks_mut(SLAB_TAGS));
    let arena = Mutex::new((0usize, &mut keys[..]));
    let next = AtomicUsize::new(first);
    // The first span that could not be finished; spans after it are done again later.
    let stopped = AtomicUsize::new(usize::MAX);
    let done: Mutex<Vec<(usize, SpanTags<'_>, Option<usize>)>> = Mutex::new(Vec::new());

    let work = || {
        let mut key = Vec::new();
        let mut room: (usize, &mut [u8]) = (0, &mut []);
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= chunk.spans.len() || i > stopped.load(Ordering::Relaxed) {
                return;
            }
            let Range { start: mut at, end } = span(i);
            let mut filled: SpanTags<'_> = Vec::new();
            let mut rest_at = None;
            while at < end {
                let full = filled.last().is_none_or(|(slab, n)| *n == slab.len());
                if full {
                    match slabs.lock().expect("no panic here").next() {
                        Some(slab) => filled.push((slab, 0)),
                        None => {
                            rest_at = Some(at);
                            break;
                        }
                    }
                }
                let (slab, n) = filled.last_mut().expect("one was pushed");
                let mut out_of_keys = false;
                while at < end && *n < slab.len() {
                    let len = framing.next(&bytes[at..end]).expect("spans hold whole records");
                    let record = &bytes[at..at + len];
                    slab[*n] = if let Some(direct) = direct {
                        let word = word_at(alphabet, direct.place.of(record), 0);
                        Tag::new(word ^ flip, at as u64, len)
                    } else {
                        key.clear();
                        order.encode(record, &mut key);
                        let Some(place) = put_key(&key, at, &mut room, &arena) else {
                            out_of_keys = true;
                            break;
                        };
                        Tag::new(word_at(alphabet, &key, 0), place, len)
                    };
                    *n += 1;
                    at += len;
                }
                if out_of_keys {
                    rest_at = Some(at);
                    break;
                }
            }
            if rest_at.is_some() {
                stopped.fetch_min(i, Ordering::Relaxed);
            }
            done.lock().expect("no panic here").push((i, filled, rest_at));
        }
    };
    if threads <= 1 || chunk.spans.len() - first < 2 {
        work();
    } else {
        let (team, _left) = (Team::here(), leave());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                spawn_or_run(scope, "sort", || {
                    let _member = team.join();
                    work();
                });
            }
        });
    }

    let mut done = done.into_inner().expect("no panic here");
    done.sort_unstable_by_key(|(i, ..)| *i);
    for (i, filled, rest_at) in done {
        for (slab, n) in filled {
            take(&slab[..n]);
        }
        if let Some(at) = rest_at {
            return Some(Resume { span: i, at });
        }
    }
    None
}

/// Puts an encoded key and its head into the arena; returns its place, or `None` when it is full.
pub(crate) fn put_key<'k>(
    key: &[u8],
    record_at: usize,
    room: &mut (usize, &'k mut [u8]),
    arena: &Mutex<(usize, &'k mut [u8])>,
) -> Option<u64> {
    let need = ENTRY_HEAD_BYTES + key.len();
    if room.1.len() < need {
        let mut arena = arena.lock().expect("no panic here");
        let slab = SLAB_BYTES.max(need).min(arena.1.len());
        if slab < need {
            return None;
        }
        let (slab_bytes, rest) = std::mem::take(&mut arena.1).split_at_mut(slab);
        *room = (arena.0, slab_bytes);
        arena.0 += slab;
        arena.1 = rest;
    }
    let (entry, rest) = std::mem::take(&mut room.1).split_at_mut(need);
    entry[..8].copy_from_slice(&(record_at as u64).to_le_bytes());
    entry[8..12].copy_from_slice(&(key.len() as u32).to_le_bytes());
    entry[12..].copy_from_slice(key);
    let place = room.0 as u64;
    *room = (room.0 + need, rest);
    Some(place)
}

/// Where each piece of the output begins, and how many bytes there are.
fn piece_starts(tags: &[Tag], view: &ChunkView<'_>) -> (Vec<PieceStart>, u64) {
    let mut pieces = Vec::new();
    let mut bytes = 0u64;
    let mut next_start = 0u64;
    for (i, tag) in tags.iter().enumerate() {
        let mut len = tag.length();
        if len == Tag::LONG {
            len = view.record(*tag).len();
        }
        let end = bytes + len as u64;
        while next_start < end {
            pieces.push(PieceStart { tag: i, skip: (next_start - bytes) as usize });
            next_start += PIECE_BYTES as u64;
        }
        bytes = end;
    }
    (pieces, bytes)
}

/// Takes a piece that was gathered, with its number.
pub(crate) type Place<'a> = dyn Fn(u64, Piece, &mut WriteBehind) -> Result<()> + Sync + 'a;

/// Records in memory that can be handed out in order.
pub(crate) trait Gather {
    /// Number of records.
    fn records(&self) -> u64;

    /// Bytes of all records.
    fn bytes(&self) -> u64;

    /// Gathers piece after piece on the calling thread and one more for each of `behinds` but one,
    /// and hands each to `place` with its number. With `fences`, pieces carry them.
    ///
    /// # Errors
    /// What `place` answers.
    fn gather(
        &mut self,
        block_bytes: u32,
        fences: bool,
        behinds: &mut [WriteBehind],
        place: &Place<'_>,
    ) -> Result<()>;
}

impl Sorted<'_> {
    /// Keeps only the first `records` records, for a sort that wants no more.
    pub(crate) fn truncate(&mut self, records: u64) {
        if records < self.records() {
            self.tags = &self.tags[..records as usize];
            (self.pieces, self.bytes) = piece_starts(self.tags, &self.view);
        }
    }

    /// Keeps only records whose full key is below `key`.
    pub(crate) fn truncate_at(&mut self, key: &[u8]) {
        let mut own = Vec::new();
        let below = self.tags.partition_point(|tag| {
            own.clear();
            self.order.encode_full(self.view.record(*tag), &mut own);
            own[..] < *key
        });
        self.truncate(below as u64);
    }

    /// The full key of the last record.
    pub(crate) fn last_key(&self) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        self.order.encode_full(self.view.record(*self.tags.last()?), &mut key);
        Some(key)
    }

    /// Gathers all records into `out`, which is as long as they are, on `threads` threads.
    pub(crate) fn gather_into(&self, out: &mut [u8], threads: usize) {
        assert_eq!(out.len() as u64, self.bytes, "all records are gathered");
        let parts = Mutex::new(out.chunks_mut(PIECE_BYTES).enumerate());
        let work = || {
            loop {
                let Some((number, part)) = parts.lock().expect("no panic here").next() else {
                    return;
                };
                let PieceStart { tag, mut skip } = self.pieces[number];
                let mut filled = 0;
                for i in tag..self.tags.len() {
                    self.prefetch(i);
                    let bytes = &self.view.record(self.tags[i])[skip..];
                    skip = 0;
                    let n = bytes.len().min(part.len() - filled);
                    part[filled..filled + n].copy_from_slice(&bytes[..n]);
                    filled += n;
                    if filled == part.len() {
                        break;
                    }
                }
            }
        };
        if threads <= 1 || self.pieces.len() < 2 {
            return work();
        }
        let team = Team::here();
        std::thread::scope(|scope| {
            for _ in 1..threads {
                spawn_or_run(scope, "sort", || {
                    let _member = team.join();
                    work();
                });
            }
            work();
        });
    }

    fn fill(&self, number: usize, fences: bool, piece: &mut Piece) {
        let PieceStart { tag, skip } = self.pieces[number];
        let limit =
            (self.bytes - number as u64 * PIECE_BYTES as u64).min(PIECE_BYTES as u64) as usize;
        let mut skip = skip;
        for i in tag..self.tags.len() {
            self.prefetch(i);
            let record = self.view.record(self.tags[i]);
            if fences && skip == 0 {
                piece.begin_record(i as u64, |key| self.order.encode_full(record, key));
            }
            let bytes = &record[skip..];
            skip = 0;
            piece.fill(bytes);
            if piece.filled() == limit {
                break;
            }
        }
    }

    #[inline]
    fn prefetch(&self, i: usize) {
        self.view.prefetch_records(self.tags, i);
    }
}

impl Gather for Sorted<'_> {
    fn records(&self) -> u64 {
        self.tags.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn gather(
        &mut self,
        block_bytes: u32,
        fences: bool,
        behinds: &mut [WriteBehind],
        place: &Place<'_>,
    ) -> Result<()> {
        let sorted = &*self;
        let next = AtomicUsize::new(0);
        let failed: Mutex<Result<()>> = Mutex::new(Ok(()));
        let work = |behind: &mut WriteBehind| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= sorted.pieces.len() {
                    break;
                }
                let one = behind.buffer().and_then(|buffer| {
                    let mut piece = Piece::new(buffer, block_bytes);
                    sorted.fill(number, fences, &mut piece);
                    place(number as u64, piece, behind)
                });
                if let Err(e) = one {
                    next.store(sorted.pieces.len(), Ordering::Relaxed);
                    failed.lock().expect("no panic here").get_or_insert_err(e);
                }
            }
        };
        let (first, others) = behinds.split_first_mut().expect("at least one");
        if others.is_empty() || sorted.pieces.len() < 2 {
            work(first);
        } else {
            let team = &Team::here();
            std::thread::scope(|scope| {
                for behind in others {
                    let work = &work;
                    spawn_or_run(scope, "gather", move || {
                        let _member = team.join();
                        work(behind);
                    });
                }
                work(first);
            });
        }
        failed.into_inner().expect("no panic here")
    }
}

/// Keeps the first error, but not one that only says that others gave up because of it.
trait FirstError {
    fn get_or_insert_err(&mut self, error: Error);
}

impl FirstError for Result<()> {
    fn get_or_insert_err(&mut self, error: Error) {
        if matches!(self, Ok(()) | Err(Error::Cancelled)) {
            *self = Err(error);
        }
    }
}

#[inline]
fn prefetch(bytes: &[u8], at: usize) {
    if let Some(byte) = bytes.get(at) {
        prefetch_at(byte);
    }
}

/// Asks for the memory at `address`, whatever is there.
#[inline]
pub(crate) fn prefetch_at(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and prefetching has no effect that a program could see, at
        // any address.
        unsafe { _mm_prefetch(address.cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A buffer as tags.
pub(crate) fn as_tags(buffer: &mut Buffer) -> &mut [Tag] {
    let bytes: &mut [u8] = buffer;
    // SAFETY: `Tag` is a transparent `u128`, for which every bit pattern is valid; `align_to_mut`
    // takes care of alignment and length.
    let (before, tags, _) = unsafe { bytes.align_to_mut::<Tag>() };
    assert!(before.is_empty(), "buffers are page-aligned");
    tags
}
