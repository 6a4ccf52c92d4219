//! Contents of writes: those of the trace, or duplicates that are drawn.

use merganser_device::request::{DeviceRequest, RequestHashes, RequestKind};
use merganser_random::Random;

/// Contents that a duplicate can repeat at most: the latest ones.
const REMEMBERED: usize = 1 << 16;

/// Draws contents so that a share of the writes repeats one of the latest 65,536 contents.
#[derive(Debug)]
pub struct Duplicates {
    share: f64,
    random: Random,
    latest: Vec<u128>,
    made: u128,
}

impl Duplicates {
    /// A share from 0 to 1.
    #[must_use]
    pub fn new(share: f64, seed: u64) -> Duplicates {
        Duplicates { share, random: Random::new(seed), latest: Vec::new(), made: 0 }
    }

    fn draw(&mut self) -> u128 {
        if !self.latest.is_empty() && self.random.fraction() < self.share {
            return self.latest[self.random.below(self.latest.len() as u64) as usize];
        }
        self.made += 1;
        if self.latest.len() < REMEMBERED {
            self.latest.push(self.made);
        } else {
            self.latest[(self.made % REMEMBERED as u128) as usize] = self.made;
        }
        self.made
    }
}

/// Where contents come from.
#[derive(Debug)]
pub enum Contents {
    /// The trace; requests without a hash are like no others.
    Trace,
    /// Drawn, whatever the trace says.
    Drawn(Duplicates),
}

impl Contents {
    /// The request with its content.
    #[must_use]
    pub fn give(&mut self, request: DeviceRequest) -> DeviceRequest {
        match self {
            Contents::Drawn(duplicates) if request.kind == RequestKind::Write => {
                DeviceRequest { content: Some(RequestHashes::Whole(duplicates.draw())), ..request }
            }
            _ => request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_device::request::SimTime;

    #[test]
    fn a_share_of_the_writes_repeats_a_content() {
        for share in [0., 0.2951, 0.9] {
            let mut contents = Contents::Drawn(Duplicates::new(share, 1));
            let kind = RequestKind::Write;
            let write =
                DeviceRequest { arrival: SimTime(0), kind, offset: 0, len: 4096, content: None };
            let mut seen = std::collections::HashSet::new();
            let all = 100_000;
            let again =
                (0..all).filter(|_| !seen.insert(contents.give(write.clone()).content)).count();
            assert!((again as f64 / f64::from(all) - share).abs() < 0.005, "{share}: {again}");
            let read = DeviceRequest { kind: RequestKind::Read, ..write };
            assert_eq!(contents.give(read).content, None);
        }
    }
}
