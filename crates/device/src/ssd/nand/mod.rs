//! Flash memory: what it holds ([`mod@array`]) and how long it takes ([`timing`]).
//!
//! The two are apart on purpose. What is where changes at once, when the translation layer decides;
//! the time for it is then spent by operations that queue at their die in the order of those
//! decisions. So content never depends on timing, and a read sees the latest write before it.

pub(crate) mod array;
pub(crate) mod timing;

/// A block of the device: dies hold planes hold blocks, numbered through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block(pub u32);

/// A place for one mapped unit: blocks hold pages hold units, numbered through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhysicalUnit(pub u32);

/// The number of a unit as the host addresses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogicalUnit(pub u32);
