//! Submits requests to a device and collects the results.
//!
//! ```text
//!   stream: requests, pace, begin ──┐
//!   stream: requests, pace, begin ──┴─► the request that is due first ──► device ──► Ended
//! ```

use std::collections::VecDeque;
use std::io;

use crate::device::{CompletedCommand, Device, IoCommand};
use crate::request::{DeviceRequest, SimTime};
use crate::results::{Collector, EndedRequest, PlayedSpan};
use crate::trace::TraceError;

/// When requests are submitted to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionPace {
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

/// Requests that are played in their order, alone or together with other streams.
#[derive(Debug)]
pub struct RequestStream<I> {
    /// The requests.
    pub requests: I,
    /// When they are submitted. A number in flight counts the requests of this stream.
    pub pace: SubmissionPace,
    /// The time at which the stream begins, since the start. Arrival times count from it.
    pub begin: SimTime,
}

/// Submits `requests` to `device` and waits for all of them. Arrival times count from the device's
/// current time.
///
/// # Errors
/// When one can't be read, or was refused by the device.
pub fn play(
    device: &mut dyn Device,
    requests: impl IntoIterator<Item = Result<DeviceRequest, TraceError>>,
    pace: SubmissionPace,
    collector: &mut Collector,
) -> Result<PlayedSpan, PlayError> {
    let requests = requests.into_iter();
    let stream = RequestStream { requests, pace, begin: SimTime(0) };
    play_streams(device, vec![stream], &mut |device, ended| {
        collector.served(device, ended.kind, ended.len, ended.submitted, ended.at);
    })
}

/// Submits the requests of all `streams` to `device`, each stream at its own pace, and waits for all of
/// them. `ended` gets each request when it has ended. One stream that begins at 0 is played as by
/// [`play`].
///
/// # Errors
/// When a request can't be read, or was refused by the device.
pub fn play_streams<I>(
    device: &mut dyn Device,
    streams: Vec<RequestStream<I>>,
    ended: &mut dyn FnMut(&dyn Device, &EndedRequest),
) -> Result<PlayedSpan, PlayError>
where
    I: Iterator<Item = Result<DeviceRequest, TraceError>>,
{
    let start = device.now();
    let after = |span: SimTime| SimTime(start.0.saturating_add(span.0));
    let all_begun = streams.iter().map(|stream| after(stream.begin)).max().unwrap_or(start);
    let mut queues = Vec::with_capacity(streams.len());
    for RequestStream { mut requests, pace, begin } in streams {
        let next = requests.next().transpose()?;
        let begin = after(begin);
        queues.push(StreamQueue { requests, next, pace, begin, free: begin, flying: 0, given: 0 });
    }
    let player = Player {
        device,
        ended,
        some_given: queues.iter().any(|queue| queue.next.is_none()),
        queues,
        all_begun,
        flying: RequestsInFlight::default(),
        start,
        end: start,
        served: 0,
    };
    player.run()
}

/// The requests of a stream that were not submitted.
struct StreamQueue<I> {
    requests: I,
    next: Option<DeviceRequest>,
    pace: SubmissionPace,
    begin: SimTime,
    /// With a number in flight: when the last request ended, so that the next one may begin.
    free: SimTime,
    flying: u32,
    given: u64,
}

impl<I> StreamQueue<I> {
    /// When the next request is to be submitted; `None` if that depends on the end of another one, or
    /// if no request is left.
    fn due(&self) -> Option<SimTime> {
        let next = self.next.as_ref()?;
        match self.pace {
            SubmissionPace::Open => Some(SimTime(self.begin.0.saturating_add(next.arrival.0))),
            SubmissionPace::Closed(depth) => (self.flying < depth.max(1)).then_some(self.free),
        }
    }
}

/// A request in flight.
struct RequestInFlight {
    stream: usize,
    number: u64,
    together: bool,
    request: DeviceRequest,
}

/// The requests in flight by the numbers of their commands, which count up from 1: a completion has only
/// the number.
#[derive(Default)]
struct RequestsInFlight {
    /// From the oldest one in flight on; `None` has ended.
    flights: VecDeque<Option<RequestInFlight>>,
    /// The number of the first.
    first: u64,
    count: usize,
}

impl RequestsInFlight {
    /// Adds one; returns its number.
    fn begin(&mut self, flight: RequestInFlight) -> u64 {
        self.flights.push_back(Some(flight));
        self.count += 1;
        self.first + self.flights.len() as u64
    }

