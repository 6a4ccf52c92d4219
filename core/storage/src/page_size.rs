//! Which pages back large buffers: huge pages, or small ones of 4 KiB.
//!
//! Huge pages save the processor's search for addresses, and most systems back memory sooner in them: one
//! fault instead of 512. On some virtual machines they cost more. The host takes memory back that its
//! guest has freed in large pieces, and finds it again page by page at the next first use; small pages come from what the
//! guest has kept. A sort in memory took twice as long there. So a process measures both, once:
//!
//! ```text
//!   small  |2 MiB|2 MiB|2 MiB| ...      touched in turn, and kept until the last has been touched: memory
//!   huge   |2 MiB|2 MiB|2 MiB| ...      that was freed a moment ago says nothing about fresh memory
//! ```

use std::fmt;
use std::io;
use std::sync::OnceLock;

use rustix::mm::Advice;
use rustix::time::{ClockId, clock_gettime};

use crate::buffer::{Buffer, HUGE_PAGE_BYTES, SMALL_PAGE_BYTES};

/// Buffers from this size on are worth a measurement, which takes 5 to 35 ms: less than a hundredth of the time to
/// sort that number of bytes.
pub const MEASURED_FROM_BYTES: usize = 128 << 20;

/// Huge pages that are touched, and as many bytes in small ones.
const ROUNDS: usize = 6;

static CHOSEN: OnceLock<BufferPages> = OnceLock::new();

/// What backs the large buffers of this process, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferPages {
    /// Small pages: the system gives no huge ones, or no memory to try them.
    NoHuge,
    /// Small pages: huge ones take longer.
    Small(TouchTimes),
    /// Huge pages.
    Huge(TouchTimes),
}

/// How long the first use of 2 MiB of fresh memory takes the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TouchTimes {
    /// In pages of 4 KiB, in nanoseconds.
    pub small_ns: u64,
    /// As one huge page.
    pub huge_ns: u64,
}

impl BufferPages {
    /// The choice of this process. The first call measures.
    pub fn choose() -> Self {
        *CHOSEN.get_or_init(|| {
            let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
            if cfg!(miri) || enabled.is_ok_and(|enabled| enabled.contains("[never]")) {
                return BufferPages::NoHuge;
            }
            measure().map_or(BufferPages::NoHuge, |(small, huge)| decide(small, huge))
        })
    }

    /// The choice, if this process has made it.
    #[must_use]
    pub fn chosen() -> Option<Self> {
        CHOSEN.get().copied()
    }

    /// Whether large buffers are in huge pages.
    #[must_use]
    pub fn are_huge(self) -> bool {
        matches!(self, BufferPages::Huge(_))
    }

    /// The figures behind the choice.
    #[must_use]
    pub fn times(self) -> Option<TouchTimes> {
        match self {
            BufferPages::NoHuge => None,
            BufferPages::Small(times) | BufferPages::Huge(times) => Some(times),
        }
    }
}

impl fmt::Display for BufferPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.are_huge() { "huge pages" } else { "pages of 4 KiB" };
        match self.times() {
            None => write!(f, "{name}; the system gives no huge pages"),
            Some(TouchTimes { small_ns, huge_ns }) => write!(
                f,
                "{name}; the first use of 2 MiB takes {:.2} ms as a huge page, {:.2} ms in pages of 4 KiB",
                huge_ns as f64 / 1e6,
                small_ns as f64 / 1e6,
            ),
        }
    }
}

/// The advice for a fresh buffer of `len` bytes, which is large enough for huge pages. Before a choice is made,
/// smaller buffers are in huge pages.
pub(crate) fn advice(len: usize) -> Advice {
    let pages = if len >= MEASURED_FROM_BYTES {
        Some(BufferPages::choose())
    } else {
        BufferPages::chosen()
    };
    if pages.is_none_or(BufferPages::are_huge) {
        Advice::LinuxHugepage
    } else {
        Advice::LinuxNoHugepage
    }
}

