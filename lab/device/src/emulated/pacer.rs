//! The thread that lets the model's events happen when they are due.
//!
//! It sleeps until the next event or arrival, and spins for the last microseconds before an event
//! ([`EmulatedOptions::spin_ns`](super::EmulatedOptions::spin_ns)), because a thread that sleeps is woken late. An arrival has the time at which it
//! came; if the thread is late, it still gives the model that time, and the model's events happen in
//! the order of their times.

use std::collections::HashMap;
use std::time::Duration;

use merganser_storage::thread::wake_precisely;
use parking_lot::MutexGuard;

use super::shared::{EmulatedArrival, EmulationShared};
use crate::device::{CompletedCommand, Device, IoCommand};
use crate::request::{DeviceRequest, RequestKind, SimTime};
use crate::results::{Collector, PlayedSpan};

/// What the pacer leaves.
pub(super) struct Finished {
    pub device: Box<dyn Device>,
    pub collector: Collector,
    pub played: PlayedSpan,
}

struct Pacer<'a> {
    shared: &'a EmulationShared,
    device: Box<dyn Device>,
    collector: Collector,
    /// The model's time when the clock began.
    start: SimTime,
    /// The time of the last event or arrival.
    happened: SimTime,
    /// The end of the last request.
    end: SimTime,
    /// Kind and bytes of the requests that the model has, by slot.
    inside: HashMap<u64, (RequestKind, u64)>,
    served: u64,
}

/// Runs the model until the emulation is closed.
pub(super) fn run(device: Box<dyn Device>, shared: &EmulationShared) -> Finished {
    wake_precisely();
    let start = device.now();
    let mut pacer = Pacer {
        shared,
        collector: Collector::new(&*device),
        device,
        start,
        happened: start,
        end: start,
        inside: HashMap::new(),
        served: 0,
    };
    let mut arrivals = Vec::new();
    loop {
        let (now_ns, closed) = pacer.wait(&mut arrivals);
        for arrival in arrivals.drain(..) {
            pacer.arrive(&arrival);
        }
        // The requests in flight at the end do not wait for the model.
        pacer.advance(if closed { SimTime(u64::MAX) } else { pacer.model_time(now_ns) });
        if closed {
            return pacer.finish();
        }
    }
}

impl Pacer<'_> {
    fn model_time(&self, clock_ns: u64) -> SimTime {
        SimTime(self.start.0 + clock_ns)
    }

    fn clock_ns(&self, model: SimTime) -> u64 {
        model.0 - self.start.0
    }

    /// Waits for an arrival, the next event, or the end. Takes the arrivals; returns the time, which
    /// no later arrival precedes, and whether the emulation is closed.
    fn wait(&self, arrivals: &mut Vec<EmulatedArrival>) -> (u64, bool) {
        let due_ns = self.device.next_at().map(|at| self.clock_ns(at));
        let spin = Duration::from_nanos(self.shared.spin_ns);
        let mut state = self.shared.state.lock();
        loop {
            let now_ns = self.shared.clock.now_ns();
            if state.closed || !state.arrivals.is_empty() || due_ns.is_some_and(|due| due <= now_ns)
            {
                std::mem::swap(&mut state.arrivals, arrivals);
                return (now_ns, state.closed);
            }
            match due_ns.map(|due| self.shared.clock.on_the_wall(due - now_ns)) {
                None => self.shared.changed.wait(&mut state),
                Some(left) if left > spin => {
                    self.shared.changed.wait_for(&mut state, left - spin);
                }
                // An arrival or an answer needs the lock.
                Some(_) => MutexGuard::unlocked(&mut state, std::hint::spin_loop),
            }
        }
    }

    /// Gives the model a request at the time of its arrival, after the events up to then.
    fn arrive(&mut self, arrival: &EmulatedArrival) {
        let DeviceRequest { arrival: at, kind, offset, len, .. } = arrival.request;
        // Only with a path time can it be earlier than what has happened.
        let at = self.model_time(at.0).max(self.happened);
        self.advance(at);
        let id = arrival.slot as u64;
        self.inside.insert(id, (kind, len));
        self.happened = at;
        self.device.submit(at, IoCommand { id, kind, offset, len, buffer: None });
        self.collect();
    }

    /// Lets the events up to `until` happen.
    fn advance(&mut self, until: SimTime) {
        while self.device.next_at().is_some_and(|next| next <= until) {
            self.device.advance();
            self.happened = self.happened.max(self.device.now());
            self.collect();
        }
    }

    fn collect(&mut self) {
        while let Some(CompletedCommand { id, submitted, at, .. }) = self.device.completed() {
            let (kind, len) = self.inside.remove(&id).expect("a request ends once");
            self.collector.served(&*self.device, kind, len, submitted, at);
            self.served += 1;
            self.end = self.end.max(at);
            let (from_ns, at_ns) = (self.clock_ns(submitted), self.clock_ns(at));
            let answer = self.shared.state.lock().modelled(id as usize, from_ns, at_ns);
            if let Some(answer) = answer {
                self.shared.answer(answer, false);
            }
        }
    }

    fn finish(self) -> Finished {
        let Pacer { device, collector, start, end, served, .. } = self;
        let played = PlayedSpan { requests: served, start, end };
        Finished { device, collector, played }
    }
}
