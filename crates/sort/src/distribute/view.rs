//! A view of buckets: opened at once, each bucket sorted when somebody reads it.
//!
//! ```text
//!   stream ──► pieces sorted ahead on all cores, in order
//!   read at random ──► cache of sorted pieces ──miss──► read one bucket, sort it with all cores
//!                          └── read on from where an earlier read ended? sort the next ones meanwhile
//! ```
//!
//! Sizes and places need no merge: bytes and records of every bucket are known, so a place in the
//! output is a bucket and a place in it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use storage::thread::spawn;
use storage::{Buffer, Directory, Storage};

use super::bucket::{BucketSet, Piece, PieceSorter, slice_bytes};
use super::format::{self, Ends};
use super::stream::{PieceStream, SortedPiece, StreamOptions, least_memory_bytes};
use super::stream_room;
use crate::activity::Activity;
use crate::budget::Reservation;
use crate::key::Order;
use crate::record::{Framing, with_framing};
use crate::run::format::corrupt;
use crate::view::{self, Manifest};
use crate::{Budget, Error, Result};

/// How long a read waits for the memory of others.
const PATIENCE: Duration = Duration::from_secs(20);
/// Ends of earlier reads that are remembered.
const ENDS: usize = 16;
/// A read may begin this far after an earlier one's end and still go on from there.
const GAP_BYTES: u64 = 1 << 20;

/// Readers of a view of buckets. All places are in bytes of records, the preamble not counted.
pub(crate) struct BucketView {
    shared: Arc<Shared>,
    /// Threads that sort ahead.
    ahead: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    set: Arc<BucketSet>,
    pieces: Vec<Piece>,
    /// Bytes and records before each bucket, and all of them.
    starts: Vec<(u64, u64)>,
    budget: Budget,
    threads: usize,
    cache: Mutex<Cache>,
    changed: Condvar,
    _lists: Reservation,
}

#[derive(Default)]
struct Cache {
    /// Piece number, and the piece once it is sorted. Most recently used last.
    pieces: Vec<(usize, Option<Arc<Cached>>)>,
    ends: VecDeque<u64>,
}

/// A sorted piece that is kept.
struct Cached {
    buffer: Buffer,
    len: usize,
    _memory: Reservation,
}

impl BucketView {
    /// Opens the bucket files that `manifest` names; `writable`, to give space of them back.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::Memory`] with the least that works; the storage's own.
    pub(crate) fn open(
        folder: &Arc<dyn Directory>,
        manifest: &Manifest,
        order: Arc<Order>,
        writable: bool,
        budget: &Budget,
        threads: usize,
    ) -> Result<Self> {
        let mut names: Vec<&str> = Vec::new();
        let mut files: Vec<Arc<dyn Storage>> = Vec::new();
        let mut ends = Vec::new();
        let mut numbers = Vec::with_capacity(manifest.buckets.len());
        for bucket in &manifest.buckets {
            let [segment] = &bucket.segments[..] else {
                return Err(Error::Unsupported(format!(
                    "{}: a bucket of several unsorted segments; this program reads one",
                    folder.name()
                )));
            };
            let known = names.iter().position(|name| *name == segment.run);
            if known.is_none() {
                let file = folder.open(&segment.run, writable)?;
                ends.push(format::find(&*file)?);
                files.push(file);
                names.push(&segment.run);
            }
            numbers.push((known.unwrap_or(names.len() - 1), segment));
        }
        // What indexes take is known from the ends of the files, and reserved before they are read.
        let lower = |bucket: &view::Bucket| bucket.from.as_ref().map_or(0, |key| key.0.len());
        let bounds: usize = manifest.buckets.iter().map(lower).sum();
        let most = ends.iter().map(Ends::memory_bytes).fold(bounds as u64, u64::saturating_add);
        let mut lists = budget.reserve(most, "the buckets of the view")?;
        let mut indexes = Vec::with_capacity(files.len());
        for (ends, file) in ends.iter().zip(&files) {
            let buckets = ends.open(&**file)?.into_iter().map(Some);
            indexes.push(buckets.collect::<Vec<_>>());
        }
        let mut buckets = Vec::with_capacity(manifest.buckets.len());
        let mut last: Option<&[u8]> = None;
        for (bucket, (number, segment)) in manifest.buckets.iter().zip(numbers) {
            let found = segment.bucket.and_then(|at| indexes[number].get_mut(at as usize));
            let found = found.and_then(Option::take).filter(|found| {
                let counts = (found.bytes, found.records, ends[number].index_crc);
                counts == (segment.bytes, segment.records, segment.index_crc)
            });
            let lower = bucket.from.as_ref().map_or(&[][..], |from| &from.0);
            let (Some(mut found), true) = (found, last.is_none_or(|last| last < lower)) else {
                let detail = "this is not the bucket that the manifest names".to_owned();
                return Err(corrupt(files[number].name(), 0, detail));
            };
            found.extents.iter_mut().for_each(|extent| extent.file = number as u32);
            (found.lower, found.one_key) = (lower.to_vec(), bucket.one_key);
            buckets.push(found);
            last = Some(lower);
        }
        drop(indexes);
        // Duplicates within the view are there to stay: only what makes a view removes them.
        let (unique, slice_bytes) = (false, slice_bytes(budget));
        let set = BucketSet { files, buckets, order, unique, record_bytes_max: 0, slice_bytes };
        let pieces = set.pieces();
        let held: u64 = set.buckets.iter().map(super::Bucket::memory_bytes).sum();
        let held = held + (pieces.len() * size_of::<Piece>()) as u64;
        lists.grow_to(held)?;
        lists.shrink_to(held);
        let least = least_memory_bytes(&set, &pieces);
        drop(budget.reserve(least / 9 * 10 + 100, "sorting the largest bucket of this view")?);
        let mut starts = vec![(0, 0)];
        for bucket in &set.buckets {
            let (bytes, records) = starts.last().expect("never empty");
            starts.push((bytes + bucket.bytes, records + bucket.records));
        }
        let shared = Shared {
            set: Arc::new(set),
            pieces,
            starts,
            budget: budget.clone(),
            threads,
            cache: Mutex::default(),
            changed: Condvar::new(),
            _lists: lists,
        };
        Ok(BucketView { shared: Arc::new(shared), ahead: Mutex::default() })
    }

