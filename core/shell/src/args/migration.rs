//! When a volume of disks moves pages.

use clap::ValueEnum;

/// When pages move from the buffer to the data members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MigrationName {
    /// When no request has come for 200 ms, and when a write has to wait for room
    Idle,
    /// As soon as possible
    Immediate,
    /// Above the high-water mark
    HighWater,
}
