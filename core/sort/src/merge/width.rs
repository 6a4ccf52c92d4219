//! How many bytes of its key a node of the loser tree holds: eight or sixteen.
//!
//! Eight make a match cheaper, and are enough where keys are as good as random. Where records that
//! meet in a match often begin with the same eight bytes, as lines of text do, every such tie looks
//! at whole keys, and sixteen are faster. So windows count their ties: sixteen follow a window of
//! eight that had many, and now and then a window tries eight again.

use std::sync::atomic::{AtomicU32, Ordering};

use super::kernel::MergeCount;

/// Words have sixteen bytes when at least one of this many matches is a tie.
const MATCHES_PER_TIE: u64 = 8;
/// Every `TRY_AGAIN`-th window with sixteen bytes tries eight.
const TRY_AGAIN: u32 = 32;

/// The widths that worked in earlier windows of one merge. Either width gives the same bytes.
#[derive(Debug, Default)]
pub(crate) struct Width {
    /// Windows until eight bytes are tried again; 0 for eight.
    wide: AtomicU32,
}

impl Width {
    /// Whether the next window is merged by sixteen bytes.
    pub(super) fn choose(&self) -> bool {
        let left = |n: u32| n.checked_sub(1);
        let before = self.wide.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        before.is_ok_and(|before| before > 1)
    }

    /// Learns from a window of eight bytes.
    pub(super) fn learn(&self, count: &MergeCount) {
        let wide = count.ties * MATCHES_PER_TIE > count.compares;
        self.wide.store(if wide { TRY_AGAIN } else { 0 }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_make_it_wide_and_eight_are_tried_again() {
        let width = Width::default();
        let ties = |ties| MergeCount { compares: 80, ties, ..MergeCount::default() };
        assert!(!width.choose());
        width.learn(&ties(10));
        assert!(!width.choose(), "one in eight is few");
        width.learn(&ties(11));
        for round in 0..3 {
            let wide = (0..TRY_AGAIN).take_while(|_| width.choose()).count();
            assert_eq!(wide as u32, TRY_AGAIN - 1, "round {round}");
            width.learn(&ties(80));
        }
        width.learn(&ties(0));
        assert!(!width.choose() && !width.choose());
    }
}
