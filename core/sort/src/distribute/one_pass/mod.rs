//! One pass: all records fit into memory. Their tags are split by key range while the records are
//! read, so the first range can be written as soon as the last record has arrived.
//!
//! ```text
//!   reader ─┬─ what was read, in a few buffers ──► workers: copy it to its place, which they backed ahead
//!           └─ spans that are in their place ────► workers: tag, bucket ──► blocks of tags, a chain a bucket
//!                                                                                │ all is read
//!   output ◄── pieces ◄── gather ◄── sort a bucket's tags ◄── workers, bucket after bucket
//! ```
//!
//! Reading all, then sorting all, then writing all keeps either the disk or the cores waiting. Here
//! three things happen during the reads: tags are made, tags are split into buckets, and memory is
//! backed. (A system that hands out zeroed pages takes as long for that as a disk takes to read
//! into them.) During the writes, each bucket's tags, some tens of thousands, are sorted in a cache
//! right before they are gathered.
//!
//! Records stay where they were read, tags take 16 bytes each and no scratch of that size. A chain
//! holds the tags that one worker made, in input order, in blocks of [`BLOCK_TAGS`].
//!
//! [`OnePass::read`] says so where this does not work: no places to sample can be found, there are
//! more tags than the sample promised, or one bucket is too large for the memory to sort it in. The
//! chunk is then sorted like any other.

mod chains;
mod gather;
#[cfg(test)]
mod tests;
mod work;

use std::sync::atomic::Ordering;

use merganser_storage::thread::spawn_scoped;

use chains::{BLOCK_TAGS, Chain, OpenChain, TagBucket, TagRoom};
use gather::{Bucketed, seams_max};
use work::{RecordSpan, SpanAlarm, SpanFeed, SpanTask, SpanWork};

use super::partition::{Partition, SampleKey};
use super::sampling::{RECORDS_PER_PLACE, SamplePlaces, records_at};
use crate::activity::{self, Activity};
use crate::key::{Order, Place};
use crate::plan::RecordSample;
use crate::record::{Format, Framing, with_framing};
use crate::run::SortInput;
use crate::run::chunk::{Chunk, READ_BYTES};
use crate::run::chunk_reader::ChunkReader;
use crate::run::extract::put_key;
use crate::run::form::SortMemory;
use crate::run::format::PIECE_BYTES;
use crate::run::long::LongRecords;
use crate::run::tag::Tag;
use crate::run::ties::word_at;
use crate::run::word::{KeyAlphabet, LEARN_BYTES};
use crate::{Progress, Result};

/// Tags that a bucket is to have: 512 KiB, and as much to sort them in.
const BUCKET_TAGS: u64 = 32 << 10;
/// Bytes of records that a bucket is to have where those are long.
const BUCKET_BYTES: u64 = 4 << 20;
/// Most buckets: a cache line of each is being written.
const BUCKETS_MAX: u64 = 2048;
/// Less data than this is not worth a sample.
const TOTAL_BYTES_MIN: u64 = 16 << 20;
/// The most buffers to read into. A disk needs fewer at once, so it continues while some are
/// copied.
const LENDS_MAX: u64 = 16;
/// They take at most this part of the data.
const LEND_SHARE: u64 = 8;
/// Places looked at for each bucket.
const PLACES_PER_BUCKET: u64 = 2;

/// How many buckets suit this amount of data; `None` where splitting it is not worth it.
fn buckets(sample: RecordSample, total_bytes: u64) -> Option<u64> {
    let records = (total_bytes as f64 / sample.record_bytes) as u64;
    let buckets = (records / BUCKET_TAGS).max(total_bytes / BUCKET_BYTES).min(BUCKETS_MAX);
    (total_bytes >= TOTAL_BYTES_MIN).then_some(buckets)
}

/// The places whose keys are looked at to choose `buckets` buckets.
fn places(
    inputs: &[SortInput],
    format: Format,
    sample: RecordSample,
    buckets: u64,
) -> Option<SamplePlaces> {
    SamplePlaces::new(inputs, format, sample.record_bytes, PLACES_PER_BUCKET * buckets)
}

/// How tags are split into buckets.
pub(crate) struct OnePass<'a> {
    order: &'a Order,
    threads: usize,
    partition: Partition,
    alphabet: Option<KeyAlphabet>,
    /// Buffers to read into.
    lends: usize,
}

/// Buffers that files are read into, for this amount of data.
fn lends(total_bytes: u64) -> usize {
    (total_bytes / LEND_SHARE / READ_BYTES as u64).clamp(2, LENDS_MAX) as usize
}

