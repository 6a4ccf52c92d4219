//! The tags of a chunk's records, made on all cores.

use std::ops::Range;
use std::slice::ChunksMut;
use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_storage::Buffer;
use merganser_storage::thread::spawn_or_run;
use parking_lot::Mutex;

use super::chunk::Chunk;
use super::chunk_view::ENTRY_HEAD_BYTES;
use super::long::LongRecords;
use super::tag::Tag;
use super::ties::word_at;
use super::word::{KeyAlphabet, LEARN_BYTES};
use crate::activity::{Team, leave};
use crate::key::{self, Order};
use crate::record::Framing;

/// Where in a chunk sorting continues: the span, and the byte in the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkResume {
    pub(super) span: usize,
    pub(super) at: usize,
}

/// Tags that a thread takes at a time while extracting. Each span leaves half of one unused.
pub(crate) const SLAB_TAGS: usize = 64;

/// Bytes of encoded keys that a thread takes at a time.
const SLAB_BYTES: usize = 64 << 10;

/// How many keys an alphabet is learned from.
const LEARN_KEYS: usize = 2048;

/// Longer records are not used for learning.
const LEARN_RECORD_BYTES: usize = 64 << 10;

/// The alphabet of the keys of `chunk`, when words of it hold more than bytes do.
pub(super) fn learn_alphabet(chunk: &Chunk, order: &Order) -> Option<KeyAlphabet> {
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
            let Some(len) = order.format().first_len(rest) else { break };
            // Memory for long keys is not set aside.
            if len <= LEARN_RECORD_BYTES {
                let start = keys.len();
                match order.direct() {
                    Some(direct) => keys.extend_from_slice(direct.place.of_record(&rest[..len])),
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
    KeyAlphabet::learn(&keys)
}

/// One span's tags, in the slabs they were put in.
type SpanTags<'m> = Vec<(&'m mut [Tag], usize)>;

/// The free part of the memory for encoded keys, and its place.
type EncodedKeyArena<'m> = Mutex<(usize, &'m mut [u8])>;

/// The state that all threads of an extraction share.
struct ExtractionShared<'m> {
    slabs: Mutex<ChunksMut<'m, Tag>>,
    arena: EncodedKeyArena<'m>,
    /// The next span.
    next: AtomicUsize,
    /// The first span that could not be finished; spans after it are done again later.
    stopped: AtomicUsize,
    done: Mutex<Vec<SpanDone<'m>>>,
    long: Mutex<Vec<(u64, usize)>>,
}

/// A span's tags. If memory was too short, it continues at `rest_at`.
struct SpanDone<'m> {
    span: usize,
    tags: SpanTags<'m>,
    rest_at: Option<usize>,
}

/// The source of tags, and how they are made.
pub(super) struct Extraction<'c> {
    pub(super) chunk: &'c Chunk,
    /// Where to begin; at its start without.
    pub(super) from: Option<ChunkResume>,
    pub(super) order: &'c Order,
    pub(super) alphabet: Option<&'c KeyAlphabet>,
    pub(super) threads: usize,
}

