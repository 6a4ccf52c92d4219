//! Sorted views: what a sort leaves when nobody wants the file yet.
//!
//! A view is a folder of sorted runs and one manifest. It reads exactly like the sorted file, whose
//! size is known before the first read: a read of any bytes finds the bounds that enclose them
//! (`select`), reads one window of blocks, and merges it. Nothing is ever written to a view.
//!
//! ```text
//!   read_at ──► near a stream's place?  ──yes──► its merged windows (read ahead on all cores)
//!                     │ no
//!                     └──► enclose ──► one window ──► merge ──► skip ──► bytes
//! ```

mod manifest;
mod readers;
pub(crate) mod select;

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use storage::{Buffer, Clock, Completion, Completions, Directory, Geometry, Operation, Storage};

pub use manifest::{Bucket, KeyBytes, MANIFEST_NAME, Manifest, Segment};
use readers::Readers;
use select::{Enclosure, Unit, enclose, enclose_nearly};

use crate::budget::Reservation;
use crate::distribute::{BucketStream, BucketView};
use crate::error::shell_word;
use crate::key::Order;
use crate::merge::bound::Bound;
use crate::merge::stream::{Stream, StreamSize, windows_held};
use crate::merge::window::{Loading, Segments, WindowPlan};
use crate::record::{Format, Framing, with_framing};
use crate::run::Run;
use crate::run::format::{Footer, corrupt};
use crate::run::reader::ClosedRun;
use crate::{Budget, Error, Result};

/// No path that the system takes is longer, in bytes.
const NAME_BYTES_MAX: usize = 4096;
/// The largest window, in bytes, of few runs: larger ones leave the caches before they are merged.
const WINDOW_BYTES_MAX: u64 = 8 << 20;
/// What one random read merges at a time, in bytes of output.
const RANDOM_BYTES: usize = 256 << 10;
/// How long a random read waits for the memory of others.
const PATIENCE: Duration = Duration::from_secs(20);
/// Streams that sequential readers may have at once, when memory allows.
const STREAMS_MAX: usize = 4;

/// An open view. Shared by any number of readers; all its memory is within one budget.
pub struct View {
    name: String,
    manifest: Manifest,
    segments: Segments,
    budget: Budget,
    size: StreamSize,
    clock: Arc<dyn Clock>,
    readers: Readers,
    spare: Mutex<Option<Scratch>>,
    /// Of a view of buckets: all that is read. It has no runs.
    buckets: Option<BucketView>,
    _fences: Reservation,
}

/// Memory of a random read.
struct Scratch {
    input: Buffer,
    merged: Buffer,
    memory: Reservation,
}

impl View {
    /// Opens the view in `folder`: reads its manifest and the index of every run, checked, once what
    /// they take is reserved.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Memory`] with the least budget that does, [`Error::Unsupported`]
    /// when there is no whole view, the storage's own.
    pub fn open(folder: &Arc<dyn Directory>, budget: &Budget, threads: usize) -> Result<Self> {
        if let Some(output) = crate::output::consumed_into(folder)? {
            let view = folder.name();
            // What the marker says may be anything: only a name that is whole goes into a command.
            let text = match output.len() <= NAME_BYTES_MAX {
                true => format!(
                    "{view}: this view is being consumed into {output}; finish with: merganser materialize {} -o {} --consume",
                    shell_word(view),
                    shell_word(&output)
                ),
                false => format!(
                    "{view}: this view is being consumed into {}..., which is no name of a file; repair its marker",
                    &output[..output.floor_char_boundary(100)]
                ),
            };
            return Err(Error::Unsupported(text));
        }
        Self::open_consumed(folder, budget, threads, false)
    }

