//! Sorted views: the result of a sort when no file is needed yet.
//!
//! A view is an ordered list of buckets: every key in a bucket is smaller than every key in the next.
//! A bucket is a set of segments of run files, sorted or not. There are two ways to make the bytes of
//! a bucket: merge its sorted segments, or sort its unsorted one. All else is the same for both, and
//! one view may have buckets of both kinds.
//!
//! A view reads exactly like the sorted file, whose size is known before the first read. Nothing is
//! ever written to it.
//!
//! ```text
//!                        manifest ──open──► sections: neighbouring buckets made in one way
//!
//!   read_at ──► readers ──sequential──► stream ─┬─► sorted    merge: windows of all runs
//!                  └──────at random─────────────┴─► unsorted  sort: one bucket, kept for a while
//!   cat, materialize ───────────────────► stream ──► (the same)
//! ```
//!
//! ```text
//!   manifest  what a view is made of, on disk        memory     what readers share: one budget
//!   open      from a manifest to sections            readers    reads that follow one another
//!   making    the face of both ways                  stream     the bytes of all sections in order
//!   sorted    the one: sorted segments, merged       give_back  space behind a copy
//!   unsorted  the other: unsorted ones, sorted       select     from a place to bounds near it
//!   typed_key where a key that a user typed is
//! ```
//!
//! Opening asks `output` whether a view is being consumed, and `output` copies views: the marker is one
//! of the files that a copy writes, and only the code that writes it knows it.

// Tests cut numbers to bytes on purpose.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod consumed;
mod give_back;
mod making;
mod manifest;
mod memory;
mod open;
mod readers;
pub(crate) mod select;
mod sorted;
mod stream;
mod typed_key;
mod unsorted;

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::{Arc, Weak};

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{
    Clock, Completion, Completions, Directory, Geometry, Hold, Operation, Storage,
};
use parking_lot::Mutex;

#[doc(hidden)]
pub use consumed::{CONSUMED_NAME, consumed_into};
pub(crate) use give_back::GivingBack;
use making::Section;
pub use manifest::unix_ns;
pub use manifest::{Bucket, KeyBytes, MANIFEST_NAME, Manifest, MapResult, Segment};
use memory::{KeptPieces, ReadMemory};
use open::Opened;
use readers::Readers;
pub use stream::ViewStream;
pub use typed_key::{TypedKeyError, unescape_key};

use crate::bound::Bound;
use crate::budget::Reservation;
use crate::key::Order;
use crate::pipeline::Workers;
use crate::record::Format;
use crate::run::format::corrupt;
use crate::{Budget, Error, Result};

/// Streams that sequential readers may have at once, when memory allows.
const STREAMS_MAX: usize = 4;

/// An open view. Shared by any number of readers; all its memory is within one budget.
pub struct View {
    name: String,
    manifest: Manifest,
    order: Arc<Order>,
    sections: Arc<[Section]>,
    memory: Arc<ReadMemory>,
    readers: Arc<Readers>,
    clock: Arc<dyn Clock>,
    /// How far ahead of a stream's place a read may be and still wait for the stream.
    reach_bytes: u64,
    _indexes: Vec<Reservation>,
    /// No process consumes the view while it is open here.
    _hold: Hold,
}

/// A place at which a stream of a view can begin again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResumePoint {
    /// Bytes of the view before it, the preamble included.
    pub(crate) written: u64,
    /// In a bucket of sorted segments, the place in their order; `None` at its start.
    pub(crate) bound: Option<Bound>,
}

impl View {
    /// Opens the view in `folder`, which no process can consume as long as it is open: reads its manifest, reserves the memory of the indexes, and then
    /// reads the index of every run and checks it. Readers have `threads` threads. With 0, a merge has
    /// only the reader's own thread, and nothing overlaps with it, as a modelled clock needs it.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Memory`] with the least budget that does, [`Error::NotAView`]
    /// when there is no manifest, [`Error::Unreduced`], [`Error::RowsInFiles`], [`Error::BeingConsumed`],
    /// [`Error::ViewLocked`], the storage's own.
    pub fn open(folder: &Arc<dyn Directory>, budget: &Budget, threads: usize) -> Result<Self> {
        let hold = Self::hold(folder)?;
        let manifest = Self::whole_manifest(folder)?;
        Self::open_as(folder, manifest, (budget, threads), false, hold)
    }

