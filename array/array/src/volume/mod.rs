//! The volume: one storage in front of log and store.
//!
//! Requests of all threads go through one queue. The thread that gets the lock does all that wait, so
//! that writes that came at the same time are one record of the log, and one flush serves many.

mod buffered;
mod members;
mod migrator;
mod requests;
mod twins;
mod usage;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use merganser_storage::{Clock, Completions, Geometry, Operation, Storage};
use parking_lot::{Mutex, MutexGuard};

use crate::bytes::BLOCK;
use crate::counters::VolumeCounters;
use crate::error::{Error, Result};
use crate::label::SessionStep;
use crate::log::Log;
use crate::overlay::Overlay;
use crate::sessions::Labels;
use crate::settings::{Hash, Migration, OpenOptions, VolumeSettings};
use crate::store::PageStore;
pub use members::Members;
pub use migrator::Migrator;
use requests::{Queued, Unanswered};
pub use usage::VolumeUsage;

/// A volume that is open. One process at a time may have it open.
pub struct Volume {
    name: String,
    size: u64,
    clock: Arc<dyn Clock>,
    queue: Mutex<VecDeque<Queued>>,
    state: Mutex<VolumeParts>,
    options: OpenOptions,
    started: Instant,
    /// When the last request came, in milliseconds since the start.
    last_request_ms: AtomicU64,
}

/// The parts of a volume that one thread at a time uses.
pub(crate) struct VolumeParts {
    store: PageStore,
    log: Option<Log>,
    overlay: Overlay,
    /// Memory of the buffer's directory at most, in bytes.
    directory_bytes_max: u64,
    high_water_blocks: u64,
    durable_writes: bool,
    /// Whether writes go around a buffer that is above its high-water mark.
    around: bool,
    /// The buffer members.
    buffer: Vec<Arc<dyn Storage>>,
    labels: Labels,
    /// Empty while the lock is free.
    unanswered: Unanswered,
    /// The first failure after which nothing may be written.
    failed: Option<String>,
}

/// The nature of a volume, as its members describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeDescription {
    /// Its identity, as hexadecimal digits.
    pub id: String,
    /// Bytes of the volume.
    pub size: u64,
    /// How equal pages are found.
    pub dedup: Option<Hash>,
    /// Whether bytes are compared.
    pub compare: bool,
    /// Whether it may be larger than its data members.
    pub thin: bool,
    /// Data and buffer members.
    pub members: (usize, usize),
    /// Consecutive bytes on one data and one buffer member.
    pub chunk_bytes: (u32, u32),
    /// Pages for data.
    pub pages: u64,
    /// Bytes of the buffer; 0 without one.
    pub buffer_bytes: u64,
    /// How often it was opened.
    pub sessions: u64,
    /// Whether it was closed in order.
    pub clean: bool,
    /// Whether the states have a checksum of each table block, so that one that kept its earlier content is an error.
    /// Volumes that were made before version 3 have none.
    pub table_checksums: bool,
    /// As of the last checkpoint.
    pub counters: VolumeCounters,
}

/// How full a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSpace {
    /// Pages for data, and how many of them are in use.
    pub pages: u64,
    /// Of [`VolumeSpace::pages`].
    pub pages_used: u64,
    /// Bytes of the buffer, and how many of them hold records that have not moved.
    pub buffer_bytes: u64,
    /// Of [`VolumeSpace::buffer_bytes`].
    pub buffer_bytes_used: u64,
    /// Memory of the index now, in bytes.
    pub index_memory_bytes: u64,
    /// Index blocks that were found damaged since the volume was opened; they cost space alone.
    pub index_damaged_blocks: u64,
    /// Records of the buffer that the opening dropped, because they were not whole and no block shows
    /// that they had been durable: writes that a power cut tore, or damage to the last flushed ones.
    pub records_dropped: u64,
}

impl Volume {
    /// Makes a volume of `members`, whose content is lost, and returns its identity, as [`VolumeDescription::id`]. Members of
    /// another volume are refused unless `replace` is set.
    ///
    /// # Errors
    /// [`Error::Settings`], [`Error::Member`], or a member's own.
    pub fn create(
        name: &str,
        members: &Members,
        settings: &VolumeSettings,
        replace: bool,
    ) -> Result<String> {
        members::create(name, members, settings, replace)
    }

    /// The identity of the volume that the first data member belongs to, as [`VolumeDescription::id`]. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Member`], or a member's own.
    pub fn identity(members: &Members) -> Result<String> {
        members::identity_of(members)
    }

    /// Bytes that each of `members` data members needs at least for a volume with `settings` that isn't
    /// thin.
    ///
    /// # Errors
    /// [`Error::Settings`].
    pub fn data_member_bytes(settings: &VolumeSettings, members: usize) -> Result<u64> {
        members::data_member_bytes(settings, members)
    }

    /// Describes the volume of `members`. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Member`], [`Error::Damaged`], or a member's own.
    pub fn describe(name: &str, members: &Members) -> Result<VolumeDescription> {
        members::describe(name, members)
    }

    /// How full the volume of `members` is. Nothing is written; it may be open elsewhere.
    ///
    /// # Errors
    /// As [`Volume::describe`].
    pub fn usage(name: &str, members: &Members) -> Result<VolumeUsage> {
        usage::usage(name, members)
    }