    /// Opens a view part of which may have been given back already; `writable`, to give back more.
    pub(crate) fn open_consumed(
        folder: &Arc<dyn Directory>,
        budget: &Budget,
        threads: usize,
        writable: bool,
    ) -> Result<Self> {
        let manifest = Manifest::read(folder)?;
        let header = Some(&manifest.preamble[..]).filter(|p| !p.is_empty());
        let order = manifest.order.compile(header).map_err(|e| {
            let detail = format!("its order makes no sense: {e}");
            corrupt(&format!("{}/{MANIFEST_NAME}", folder.name()), 0, detail)
        })?;
        let order = Arc::new(order);
        let mut found = Vec::new();
        let mut buckets = None;
        if manifest.is_of_buckets() {
            let order = Arc::clone(&order);
            let opened = BucketView::open(folder, &manifest, order, writable, budget, threads);
            buckets = Some(opened?);
        } else {
            let segments = manifest.buckets[0].segments.iter().collect();
            found = on_all(threads, segments, |segment| segment.find(folder, writable))?;
        }
        // What indexes take is known from the footers, and reserved before they are read.
        let footers = found.iter().map(ClosedRun::footer);
        drop(budget.reserve(least_memory_bytes(footers.clone()), "reading this view")?);
        let fence_bytes = footers.map(Footer::memory_bytes).sum();
        let fences = budget.reserve(fence_bytes, "the fences of the view")?;
        let runs = on_all(threads, found, |run| Ok(Arc::new(run.open()?)))?.into();
        // Duplicates within the view are there to stay: only what makes a view removes them.
        let segments = Segments { runs, order, unique: false, width: Arc::default() };
        let room = budget.free_bytes().saturating_sub(random_bytes(segments.footers()));
        let size = stream_size(&segments, budget, room, threads)?;
        let streams = (room / size.memory_bytes(&segments).max(1)) as usize;
        Ok(View {
            name: folder.name().to_owned(),
            manifest,
            segments,
            budget: budget.clone(),
            size,
            clock: folder.clock(),
            readers: Readers::new(streams.clamp(1, STREAMS_MAX)),
            spare: Mutex::new(None),
            buckets,
            _fences: fences,
        })
    }

    /// What it is made of.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The order of its records.
    #[must_use]
    pub fn order(&self) -> &Order {
        &self.segments.order
    }

    /// Of a view of buckets, how many there are.
    #[must_use]
    pub fn buckets(&self) -> Option<usize> {
        self.buckets.as_ref().map(BucketView::buckets)
    }

    /// The storages that its records lie in.
    #[must_use]
    pub fn storages(&self) -> Vec<Arc<dyn Storage>> {
        match &self.buckets {
            Some(buckets) => buckets.files().to_vec(),
            None => self.runs().iter().map(|run| Arc::clone(run.storage())).collect(),
        }
    }

    pub(crate) fn bucket_view(&self) -> Option<&BucketView> {
        self.buckets.as_ref()
    }

    /// Its runs, in tie order; a view of buckets has none.
    #[must_use]
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.segments.runs
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    pub(crate) fn stream_size(&self) -> StreamSize {
        self.size
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Number of its records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.manifest.records
    }

    fn preamble_bytes(&self) -> u64 {
        self.manifest.preamble.len() as u64
    }