    pub(super) fn set(&self) -> &BucketSet {
        &self.shared.set
    }

    /// Whether a piece may begin at `place`: where a bucket does, or a block of a bucket of one key.
    pub(crate) fn is_boundary(&self, place: u64) -> bool {
        let shared = &self.shared;
        let bucket = shared.starts.partition_point(|(bytes, _)| *bytes <= place) - 1;
        let within = place - shared.starts[bucket].0;
        let bucket = shared.set.buckets.get(bucket);
        within == 0
            || bucket.is_some_and(|bucket| {
                bucket.one_key && within.is_multiple_of(u64::from(bucket.block_bytes))
            })
    }

    /// The bucket files.
    pub(crate) fn files(&self) -> &[Arc<dyn Storage>] {
        &self.shared.set.files
    }

    /// Number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.shared.set.buckets.len()
    }

    /// Streams the pieces that hold the bytes of `range`, which is not empty. With `align`, each
    /// lies in its buffer as in a file in which that many bytes come before.
    pub(crate) fn stream(&self, range: Range<u64>, align: Option<u64>) -> Result<BucketStream> {
        let shared = &self.shared;
        let first = shared.piece_at(range.start);
        let end = shared.piece_at(range.end - 1) + 1;
        let options = StreamOptions { threads: shared.threads, align, discard: false };
        let set = Arc::clone(&shared.set);
        let room = stream_room(&shared.budget);
        let mut pieces = shared.pieces[first..end].to_vec();
        // A bucket of one key can be read from any block on.
        if let Some(piece) = pieces.first_mut().filter(|piece| piece.slice) {
            let block_bytes = u64::from(shared.set.buckets[piece.bucket].block_bytes);
            let skipped = (range.start - piece.output) / block_bytes * block_bytes;
            piece.from += skipped;
            piece.bytes -= skipped;
            piece.output += skipped;
        }
        let stream = PieceStream::new(set, pieces.clone(), room, options, &shared.budget);
        let stream = match stream {
            Err(Error::Memory { .. }) => {
                // What is kept for reads at random goes first.
                shared.lock().pieces.retain(|(_, piece)| piece.is_none());
                let (set, room) = (Arc::clone(&shared.set), stream_room(&shared.budget));
                PieceStream::new(set, pieces, room, options, &shared.budget)?
            }
            stream => stream?,
        };
        Ok(BucketStream { stream, current: None })
    }

    /// Fills `out` from `place` on.
    pub(crate) fn read_at(&self, place: u64, out: &mut [u8]) -> Result<()> {
        let shared = &self.shared;
        let mut done = 0;
        while done < out.len() {
            let at = place + done as u64;
            let number = shared.piece_at(at);
            let piece = shared.get(number)?;
            let from = (at - shared.pieces[number].output) as usize;
            let n = (piece.len - from).min(out.len() - done);
            out[done..done + n].copy_from_slice(&piece.buffer[from..from + n]);
            done += n;
        }
        Ok(())
    }

    /// As [`BucketView::read_at`]; sorts what comes next meanwhile where an earlier read ended
    /// right before.
    pub(crate) fn read_on(&self, place: u64, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let shared = &self.shared;
        let end = place + out.len() as u64;
        let goes_on = {
            let mut cache = shared.lock();
            let ends = &mut cache.ends;
            let before = ends.iter().position(|e| *e <= place && place - e <= GAP_BYTES);
            if let Some(before) = before {
                ends.remove(before);
            }
            ends.push_back(end);
            if ends.len() > ENDS {
                ends.pop_front();
            }
            before.is_some()
        };
        if goes_on {
            let here = shared.piece_at(end - 1);
            for number in here..(here + 1 + shared.threads).min(shared.pieces.len()) {
                self.sort_ahead(number)?;
            }
        }
        self.read_at(place, out)
    }

    /// Has a thread sort piece `number`, unless it is there or memory is short.
    fn sort_ahead(&self, number: usize) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut ahead = self.ahead.lock().expect("readers do not panic");
        {
            let mut cache = shared.lock();
            if cache.pieces.iter().any(|(n, _)| *n == number) {
                return Ok(());
            }
            // The pieces at hand are the last that may go for it.
            let need = shared.set.memory(&shared.pieces[number], 1).total();
            while shared.budget.free_bytes() < need {
                let keep = 2 + shared.threads;
                let old = cache.pieces.len().saturating_sub(keep);
                let old = cache.pieces[..old].iter().position(|(_, piece)| piece.is_some());
                let Some(old) = old else { return Ok(()) };
                cache.pieces.remove(old);
            }
            cache.pieces.push((number, None));
        }
        ahead.retain(|thread| !thread.is_finished());
        let here = Activity::here();
        let work = move || {
            let _worker = here.enroll("ahead");
            let sorted = shared.sort(number, 1);
            // Who wants the piece sorts it again and gets the error.
            shared.put(number, sorted.ok());
        };
        match spawn("ahead", work) {
            Ok(thread) => ahead.push(thread),
            // Sorted when it is asked for, then.
            Err(_) => self.shared.put(number, None),
        }
        Ok(())
    }

    /// Where record number `record` begins; the end for the number past the last.
    pub(crate) fn place_of_record(&self, record: u64) -> Result<u64> {
        let starts = &self.shared.starts;
        let bucket = starts.partition_point(|(_, records)| *records <= record) - 1;
        let mut skip = record - starts[bucket].1;
        self.shared.find(bucket, |_| {
            let here = skip == 0;
            skip = skip.saturating_sub(1);
            here
        })
    }

    /// Where the first record begins whose full key is at least `key`.
    pub(crate) fn place_of_key(&self, key: &[u8]) -> Result<u64> {
        let shared = &self.shared;
        let buckets = &shared.set.buckets;
        let above = buckets.partition_point(|bucket| &bucket.lower[..] <= key);
        let Some(bucket) = above.checked_sub(1) else { return Ok(0) };
        if buckets[bucket].one_key {
            let above = &buckets[bucket].lower[..] < key;
            return Ok(shared.starts[bucket + usize::from(above)].0);
        }
        let mut own = Vec::new();
        shared.find(bucket, |record| {
            own.clear();
            shared.set.order.encode_full(record, &mut own);
            own[..] >= *key
        })
    }

    /// Reads every block and checks it. `progress` takes the bytes read.
    pub(crate) fn verify_all(&self, mut progress: impl FnMut(u64)) -> Result<()> {
        let shared = &self.shared;
        let most = shared.pieces.iter().map(|piece| piece.bytes.next_multiple_of(4096)).max();
        let most = most.unwrap_or(0);
        let _memory = shared.reserve(most, "checking a view")?;
        let mut memory = Buffer::try_new(most as usize)?;
        for piece in &shared.pieces {
            memory = shared.set.load(*piece, memory).finish()?;
            progress(piece.bytes);
        }
        Ok(())
    }
}

