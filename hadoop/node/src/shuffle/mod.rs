//! The shuffle of Hadoop, near the disk: spills of a map task are merged when they are fetched, so a
//! merged map output is never written.
//!
//! ```text
//!   spill 0   ... ├ segment of partition p ┤ ...        The merged segment is what Hadoop would have
//!   spill 1   ... ├ segment of partition p ┤ ...  ──►   written, byte for byte: same records in the
//!   spill k   ... ├ segment of partition p ┤ ...        same order, same framing, a fresh checksum.
//! ```
//!
//! [`SegmentMerge`] makes it from files. It is all that a reduce task needs, in its own process. For
//! fetches, [`server`] runs many of them next to Hadoop's NodeManager, on request ([`protocol`]).
//! `admission` bounds how many run at once, `local_dirs` which files they read.
//!
//! The engine has the parts: `sort/record/ifile.rs` frames records, `sort/key/writable/` knows how serialized keys
//! compare (a slice of the record, a number, or an encoding of several fields), and `sort/merge/ifile.rs` merges
//! sources that fill themselves, by the loser tree of the kernel. Only the head of a record has to be in memory.

mod admission;
pub mod calibration;
mod error;
mod local_dirs;
mod merge;
pub mod protocol;
mod segment;
pub mod server;

pub use error::{Shortage, ShuffleError, ShuffleResult, SpillRefusal};
pub use merganser_sort::key::{WritableOrder, WritableOrderError};
pub use merge::SegmentMerge;
pub use segment::SegmentSpec;