/// Nanoseconds of each round in small pages, and in huge ones.
fn measure() -> io::Result<([u64; ROUNDS], [u64; ROUNDS])> {
    let mut small = Buffer::advised(ROUNDS * HUGE_PAGE_BYTES, Advice::LinuxNoHugepage)?;
    let mut huge = Buffer::advised(ROUNDS * HUGE_PAGE_BYTES, Advice::LinuxHugepage)?;
    let mut times = ([0; ROUNDS], [0; ROUNDS]);
    let pieces =
        small.chunks_exact_mut(HUGE_PAGE_BYTES).zip(huge.chunks_exact_mut(HUGE_PAGE_BYTES));
    for (round, (small, huge)) in pieces.enumerate() {
        times.0[round] = touch_ns(small);
        times.1[round] = touch_ns(huge);
    }
    Ok(times)
}

/// Nanoseconds that this thread works to write one byte into each page. Other threads' turns don't count.
fn touch_ns(memory: &mut [u8]) -> u64 {
    let now_ns = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    };
    let from_ns = now_ns();
    for byte in memory.iter_mut().step_by(SMALL_PAGE_BYTES) {
        *byte = 1;
    }
    std::hint::black_box(memory);
    now_ns().saturating_sub(from_ns)
}

/// The choice for these rounds. Each kind is judged by its second slowest round but one: a large buffer soon
/// leaves the few pages behind that an ended program has just freed, and one or two rounds may be slow by chance.
///
/// Huge pages must be slower by a quarter to lose, since they save time after the first use, too.
fn decide(mut small_ns: [u64; ROUNDS], mut huge_ns: [u64; ROUNDS]) -> BufferPages {
    let judged = |rounds: &mut [u64; ROUNDS]| {
        rounds.sort_unstable();
        rounds[ROUNDS - 3]
    };
    let times = TouchTimes { small_ns: judged(&mut small_ns), huge_ns: judged(&mut huge_ns) };
    if times.huge_ns > times.small_ns.saturating_mul(5) / 4 {
        BufferPages::Small(times)
    } else {
        BufferPages::Huge(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_huge(small_ns: [u64; ROUNDS], huge_ns: [u64; ROUNDS]) -> bool {
        decide(small_ns, huge_ns).are_huge()
    }

    #[test]
    fn the_faster_kind_wins_whatever_a_few_rounds_say() {
        let evenly = |ns| [ns; ROUNDS];
        assert!(is_huge(evenly(1200), evenly(250)), "one fault instead of 512");
        assert!(!is_huge(evenly(1600), evenly(4000)), "a host that backs memory page by page");
        assert!(is_huge(evenly(0), evenly(0)), "a clock that stands still decides nothing");
        // Up to two rounds were interrupted.
        assert!(is_huge(evenly(1200), [250, 9000, 240, 260, 9000, 250]));
        assert!(!is_huge([1600, 1700, 90_000, 1600, 80_000, 1500], evenly(4000)));
        // Up to three huge pages had just been freed by another program.
        assert!(!is_huge(evenly(1600), [250, 260, 4000, 3900, 4100, 250]));
        // Little slower is worth it, a quarter is the border.
        assert!(is_huge(evenly(1000), evenly(1250)));
        assert!(!is_huge(evenly(1000), evenly(1251)));
        assert!(!is_huge(evenly(u64::MAX / 5 * 4 / 2), evenly(u64::MAX)));
    }

    #[test]
    fn a_choice_says_its_reason() {
        let times = TouchTimes { small_ns: 1_600_000, huge_ns: 4_000_000 };
        assert_eq!(
            BufferPages::Small(times).to_string(),
            "pages of 4 KiB; the first use of 2 MiB takes 4.00 ms as a huge page, 1.60 ms in pages of 4 KiB"
        );
        assert!(BufferPages::Huge(times).to_string().starts_with("huge pages; the first use"));
        assert_eq!(
            BufferPages::NoHuge.to_string(),
            "pages of 4 KiB; the system gives no huge pages"
        );
    }

    #[test]
    fn a_process_chooses_once_and_its_buffers_follow() {
        let chosen = BufferPages::choose();
        assert_eq!((BufferPages::choose(), BufferPages::chosen()), (chosen, Some(chosen)));
        let follows = matches!(advice(HUGE_PAGE_BYTES), Advice::LinuxHugepage);
        assert_eq!(follows, chosen.are_huge());
    }
}