    /// Makes copies of labels and superblocks that are damaged like the good ones, and returns their number. The volume must
    /// not be open elsewhere.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn mend(name: &str, members: &Members) -> Result<u64> {
        twins::mend(name, members)
    }

    /// Opens the volume of `members`, and repeats its journal and log.
    ///
    /// # Errors
    /// [`Error::Member`] for a member that belongs elsewhere, [`Error::Old`] for members of different ages,
    /// [`Error::Damaged`], or a member's own.
    pub fn open(name: &str, members: &Members, options: OpenOptions) -> Result<Volume> {
        options.check()?;
        let (store, log, overlay, labels) = members::open(name, members, &options)?;
        let high_water_blocks = log
            .as_ref()
            .map_or(0, |log| (log.fill().0 * u64::from(options.high_water_percent)).div_ceil(100));
        let volume = Volume {
            name: name.to_owned(),
            size: store.layout.volume_pages * BLOCK,
            clock: members.data[0].clock(),
            queue: Mutex::default(),
            state: Mutex::new(VolumeParts {
                store,
                log,
                overlay,
                directory_bytes_max: options.directory_bytes(),
                high_water_blocks,
                durable_writes: options.durable_writes,
                around: options.migration == Migration::Idle && !options.durable_writes,
                buffer: members.buffer.clone(),
                labels,
                unanswered: Unanswered::default(),
                failed: None,
            }),
            options,
            started: Instant::now(),
            last_request_ms: AtomicU64::new(0),
        };
        Ok(volume)
    }

    /// Flushes, and ends in order, so that the next opening has nothing to repeat. Pages in the buffer
    /// stay there.
    ///
    /// # Errors
    /// A member's own; then the volume is as after a power cut.
    pub fn close(&self) -> Result<()> {
        let mut state = self.lock();
        state.writing(|state| {
            state.flush()?;
            state.end_log()?;
            state.note_log();
            state.store.checkpoint(true)?;
            let superblock = state.store.superblock();
            state.labels.note(superblock.session, SessionStep::Closed, superblock.checkpoint)
        })?;
        state.failed = Some("it was closed".to_owned());
        Ok(())
    }

    /// Moves the oldest records of the buffer to the data members. Returns whether any is left.
    ///
    /// # Errors
    /// [`Error::Full`], or a member's own.
    pub fn migrate(&self) -> Result<bool> {
        self.lock().writing(VolumeParts::migrate)
    }

    /// Writes a block on the data members that shows which flushed writes are durable, unless there is
    /// one. After a power cut, damage to those writes is then told apart from writes that the cut tore.
    /// [`Migrator`] calls it when the volume is idle.
    ///
    /// # Errors
    /// A member's own.
    pub fn seal(&self) -> Result<()> {
        self.lock().writing(VolumeParts::seal)
    }

    /// The counts since the volume was made.
    #[must_use]
    pub fn counters(&self) -> VolumeCounters {
        self.lock().store.counted()
    }

    /// How full it is.
    #[must_use]
    pub fn space(&self) -> VolumeSpace {
        let state = self.lock();
        let (pages_used, pages) = state.store.pages_used();
        let (blocks, used) = state.log.as_ref().map_or((0, 0), Log::fill);
        let (index_memory_bytes, index_damaged_blocks) = state.store.index_state();
        VolumeSpace {
            pages,
            pages_used,
            buffer_bytes: blocks * BLOCK,
            buffer_bytes_used: used * BLOCK,
            index_memory_bytes,
            index_damaged_blocks,
            records_dropped: state.log.as_ref().map_or(0, Log::dropped),
        }
    }

    /// Verifies everything: each map, each reference count, each stored and buffered page.
    ///
    /// # Errors
    /// A member's own, or [`Error::Refused`]. Damage is a finding and no error.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<crate::check::VolumeCheck> {
        let mut state = self.lock();
        // Outside of this, a sync that failed here would be forgotten, and the next flush would succeed.
        state.writing(|state| state.store.commit())?;
        let (store, log, overlay) = state.parts();
        crate::check::run(store, log, overlay, progress)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, VolumeParts> {
        self.state.lock()
    }
}

impl VolumeParts {
    /// Does work that may write. After a write or a sync of a member failed, all later writes are refused, because the
    /// stored state isn't known any more. A read that failed changes nothing.
    fn writing<T>(&mut self, work: impl FnOnce(&mut VolumeParts) -> Result<T>) -> Result<T> {
        if let Some(first) = &self.failed {
            let volume = self.store.name.clone();
            return Err(Error::Refused { volume, first: first.clone() });
        }
        work(self).inspect_err(|error| {
            if matches!(error, Error::Io(_)) {
                self.failed = Some(error.to_string());
            }
        })
    }

    /// Parts for [`crate::check`].
    pub(crate) fn parts(&mut self) -> (&mut PageStore, Option<&mut Log>, &Overlay) {
        (&mut self.store, self.log.as_mut(), &self.overlay)
    }
}

impl Storage for Volume {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn geometry(&self) -> Geometry {
        Geometry::default()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_request_ms.store(now, Ordering::Relaxed);
        let completions = completions.clone();
        self.queue.lock().push_back(Queued { token, operation, completions });
        let mut state = self.lock();
        loop {
            let waiting = std::mem::take(&mut *self.queue.lock());
            if !waiting.is_empty() {
                state.serve(waiting, self.size);
            } else if !state.answer() {
                break;
            }
        }
    }
}
