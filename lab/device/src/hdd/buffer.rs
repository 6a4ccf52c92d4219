//! The disk's buffer for reads: the last reads, and the sectors that the heads read ahead.
//!
//! ```text
//!   segment:  [ first ……… read ……… reached ┈┈┈┈┈┈ first + size )
//!                                    └─ read ahead over time, until the arm is needed elsewhere
//! ```

use std::collections::VecDeque;

use super::layout::DiskLayout;
use crate::request::SimTime;

/// Segments of the buffer, the most recently used one first.
#[derive(Debug)]
pub(super) struct BufferSegments {
    segments: VecDeque<BufferSegment>,
    count: usize,
    /// Sectors per segment.
    size: u64,
}

#[derive(Debug, Clone, Copy)]
struct BufferSegment {
    first: u64,
    /// The end of the sectors that are surely in the buffer.
    read: u64,
    /// The heads continue to read from `read` since this time.
    stream: Option<SimTime>,
}

/// The heads, which read ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadStream {
    /// The first sector of its segment.
    pub first: u64,
    /// A request that begins later is not worth the wait: the heads would pass more than a track before it.
    pub near: u64,
    /// The end of the sectors that were read before it began.
    read: u64,
    /// The end of the sectors that it may read.
    limit: u64,
    since: SimTime,
    /// The time at which sector `read` begins under the heads.
    from: SimTime,
}

impl HeadStream {
    /// Whether the heads come to sectors `first` to `end` soon, or have read them.
    pub(super) fn reaches(&self, first: u64, end: u64) -> bool {
        (self.first..=self.near).contains(&first) && end <= self.limit
    }

    /// The time at which the heads have read up to `end`.
    pub(super) fn end(&self, end: u64, layout: &DiskLayout) -> SimTime {
        if end > self.read {
            SimTime(self.from.0 + layout.transfer_ns(self.read, end))
        } else {
            self.since
        }
    }
}

impl BufferSegments {
    /// A buffer of `count` segments of `size` sectors.
    pub(super) fn new(count: usize, size: u64) -> Self {
        BufferSegments { segments: VecDeque::new(), count, size }
    }

    /// Whether sectors `first` to `end` are in the buffer by `now`.
    pub(super) fn holds(&self, first: u64, end: u64, now: SimTime, layout: &DiskLayout) -> bool {
        self.segments.iter().any(|segment| {
            segment.first <= first && end <= segment.read + self.ahead(segment, now, layout)
        })
    }

    /// What the heads read ahead of. `None` if they do not.
    pub(super) fn stream(&self, now: SimTime, layout: &DiskLayout) -> Option<HeadStream> {
        let segment = self.segments.front()?;
        let since = segment.stream?;
        let reached = segment.read + self.ahead(segment, now, layout);
        // A full segment stops the reading; the heads have passed its end when they should
        // continue.
        if reached >= segment.read + self.size {
            return None;
        }
        let near = reached + layout.place(reached.min(layout.sectors() - 1)).track_sectors;
        // New sectors replace the oldest part of a segment.
        let limit = segment.read + self.size;
        let from = SimTime(since.0 + self.between(segment, layout));
        Some(HeadStream { first: segment.first, read: segment.read, near, limit, since, from })
    }

    /// The arm is needed elsewhere.
    pub(super) fn interrupt(&mut self, now: SimTime, layout: &DiskLayout) {
        if let Some(segment) = self.segments.front().copied() {
            let ahead = self.ahead(&segment, now, layout);
            let front = self.segments.front_mut().expect("there is one");
            front.read += ahead;
            front.stream = None;
        }
    }

    /// Sectors `first` to `end` will have been read by `at`; with `ahead` the heads continue.
    pub(super) fn read(&mut self, first: u64, end: u64, at: SimTime, ahead: bool) {
        let streaming = self.segments.front().is_some_and(|front| {
            front.stream.is_some() && front.first <= first && first <= front.read + self.size
        });
        let start = if streaming { self.segments[0].first } else { first };
        if streaming {
            self.segments.pop_front();
        }
        let first = start.max(end.saturating_sub(self.size));
        let stream = ahead.then_some(at);
        self.segments.push_front(BufferSegment { first, read: end, stream });
        self.segments.truncate(self.count);
    }

    /// Drops sectors `first` to `end`, which are written.
    pub(super) fn forget(&mut self, first: u64, end: u64) {
        let size = self.size;
        let apart = |segment: &BufferSegment| {
            let last = segment.read + if segment.stream.is_some() { size } else { 0 };
            end <= segment.first || last <= first
        };
        self.segments.retain(apart);
    }

    /// The sectors read ahead by `now`.
    fn ahead(&self, segment: &BufferSegment, now: SimTime, layout: &DiskLayout) -> u64 {
        let Some(since) = segment.stream else { return 0 };
        let span = now.0.saturating_sub(since.0).saturating_sub(self.between(segment, layout));
        layout.passed(segment.read, span, self.size)
    }

    /// The time between the last sector read and the next one: a switch, if that begins a track.
    fn between(&self, segment: &BufferSegment, layout: &DiskLayout) -> u64 {
        if segment.read == 0 || segment.read >= layout.sectors() {
            return 0;
        }
        layout.transfer_ns(segment.read - 1, segment.read + 1)
            - layout.transfer_ns(segment.read - 1, segment.read)
            - layout.transfer_ns(segment.read, segment.read + 1)
    }
}
