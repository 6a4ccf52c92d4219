//! Tags in buckets become the output: each worker sorts the tags of a bucket and copies its records
//! into pieces. Neighbouring buckets share some pieces.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_storage::Buffer;
use merganser_storage::thread::spawn_or_run;
use parking_lot::Mutex;

use super::chains::TagBucket;
use crate::activity::Team;
use crate::key::Order;
use crate::run::chunk::Chunk;
use crate::run::chunk_view::ChunkView;
use crate::run::form::SortMemory;
use crate::run::format::PIECE_BYTES;
use crate::run::gather::{GatherRecords, PlacePiece};
use crate::run::long::LongRecords;
use crate::run::piece::Piece;
use crate::run::tag::Tag;
use crate::run::ties::sort_tagged;
use crate::run::word::KeyAlphabet;
use crate::run::write_behind::WriteBehind;
use crate::{Error, Result};

/// All records of the inputs, in buckets.
pub(crate) struct Bucketed<'a> {
    pub(super) order: &'a Order,
    pub(super) alphabet: Option<KeyAlphabet>,
    pub(super) long: LongRecords,
    pub(super) buckets: Vec<TagBucket>,
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Bucketed<'_> {
    /// Adds the chunk with the records, and the memory with the tags.
    pub(crate) fn of_chunk<'c>(
        &'c self,
        chunk: &'c Chunk,
        memory: &'c mut SortMemory,
    ) -> BucketedChunk<'c> {
        let (pool, scratch, keys) = memory.parts();
        let view = ChunkView {
            bytes: chunk.bytes(),
            keys,
            order: self.order,
            alphabet: self.alphabet.as_ref(),
            long: &self.long,
        };
        BucketedChunk { bucketed: self, view, pool, scratch }
    }
}

/// Records in buckets, which can be gathered in order.
pub(crate) struct BucketedChunk<'c> {
    bucketed: &'c Bucketed<'c>,
    view: ChunkView<'c>,
    pool: &'c [Tag],
    scratch: &'c mut [Tag],
}

impl GatherRecords for BucketedChunk<'_> {
    fn records(&self) -> u64 {
        self.bucketed.records
    }

    fn bytes(&self) -> u64 {
        self.bucketed.bytes
    }

    fn gather(
        &mut self,
        block_bytes: u32,
        fences: bool,
        behinds: &mut [WriteBehind],
        place: &PlacePiece<'_>,
    ) -> Result<()> {
        let BucketedChunk { bucketed, view, pool, scratch } = self;
        let seams = (0..seams_max(behinds.len())).map(|_| Buffer::try_new(PIECE_BYTES));
        let gathering = Gathering {
            bucketed,
            view: *view,
            pool,
            block_bytes,
            fences,
            next: AtomicUsize::new(0),
            seams: Mutex::new(Seams {
                parked: HashMap::new(),
                spare: seams.collect::<std::io::Result<_>>()?,
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
                spawn_or_run(scope, "gather", move || {
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

/// The most pieces at once that several buckets share: two for each bucket that is being gathered,
/// and the one after the last of them.
pub(super) fn seams_max(threads: usize) -> usize {
    2 * threads + 1
}

/// Pieces that some of their buckets have filled.
struct Seams {
    /// Pieces by number, with the number of bytes in each.
    parked: HashMap<u64, (Piece, usize)>,
    spare: Vec<Buffer>,
}

struct Gathering<'g> {
    bucketed: &'g Bucketed<'g>,
    view: ChunkView<'g>,
    pool: &'g [Tag],
    block_bytes: u32,
    fences: bool,
    /// The bucket that is sorted next.
    next: AtomicUsize,
    seams: Mutex<Seams>,
    place: &'g PlacePiece<'g>,
}

/// How far a bucket's output has got.
struct OutputPlace {
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
            let Some(bucket) = self.bucketed.buckets.get(number) else { return Ok(()) };
            let done = self.bucket(bucket, tags, &mut scratch[..half], behind);
            if done.is_err() {
                self.next.store(self.bucketed.buckets.len(), Ordering::Relaxed);
                return done;
            }
        }
    }

    fn bucket(
        &self,
        bucket: &TagBucket,
        tags: &mut [Tag],
        scratch: &mut [Tag],
        behind: &mut WriteBehind,
    ) -> Result<()> {
        let mut cursor = OutputPlace { at: bucket.start, record: bucket.first_record, piece: None };
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
    fn fill(&self, tags: &[Tag], cursor: &mut OutputPlace, behind: &mut WriteBehind) -> Result<()> {
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

    /// Hands on the piece that contains byte `within` of the output, if it is whole: if other
    /// buckets have filled everything before `from`.
    fn finish(
        &self,
        within: u64,
        piece: Piece,
        from: usize,
        behind: &mut WriteBehind,
    ) -> Result<()> {
        let number = within / PIECE_BYTES as u64;
        let whole = (self.bucketed.bytes - number * PIECE_BYTES as u64).min(PIECE_BYTES as u64);
        let part = from..piece.filled();
        if part.len() as u64 == whole {
            return (self.place)(number, piece, behind);
        }
        let mut seams = self.seams.lock();
        let Seams { parked, spare } = &mut *seams;
        let Some((other, there)) = parked.get_mut(&number) else {
            parked.insert(number, (piece, part.len()));
            // A thread has as many buffers as before.
            let buffer = spare.pop().map_or_else(|| Buffer::try_new(PIECE_BYTES), Ok)?;
            behind.put_back(buffer);
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
