//! Flash memory: its content ([`mod@array`]) and its times ([`timing`]).
//!
//! The two are separate on purpose. The content changes at once, when the translation layer
//! decides. The time is then spent by operations that queue at their die in the order of these
//! decisions. So content never depends on timing, and a read sees the latest write before it.

pub(crate) mod array;
pub(crate) mod divisor;
pub(crate) mod timing;

/// The number of a block; the numbers run through the planes of all dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlashBlock(pub u32);

/// A physical place for one mapped unit; the numbers run through the pages of all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhysicalUnit(pub u32);

/// The number of a mapped unit as the host addresses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LogicalUnit(pub u32);
