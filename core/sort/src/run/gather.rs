//! Records, gathered in the order of their tags.
//!
//! The gather costs more than the sort: each record is a cache miss. Chunks are on huge pages, and
//! records are prefetched some tags early.

use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_storage::thread::spawn_or_run;
use parking_lot::Mutex;

use super::chunk_view::ChunkView;
use super::extract::ChunkResume;
use super::format::PIECE_BYTES;
use super::piece::Piece;
use super::tag::Tag;
use super::write_behind::WriteBehind;
use crate::activity::Team;
use crate::key::Order;
use crate::{Error, Result};

/// Takes a piece that was gathered, with its number.
pub(crate) type PlacePiece<'a> = dyn Fn(u64, Piece, &mut WriteBehind) -> Result<()> + Sync + 'a;

/// Records in memory that can be handed out in order.
pub(crate) trait GatherRecords {
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
        place: &PlacePiece<'_>,
    ) -> Result<()>;
}

/// A sorted chunk, or the first part of one: tags in order, and what they point to.
pub(crate) struct SortedTags<'a> {
    tags: &'a [Tag],
    view: ChunkView<'a>,
    order: &'a Order,
    pieces: Vec<PieceStart>,
    bytes: u64,
    /// Where the next part begins, when memory for tags or keys did not hold all of the chunk.
    pub(crate) resume: Option<ChunkResume>,
}

/// The first byte of a piece: in which record, and how far into it.
#[derive(Clone, Copy)]
struct PieceStart {
    tag: usize,
    skip: usize,
}

impl<'a> SortedTags<'a> {
    /// `tags` are in order.
    pub(super) fn new(
        tags: &'a [Tag],
        view: ChunkView<'a>,
        order: &'a Order,
        resume: Option<ChunkResume>,
    ) -> Self {
        let (pieces, bytes) = piece_starts(tags, &view);
        SortedTags { tags, view, order, pieces, bytes, resume }
    }
}

impl SortedTags<'_> {
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
                let Some((number, part)) = parts.lock().next() else {
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

impl GatherRecords for SortedTags<'_> {
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
        place: &PlacePiece<'_>,
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
                    failed.lock().keep_first(e);
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
        failed.into_inner()
    }
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

/// Keeps the first error, but not one that only says that others gave up because of it.
trait KeepFirst {
    fn keep_first(&mut self, error: Error);
}

impl KeepFirst for Result<()> {
    fn keep_first(&mut self, error: Error) {
        if matches!(self, Ok(()) | Err(Error::Cancelled)) {
            *self = Err(error);
        }
    }
}