    /// As [`View::open`], for the command that has the folder locked because it still makes the view.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn open_unfinished(
        folder: &Arc<dyn Directory>,
        budget: &Budget,
        threads: usize,
    ) -> Result<Self> {
        Self::refuse_consumed(folder)?;
        let manifest = Self::whole_manifest(folder)?;
        Self::open_as(folder, manifest, (budget, threads), false, Hold::default())
    }

    /// As [`View::open`], for a reader that combines the records of equal keys itself where the
    /// manifest asks for it ([`Manifest::is_unreduced`]). Its size is that of all records.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn open_to_reduce(
        folder: &Arc<dyn Directory>,
        budget: &Budget,
        threads: usize,
    ) -> Result<Self> {
        let hold = Self::hold(folder)?;
        Self::open_as(folder, Manifest::read(folder)?, (budget, threads), false, hold)
    }

    /// Keeps the view from being consumed as long as it is read. A view that may have given a part
    /// back already is refused.
    fn hold(folder: &Arc<dyn Directory>) -> Result<Hold> {
        // The marker is written behind an exclusive lock, so it is looked at behind the shared one.
        let hold = folder.hold().map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Error::ViewLocked { view: folder.name().to_owned() },
            _ => error.into(),
        });
        Self::refuse_consumed(folder)?;
        hold
    }

    fn refuse_consumed(folder: &Arc<dyn Directory>) -> Result<()> {
        if let Some(output) = consumed_into(folder)? {
            return Err(Error::BeingConsumed {
                view: folder.name().to_owned(),
                output: output.as_os_str().to_owned(),
            });
        }
        Ok(())
    }

    /// Opens a view that the caller has locked and consumes. Parts of it may be given back already, and
    /// more can be.
    pub(crate) fn open_to_consume(
        folder: &Arc<dyn Directory>,
        budget: &Budget,
        threads: usize,
    ) -> Result<Self> {
        let manifest = Self::whole_manifest(folder)?;
        Self::open_as(folder, manifest, (budget, threads), true, Hold::default())
    }

    /// The manifest of a view whose records are read as they are.
    fn whole_manifest(folder: &Arc<dyn Directory>) -> Result<Manifest> {
        let manifest = Manifest::read(folder)?;
        if manifest.is_unreduced() {
            return Err(Error::Unreduced { view: folder.name().to_owned() });
        }
        Ok(manifest)
    }

    fn open_as(
        folder: &Arc<dyn Directory>,
        manifest: Manifest,
        (budget, threads): (&Budget, usize),
        writable: bool,
        hold: Hold,
    ) -> Result<Self> {
        if manifest.is_in_files() {
            return Err(Error::RowsInFiles { view: folder.name().to_owned() });
        }
        let header = Some(&manifest.preamble[..]).filter(|p| !p.is_empty());
        let order = manifest.order.compile(header).map_err(|e| {
            let detail = format!("its order makes no sense: {e}");
            corrupt(&format!("{}/{MANIFEST_NAME}", folder.name()), 0, detail)
        })?;
        let order = Arc::new(order);
        let workers = Workers::new(threads);
        let opened = open::open(folder, &manifest, &order, writable, (budget, workers))?;
        let Opened { sections, streams, indexes } = opened;
        let reach = sections.iter().map(|section| section.making.portion_bytes()).max();
        let readers = Arc::new(Readers::new(streams.clamp(1, STREAMS_MAX)));
        let ahead: Weak<Readers> = Arc::downgrade(&readers);
        let memory = ReadMemory {
            budget: budget.clone(),
            threads: workers.count(),
            ahead,
            kept: KeptPieces::default(),
            spare: Mutex::new(None),
        };
        Ok(View {
            name: folder.name().to_owned(),
            manifest,
            order,
            sections: sections.into(),
            memory: Arc::new(memory),
            readers,
            clock: folder.clock(),
            reach_bytes: reach.unwrap_or(0),
            _indexes: indexes,
            _hold: hold,
        })
    }

    /// The manifest that it was opened with.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The order of its records.
    #[must_use]
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Number of its buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.manifest.buckets.len()
    }

    /// The storages that its records are in, each once.
    #[must_use]
    pub fn storages(&self) -> Vec<Arc<dyn Storage>> {
        let mut storages: Vec<Arc<dyn Storage>> = Vec::new();
        for storage in self.sections.iter().flat_map(|section| section.making.storages()) {
            let same = |other: &Arc<dyn Storage>| {
                std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(&storage))
            };
            // The same file is in neighbours, if at all.
            if !storages.iter().any(same) {
                storages.push(storage);
            }
        }
        storages
    }

    /// Number of its records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.manifest.records
    }

    fn preamble_bytes(&self) -> u64 {
        u64_of(self.manifest.preamble.len())
    }

    /// Number of the section in which `place` is, which does not count the preamble.
    fn section_at(&self, place: u64) -> usize {
        let begun = self.sections.partition_point(|section| section.start.bytes <= place);
        begun.saturating_sub(1)
    }

    /// How far bytes from `place` on are in memory already. The search may stop at `enough`.
    fn kept_until(&self, mut place: u64, enough: u64) -> u64 {
        for section in &self.sections[self.section_at(place).min(self.sections.len())..] {
            let Range { start, end } = section.range();
            let making = &section.making;
            place =
                start + making.kept_until(&self.memory, place - start, enough.max(start) - start);
            if place < end || place >= enough {
                break;
            }
        }
        place
    }

    /// Whether a copy can be resumed at `point`.
    pub(crate) fn can_resume_at(&self, point: &ResumePoint) -> bool {
        let place = point.written.checked_sub(self.preamble_bytes());
        let Some(place) = place.filter(|place| *place <= self.whole().bytes) else { return false };
        self.sections.get(self.section_at(place)).is_none_or(|section| {
            section.making.can_resume_at(place - section.start.bytes, point.bound.as_ref())
        })
    }

    /// Reads `out.len()` bytes from `offset` on, fewer only at the view's end, without starting a
    /// stream.
    ///
    /// # Errors
    /// Damage found, the storage's own, [`Error::Memory`].
    pub fn read_random(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let total = self.manifest.size_bytes;
        let len = out.len().min(usize_of(total.saturating_sub(offset)));
        let out = &mut out[..len];
        let preamble = self.preamble_bytes();
        let mut done = usize_of(preamble.saturating_sub(offset)).min(len);
        if done > 0 {
            let from = usize_of(offset);
            out[..done].copy_from_slice(&self.manifest.preamble[from..from + done]);
        }
        while done < len {
            let place = offset + u64_of(done) - preamble;
            let section = &self.sections[self.section_at(place)];
            let n = (len - done).min(usize_of(section.range().end - place));
            let within = place - section.start.bytes;
            section.making.read_at(&self.memory, within, &mut out[done..done + n])?;
            done += n;
        }
        Ok(len)
    }

    /// Where record number `record` begins; the view's size for the number past the last.
    ///
    /// # Errors
    /// Damage found, the storage's own, [`Error::Memory`].
    pub fn offset_of_record(&self, record: u64) -> Result<u64> {
        if record >= self.records() {
            return Ok(self.manifest.size_bytes);
        }
        let preamble = self.preamble_bytes();
        if let Format::Fixed { bytes } = self.order.format() {
            let at = record.checked_mul(u64_of(bytes)).and_then(|at| at.checked_add(preamble));
            return at.filter(|at| *at < self.size()).ok_or_else(|| self.contradiction(preamble));
        }
        let at = self.sections.partition_point(|section| section.start.records <= record) - 1;
        let section = &self.sections[at];
        let within = record - section.start.records;
        let place = section.making.place_of_record(&self.memory, within)?;
        Ok(preamble + section.start.bytes + place)
    }

    /// The beginning of the first record whose full normalised key is at least `key`; the view's
    /// size without one.
    ///
    /// # Errors
    /// Damage found, the storage's own, [`Error::Memory`].
    pub fn offset_of_key(&self, key: &[u8]) -> Result<u64> {
        let preamble = self.preamble_bytes();
        let below = self.sections.partition_point(|section| &section.lower[..] <= key);
        let Some(at) = below.checked_sub(1) else { return Ok(preamble) };
        let section = &self.sections[at];
        let place = section.making.place_of_key(&self.memory, key)?;
        Ok(preamble + section.start.bytes + place)
    }

    /// The error for indexes that name a place that the view does not have; `offset` is near it.
    fn contradiction(&self, offset: u64) -> Error {
        let detail = "the records and indexes of its runs contradict each other".to_owned();
        corrupt(&self.name, offset, detail)
    }

    /// Reads every block of every run and checks it. `progress` takes the bytes read.
    ///
    /// # Errors
    /// The first damage found; the error of `progress`, which ends the check.
    pub fn verify_all(&self, mut progress: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let mut sections = self.sections.iter();
        sections.try_for_each(|section| section.making.verify_all(&self.memory, &mut progress))
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
                let result = self.read(offset, &mut buffer).map_err(std::io::Error::from);
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
            ErrorKind::ReadOnlyFilesystem,
            format!("{}: a view is never written to", self.name),
        )
    }
}
