//! The way of a sort.

use clap::ValueEnum;

/// What follows `--strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StrategyName {
    /// The program chooses.
    Auto,
    /// Sorted runs, merged.
    Merge,
    /// Buckets by key range.
    Distribute,
}
