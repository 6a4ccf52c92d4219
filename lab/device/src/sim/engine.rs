//! The event queue of one device.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use merganser_random::Random;

use crate::request::SimTime;

/// An event of a simulation: a few bytes, which the queue copies.
pub trait SimEvent: Copy {
    /// A number that distinguishes this event from others, for [`EventQueue::digest`].
    fn fingerprint(&self) -> u64;
}

/// A queue of events in the order of their times. Events with the same time come in the order in
/// which they were scheduled. Time is counted in whole nanoseconds, and random numbers come from
/// one seed. The engine has no other input: the same calls give the same events on every machine,
/// and [`EventQueue::digest`] shows it.
///
/// ```
/// use merganser_device::request::SimTime;
/// use merganser_device::sim::{EventQueue, SimEvent};
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// struct Ring(u32);
/// impl SimEvent for Ring {
///     fn fingerprint(&self) -> u64 {
///         u64::from(self.0)
///     }
/// }
///
/// let mut engine = EventQueue::new(1);
/// engine.after(SimTime(20), Ring(1));
/// engine.after(SimTime(10), Ring(2));
/// engine.after(SimTime(10), Ring(3));
/// assert_eq!(engine.next(), Some(Ring(2)));
/// assert_eq!(engine.next(), Some(Ring(3)));
/// assert_eq!(engine.now(), SimTime(10));
/// assert_eq!(engine.next_at(), Some(SimTime(20)));
/// ```
#[derive(Debug)]
pub struct EventQueue<E> {
    now: SimTime,
    sequence: u64,
    queue: BinaryHeap<QueuedEvent<E>>,
    /// The first entry was taken, and is still in the queue. Most events schedule another one, which takes
    /// its place: one way through the heap instead of two, and none for what happens next.
    taken: bool,
    random: Random,
    digest: u64,
    passed: u64,
}

#[derive(Debug)]
struct QueuedEvent<E> {
    /// Time and turn in one number: the order of two numbers is a branch that processors guess wrong.
    key: u128,
    event: E,
}

impl<E> QueuedEvent<E> {
    fn new(at: SimTime, turn: u64, event: E) -> Self {
        QueuedEvent { key: u128::from(at.0) << 64 | u128::from(turn), event }
    }

    fn at(&self) -> SimTime {
        SimTime((self.key >> 64) as u64)
    }
}

impl<E> PartialEq for QueuedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for QueuedEvent<E> {}

impl<E> PartialOrd for QueuedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for QueuedEvent<E> {
    /// The earliest event is the greatest, because the heap returns its greatest element first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<E: SimEvent> EventQueue<E> {
    /// An empty queue at time 0.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        EventQueue {
            now: SimTime(0),
            sequence: 0,
            queue: BinaryHeap::new(),
            taken: false,
            random: Random::new(seed),
            digest: 0xcbf2_9ce4_8422_2325,
            passed: 0,
        }
    }

    /// The time of the event that was taken last.
    #[must_use]
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Schedules `event` for time `at`.
    ///
    /// # Panics
    /// When `at` is past: a cause never comes after its effect.
    pub fn at(&mut self, at: SimTime, event: E) {
        assert!(at >= self.now, "an event at {} ns, but it is {} ns", at.0, self.now.0);
        let entry = QueuedEvent::new(at, self.sequence, event);
        self.sequence += 1;
        if self.taken
            && let Some(mut first) = self.queue.peek_mut()
        {
            *first = entry;
            self.taken = false;
        } else {
            self.queue.push(entry);
        }
    }

    /// Schedules `event` for `span` from now.
    pub fn after(&mut self, span: SimTime, event: E) {
        self.at(SimTime(self.now.0 + span.0), event);
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<SimTime> {
        if self.taken {
            // Under the first entry of a binary heap are its two next ones.
            let next = self.queue.as_slice().iter().take(3).skip(1).max();
            return next.map(QueuedEvent::at);
        }
        self.queue.peek().map(QueuedEvent::at)
    }

    /// Moves time to the next event and returns it.
    #[expect(clippy::should_implement_trait, reason = "an engine is no iterator: taking schedules")]
    pub fn next(&mut self) -> Option<E> {
        if std::mem::take(&mut self.taken) {
            self.queue.pop();
        }
        let first = self.queue.peek()?;
        let (at, event) = (first.at(), first.event);
        self.taken = true;
        self.now = at;
        self.passed += 1;
        // FNV-1a over two words; the multiplication spreads the bits that the exclusive or changed.
        for word in [at.0, event.fingerprint()] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        Some(event)
    }

    /// The random numbers of this device.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// A digest of the times and fingerprints of all events so far, in their order.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The number of events so far.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SimEvent for u64 {
        fn fingerprint(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn events_come_by_time_then_by_turn() {
        let mut engine = EventQueue::new(7);
        let mut expected = Vec::new();
        let mut random = Random::new(3);
        for turn in 0..1000_u64 {
            let at = random.below(50);
            engine.at(SimTime(at), turn);
            expected.push((at, turn));
        }
        expected.sort_unstable();
        let mut seen = Vec::new();
        while let Some(turn) = engine.next() {
            seen.push((engine.now().0, turn));
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn events_that_schedule_others_come_in_the_order_of_a_list() {
        let (mut engine, mut random) = (EventQueue::new(7), Random::new(5));
        // By time and turn.
        let mut list = std::collections::BTreeSet::new();
        let mut turn = 0;
        for _ in 0..20_000 {
            for _ in 0..[0, 0, 1, 1, 1, 2, 3][random.index(7)] {
                let at = engine.now().0 + random.below(30);
                engine.at(SimTime(at), turn);
                list.insert((at, turn));
                turn += 1;
            }
            assert_eq!(engine.next_at(), list.first().map(|(at, _)| SimTime(*at)));
            let next = engine.next().map(|turn| (engine.now().0, turn));
            assert_eq!(next, list.pop_first());
        }
        assert!(turn > 10_000);
    }

    #[test]
    fn the_digest_tells_orders_apart() {
        let digest = |order: [u64; 2]| {
            let mut engine = EventQueue::new(0);
            for event in order {
                engine.at(SimTime(5), event);
            }
            while engine.next().is_some() {}
            engine.digest()
        };
        assert_eq!(digest([1, 2]), digest([1, 2]));
        assert_ne!(digest([1, 2]), digest([2, 1]));
    }

    #[test]
    #[should_panic(expected = "but it is 9 ns")]
    fn the_past_is_closed() {
        let mut engine = EventQueue::new(0);
        engine.at(SimTime(9), 0);
        engine.next();
        engine.at(SimTime(8), 0);
    }
}