    /// The bytes of `range`, in order, merged ahead on all cores.
    ///
    /// # Errors
    /// [`Error::Memory`]; the storage's own. A range is cut at the end of the view.
    pub fn stream(&self, range: Range<u64>) -> Result<ViewStream<'_>> {
        let end = range.end.min(self.size());
        let start = range.start.min(end);
        let preamble = self.preamble_bytes();
        let head =
            &self.manifest.preamble[start.min(preamble) as usize..end.min(preamble) as usize];
        let (from, to) = (start.max(preamble) - preamble, end.max(preamble) - preamble);
        let merged = if let (Some(buckets), true) = (&self.buckets, to > from) {
            Some(Source::Buckets(buckets.stream(from..to, None)?))
        } else if to > from {
            let Enclosure { lower, upper } = enclose(&self.segments, Unit::Bytes, from..to)?;
            let segments = self.segments.clone();
            let stream = Stream::new(segments, lower, upper, None, self.size, &self.budget)?;
            Some(Source::Merge(stream))
        } else {
            None
        };
        Ok(ViewStream { view: self, head, merged, from, to })
    }

    /// Reads `out.len()` bytes from `offset` on, fewer only at the view's end, without starting a
    /// stream.
    ///
    /// # Errors
    /// Damage found, the storage's own, [`Error::Memory`].
    pub fn read_random(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let total = self.size();
        let len = out.len().min(total.saturating_sub(offset) as usize);
        let out = &mut out[..len];
        let preamble = self.preamble_bytes();
        let in_head = (preamble.saturating_sub(offset) as usize).min(len);
        if in_head > 0 {
            let from = offset as usize;
            out[..in_head].copy_from_slice(&self.manifest.preamble[from..from + in_head]);
        }
        let mut done = in_head;
        if let Some(buckets) = self.buckets.as_ref().filter(|_| done < len) {
            buckets.read_at(offset + done as u64 - preamble, &mut out[done..])?;
            done = len;
        }
        while done < len {
            let n = (len - done).min(RANDOM_BYTES);
            let from = offset + done as u64 - preamble;
            self.read_window(from, &mut out[done..done + n])?;
            done += n;
        }
        Ok(len)
    }

    /// Memory for one random access: what read-ahead holds is given up for it, and other random
    /// accesses are waited for.
    fn reserve(&self, bytes: u64, owner: &'static str) -> Result<Reservation> {
        self.budget.reserve(bytes, owner).or_else(|_| {
            self.readers.give_up();
            drop(self.spare.lock().expect("nothing panics with it").take());
            self.budget.reserve_within(PATIENCE, bytes, owner)
        })
    }

    /// Merges one window that encloses the bytes from `from` on. Bounds that nearly always enclose
    /// them are tried first.
    fn read_window(&self, from: u64, out: &mut [u8]) -> Result<()> {
        let range = from..from + out.len() as u64;
        let near = enclose_nearly(&self.segments, Unit::Bytes, range.clone())?;
        if self.read_between(near, &range, out)? {
            return Ok(());
        }
        let sure = enclose(&self.segments, Unit::Bytes, range.clone())?;
        if self.read_between(sure, &range, out)? {
            return Ok(());
        }
        Err(self.contradiction(from))
    }

    /// Merges the window between two bounds; false when it does not enclose `range`.
    fn read_between(&self, bounds: Enclosure, range: &Range<u64>, out: &mut [u8]) -> Result<bool> {
        let plan = WindowPlan::barely_between(&self.segments, bounds.lower, bounds.upper);
        let blocks = plan.memory_bytes(&self.segments);
        let Scratch { input, mut merged, memory } = self.scratch(blocks, out.len() as u64)?;
        let window = Loading::start(&self.segments, plan, input).finish(&self.segments)?;
        let encloses = window.encloses(range);
        if encloses {
            let skip = (range.start - window.output_offset) as usize;
            let wanted = skip..skip + out.len();
            if merged.len() < wanted.end {
                merged = Buffer::new(wanted.end.next_multiple_of(4096));
            }
            window.merge_into(&self.segments, &mut merged[..wanted.end])?;
            out.copy_from_slice(&merged[wanted]);
        }
        self.keep(Scratch { input: window.into_memory(), merged, memory });
        Ok(encloses)
    }

    /// Memory for a random read of `len` bytes out of blocks of `blocks` bytes: what an earlier one
    /// left, if that will do.
    fn scratch(&self, blocks: u64, len: u64) -> Result<Scratch> {
        let packed = self.segments.runs.iter().any(|run| run.packed());
        let need = |blocks: u64| blocks * (2 + u64::from(packed)) + len;
        let spare = self.spare.lock().expect("nothing panics with it").take();
        if let Some(spare) = spare.filter(|spare| spare.memory.bytes() >= need(blocks)) {
            return Ok(spare);
        }
        // Half as much again, so that the next one finds enough, too.
        let (owner, roomy) = ("reading a view at random", blocks + blocks / 2);
        let (memory, blocks) = match self.budget.reserve(need(roomy), owner) {
            Ok(memory) => (memory, roomy),
            Err(_) => (self.reserve(need(blocks), owner)?, blocks),
        };
        let input = Buffer::new(blocks as usize);
        Ok(Scratch { input, merged: Buffer::new((blocks + len) as usize), memory })
    }

    /// Leaves memory for the next random read, since fresh memory costs a page fault every 4 KiB; no
    /// more than streams leave free.
    fn keep(&self, scratch: Scratch) {
        if scratch.memory.bytes() <= random_bytes(self.segments.footers()) {
            *self.spare.lock().expect("nothing panics with it") = Some(scratch);
        }
    }

    /// What is left to say when bounds that surely enclose a place do not.
    fn contradiction(&self, place: u64) -> Error {
        let detail = "the records and indexes of its runs contradict each other".to_owned();
        corrupt(&self.name, self.preamble_bytes() + place, detail)
    }

    /// Where record number `record` begins; the view's size for the number past the last.
    ///
    /// # Errors
    /// Damage found, the storage's own, [`Error::Memory`].
    pub fn offset_of_record(&self, record: u64) -> Result<u64> {
        if record >= self.records() {
            return Ok(self.size());
        }
        let preamble = self.preamble_bytes();
        if let Format::Fixed { bytes } = self.order().format() {
            return Ok(preamble + record * bytes as u64);
        }
        if let Some(buckets) = &self.buckets {
            return Ok(preamble + buckets.place_of_record(record)?);
        }
        let Enclosure { lower, upper } =
            enclose(&self.segments, Unit::Records, record..record + 1)?;
        let plan = WindowPlan::between(&self.segments, lower, upper);
        let need = 3 * plan.memory_bytes(&self.segments);
        let _memory = self.reserve(need, "finding a record of a view")?;
        let window = Loading::start(&self.segments, plan, Buffer::new(0)).finish(&self.segments)?;
        let mut merged = vec![0; window.bytes() as usize];
        window.merge_into(&self.segments, &mut merged)?;
        let skip = record.checked_sub(window.first_record(&self.segments));
        let at = skip.and_then(|skip| {
            with_framing!(self.order().format(), framing => {
                (0..skip).try_fold(0, |at, _| Some(at + framing.next(&merged[at..])?))
            })
        });
        let at = at.ok_or_else(|| self.contradiction(window.output_offset))?;
        Ok(preamble + window.output_offset + at as u64)
    }

    /// Where the first record begins whose full normalised key is at least `key`; the view's size
    /// when there is none.
    ///
    /// # Errors
    /// Damage found, the storage's own, [`Error::Memory`].
    pub fn offset_of_key(&self, key: &[u8]) -> Result<u64> {
        if let Some(buckets) = &self.buckets {
            return Ok(self.preamble_bytes() + buckets.place_of_key(key)?);
        }
        let bound = Bound::before_key(key.to_vec());
        let plan = WindowPlan::between(&self.segments, Some(bound.clone()), Some(bound));
        let _memory = self.reserve(plan.memory_bytes(&self.segments), "finding a key of a view")?;
        let window = Loading::start(&self.segments, plan, Buffer::new(0)).finish(&self.segments)?;
        Ok(self.preamble_bytes() + window.output_offset)
    }

    /// Reads every block of every run and checks it. `progress` takes the bytes read.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify_all(&self, mut progress: impl FnMut(u64)) -> Result<()> {
        if let Some(buckets) = &self.buckets {
            return buckets.verify_all(progress);
        }
        self.segments.runs.iter().try_for_each(|run| run.verify_all(&mut progress))
    }
}

