//! The choice of the next page to read, if several chunk buffers have room.
//!
//! Each page is on a channel, and a channel reads one page at a time. ActiveSort's rule (section
//! 4.1.3):
//!
//! ```text
//!   channel   0      1      2      3
//!   reading   -      a7     -      -          b8 would wait for a7: skip it,
//!   wanted    c6     b8     a8     c7   ──►   read a8, c6 and c7 meanwhile
//! ```

use std::collections::VecDeque;

/// The rule for choosing reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPolicy {
    /// A page whose channel is busy is skipped, and another chunk's page is read: ActiveSort's
    /// rule. Among several candidates, the chunk with the fewest pages comes first.
    #[default]
    SkipBusy,
    /// Pages are read in the order in which room for them became free, and the schedule waits for a
    /// busy channel. The rule is compared with this.
    Wait,
    /// Pages are requested as soon as there is room, and wait in their channel's queue. This needs
    /// a controller with queues, which the prototype does not have.
    Queue,
}

/// A chunk whose buffer has room, and whose next page is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) chunk: usize,
    /// Pages that are in its buffer or in flight.
    pub(super) at_hand: usize,
    /// The channel of its next page.
    pub(super) channel: u32,
}

/// The schedule of one merge.
#[derive(Debug)]
pub(super) struct ReadSchedule {
    policy: ReadPolicy,
    /// For each chunk, one number per free page: the order in which the room became free.
    room: Vec<VecDeque<u64>>,
    next: u64,
}

impl ReadSchedule {
    /// All buffers are empty: chunks take turns.
    pub(super) fn new(policy: ReadPolicy, chunks: usize, pages: usize) -> Self {
        let turns = |chunk| (0..pages).map(|page| (page * chunks + chunk) as u64).collect();
        ReadSchedule {
            policy,
            room: (0..chunks).map(turns).collect(),
            next: (pages * chunks) as u64,
        }
    }

    /// A page of `chunk` is used up.
    pub(super) fn room(&mut self, chunk: usize) {
        self.room[chunk].push_back(self.next);
        self.next += 1;
    }

    /// The chunk of `candidates` whose next page to read now. `idle` means that this program has no
    /// read in flight. Then it must not wait for a busy channel, because no read of its own would
    /// end the waiting.
    pub(super) fn choose(
        &mut self,
        candidates: &[Candidate],
        is_busy: impl Fn(u32) -> bool,
        idle: bool,
    ) -> Option<usize> {
        if self.policy == ReadPolicy::SkipBusy {
            let free = candidates.iter().filter(|c| !is_busy(c.channel)).min_by_key(|c| c.at_hand);
            let any = || candidates.iter().min_by_key(|c| c.at_hand).filter(|_| idle);
            return free.or_else(any).map(|c| c.chunk);
        }
        // After a merge has started again, numbers may be missing: such chunks come last.
        let since = |c: &&Candidate| self.room[c.chunk].front().copied().unwrap_or(u64::MAX);
        let oldest = candidates.iter().min_by_key(since)?;
        if self.policy == ReadPolicy::Wait && !idle && is_busy(oldest.channel) {
            return None;
        }
        self.room[oldest.chunk].pop_front();
        Some(oldest.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(channels: &[u32]) -> Vec<Candidate> {
        let candidate = |(chunk, &channel)| Candidate { chunk, at_hand: 4 - chunk, channel };
        channels.iter().enumerate().map(candidate).collect()
    }

    #[test]
    fn a_busy_channel_is_skipped_waited_for_or_ignored() {
        let busy = |channel| channel == 1;
        let all = candidates(&[1, 0, 1]);
        let choose = |policy, idle| {
            let mut schedule = ReadSchedule::new(policy, 3, 1);
            schedule.choose(&all, busy, idle)
        };
        assert_eq!(choose(ReadPolicy::SkipBusy, false), Some(1));
        assert_eq!(choose(ReadPolicy::Wait, false), None);
        assert_eq!(choose(ReadPolicy::Wait, true), Some(0), "no other read would wake us");
        assert_eq!(choose(ReadPolicy::Queue, false), Some(0));
        let only_busy = candidates(&[1, 1]);
        let mut schedule = ReadSchedule::new(ReadPolicy::SkipBusy, 2, 1);
        assert_eq!(schedule.choose(&only_busy, busy, false), None);
        assert_eq!(schedule.choose(&only_busy, busy, true), Some(1), "the emptier one");
    }

    #[test]
    fn room_is_filled_in_the_order_in_which_it_came_up() {
        let mut schedule = ReadSchedule::new(ReadPolicy::Wait, 2, 2);
        let both = candidates(&[0, 0]);
        let choose = |schedule: &mut ReadSchedule, left: &[Candidate]| {
            schedule.choose(left, |_| false, false)
        };
        let order = [0, 1, 0].map(|_| choose(&mut schedule, &both));
        assert_eq!(order, [Some(0), Some(1), Some(0)]);
        schedule.room(0);
        assert_eq!(choose(&mut schedule, &both), Some(1), "its second page is due since the start");
        assert_eq!(choose(&mut schedule, &both[1..]), Some(1), "unannounced room is filled");
        assert_eq!(choose(&mut schedule, &both), Some(0));
        assert_eq!(choose(&mut schedule, &[]), None);
    }
}
