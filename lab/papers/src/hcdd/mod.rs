//! HcDD, the hybrid volume of chapter 5 of the dissertation, on modelled devices in virtual time.
//!
//! ```text
//!   requests ──► Node ── Outline (array/array: ring, directory, maps, deduplication) ──► steps
//!                 │                                                                        │
//!                 └── processor (hashes) ◄───────────── jobs ──────────────► disks and SSDs
//! ```
//!
//! [`NodeSetup`] names the devices and the arrangement, [`HybridNode`] plays requests on them, and [`ResponseTimes`] is
//! the result. The experiments are `reproduce hcdd-dedup`, `hcdd-time` and `hcdd-response`.

#[cfg(test)]
mod bands;
pub(crate) mod dedup;
mod jobs;
mod load;
mod measured;
mod node;
mod recorded;
pub(crate) mod response;
mod runs;
mod setup;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod worth;

pub use load::{Contents, Duplicates};
pub use measured::ResponseTimes;
pub use node::{HybridNode, NodeError, SubmissionPace};
pub use setup::{Arrangement, NodeSetup};
