//! What the parts of an emulation share: requests in flight, from their arrival to their answer.

use std::sync::Arc;

use merganser_storage::{Collect, Completion, Completions, Operation, Storage};
use parking_lot::{Condvar, Mutex};

use super::observer::Observer;
use super::slow_clock::SlowClock;
use super::{EmulationLag, ServedRequest};
use crate::request::{DeviceRequest, RequestKind, SimTime};

/// The time of the path that is no part of the emulated device: calls, wake-ups, and copies of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathTime {
    /// Nanoseconds of each request.
    pub fixed_ns: u64,
    /// Nanoseconds more of each MiB that is read.
    pub read_ns_per_mib: u64,
    /// Nanoseconds more of each MiB that is written.
    pub write_ns_per_mib: u64,
}

impl PathTime {
    fn of_request(self, request: &DeviceRequest) -> u64 {
        let ns_per_mib = match request.kind {
            RequestKind::Read => self.read_ns_per_mib,
            RequestKind::Write => self.write_ns_per_mib,
            RequestKind::Trim | RequestKind::Flush => 0,
        };
        let copying = (u128::from(request.len) * u128::from(ns_per_mib)) >> 20;
        self.fixed_ns.saturating_add(u64::try_from(copying).unwrap_or(u64::MAX))
    }
}

/// What requests, the pacer and the backing storage's threads share.
pub(super) struct EmulationShared {
    pub state: Mutex<EmulationState>,
    /// An arrival, or the end.
    pub changed: Condvar,
    pub clock: SlowClock,
    /// In the time of the wall.
    pub path: PathTime,
    /// In the time of the wall.
    pub spin_ns: u64,
    pub observer: Option<Observer>,
}

#[derive(Default)]
pub(super) struct EmulationState {
    /// In the order of their times.
    pub arrivals: Vec<EmulatedArrival>,
    pub flights: slab::Slab<EmulatedRequest>,
    pub lag: EmulationLag,
    pub closed: bool,
    next_number: u64,
}

/// A request that has not been answered.
pub(super) struct EmulatedRequest {
    token: u64,
    completions: Completions,
    number: u64,
    pub request: DeviceRequest,
    depth: u32,
    /// The end of the real operation.
    real: Option<Completion>,
    /// The end of the modelled one, in nanoseconds of the clock.
    modelled_ns: Option<u64>,
}

/// A request that may be answered.
pub(super) struct DueAnswer {
    flight: EmulatedRequest,
    completion: Completion,
}

/// A request that the model has not seen.
pub(super) struct EmulatedArrival {
    pub slot: usize,
    pub request: DeviceRequest,
}

/// The end of a real operation, to be matched with the modelled end.
struct Real {
    shared: Arc<EmulationShared>,
    slot: usize,
}

impl Collect for Real {
    fn arrived(&self, completion: Completion) {
        let mut state = self.shared.state.lock();
        state.flights[self.slot].real = Some(completion);
        let answer = state.answerable(self.slot);
        drop(state);
        if let Some(answer) = answer {
            self.shared.answer(answer, true);
        }
    }
}

impl EmulationState {
    /// Says that the model got a request at `from_ns` and ended it at `at_ns`; the request, if its
    /// real operation has ended, too.
    pub(super) fn modelled(&mut self, slot: usize, from_ns: u64, at_ns: u64) -> Option<DueAnswer> {
        let flight = &mut self.flights[slot];
        flight.request.arrival = SimTime(from_ns);
        flight.modelled_ns = Some(at_ns);
        self.answerable(slot)
    }

    fn answerable(&mut self, slot: usize) -> Option<DueAnswer> {
        let flight = &mut self.flights[slot];
        flight.modelled_ns?;
        let completion = flight.real.take()?;
        Some(DueAnswer { flight: self.flights.remove(slot), completion })
    }
}

impl EmulationShared {
    /// Begins the real operation of a request.
    pub(super) fn begin(
        self: &Arc<Self>,
        backing: &dyn Storage,
        slot: usize,
        operation: Operation,
    ) {
        let real = Arc::new(Real { shared: Arc::clone(self), slot });
        backing.submit(0, operation, &Completions::collected(real));
    }

    /// Stamps a request and gives it to the pacer; `None` when the emulation has ended.
    pub(super) fn arrive(
        &self,
        token: u64,
        request: DeviceRequest,
        completions: &Completions,
    ) -> Option<usize> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        // Under the lock, so that arrivals are in the order of their times, and none comes later
        // than an event that the pacer has let happen.
        let path_ns = self.clock.shown_for(self.path.of_request(&request));
        let arrival = SimTime(self.clock.now_ns().saturating_sub(path_ns));
        let number = state.next_number;
        state.next_number += 1;
        let request = DeviceRequest { arrival, ..request };
        let flight = EmulatedRequest {
            token,
            completions: completions.clone(),
            number,
            request: request.clone(),
            depth: u32::try_from(state.flights.len() + 1).unwrap_or(u32::MAX),
            real: None,
            modelled_ns: None,
        };
        let slot = state.flights.insert(flight);
        state.arrivals.push(EmulatedArrival { slot, request });
        drop(state);
        self.changed.notify_one();
        Some(slot)
    }

    /// Answers a request. `overtaken` says that the modelled operation ended first.
    pub(super) fn answer(&self, answer: DueAnswer, overtaken: bool) {
        let DueAnswer { flight, completion } = answer;
        let EmulatedRequest { token, completions, number, request, depth, modelled_ns, .. } =
            flight;
        // Counted before the caller knows, who may end the emulation then.
        let now_ns = self.clock.now_ns();
        let modelled_ns = modelled_ns.unwrap_or(now_ns);
        let since = |at_ns: u64| at_ns.saturating_sub(request.arrival.0);
        let delay_ns = now_ns.saturating_sub(modelled_ns);
        self.state.lock().lag.answered(since(modelled_ns), delay_ns, overtaken);
        if let Some(observer) = &self.observer {
            let (modelled_ns, real_ns) = (since(modelled_ns), since(now_ns));
            observer(ServedRequest { number, request, modelled_ns, real_ns, depth });
        }
        completions.post(Completion { token, ..completion });
    }
}
