//! The offsets of requests, in slots of the alignment's size.

use merganser_random::Random;

use super::zipf::Zipf;

/// The offsets of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AccessPattern {
    /// Each request begins where the last one ended; at the end of the span it starts again.
    Sequential,
    /// Each request begins this many bytes behind the end of the last one.
    Strided(u64),
    /// All offsets are equally likely.
    Random,
    /// This share of requests has a random offset; the others continue behind the last request.
    Mixed(f64),
    /// Slot number k of n is addressed with a probability proportional to k^-theta; the numbers are
    /// scattered over the span. 0 is random; YCSB uses 0.99.
    Zipf(f64),
}

/// Draws the offsets of requests.
#[derive(Debug, Clone)]
pub(super) struct Offsets {
    pattern: AccessPattern,
    random: Random,
    zipf: Option<Zipf>,
    slots: u64,
    slot_bytes: u64,
    /// Odd and prime to `slots`: the factor that scatters Zipf's numbers.
    scatter: u64,
    /// The end of the last request, in bytes.
    end: u64,
}

impl Offsets {
    pub(super) fn new(pattern: AccessPattern, slots: u64, slot_bytes: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let zipf = match pattern {
            AccessPattern::Zipf(theta) => Some(Zipf::new(slots, theta)),
            _ => None,
        };
        // Near the golden section, so that neighbours are scattered far apart.
        let mut scatter = (slots as f64 * 0.618_033_988_749_894_9) as u64 | 1;
        while common_divisor(scatter, slots) != 1 {
            scatter += 2;
        }
        if matches!(pattern, AccessPattern::Sequential | AccessPattern::Strided(_)) {
            random = Random::new(0);
        }
        Offsets { pattern, random, zipf, slots, slot_bytes, scatter, end: 0 }
    }

    /// The first byte of the next request, of `len` bytes, within the span.
    pub(super) fn next(&mut self, len: u64) -> u64 {
        let offset = match self.pattern {
            AccessPattern::Sequential => self.continued(0, len),
            AccessPattern::Strided(gap) => self.continued(gap, len),
            AccessPattern::Mixed(share) if self.random.fraction() >= share => {
                self.continued(0, len)
            }
            AccessPattern::Mixed(_) | AccessPattern::Random => {
                self.random.below(self.room(len)) * self.slot_bytes
            }
            AccessPattern::Zipf(_) => {
                let zipf = self.zipf.as_ref().expect("made with the pattern");
                let rank = zipf.draw(&mut self.random) - 1;
                let slot = u128::from(rank) * u128::from(self.scatter) % u128::from(self.slots);
                (slot as u64).min(self.room(len) - 1) * self.slot_bytes
            }
        };
        self.end = offset + len;
        offset
    }

    /// Slots at which a request of `len` bytes may begin.
    fn room(&self, len: u64) -> u64 {
        (self.slots + 1).saturating_sub(len / self.slot_bytes).max(1)
    }

    fn continued(&self, gap: u64, len: u64) -> u64 {
        // There is no request before the first one.
        let gap = if self.end == 0 { 0 } else { gap };
        let offset = self.end.saturating_add(gap);
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.slots * self.slot_bytes);
        if fits { offset } else { 0 }
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
