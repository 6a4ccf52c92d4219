//! A modelled device against the wall clock: data in a real storage, time from the model.
//!
//! ```text
//!   submit ──┬── arrival, stamped ──► pacer: the model's events, when they are due ──┐ modelled end
//!            │                                                                       ├─► answer, at the later
//!            └── the operation ─────► backing storage (a file, or memory) ───────────┘   of both
//! ```
//!
//! A request takes as long as the model says, however fast the backing storage is. The model gets each
//! request at the moment at which it arrived, with all that are in flight, and never waits for the
//! machine: where the backing storage, or the thread that keeps the time, is late, the answer is late,
//! and the model does not know. [`EmulationLag`] counts how late answers were; [`EmulationLag::is_valid`] says whether
//! the run may be believed.
//!
//! A disk may be emulated slower than it is ([`EmulatedOptions::slower`]): then the clock is slower, and everything
//! that this module counts, lag too, is in the time of the model.
//!
//! A flush ends when the model and the backing storage have both done it. A discard frees the
//! model's pages and the backing storage's blocks. A write with forced unit access is a write and a
//! flush for the model, as it has no such write of its own.

mod hasher;
mod lag;
mod null;
mod observer;
mod pacer;
mod shared;
mod slow_clock;
mod storage;

pub use lag::EmulationLag;
pub use null::Null;
pub use observer::{Observer, ServedRequest};
pub use shared::PathTime;
pub use storage::{Emulated, EmulatedOptions, EmulationResults, SPIN_NS};
