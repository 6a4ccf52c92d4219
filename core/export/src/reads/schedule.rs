//! Which read goes to a storage next.
//!
//! Requests come in the kernel's order, which is nearly the readers' order, from several readers
//! mixed. A **lane** is one sequential stretch of a file: `next` is where its last read ended.
//!
//! ```text
//!   file 0   ░░░░░░░░░░░░░│ next (busy: a worker reads up to here)
//!                         ├──── LANE_WINDOW ────┤
//!   waiting               [b] [d]   [a]               [x]
//! ```
//!
//! - `a`, `b` and `d` are in the window behind `next`, so they belong to that lane: they wait
//!   while it is busy, and then the lowest goes first, together with what follows it without a
//!   gap. `x` belongs to no lane: it starts one, at once, if a worker is free.
//! - A gap is not waited for: an idle lane serves what it has.
//! - Whose turn it is among lanes is decided by the oldest request, so no reader starves another.
//!
//! A reader has no identity here on purpose: two programs that read one file through the page
//! cache continue each other's stretches, and a storage sees offsets only.

use std::collections::VecDeque;

use crate::READ_BYTES_MAX;

/// How far behind the end of a lane's last read a request still belongs to the lane, in bytes:
/// above what the kernel has in flight for one reader (twice its read-ahead).
const LANE_WINDOW: u64 = 16 << 20;

/// Lanes remembered. One that is forgotten costs its reader nothing but the promise of order for
/// the requests waiting just then.
const LANES_MAX: usize = 64;

/// One read that the kernel waits for; `reply` is how to answer it.
#[derive(Debug)]
pub(crate) struct ScheduledRead<R> {
    /// Index of the file.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) reply: R,
}

impl<R> ScheduledRead<R> {
    fn end(&self) -> u64 {
        self.offset + self.len as u64
    }
}

/// One read for the storage: `offset..offset + len` covers every request in it.
#[derive(Debug)]
pub(crate) struct ReadBatch<R> {
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) requests: Vec<ScheduledRead<R>>,
    lane: LaneId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LaneId(u64);

#[derive(Debug)]
struct Lane {
    id: LaneId,
    file: usize,
    next: u64,
    busy: bool,
    last_taken: u64,
}

/// The waiting requests and the lanes of all files.
#[derive(Debug)]
pub(crate) struct LaneSchedule<R> {
    /// In order of arrival.
    waiting: VecDeque<ScheduledRead<R>>,
    lanes: Vec<Lane>,
    /// Batches taken so far; orders lanes by last use and names them.
    taken: u64,
}

impl<R> LaneSchedule<R> {
    pub(crate) fn new() -> Self {
        LaneSchedule { waiting: VecDeque::new(), lanes: Vec::new(), taken: 0 }
    }

    /// Adds a request.
    pub(crate) fn push(&mut self, request: ScheduledRead<R>) {
        self.waiting.push_back(request);
    }

