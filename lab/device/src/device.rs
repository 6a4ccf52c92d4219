//! The interface of every modelled device.
//!
//! ```text
//!   submit(at, Command) ──►  Device  ── advance(), event by event ──►  completed() -> Done
//! ```
//!
//! Each device has its own event queue. A caller that drives several devices (a world, a trace
//! player) always advances the device whose next event is due first, so that all share one time.

use std::io;

use merganser_storage::{Buffer, Geometry};

use crate::request::{RequestKind, SimTime};

/// One request to a device.
#[derive(Debug)]
pub struct IoCommand {
    /// The number that the completion carries; unique among the commands in flight.
    pub id: u64,
    /// The kind of request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// The `len` bytes to write, or the space to read into. Traces carry no data: without a buffer
    /// a request takes the same time, a write leaves undefined content, and a read returns no
    /// bytes.
    pub buffer: Option<Buffer>,
}

/// A request that has ended.
#[derive(Debug)]
pub struct CompletedCommand {
    /// The number of the command.
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

/// A kind of component of a device; each does one job at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The link to the host.
    Link,
    /// A processor.
    Processor,
    /// The memory of the device.
    Memory,
    /// A bus to the flash packages.
    Channel,
    /// A flash die.
    Die,
    /// The arm and the platters of a disk.
    Spindle,
}

/// The work that one component did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Its kind.
    pub part: Component,
    /// Its number among the components of its kind, from 0.
    pub index: u32,
    /// The time for which it was busy.
    pub busy: SimTime,
    /// The number of jobs that it did.
    pub services: u64,
}

/// Counts of a flash device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlashStatistics {
    /// Pages sensed.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Of these, pages that the host (or the write buffer) wrote.
    pub host_programs: u64,
    /// Of these, pages that garbage collection or wear levelling moved.
    pub moved_pages: u64,
    /// Of these, pages of the map.
    pub map_programs: u64,
    /// Pages of the map among the pages sensed.
    pub map_reads: u64,
    /// Entries of the map that were in its cache when they were needed. 0 if the whole map is in memory.
    pub map_hits: u64,
    /// Entries of the map that were not.
    pub map_misses: u64,
    /// Bytes of all programmed pages.
    pub programmed_bytes: u64,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Erases of the block with the fewest.
    pub erases_min: u64,
    /// Erases of the block with the most.
    pub erases_max: u64,
    /// Pages of the host's writes that the write buffer absorbed without a program.
    pub buffered_pages: u64,
    /// Pages of the host's reads that were answered without a read of flash.
    pub cached_pages: u64,
}

/// The two counts whose quotient is the write amplification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlashBytes {
    /// Bytes that the host wrote.
    pub host: u64,
    /// Bytes of all programmed pages.
    pub programmed: u64,
}

impl FlashStatistics {
    /// Bytes programmed per byte that the host wrote; 1 if it wrote none. Bytes in the write buffer
    /// count as written.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        if self.host_bytes == 0 {
            return 1.0;
        }
        self.programmed_bytes as f64 / self.host_bytes as f64
    }
}

/// Counts of a device since it was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceStatistics {
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
    /// The work of each component.
    pub uses: Vec<Use>,
    /// The counts of flash, for a device that has flash.
    pub flash: Option<FlashStatistics>,
    /// A digest of all events: equal for two runs exactly if their events were equal.
    pub digest: u64,
    /// The number of events.
    pub events: u64,
}

/// A modelled device.
pub trait Device: Send {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Bytes that the host can address.
    fn capacity_bytes(&self) -> u64;

    /// The layout that callers should plan for.
    fn geometry(&self) -> Geometry;

    /// The unit of a trim, in bytes: a trim frees whole, aligned units, which then read as zeros.
    /// `None` if a trim does nothing.
    fn trim_bytes(&self) -> Option<u64> {
        None
    }

    /// The time of the last event.
    fn now(&self) -> SimTime;

    /// Submits a request that arrives at `at`, which must not be before the last event. A request
    /// beyond the end of the device ends with an error.
    fn submit(&mut self, at: SimTime, command: IoCommand);

    /// The time of the next event. `None` means that no request is in flight.
    fn next_at(&self) -> Option<SimTime>;

    /// Processes the next event. Returns false if there is no event.
    fn advance(&mut self) -> bool;

    /// Returns the next request that has ended, in the order of their ends.
    fn completed(&mut self) -> Option<CompletedCommand>;

    /// Its counts so far.
    fn statistics(&self) -> DeviceStatistics;

    /// Two of these counts, which take no time to give: for each request that ends. `None` without flash.
    fn flash_bytes(&self) -> Option<FlashBytes> {
        None
    }
}