/// Does `work` with the runs of a view, in order of the results, on so many threads: finding runs, and
/// reading and checking their indexes, is work for all of them.
fn on_all<T: Send, R: Send>(
    threads: usize,
    mut items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let work = &work;
    let do_share = |share: Vec<T>| share.into_iter().map(work).collect::<Result<Vec<R>>>();
    let share = items.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        while items.len() > share {
            let last = items.split_off((items.len() - 1) / share * share);
            others.push(scope.spawn(move || do_share(last)));
        }
        let mut done = do_share(items)?;
        for other in others.into_iter().rev() {
            done.extend(other.join().expect("opening does not panic")?);
        }
        Ok(done)
    })
}

/// What stays free whatever streams of runs with these footers hold: one read at random must be
/// possible.
fn random_bytes<'a>(runs: impl Iterator<Item = &'a Footer>) -> u64 {
    3 * least_window_bytes(runs) + 3 * RANDOM_BYTES as u64
}

/// The least memory in which a view of runs with these footers can be read, in bytes.
pub(crate) fn least_memory_bytes<'a>(runs: impl Iterator<Item = &'a Footer> + Clone) -> u64 {
    let fences: u64 = runs.clone().map(Footer::memory_bytes).sum();
    let least = StreamSize { window_bytes: least_window_bytes(runs.clone()), threads: 1 };
    fences + random_bytes(runs.clone()) + least.memory_bytes_of(runs)
}

/// The window size for merging `segments` in `room` bytes of a budget with up to `threads` threads.
pub(crate) fn stream_size(
    segments: &Segments,
    budget: &Budget,
    room: u64,
    threads: usize,
) -> Result<StreamSize> {
    let least = least_window_bytes(segments.footers());
    let biggest = segments.data_bytes().next_multiple_of(4096) + least;
    let mut threads = threads.max(1);
    loop {
        let one = StreamSize { window_bytes: 1, threads };
        let share = room / one.memory_bytes(segments);
        if share >= least || threads == 1 {
            let window_bytes = share
                .saturating_sub(4096)
                .min(window_bytes_max(segments.footers().map(shared_bytes).sum()))
                .min(biggest)
                .max(least);
            let size = StreamSize { window_bytes: window_bytes.next_multiple_of(4096), threads };
            if share < least {
                let others = budget.limit_bytes() - budget.free_bytes();
                let one = StreamSize { window_bytes: least, threads: 1 };
                return Err(Error::Memory {
                    owner: "merging this many runs",
                    // Who merges runs keeps a tenth of its memory back.
                    least_bytes: others + one.memory_bytes(segments) / 9 * 10 + 100,
                    limit_bytes: budget.limit_bytes(),
                });
            }
            return Ok(size);
        }
        threads -= 1;
    }
}

