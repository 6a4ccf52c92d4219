//! Generated requests, and the player that submits requests to a device.
//!
//! ```text
//!   Workload ──► Requests ──┐
//!   (one seed)              ├──► play ──► Device
//!   trace::read ────────────┘      └────► results::Collector
//! ```
//!
//! Several streams of requests can be played together, each at its own pace ([`play_streams`]).
//!
//! A [`Workload`] defines the offsets of requests ([`AccessPattern`]), their sizes ([`Sizes`]), the share
//! of reads, and the arrival times ([`Arrivals`]). All of it is drawn from one seed, with
//! arithmetic that is the same on every machine (`math`). So its settings define a workload
//! completely.

mod generator;
mod math;
mod pattern;
mod play;
mod precondition;
#[cfg(test)]
mod tests;
mod zipf;

pub use generator::{Arrivals, Sizes, Workload, WorkloadError, WorkloadRequests};
pub use pattern::AccessPattern;
pub use play::{ARRIVAL_NS_MAX, PlayError, RequestStream, SubmissionPace, play, play_streams};
pub use precondition::{Bounds, PreconditionError, Preconditioned, Preconditioning, precondition};
