//! A trace, several times.

use crate::request::{Request, SimTime};

use super::TraceError;

/// Gives all requests of what `open` opens, `times` times. A round begins after the last one's last
/// request, by the mean distance of requests.
pub struct Repeat<F, I> {
    open: F,
    left: u64,
    round: Option<I>,
    /// Where this round began.
    base_ns: u64,
    /// The last arrival of this round, and how many there were.
    last_ns: u64,
    count: u64,
}

impl<F, I> Repeat<F, I>
where
    F: FnMut() -> Result<I, TraceError>,
    I: Iterator<Item = Result<Request, TraceError>>,
{
    /// `times` rounds.
    pub fn new(times: u64, open: F) -> Self {
        Repeat { open, left: times, round: None, base_ns: 0, last_ns: 0, count: 0 }
    }

    /// The round that is being read.
    pub fn round(&self) -> Option<&I> {
        self.round.as_ref()
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
        self.round = Some((self.open)()?);
        Ok(true)
    }
}

impl<F, I> Iterator for Repeat<F, I>
where
    F: FnMut() -> Result<I, TraceError>,
    I: Iterator<Item = Result<Request, TraceError>>,
{
    type Item = Result<Request, TraceError>;

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
                None => self.round = None,
            }
        }
    }
}
