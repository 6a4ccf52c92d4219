//! What every modelled device can do, whatever is inside it.
//!
//! ```text
//!   submit(at, Command) ──►  Device  ── advance(), event by event ──►  completed() -> Done
//! ```
//!
//! A device has its own event queue; who drives several (a world, a trace player) always advances
//! the one whose next event is due first, so that they share one time.

use std::io;

use storage::{Buffer, Geometry};

use crate::request::{RequestKind, SimTime};

/// One request to a device.
#[derive(Debug)]
pub struct Command {
    /// What the completion will bear; unique among those in flight.
    pub id: u64,
    /// What is asked.
    pub kind: RequestKind,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// What to write, or where to read to, of `len` bytes. Traces carry no data: without a buffer a
    /// request takes the same time, a write leaves undefined content, and a read none.
    pub buffer: Option<Buffer>,
}

/// A request that has ended.
#[derive(Debug)]
pub struct Done {
    /// The command's own.
    pub id: u64,
    /// When it was submitted.
    pub submitted: SimTime,
    /// When it ended.
    pub at: SimTime,
    /// The command's buffer, whatever the result.
    pub buffer: Option<Buffer>,
    /// Bytes transferred (0 for requests that transfer none).
    pub result: io::Result<u64>,
}

/// What does one job at a time in a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The link to the host.
    Link,
    /// A processor.
    Processor,
    /// The memory of the device.
    Memory,
    /// A bus to flash packages.
    Channel,
    /// A flash die.
    Die,
    /// Arm and platters.
    Spindle,
}

/// How much one part of a device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// What it is.
    pub part: Part,
    /// Which of its kind, from 0.
    pub index: u32,
    /// How long it was busy.
    pub busy: SimTime,
    /// How many jobs it did.
    pub services: u64,
}

/// What only flash counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlashStatistics {
    /// Pages sensed.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Of these, for what the host (or the write buffer) wrote.
    pub host_programs: u64,
    /// Of these, moved by garbage collection or wear levelling.
    pub moved_pages: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Fewest erases of any block.
    pub erases_min: u64,
    /// Most erases of any block.
    pub erases_max: u64,
    /// Pages of the host's writes that a write buffer took without flash.
    pub buffered_pages: u64,
    /// Pages of the host's reads that were answered without flash.
    pub cached_pages: u64,
}

impl FlashStatistics {
    /// Pages programmed for each page that was written; 1 where nothing was.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        if self.host_programs == 0 {
            return 1.0;
        }
        self.page_programs as f64 / self.host_programs as f64
    }
}

/// What a device did so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    /// Read requests that ended.
    pub reads: u64,
    /// Write requests that ended.
    pub writes: u64,
    /// Trim and flush requests that ended.
    pub others: u64,
    /// Bytes that the host has read.
    pub read_bytes: u64,
    /// Bytes that the host has written.
    pub written_bytes: u64,
    /// What each part did.
    pub uses: Vec<Use>,
    /// Of flash devices.
    pub flash: Option<FlashStatistics>,
    /// A digest of all events: equal for two runs exactly when they were the same.
    pub digest: u64,
    /// How many events there were.
    pub events: u64,
}

/// A modelled device.
pub trait Device: Send {
    /// What it is called in reports.
    fn name(&self) -> &str;

    /// Bytes that the host can address.
    fn capacity_bytes(&self) -> u64;

    /// The layout to plan for.
    fn geometry(&self) -> Geometry;

    /// What a trim gives up are whole, aligned stretches of so many bytes, which read as zeros
    /// afterwards; `None` where a trim does nothing.
    fn trim_bytes(&self) -> Option<u64> {
        None
    }

    /// Time of the last event.
    fn now(&self) -> SimTime;

    /// Gives the device a request that arrives at `at`, which must not be before its last event.
    /// A request that is wrong (beyond the end) ends with an error.
    fn submit(&mut self, at: SimTime, command: Command);

    /// When the next event is due; nothing is in flight when there is none.
    fn next_at(&self) -> Option<SimTime>;

    /// Lets the next event happen; false when there is none.
    fn advance(&mut self) -> bool;

    /// The next request that has ended, in the order in which they did.
    fn completed(&mut self) -> Option<Done>;

    /// What it did so far.
    fn statistics(&self) -> Statistics;
}