impl<'a> OnePass<'a> {
    /// For `inputs` of `total_bytes`. `None` where it is not worth it, or where keys at random
    /// places cannot be found.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn plan(
        inputs: &[SortInput],
        order: &'a Order,
        sample: RecordSample,
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
        inputs: &[SortInput],
        format: Format,
        sample: RecordSample,
        total_bytes: u64,
    ) -> u64 {
        let buckets = buckets(sample, total_bytes);
        let places = buckets.and_then(|buckets| places(inputs, format, sample, buckets));
        places.map_or(0, SamplePlaces::bytes)
    }

    fn with_buckets(
        inputs: &[SortInput],
        order: &'a Order,
        sample: RecordSample,
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
            for _ in 0..RECORDS_PER_PLACE {
                let Some(len) = order.format().record_len(bytes) else { break };
                let (record, rest) = bytes.split_at(len);
                let mut key = Vec::new();
                match order.direct() {
                    Some(direct) => key.extend_from_slice(direct.place.of_record(record)),
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
            _ => KeyAlphabet::learn(&keys),
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
        let total_bytes = inputs.iter().filter_map(SortInput::size).sum();
        Ok(Some(OnePass { order, threads, partition, alphabet, lends: lends(total_bytes) }))
    }

    /// Bytes of memory that it takes at most at once, in addition to the chunk and [`SortMemory`].
    pub(crate) fn memory_bytes(&self, memory: &mut SortMemory) -> u64 {
        // Vectors of block numbers grow by doubling.
        let lists = memory.parts().0.len() / BLOCK_TAGS * 2 * size_of::<u32>();
        let chains = self.threads * self.partition.buckets() * (size_of::<OpenChain<'_>>() + 64);
        let pieces = seams_max(self.threads) * PIECE_BYTES + self.lends * READ_BYTES;
        (lists + chains + pieces) as u64 + self.partition.memory_bytes()
    }

    /// Fills `chunk`, which reads `read_bytes`, and splits its tags. Returns `None` when the chunk
    /// is filled but has to be sorted otherwise, or is not the last.
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
    ) -> Result<Option<Bucketed<'a>>> {
        let (pool, scratch, keys) = memory.parts();
        let sorted_at_once = scratch.len() / self.threads / 2;
        let room = TagRoom::new(pool, &mut keys[..]);
        let (backing, reads) = chunk.backing(read_bytes);
        let work = SpanWork::new(backing, reads, self.lends)?;
        let here = Activity::here();
        let (filled, workers) = std::thread::scope(|scope| {
            let start = |_| {
                let (one, work, room, here) = (&self, &work, &room, &here);
                let body = move || {
                    let _worker = here.enroll("part");
                    one.part(work, room)
                };
                spawn_scoped(scope, "part", body)
            };
            let workers = (0..self.threads).map(start).collect::<std::io::Result<Vec<_>>>();
            let _reading = activity::enter("read");
            let mut feed = SpanFeed { work: &work };
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
        let (chains, long): (Vec<_>, Vec<_>) =
            workers.into_iter().map(|done| (done.chains, done.long)).unzip();
        let mut chains: Vec<_> = chains.into_iter().map(Vec::into_iter).collect();
        for number in 0..self.partition.buckets() {
            let parts = chains.iter_mut().map(|c| c.next().expect("a chain a bucket"));
            let (chains, part_bytes): (Vec<Chain>, Vec<u64>) = parts.unzip();
            let bucket = TagBucket {
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
        let long = LongRecords::new(long.concat());
        Ok(Some(Bucketed { order, alphabet, long, buckets, records, bytes }))
    }

    /// Splits spans until there are no more, and backs memory and copies bytes in between. Returns
    /// for each bucket the chain and the bytes of its records.
    fn part<'p>(&self, work: &SpanWork, room: &TagRoom<'p>) -> Parted {
        let _alarm = SpanAlarm(work);
        let mut own = Own {
            open: (0..self.partition.buckets()).map(|_| OpenChain::new()).collect(),
            keys: (0, &mut []),
            key: Vec::new(),
            full: Vec::new(),
            long: Vec::new(),
        };
        while let Some(task) = work.next() {
            match task {
                SpanTask::Back(step) => work.back(step),
                SpanTask::Copy(lent, keeping) => work.copy(lent, keeping),
                SpanTask::Part(span) => {
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
        Parted { chains: own.open.into_iter().map(OpenChain::close).collect(), long: own.long }
    }

    /// False when there is no room for all tags or keys.
    fn part_span<'p, F: Framing>(
        &self,
        framing: F,
        span: &RecordSpan,
        own: &mut Own<'p>,
        room: &TagRoom<'p>,
    ) -> bool {
        let (order, alphabet) = (self.order, self.alphabet.as_ref());
        let direct = order.direct();
        let flip = if direct.is_some_and(|key| key.descending) { u64::MAX } else { 0 };
        let Own { open, keys, key, full, long } = own;
        let bytes = &span.bytes[span.from..];
        let mut at = 0;
        while at < bytes.len() {
            let len = framing.first(&bytes[at..]).expect("spans hold whole records");
            let record = &bytes[at..at + len];
            let position = span.at + span.from + at;
            LongRecords::note(long, position, len);
            let tag = if let Some(direct) = direct {
                let word = word_at(alphabet, direct.place.of_record(record), 0);
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
            if !open[bucket].push(tag, len, room) {
                return false;
            }
            at += len;
        }
        true
    }
}

/// What a worker made of its spans.
struct Parted {
    /// For each bucket, the chain and the bytes of its records.
    chains: Vec<(Chain, u64)>,
    /// The records that are too long for a tag.
    long: Vec<(u64, usize)>,
}

/// The memory of a worker while it splits spans.
struct Own<'p> {
    open: Vec<OpenChain<'p>>,
    /// Room for encoded keys, and its place.
    keys: (usize, &'p mut [u8]),
    key: Vec<u8>,
    full: Vec<u8>,
    /// The records that are too long for a tag.
    long: Vec<(u64, usize)>,
}
