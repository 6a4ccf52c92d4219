//! Windows merged on all cores and handed out in order.
//!
//! ```text
//!   planner ──window n──► worker: reads of n+T under way while n is merged ──► slot n ──► reader
//!                         (one a core)                                       in order, bounded
//! ```
//!
//! Workers may run at most one window each and [`SLOTS_AHEAD`] more ahead of the reader: that is all of the
//! back-pressure, and with the size of a window it is all of the memory.

use merganser_storage::{ALIGNMENT, Buffer, Work};

use super::plan::Planner;
use super::segments::Segments;
use super::window::{LoadingWindow, Window, WindowPlan};
use crate::bound::Bound;
use crate::budget::Reservation;
use crate::pipeline::Workers;
use crate::pipeline::ordered::{Claim, Desk, Pipeline, Stage};
use crate::portion::{Portion, Portions, Start, Ticket};
use crate::run::Compression;
use crate::run::format::Footer;
use crate::{Budget, Result};

/// Merged windows that wait for the reader, beyond one a worker.
const SLOTS_AHEAD: u64 = 1;

/// Windows of memory that a stream with `threads` workers holds at most. Each worker has one that
/// is being merged and one that is being read. In addition there are the windows that are merged
/// but not taken, the one that is being taken, and two on their way to a file.
pub(crate) fn windows_held(threads: usize) -> u64 {
    let threads = threads as u64;
    3 * threads + SLOTS_AHEAD + 1 + 2
}

/// How large a stream's windows are, and how many threads merge them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSize {
    pub(crate) window_bytes: u64,
    pub(crate) workers: Workers,
}

impl StreamSize {
    /// Memory that a stream of this size holds at most, in bytes.
    pub(crate) fn memory_bytes(self, segments: &Segments) -> u64 {
        self.memory_bytes_of(segments.footers())
    }

    /// The same for runs with these footers.
    pub(crate) fn memory_bytes_of<'a>(self, mut runs: impl Iterator<Item = &'a Footer>) -> u64 {
        // Packed windows are in memory as they are stored, too.
        let packed = runs.any(|run| run.compression != Compression::Off);
        let unpacked = if packed { 2 * self.workers.count() as u64 } else { 0 };
        self.window_bytes * (windows_held(self.workers.count()) + unpacked)
    }
}

/// An ordered stream of merged bytes, produced ahead by worker threads.
pub(crate) struct Stream {
    windows: Pipeline<Windows>,
    _memory: Reservation,
}

impl Stream {
    /// Merges from `lower` to `end` in windows of `size`. With `align`, each window has the place in its
    /// buffer that it will have in a file in which that many bytes come before the output, so that
    /// whole pages can be written from where they are.
    pub(crate) fn new(
        segments: Segments,
        lower: Option<Bound>,
        end: Option<Bound>,
        align: Option<u64>,
        size: StreamSize,
        budget: &Budget,
    ) -> Result<Self> {
        let StreamSize { window_bytes, workers } = size;
        let memory = budget.reserve(size.memory_bytes(&segments), "merging")?;
        let planner = Planner::new(segments.clone(), window_bytes, lower, end)?;
        let ahead = workers.count() as u64 + SLOTS_AHEAD;
        let stage = Windows { segments, window_bytes, ahead, align };
        let windows = Pipeline::new(stage, WindowSource { planner, free: Vec::new() }, workers)?;
        Ok(Stream { windows, _memory: memory })
    }
}

impl Portions for Stream {
    /// The next merged window, whole.
    fn next(&mut self) -> Result<Option<Portion>> {
        self.windows.next()
    }

    fn recycle(&mut self, buffer: Buffer, _ticket: Ticket) {
        if !buffer.is_empty() {
            self.windows.give_back(|source| source.free.push(buffer));
        }
    }

    /// Windows are merged into fresh memory when there is no buffer.
    fn wants_buffers(&self) -> bool {
        false
    }

    fn is_at_end(&self) -> bool {
        self.windows.is_at_end()
    }
}

/// How windows are merged.
struct Windows {
    segments: Segments,
    window_bytes: u64,
    ahead: u64,
    align: Option<u64>,
}

struct WindowSource {
    planner: Planner,
    /// Buffers that the reader gave back.
    free: Vec<Buffer>,
}

impl Stage for Windows {
    type Source = WindowSource;
    type Item = WindowPlan;
    type Begun = LoadingWindow;
    type Loaded = Window;
    /// Memory for the blocks of a window that is merged and of one that is read.
    type Kept = Vec<Buffer>;
    type Made = Portion;

    const ROLE: &'static str = "merge";
    const AHEAD: u64 = 1;
    // A device is never without reads while a window is waited for.
    const EAGER: bool = true;

    fn keep(&self) -> Result<Vec<Buffer>> {
        let memory = (0..2).map(|_| Buffer::try_new(self.window_bytes as usize));
        Ok(memory.collect::<std::io::Result<_>>()?)
    }

    fn claim(&self, source: &mut WindowSource) -> Result<Claim<WindowPlan>> {
        Ok(source.planner.next()?.map_or(Claim::End, Claim::Item))
    }

    fn begin(&self, kept: &mut Vec<Buffer>, plan: WindowPlan) -> Result<LoadingWindow> {
        let memory = kept.pop().expect("two a worker");
        LoadingWindow::start(&self.segments, plan, memory)
    }

    fn load(&self, _kept: &mut Vec<Buffer>, begun: LoadingWindow) -> Result<Window> {
        begun.finish(&self.segments)
    }

    /// Merges a window once the reader is near enough.
    fn make(
        &self,
        kept: &mut Vec<Buffer>,
        window: Window,
        desk: Desk<'_, Self>,
    ) -> Result<Portion> {
        let bytes = window.bytes() as usize;
        let free = desk.near(self.ahead, |source| source.free.pop())?;
        let pad = self.align.map_or(0, |base| (base + window.output_offset) as usize % ALIGNMENT);
        let mut buffer = match free {
            Some(buffer) if buffer.len() >= pad + bytes => buffer,
            _ => {
                let most = bytes.max(self.window_bytes as usize) + pad;
                Buffer::try_new(most.next_multiple_of(ALIGNMENT))?
            }
        };
        let count = window.merge_into(&self.segments, &mut buffer[pad..pad + bytes])?;
        if let Some(run) = self.segments.runs.first() {
            let clock = run.storage().clock();
            clock.charge(Work::Compares(count.compares));
            clock.charge(Work::Records(count.records));
            clock.charge(Work::CopiedBytes(count.bytes));
        }
        let merged = Portion {
            buffer,
            pad,
            len: count.bytes as usize,
            output_offset: window.output_offset,
            ticket: Ticket::default(),
            start: Start::Merge { bound: window.lower.clone(), needed: window.needed.clone() },
        };
        kept.push(window.into_memory());
        Ok(merged)
    }
}