impl Drop for BucketView {
    fn drop(&mut self) {
        let ahead = self.ahead.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        for thread in ahead.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().expect("readers do not panic")
    }

    /// The piece that holds the byte at `place`, which is before the end.
    fn piece_at(&self, place: u64) -> usize {
        self.pieces.partition_point(|piece| piece.output <= place) - 1
    }

    /// Piece `number`, sorted now unless it is kept.
    fn get(&self, number: usize) -> Result<Arc<Cached>> {
        let mut cache = self.lock();
        loop {
            let found = cache.pieces.iter().position(|(n, _)| *n == number);
            match found.map(|at| cache.pieces.remove(at)) {
                Some((_, Some(piece))) => {
                    cache.pieces.push((number, Some(Arc::clone(&piece))));
                    return Ok(piece);
                }
                Some(sorting) => {
                    cache.pieces.push(sorting);
                    cache = self.changed.wait(cache).expect("readers do not panic");
                }
                None => break,
            }
        }
        cache.pieces.push((number, None));
        drop(cache);
        let sorted = self.sort(number, self.threads);
        match sorted {
            Ok(piece) => {
                let piece = Arc::new(piece);
                self.put_shared(number, Some(Arc::clone(&piece)));
                Ok(piece)
            }
            Err(error) => {
                self.put_shared(number, None);
                Err(error)
            }
        }
    }