impl Extraction<'_> {
    /// Makes the tags of all records, as far as memory for tags (`slabs`) and encoded keys reaches, and
    /// hands them to `take` in input order. Returns where to continue when memory was too short, and
    /// the records that are too long for a tag.
    pub(super) fn run<F: Framing>(
        &self,
        framing: F,
        slabs: &mut [Tag],
        keys: &mut Buffer,
        mut take: impl FnMut(&[Tag]),
    ) -> (Option<ChunkResume>, LongRecords) {
        let first = self.from.map_or(0, |r| r.span);
        let shared = ExtractionShared {
            slabs: Mutex::new(slabs.chunks_mut(SLAB_TAGS)),
            arena: Mutex::new((0, &mut keys[..])),
            next: AtomicUsize::new(first),
            stopped: AtomicUsize::new(usize::MAX),
            done: Mutex::default(),
            long: Mutex::default(),
        };
        let work = || self.work(&framing, &shared);
        if self.threads <= 1 || self.chunk.spans.len() - first < 2 {
            work();
        } else {
            let (team, _left) = (Team::here(), leave());
            std::thread::scope(|scope| {
                for _ in 0..self.threads {
                    spawn_or_run(scope, "sort", || {
                        let _member = team.join();
                        work();
                    });
                }
            });
        }
        let mut done = shared.done.into_inner();
        let long = LongRecords::new(shared.long.into_inner());
        done.sort_unstable_by_key(|done| done.span);
        for SpanDone { span, tags, rest_at } in done {
            for (slab, n) in tags {
                take(&slab[..n]);
            }
            if let Some(at) = rest_at {
                return (Some(ChunkResume { span, at }), long);
            }
        }
        (None, long)
    }

    /// Takes span after span, as one of the threads.
    fn work<F: Framing>(&self, framing: &F, shared: &ExtractionShared<'_>) {
        let mut key = Vec::new();
        let mut room: (usize, &mut [u8]) = (0, &mut []);
        loop {
            let i = shared.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.chunk.spans.len() || i > shared.stopped.load(Ordering::Relaxed) {
                return;
            }
            let done = self.extract_span(i, framing, shared, &mut key, &mut room);
            if done.rest_at.is_some() {
                shared.stopped.fetch_min(i, Ordering::Relaxed);
            }
            shared.done.lock().push(done);
        }
    }

    /// Makes the tags of one span. `key` is memory for one encoded key, and `room` a part of the arena.
    fn extract_span<'m, F: Framing>(
        &self,
        span: usize,
        framing: &F,
        shared: &ExtractionShared<'m>,
        key: &mut Vec<u8>,
        room: &mut (usize, &'m mut [u8]),
    ) -> SpanDone<'m> {
        let Extraction { chunk, order, alphabet, .. } = *self;
        let bytes = chunk.bytes();
        let direct = order.direct();
        let flip = if direct.is_some_and(|key| key.descending) { u64::MAX } else { 0 };
        let Range { mut start, end } = chunk.spans[span].clone();
        if let Some(from) = self.from.filter(|from| from.span == span) {
            start = from.at;
        }
        let (mut at, mut tags) = (start, SpanTags::new());
        while at < end {
            if tags.last().is_none_or(|(slab, n)| *n == slab.len()) {
                let Some(slab) = shared.slabs.lock().next() else {
                    return SpanDone { span, tags, rest_at: Some(at) };
                };
                tags.push((slab, 0));
            }
            let (slab, n) = tags.last_mut().expect("one was pushed");
            while at < end && *n < slab.len() {
                let len = framing.first(&bytes[at..end]).expect("spans hold whole records");
                let record = &bytes[at..at + len];
                if len >= Tag::LONG {
                    LongRecords::note(&mut shared.long.lock(), at, len);
                }
                slab[*n] = if let Some(direct) = direct {
                    let word = word_at(alphabet, direct.place.of_record(record), 0);
                    Tag::new(word ^ flip, at as u64, len)
                } else {
                    key.clear();
                    order.encode(record, key);
                    let Some(place) = put_key(key, at, room, &shared.arena) else {
                        return SpanDone { span, tags, rest_at: Some(at) };
                    };
                    Tag::new(word_at(alphabet, key, 0), place, len)
                };
                *n += 1;
                at += len;
            }
        }
        SpanDone { span, tags, rest_at: None }
    }
}

/// Puts an encoded key and its head into the arena; returns its place, or `None` when it is full.
pub(crate) fn put_key<'k>(
    key: &[u8],
    record_at: usize,
    room: &mut (usize, &'k mut [u8]),
    arena: &EncodedKeyArena<'k>,
) -> Option<u64> {
    let need = ENTRY_HEAD_BYTES + key.len();
    if room.1.len() < need {
        let mut arena = arena.lock();
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
