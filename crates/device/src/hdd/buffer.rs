//! The disk's buffer, for reads: what was read last and what the heads went on to read.
//!
//! ```text
//!   segment:  [ first ……… read ……… reached ┈┈┈┈┈┈ first + size )
//!                                    └─ read ahead, as time goes on, until the arm is called away
//! ```

use std::collections::VecDeque;

use super::layout::Layout;
use crate::request::SimTime;

/// Segments of the buffer, the one used last first.
#[derive(Debug)]
pub(super) struct Segments {
    segments: VecDeque<Segment>,
    count: usize,
    /// Sectors that a segment holds.
    size: u64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    /// Behind the last sector that is surely there.
    read: u64,
    /// The heads go on reading from `read` since this time.
    stream: Option<SimTime>,
}

impl Segments {
    /// `count` segments of `size` sectors.
    pub fn new(count: usize, size: u64) -> Self {
        Segments { segments: VecDeque::new(), count, size }
    }

    /// Whether sectors `first` to `end` are there by `now`.
    pub fn holds(&self, first: u64, end: u64, now: SimTime, layout: &Layout) -> bool {
        self.segments.iter().any(|segment| {
            segment.first <= first && end <= segment.read + self.ahead(segment, now, layout)
        })
    }

    /// When the heads, reading ahead, have read up to `end`; none when they do not come there, or
    /// have to pass more than a track before `first`.
    pub fn stream_end(
        &self,
        first: u64,
        end: u64,
        now: SimTime,
        layout: &Layout,
    ) -> Option<SimTime> {
        let segment = self.segments.front()?;
        let since = segment.stream?;
        let reached = segment.read + self.ahead(segment, now, layout);
        let near = reached + layout.place(reached.min(layout.sectors() - 1)).track_sectors;
        // The oldest part of a segment gives way to what is read on.
        let within = segment.first <= first && first <= near && end <= segment.read + self.size;
        // A full segment stops the reading; the heads are past it when they are asked to go on.
        let full = reached >= segment.read + self.size;
        (within && !full).then(|| {
            let span = if end > segment.read { layout.transfer_ns(segment.read, end) } else { 0 };
            let between = self.between(segment, layout);
            SimTime(since.0 + if end > segment.read { between + span } else { 0 })
        })
    }

    /// The arm is called away.
    pub fn interrupt(&mut self, now: SimTime, layout: &Layout) {
        if let Some(segment) = self.segments.front().copied() {
            let ahead = self.ahead(&segment, now, layout);
            let front = self.segments.front_mut().expect("there is one");
            front.read += ahead;
            front.stream = None;
        }
    }

    /// Sectors `first` to `end` will have been read by `at`, and the heads go on if `ahead`.
    pub fn read(&mut self, first: u64, end: u64, at: SimTime, ahead: bool) {
        let streaming = self.segments.front().is_some_and(|front| {
            front.stream.is_some() && front.first <= first && first <= front.read + self.size
        });
        let start = if streaming { self.segments[0].first } else { first };
        if streaming {
            self.segments.pop_front();
        }
        let first = start.max(end.saturating_sub(self.size));
        let stream = ahead.then_some(at);
        self.segments.push_front(Segment { first, read: end, stream });
        self.segments.truncate(self.count);
    }

    /// Sectors `first` to `end` are written.
    pub fn forget(&mut self, first: u64, end: u64) {
        let size = self.size;
        let apart = |segment: &Segment| {
            let last = segment.read + if segment.stream.is_some() { size } else { 0 };
            end <= segment.first || last <= first
        };
        self.segments.retain(apart);
    }

    /// Sectors read ahead by `now`.
    fn ahead(&self, segment: &Segment, now: SimTime, layout: &Layout) -> u64 {
        let Some(since) = segment.stream else { return 0 };
        let span = now.0.saturating_sub(since.0).saturating_sub(self.between(segment, layout));
        layout.passed(segment.read, span, self.size)
    }

    /// Between the last sector read and the next one: a switch, where that begins a track.
    fn between(&self, segment: &Segment, layout: &Layout) -> u64 {
        if segment.read == 0 || segment.read >= layout.sectors() {
            return 0;
        }
        layout.transfer_ns(segment.read - 1, segment.read + 1)
            - layout.transfer_ns(segment.read - 1, segment.read)
            - layout.transfer_ns(segment.read, segment.read + 1)
    }
}
