//! Submits requests to a device and collects the results.

use std::io;

use crate::device::{Command, Device, Done};
use crate::request::{Request, SimTime};
use crate::results::{Collector, Played};
use crate::trace::TraceError;

/// When requests are submitted to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At their arrival times, however busy the device is.
    Open,
    /// This number is always in flight; arrival times are ignored.
    Closed(u32),
}

/// The latest arrival, in nanoseconds: 146 years. The rest of the numbers is for the time after it.
pub const ARRIVAL_NS_MAX: u64 = 1 << 62;

/// Why requests were not served.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The device refused a request.
    #[error("request {number} ({len} bytes at byte {offset}): {error}")]
    Refused {
        /// Counted from 1.
        number: u64,
        /// Its first byte.
        offset: u64,
        /// Its bytes.
        len: u64,
        /// The device's error.
        error: io::Error,
    },
    /// A request arrives so late that the model could not count the time after it.
    #[error("request {number} arrives {} ns after the start, expected at most {ARRIVAL_NS_MAX}", arrival.0)]
    Late {
        /// Counted from 1.
        number: u64,
        /// Its arrival.
        arrival: SimTime,
    },
    /// The device has no more events, but has not ended all requests: its model is wrong.
    #[error("{given} requests were given and {served} served")]
    Lost {
        /// The number of submitted requests.
        given: u64,
        /// The number of requests that ended.
        served: u64,
    },
}

/// Submits `requests` to `device` and waits for all of them. Arrival times count from the device's
/// current time.
///
/// # Errors
/// When one can't be read, or was refused by the device.
pub fn play(
    device: &mut dyn Device,
    requests: impl IntoIterator<Item = Result<Request, TraceError>>,
    pace: Pace,
    collector: &mut Collector,
) -> Result<Played, PlayError> {
    let mut player = Player::new(device, collector);
    for request in requests {
        player.submit(&request?, pace)?;
    }
    player.drain()
}

struct Player<'a> {
    device: &'a mut dyn Device,
    collector: &'a mut Collector,
    start: SimTime,
    end: SimTime,
    given: u64,
    served: u64,
    /// The requests in flight, by their number: a completion has only the number.
    flying: std::collections::HashMap<u64, Request>,
}

impl<'a> Player<'a> {
    fn new(device: &'a mut dyn Device, collector: &'a mut Collector) -> Self {
        let start = device.now();
        let flying = std::collections::HashMap::new();
        Player { device, collector, start, end: start, given: 0, served: 0, flying }
    }

    fn submit(&mut self, request: &Request, pace: Pace) -> Result<(), PlayError> {
        let at = match pace {
            Pace::Open if request.arrival.0 > ARRIVAL_NS_MAX => {
                let arrival = request.arrival;
                return Err(PlayError::Late { number: self.given + 1, arrival });
            }
            Pace::Open => {
                let at = SimTime(self.start.0.saturating_add(request.arrival.0));
                // Events at exactly this time come first.
                while self.device.next_at().is_some_and(|next| next <= at) {
                    self.step()?;
                }
                at
            }
            Pace::Closed(depth) => {
                while self.flying.len() >= depth.max(1) as usize {
                    self.step()?;
                }
                self.end
            }
        };
        self.given += 1;
        let Request { kind, offset, len, .. } = *request;
        self.flying.insert(self.given, request.clone());
        let at = at.max(self.device.now());
        self.device.submit(at, Command { id: self.given, kind, offset, len, buffer: None });
        self.collect()
    }

    /// Processes one event.
    fn step(&mut self) -> Result<(), PlayError> {
        if !self.device.advance() {
            return Err(PlayError::Lost { given: self.given, served: self.served });
        }
        self.collect()
    }

    fn collect(&mut self) -> Result<(), PlayError> {
        while let Some(Done { id, submitted, at, result, .. }) = self.device.completed() {
            let Some(request) = self.flying.remove(&id) else {
                return Err(PlayError::Lost { given: self.given, served: self.served });
            };
            let Request { kind, offset, len, .. } = request;
            if let Err(error) = result {
                return Err(PlayError::Refused { number: id, offset, len, error });
            }
            self.served += 1;
            self.end = self.end.max(at);
            self.collector.served(kind, len, submitted, at);
        }
        Ok(())
    }

    fn drain(mut self) -> Result<Played, PlayError> {
        while !self.flying.is_empty() {
            self.step()?;
        }
        Ok(Played { requests: self.served, start: self.start, end: self.end })
    }
}
