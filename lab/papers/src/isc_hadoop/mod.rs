//! "In-Storage Computing for Hadoop MapReduce Framework" on real Hadoop: map tasks run on the node where the
//! block is, next to stock Hadoop.
//!
//! ```text
//!   lab/bench/hadoop/isc.py FIGURE --json FILE ──► --results FILE ──► Results ──► isc-hadoop-task, -size, ...
//! ```
//!
//! The measurements take an hour, need root and an idle machine, and are made in pieces. So these experiments
//! only read them.

pub mod devices;
pub mod host;
pub mod jobs;
mod results;
pub mod size;
pub mod task;
