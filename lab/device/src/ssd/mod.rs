//! A modelled SSD, from the host down to the flash.
//!
//! ```text
//!   host       link, queue of commands                        host.rs controller.rs
//!   cache      write buffer, read-ahead                       reads.rs writes.rs cache/ map_entries.rs
//!   ftl        page map, its cache, collection, wear          ftl/
//!   nand       what flash holds; dies and channels            nand/
//!   processor, memory     serve all of them, and programs     processor.rs memory.rs program.rs
//! ```
//!
//! The device decides the effect of a command (its bytes and their mapping) when it starts the
//! command; everything after that only takes time. The times are in [`crate::profile`].

mod ages;
mod cache;
mod controller;
mod event;
mod ftl;
mod host;
mod inside_reads;
mod inside_writes;
mod lookups;
mod map_entries;
mod memory;
pub(crate) mod nand;
mod processor;
mod program;
mod reads;
mod writes;

use merganser_storage::Geometry;
use merganser_storage::near::NearProgram;

use crate::device::{
    CompletedCommand, Device, DeviceStatistics, FlashBytes, FlashStatistics, IoCommand,
};
use crate::profile::{ProfileError, SsdProfile, SsdSettings};
use crate::request::SimTime;
use controller::Controller;
use event::SsdEvent;

/// A modelled SSD.
///
/// ```
/// use merganser_device::device::{IoCommand, Device};
/// use merganser_device::profile::SsdProfile;
/// use merganser_device::request::{RequestKind, SimTime};
/// use merganser_device::ssd::Ssd;
///
/// let profile = SsdProfile::preset("jasmine")?;
/// let mut ssd = Ssd::new(&profile, 1)?;
/// let (kind, len) = (RequestKind::Write, 32 << 10);
/// ssd.submit(SimTime(0), IoCommand { id: 7, kind, offset: 0, len, buffer: None });
/// while ssd.advance() {}
/// let done = ssd.completed().expect("it ends");
/// // Link, command, transfer and program of one page.
/// assert_eq!((done.id, done.at.0 / 1000), (7, 2206));
/// # Ok::<(), merganser_device::profile::ProfileError>(())
/// ```
pub struct Ssd {
    name: String,
    controller: Controller,
    programs: Vec<Box<dyn NearProgram>>,
}

impl Ssd {
    /// The device of `profile`, empty, with random numbers of `seed`.
    ///
    /// # Errors
    /// Settings that do not fit together, and a page map for which the system has no memory.
    pub fn new(profile: &SsdProfile, seed: u64) -> Result<Ssd, ProfileError> {
        profile.settings.check()?;
        let controller = Controller::new(&profile.settings, seed);
        Ok(Ssd {
            name: profile.name.to_owned(),
            controller: controller.map_err(|refused| ProfileError::Memory(refused.to_string()))?,
            programs: Vec::new(),
        })
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &SsdSettings {
        &self.controller.settings
    }

    /// Attaches a program, which answers the requests that it claims. If several programs claim a
    /// request, the first one answers.
    pub fn attach(&mut self, program: Box<dyn NearProgram>) {
        self.programs.push(program);
        self.controller.has_programs = true;
    }

    /// Writes the first `bytes` once, in order, without time and without counts: the device was
    /// used before. The content is undefined.
    pub fn precondition(&mut self, bytes: u64) {
        self.controller.precondition(bytes);
    }

    /// Runs the programs that have a call to handle.
    fn run_programs(&mut self) {
        while let Some(call) = self.controller.calls.pop_front() {
            program::run(&mut self.controller, &mut self.programs, call);
        }
    }
}

impl Device for Ssd {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.controller.capacity_bytes
    }

    fn geometry(&self) -> Geometry {
        self.controller.geometry()
    }

    fn trim_bytes(&self) -> Option<u64> {
        let settings = &self.controller.settings;
        (settings.trim == 1).then_some(settings.map_unit_bytes)
    }

    fn now(&self) -> SimTime {
        self.controller.engine.now()
    }

    fn submit(&mut self, at: SimTime, command: IoCommand) {
        self.controller.submit(at, command);
    }

    fn next_at(&self) -> Option<SimTime> {
        self.controller.engine.next_at()
    }

    fn advance(&mut self) -> bool {
        let Some(event) = self.controller.engine.next() else { return false };
        if let SsdEvent::Start { job } = event {
            self.controller.claim(job, &self.programs);
        }
        self.controller.happen(event);
        self.run_programs();
        true
    }

    fn completed(&mut self) -> Option<CompletedCommand> {
        self.controller.host.done.pop_front()
    }

    fn statistics(&self) -> DeviceStatistics {
        let controller = &self.controller;
        let (host, flash, counts) = (&controller.host, &controller.flash, controller.ftl.counts);
        let mut uses: Vec<_> = host.uses().collect();
        uses.push(controller.processor.usage());
        uses.push(controller.memory.usage());
        uses.extend(flash.uses());
        let (erases_min, erases_max) = controller.ftl.array.wear();
        let [page_reads, page_programs, erases] = flash.counts;
        let FlashBytes { host: host_bytes, programmed } = controller.flash_bytes();
        let (map_hits, map_misses) = controller.ftl.map_lookups();
        DeviceStatistics {
            reads: host.reads,
            writes: host.writes,
            others: host.others,
            read_bytes: host.read_bytes,
            written_bytes: host.written_bytes,
            uses,
            flash: Some(FlashStatistics {
                page_reads,
                page_programs,
                programmed_bytes: programmed,
                host_bytes,
                host_programs: counts.host_pages,
                moved_pages: counts.moved_pages,
                map_programs: counts.map_programs,
                map_reads: counts.map_reads,
                map_hits,
                map_misses,
                erases,
                erases_min: u64::from(erases_min),
                erases_max: u64::from(erases_max),
                buffered_pages: controller.buffered_pages,
                cached_pages: controller.cached_pages,
            }),
            digest: controller.engine.digest(),
            events: controller.engine.passed(),
        }
    }

    fn flash_bytes(&self) -> Option<FlashBytes> {
        Some(self.controller.flash_bytes())
    }
}