    fn put(&self, number: usize, piece: Option<Cached>) {
        self.put_shared(number, piece.map(Arc::new));
    }

    /// Ends the wait for piece `number`.
    fn put_shared(&self, number: usize, piece: Option<Arc<Cached>>) {
        let mut cache = self.lock();
        match (cache.pieces.iter().position(|(n, _)| *n == number), piece) {
            (Some(at), Some(piece)) => cache.pieces[at].1 = Some(piece),
            (Some(at), None) => drop(cache.pieces.remove(at)),
            (None, _) => {}
        }
        drop(cache);
        self.changed.notify_all();
    }

    /// Memory for a read: what is kept goes for it, the least recently used first; then others are
    /// waited for.
    fn reserve(&self, bytes: u64, owner: &'static str) -> Result<Reservation> {
        loop {
            if let Ok(memory) = self.budget.reserve(bytes, owner) {
                return Ok(memory);
            }
            let mut cache = self.lock();
            let kept = |(_, piece): &(usize, Option<Arc<Cached>>)| {
                piece.as_ref().is_some_and(|piece| Arc::strong_count(piece) == 1)
            };
            let Some(old) = cache.pieces.iter().position(kept) else { break };
            cache.pieces.remove(old);
        }
        self.budget.reserve_within(PATIENCE, bytes, owner)
    }

    fn sort(&self, number: usize, threads: usize) -> Result<Cached> {
        let piece = self.pieces[number];
        let mut threads = threads;
        let mut need = self.set.memory(&piece, threads);
        if need.total() > self.budget.limit_bytes() / 2 {
            threads = 1;
            need = self.set.memory(&piece, 1);
        }
        if need.total() > self.budget.limit_bytes() / 2
            && let Some(less) = self.set.memory_in_place(&piece)
        {
            need = less;
        }
        let owner = "reading a view at random";
        let mut memory = self.reserve(need.total(), owner)?;
        let mut sorter = PieceSorter::new(&self.budget, threads);
        let (len, buffer) = if need.in_place {
            let memory = Buffer::try_new(need.output as usize)?;
            let loaded = self.set.load(piece, memory).finish()?;
            sorter.sort_in_place(&self.set, piece, loaded, 0)?
        } else {
            let memory = Buffer::try_new(need.input as usize)?;
            let mut buffer = Buffer::try_new(need.output as usize)?;
            let loaded = self.set.load(piece, memory).finish()?;
            let (len, _) = sorter.sort(&self.set, piece, loaded, &mut buffer, 0)?;
            (len, buffer)
        };
        drop(sorter);
        memory.shrink_to(need.output);
        Ok(Cached { buffer, len, _memory: memory })
    }

    /// Where the first record of `bucket` begins for which `wanted`; the bucket's end without one.
    fn find(&self, bucket: usize, mut wanted: impl FnMut(&[u8]) -> bool) -> Result<u64> {
        if bucket >= self.set.buckets.len() {
            return Ok(self.starts[self.starts.len() - 1].0);
        }
        let first = self.pieces.partition_point(|piece| piece.bucket < bucket);
        let mut place = self.starts[bucket].0;
        // A slice of a bucket of one key may end within a record.
        let mut begun: Vec<u8> = Vec::new();
        for number in first..self.pieces.len() {
            if self.pieces[number].bucket != bucket {
                break;
            }
            let piece = self.get(number)?;
            let bytes = &piece.buffer[..piece.len];
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
                place += len as u64;
                rest = &rest[len..];
            });
            if found {
                return Ok(place);
            }
            begun = rest.to_vec();
        }
        Ok(place)
    }
}

/// Bytes of a view in order, piece by piece.
pub(crate) struct BucketStream {
    stream: PieceStream,
    current: Option<SortedPiece>,
}

impl BucketStream {
    /// Goes to the next piece: its place and its length; `None` at the end.
    pub(crate) fn advance(&mut self) -> Result<Option<(u64, usize)>> {
        if let Some(piece) = self.current.take() {
            let (buffer, claimed) = piece.into_parts();
            self.stream.recycle(buffer, claimed);
        }
        self.current = self.stream.next()?;
        Ok(self.current.as_ref().map(|piece| (piece.output, piece.len)))
    }

    /// The bytes of the piece gone to.
    pub(crate) fn current(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], SortedPiece::bytes)
    }

    pub(super) fn pieces(&mut self) -> &mut PieceStream {
        &mut self.stream
    }
}