    /// The next read that may run now, if there is one. Its lane is busy until
    /// [`LaneSchedule::finished`].
    pub(crate) fn take(&mut self) -> Option<ReadBatch<R>> {
        let oldest = self
            .waiting
            .iter()
            .find(|r| !self.lane_of(r.file, r.offset).is_some_and(|at| self.lanes[at].busy))?;
        let (file, offset) = (oldest.file, oldest.offset);
        let lane = self.lane_of(file, offset);
        let first = self
            .waiting
            .iter()
            .filter(|r| r.file == file && r.offset <= offset && offset - r.offset <= LANE_WINDOW)
            .filter(|r| self.lane_of(file, r.offset) == lane)
            .map(|r| r.offset)
            .min()
            .expect("the oldest request itself qualifies");

        let end = self.contiguous_end(file, first);
        let (requests, rest) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|r| r.file == file && r.offset >= first && r.end() <= end);
        self.waiting = rest;
        self.taken += 1;
        Some(ReadBatch {
            file,
            offset: first,
            len: usize::try_from(end - first).expect("at most the longest request"),
            requests: Vec::from(requests),
            lane: self.occupy(lane, file, end),
        })
    }

    /// Says that the read of `batch` is over, so that its lane may continue.
    pub(crate) fn finished(&mut self, batch: &ReadBatch<R>) {
        let lane = self.lanes.iter_mut().find(|lane| lane.id == batch.lane);
        lane.expect("busy lanes are not forgotten").busy = false;
    }

    /// True when a request waits, whether or not it may run now.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The lane that a request at `offset` continues: the nearest that ended before it.
    fn lane_of(&self, file: usize, offset: u64) -> Option<usize> {
        let behind = |lane: &Lane| lane.next <= offset && offset - lane.next <= LANE_WINDOW;
        (0..self.lanes.len())
            .filter(|&at| self.lanes[at].file == file && behind(&self.lanes[at]))
            .max_by_key(|&at| self.lanes[at].next)
    }

    /// Where the waiting requests from `first` on stop being contiguous, or enough for one read.
    fn contiguous_end(&self, file: usize, first: u64) -> u64 {
        let starting_at = |offset| {
            let here = self.waiting.iter().filter(move |r| r.file == file && r.offset == offset);
            here.map(ScheduledRead::end).max()
        };
        let mut end = starting_at(first).expect("first is a waiting request");
        while let Some(next) = starting_at(end)
            && next > end
            && next - first <= READ_BYTES_MAX as u64
        {
            end = next;
        }
        end
    }

    /// Marks `lane`, or a new one, as busy up to `end`.
    fn occupy(&mut self, lane: Option<usize>, file: usize, end: u64) -> LaneId {
        if let Some(at) = lane {
            let lane = &mut self.lanes[at];
            (lane.next, lane.busy, lane.last_taken) = (end, true, self.taken);
            return lane.id;
        }
        if self.lanes.len() >= LANES_MAX {
            let idle = (0..self.lanes.len()).filter(|&at| !self.lanes[at].busy);
            if let Some(at) = idle.min_by_key(|&at| self.lanes[at].last_taken) {
                self.lanes.swap_remove(at);
            }
        }
        let id = LaneId(self.taken);
        self.lanes.push(Lane { id, file, next: end, busy: true, last_taken: self.taken });
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;

    fn schedule(requests: &[(usize, u64, u64)]) -> LaneSchedule<()> {
        let mut schedule = LaneSchedule::new();
        for &(file, offset, len) in requests {
            schedule.push(ScheduledRead { file, offset, len: len as usize, reply: () });
        }
        schedule
    }

    /// File, offset and length of every batch, in the order that one worker takes them.
    fn drain(mut schedule: LaneSchedule<()>) -> Vec<(usize, u64, u64)> {
        let mut order = Vec::new();
        while let Some(batch) = schedule.take() {
            order.push((batch.file, batch.offset, batch.len as u64));
            schedule.finished(&batch);
        }
        assert!(!schedule.is_waiting());
        order
    }

    #[test]
    fn neighbours_are_joined_up_to_the_largest_read() {
        let requests: Vec<_> = (0..12).map(|i| (0, i * 128 * K, 128 * K)).collect();
        assert_eq!(drain(schedule(&requests)), [(0, 0, M), (0, M, 512 * K)]);
    }

    #[test]
    fn what_came_out_of_order_is_read_in_order() {
        let requests = [(0, 3 * M, M), (0, M, M), (0, 0, M), (0, 2 * M, M)];
        assert_eq!(
            drain(schedule(&requests)),
            [(0, 0, M), (0, M, M), (0, 2 * M, M), (0, 3 * M, M)]
        );
    }

    #[test]
    fn a_request_longer_than_the_largest_read_is_one_read() {
        assert_eq!(drain(schedule(&[(0, 7, 3 * M)])), [(0, 7, 3 * M)]);
    }

    #[test]
    fn a_lane_is_read_by_one_worker_while_others_take_other_lanes() {
        let mut s = schedule(&[(0, 0, M), (0, M, M), (0, 100 * M, M), (1, 0, M)]);
        let a = s.take().expect("first of lane 0");
        let b = s.take().expect("far away in file 0");
        let c = s.take().expect("file 1");
        assert_eq!((a.offset, b.offset, c.file), (0, 100 * M, 1));
        assert!(s.take().is_none(), "what follows a busy lane waits");
        s.finished(&a);
        assert_eq!(s.take().expect("the lane continues").offset, M);
    }

    #[test]
    fn a_gap_is_not_waited_for() {
        let mut s = schedule(&[(0, 0, M)]);
        let a = s.take().expect("first");
        s.finished(&a);
        s.push(ScheduledRead { file: 0, offset: 2 * M, len: 1, reply: () });
        assert_eq!(s.take().expect("the lane is idle").offset, 2 * M);
    }

    #[test]
    fn readers_take_turns() {
        let mut requests = Vec::new();
        for i in 0..4 {
            requests.extend([(0, i * M, M), (0, 500 * M + i * M, M)]);
        }
        let order: Vec<_> = drain(schedule(&requests)).into_iter().map(|b| b.1 / M).collect();
        assert_eq!(order, [0, 500, 1, 501, 2, 502, 3, 503]);
    }

    #[test]
    fn the_same_bytes_asked_for_twice_are_read_once() {
        let mut s = schedule(&[(0, 0, M), (0, 0, M), (0, 4 * K, 8 * K), (0, 0, 2 * M)]);
        let all = s.take().expect("one batch");
        assert_eq!((all.len as u64, all.requests.len()), (2 * M, 4));
    }

    #[test]
    fn idle_lanes_are_forgotten_before_busy_ones() {
        let mut s = schedule(&[(0, 0, 1)]);
        let busy = s.take().expect("first");
        for i in 1..200 {
            s.push(ScheduledRead { file: 0, offset: i * 100 * M, len: 1, reply: () });
            let other = s.take().expect("its own lane");
            s.finished(&other);
        }
        assert_eq!(s.lanes.len(), LANES_MAX);
        s.finished(&busy);
    }

    proptest! {
        /// Whatever comes, and however many workers there are: every request is answered once,
        /// inside its batch, and no two busy lanes could be one.
        #[test]
        fn every_request_is_taken_exactly_once(
            steps in prop::collection::vec((0..3usize, 0..64u64, 1..40u64, 0..4usize), 1..200)
        ) {
            let mut s = LaneSchedule::new();
            let mut running: Vec<ReadBatch<usize>> = Vec::new();
            let mut answered = vec![0; steps.len()];
            let check = |batch: &ReadBatch<usize>, answered: &mut Vec<i32>| {
                for r in &batch.requests {
                    assert!(r.file == batch.file && r.offset >= batch.offset);
                    assert!(r.end() <= batch.offset + batch.len as u64);
                    answered[r.reply] += 1;
                }
                assert!(batch.requests.iter().any(|r| r.offset == batch.offset));
                assert!(batch.len <= READ_BYTES_MAX || batch.requests.iter().any(|r| r.len == batch.len));
            };
            for (i, &(file, at, len, finish)) in steps.iter().enumerate() {
                s.push(ScheduledRead { file, offset: at * 64 * K, len: (len * 64 * K) as usize, reply: i });
                if running.len() < 3 && let Some(batch) = s.take() {
                    check(&batch, &mut answered);
                    running.push(batch);
                }
                if finish < running.len() {
                    s.finished(&running.swap_remove(finish));
                }
            }
            for batch in running.drain(..) {
                s.finished(&batch);
            }
            while let Some(batch) = s.take() {
                check(&batch, &mut answered);
                s.finished(&batch);
            }
            prop_assert!(!s.is_waiting());
            prop_assert!(answered.iter().all(|&n| n == 1));
        }
    }
}
