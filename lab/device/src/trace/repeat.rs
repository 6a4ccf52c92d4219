//! Plays a trace several times.

use std::io::BufRead;

use super::error::TraceError;
use super::format::TraceFormat;
use super::reader::TraceReader;
use super::tally::Tally;
use crate::request::{DeviceRequest, SimTime};

/// Returns all requests of the trace that `open` opens, `times` times. A round begins after the
/// last request of the round before, at the mean distance of requests.
pub struct Repeat<F, R> {
    open: F,
    left: u64,
    round: Option<TraceReader<R>>,
    format: Option<TraceFormat>,
    /// Of the rounds before this one.
    tally: Tally,
    /// The start of this round.
    base_ns: u64,
    /// The last arrival of this round, and the number of requests.
    last_ns: u64,
    count: u64,
}

impl<F, R> Repeat<F, R>
where
    F: FnMut() -> Result<TraceReader<R>, TraceError>,
    R: BufRead,
{
    /// `times` rounds.
    pub fn new(times: u64, open: F) -> Self {
        let (format, tally) = (None, Tally::default());
        Repeat { open, left: times, round: None, format, tally, base_ns: 0, last_ns: 0, count: 0 }
    }

    /// The format, once a line was read.
    pub fn format(&self) -> Option<TraceFormat> {
        self.format
    }

    /// The counts of the lines read so far, in all rounds.
    pub fn tally(&self) -> Tally {
        let mut all = self.tally;
        if let Some(round) = &self.round {
            all.add(round.tally());
        }
        all
    }

    fn begin(&mut self) -> Result<bool, TraceError> {
        if self.left == 0 {
            return Ok(false);
        }
        if self.count > 0 {
            let gaps = (self.count - 1).max(1);
            self.base_ns = self.base_ns.saturating_add(self.last_ns + self.last_ns / gaps);
        }
        self.left -= 1;
        (self.last_ns, self.count) = (0, 0);
        let round = (self.open)()?;
        self.format = Some(round.format());
        self.round = Some(round);
        Ok(true)
    }
}

impl<F, R> Iterator for Repeat<F, R>
where
    F: FnMut() -> Result<TraceReader<R>, TraceError>,
    R: BufRead,
{
    type Item = Result<DeviceRequest, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.round.is_none() {
                match self.begin() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => {
                        self.left = 0;
                        return Some(Err(error));
                    }
                }
            }
            match self.round.as_mut()?.next() {
                Some(Ok(mut request)) => {
                    self.last_ns = request.arrival.0;
                    self.count += 1;
                    request.arrival = SimTime(self.base_ns.saturating_add(request.arrival.0));
                    return Some(Ok(request));
                }
                Some(Err(error)) => {
                    self.left = 0;
                    return Some(Err(error));
                }
                // An empty trace stays empty, however often it is read.
                None if self.left == 0 || self.count == 0 => return None,
                None => {
                    self.tally = self.tally();
                    self.round = None;
                }
            }
        }
    }
}
