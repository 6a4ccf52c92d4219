//! Recorded requests: readers of the trace formats that the field uses, behind one door.
//!
//! ```text
//!   text ──► lines ──► one reader a format ──► units ──► times ──► addresses ──► Request
//!            (line.rs)  (disksim.rs, spc.rs…)  └────────── adjust.rs ──────────┘
//! ```
//!
//! [`read`] gives requests one at a time, in the order of the trace, and never holds more than a
//! line. A line that can't be understood ends the trace with an error that says which line, which
//! column, what was found and what belongs there: no request is guessed, none is left out unnoticed.
//! What a format holds besides requests (blkparse's other events, comments) is counted in
//! [`Tally::other_lines`].
//!
//! ```
//! use device::trace::{self, Options};
//! let text = "0.000000 0 2048 8 1\n1.500000 0 4096 16 0\n";
//! let requests: Result<Vec<_>, _> = trace::read(text.as_bytes(), &Options::default())?.collect();
//! let requests = requests?;
//! assert_eq!((requests[1].arrival.0, requests[1].offset, requests[1].len), (1_500_000, 4096 * 512, 8192));
//! # Ok::<(), trace::TraceError>(())
//! ```

mod adjust;
mod blkparse;
mod detect;
mod disksim;
mod error;
mod fiu;
mod format;
mod line;
mod mqsim;
mod msr;
mod own;
mod parsed;
mod reader;
mod record;
mod repeat;
mod spc;
mod tally;
#[cfg(test)]
mod tests;

pub use adjust::{Address, Disks, Options};
pub use blkparse::Event;
pub use error::TraceError;
pub use format::Format;
pub use own::{HEADER, Writer};
pub use parsed::TraceDisk;
pub use reader::{Trace, read};
pub use record::{Recorder, RecordingDirectory};
pub use repeat::Repeat;
pub use tally::Tally;