/// The largest window where two neighbours both read so many bytes: those must stay a small part.
fn window_bytes_max(shared_bytes: u64) -> u64 {
    WINDOW_BYTES_MAX.max(32 * shared_bytes)
}

/// What two neighbouring windows both read of a run: a block, or the record across their border.
fn shared_bytes(run: &Footer) -> u64 {
    u64::from(run.block_bytes).max(run.data_bytes / run.records.max(1))
}

/// The part of the data that merging so many runs in `room` bytes reads a second time, for a merge
/// that is yet to come: what neighbouring windows share, and all of it when that takes another pass.
pub(crate) fn read_again(
    (runs, block_bytes, record_bytes): (u64, u64, u64),
    room: u64,
    threads: usize,
) -> f64 {
    if runs <= 1 {
        return 0.0;
    }
    let share = |threads| room / windows_held(threads);
    let least = 4 * runs * block_bytes;
    let threads = (1..=threads).rev().find(|threads| share(*threads) >= least);
    let shared_bytes = runs * block_bytes.max(record_bytes);
    let window_bytes = share(threads.unwrap_or(1)).min(window_bytes_max(shared_bytes)).max(1);
    let another_pass = if threads.is_none() { 1.0 } else { 0.0 };
    another_pass + shared_bytes as f64 / window_bytes as f64
}

/// The least window of runs with these footers that makes progress: each run's edges, and as much
/// again.
fn least_window_bytes<'a>(runs: impl Iterator<Item = &'a Footer>) -> u64 {
    runs.map(|run| 4 * u64::from(run.block_bytes)).sum::<u64>().max(4096)
}

/// Where the ordered bytes of a view come from.
enum Source {
    Merge(Stream),
    Buckets(BucketStream),
}

impl Source {
    fn advance(&mut self) -> Result<Option<(u64, usize)>> {
        match self {
            Source::Merge(stream) => stream.advance(),
            Source::Buckets(stream) => stream.advance(),
        }
    }

    fn current(&self) -> &[u8] {
        match self {
            Source::Merge(stream) => stream.current(),
            Source::Buckets(stream) => stream.current(),
        }
    }
}

/// A stretch of a view, read in order.
pub struct ViewStream<'a> {
    view: &'a View,
    head: &'a [u8],
    merged: Option<Source>,
    from: u64,
    to: u64,
}

impl ViewStream<'_> {
    /// The next bytes, at least one; `None` at the end.
    ///
    /// # Errors
    /// Damage found, or the storage's own; the stream ends there.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>> {
        if !self.head.is_empty() {
            return Ok(Some(std::mem::take(&mut self.head)));
        }
        let (from, to) = (self.from, self.to);
        let Some(stream) = self.merged.as_mut().filter(|_| from < to) else { return Ok(None) };
        let (low, high, end) = loop {
            let Some((offset, len)) = stream.advance()? else {
                return Err(self.view.contradiction(from));
            };
            let (start, end) = (offset.max(from), (offset + len as u64).min(to));
            if start < end {
                break ((start - offset) as usize, (end - offset) as usize, end);
            }
        };
        self.from = end;
        Ok(Some(&stream.current()[low..high]))
    }
}

impl Storage for View {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.manifest.size_bytes
    }

    fn geometry(&self) -> Geometry {
        let storages = self.storages();
        storages.first().map_or_else(Geometry::default, |storage| storage.geometry())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Reads merge in the caller's thread, from read-ahead where reads are sequential. Everything
    /// that would change the view is refused.
    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let completion = match operation {
            Operation::Read { offset, mut buffer } => {
                let result = self.read(offset, &mut buffer).map_err(|e| std::io::Error::from(&e));
                Completion { token, buffer: Some(buffer), result }
            }
            Operation::Sync => Completion { token, buffer: None, result: Ok(0) },
            Operation::Write { buffer, .. } => {
                Completion { token, buffer: Some(buffer), result: Err(self.read_only()) }
            }
            Operation::Discard { .. } | Operation::Allocate { .. } | Operation::SetSize { .. } => {
                Completion { token, buffer: None, result: Err(self.read_only()) }
            }
        };
        completions.post(completion);
    }
}

impl View {
    fn read_only(&self) -> std::io::Error {
        std::io::Error::new(
            std::io::ErrorKind::ReadOnlyFilesystem,
            format!("{}: a view is never written to", self.name),
        )
    }
}