    fn end(&mut self, number: u64) -> Option<RequestInFlight> {
        let at = number.checked_sub(self.first + 1)?;
        let flight = self.flights.get_mut(usize::try_from(at).ok()?)?.take()?;
        self.count -= 1;
        while self.flights.front().is_some_and(Option::is_none) {
            self.flights.pop_front();
            self.first += 1;
        }
        Some(flight)
    }
}

struct Player<'a, I> {
    device: &'a mut dyn Device,
    ended: &'a mut dyn FnMut(&dyn Device, &EndedRequest),
    queues: Vec<StreamQueue<I>>,
    /// The time when all streams have begun.
    all_begun: SimTime,
    /// Whether a stream has submitted its last request.
    some_given: bool,
    flying: RequestsInFlight,
    start: SimTime,
    end: SimTime,
    served: u64,
}

impl<I: Iterator<Item = Result<DeviceRequest, TraceError>>> Player<'_, I> {
    fn run(mut self) -> Result<PlayedSpan, PlayError> {
        loop {
            let due = self.queues.iter().enumerate();
            let due = due.filter_map(|(index, queue)| Some((queue.due()?, index))).min();
            match due {
                Some((at, index)) if !self.event_comes_before(at, index) => {
                    self.submit(at, index)?;
                }
                None if self.flying.count == 0 => break,
                Some(_) => self.step()?,
                None => {
                    // Only the end of a request makes another one due.
                    let served = self.served;
                    while self.served == served {
                        self.step()?;
                    }
                }
            }
        }
        Ok(PlayedSpan { requests: self.served, start: self.start, end: self.end })
    }

    /// Whether an event of the device happens before a request that is due at `at`. Events at exactly
    /// this time come first, except that the end of a request starts the next one at once.
    fn event_comes_before(&self, at: SimTime, index: usize) -> bool {
        let at_once =
            matches!(self.queues[index].pace, SubmissionPace::Closed(_)) && at <= self.device.now();
        !at_once && self.device.next_at().is_some_and(|next| next <= at)
    }

    fn submit(&mut self, at: SimTime, index: usize) -> Result<(), PlayError> {
        let queue = &mut self.queues[index];
        let request = queue.next.take().expect("it is due");
        if queue.pace == SubmissionPace::Open && request.arrival.0 > ARRIVAL_NS_MAX {
            return Err(PlayError::Late { number: queue.given + 1, arrival: request.arrival });
        }
        queue.next = queue.requests.next().transpose()?;
        let at = at.max(self.device.now());
        let together = at >= self.all_begun && !self.some_given;
        let DeviceRequest { kind, offset, len, .. } = request;
        let flight = RequestInFlight { stream: index, number: queue.given, together, request };
        queue.given += 1;
        queue.flying += 1;
        self.some_given |= queue.next.is_none();
        let id = self.flying.begin(flight);
        self.device.submit(at, IoCommand { id, kind, offset, len, buffer: None });
        self.collect()
    }

    /// Processes one event.
    fn step(&mut self) -> Result<(), PlayError> {
        if !self.device.advance() {
            return Err(self.lost());
        }
        self.collect()
    }

    fn lost(&self) -> PlayError {
        let given = self.queues.iter().map(|queue| queue.given).sum();
        PlayError::Lost { given, served: self.served }
    }

    /// Most events end no request.
    #[inline]
    fn collect(&mut self) -> Result<(), PlayError> {
        while let Some(done) = self.device.completed() {
            self.ended(done)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn ended(&mut self, done: CompletedCommand) -> Result<(), PlayError> {
        let CompletedCommand { id, submitted, at, result, .. } = done;
        let Some(flight) = self.flying.end(id) else { return Err(self.lost()) };
        let RequestInFlight { stream, number, together, request } = flight;
        let DeviceRequest { kind, offset, len, .. } = request;
        if let Err(error) = result {
            return Err(PlayError::Refused { number: number + 1, offset, len, error });
        }
        self.served += 1;
        self.end = self.end.max(at);
        let queue = &mut self.queues[stream];
        queue.flying -= 1;
        queue.free = queue.free.max(at);
        let order = id - 1;
        let ended =
            EndedRequest { stream, number, order, together, kind, offset, len, submitted, at };
        (self.ended)(&*self.device, &ended);
        Ok(())
    }
}
