//! Where requests go, in slots of the alignment's size.

use super::Pattern;
use super::zipf::Zipf;
use crate::sim::Random;

/// Draws places.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pattern: Pattern,
    random: Random,
    zipf: Option<Zipf>,
    slots: u64,
    slot_bytes: u64,
    /// Odd and prime to `slots`: what scatters Zipf's numbers.
    scatter: u64,
    /// Behind the last request, in bytes.
    end: u64,
}

impl Places {
    pub fn new(pattern: Pattern, slots: u64, slot_bytes: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let zipf = match pattern {
            Pattern::Zipf(theta) => Some(Zipf::new(slots, theta)),
            _ => None,
        };
        // Near the golden section, so that neighbours come to lie far apart.
        let mut scatter = (slots as f64 * 0.618_033_988_749_894_9) as u64 | 1;
        while common_divisor(scatter, slots) != 1 {
            scatter += 2;
        }
        if matches!(pattern, Pattern::Sequential | Pattern::Strided(_)) {
            random = Random::new(0);
        }
        Places { pattern, random, zipf, slots, slot_bytes, scatter, end: 0 }
    }

    /// The first byte of the next request, of `len` bytes, within the span.
    pub fn place(&mut self, len: u64) -> u64 {
        let offset = match self.pattern {
            Pattern::Sequential => self.next(0, len),
            Pattern::Strided(gap) => self.next(gap, len),
            Pattern::Mixed(share) if self.random.fraction() >= share => self.next(0, len),
            Pattern::Mixed(_) | Pattern::Random => {
                self.random.below(self.room(len)) * self.slot_bytes
            }
            Pattern::Zipf(_) => {
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

    fn next(&self, gap: u64, len: u64) -> u64 {
        // The first request has none before it.
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
