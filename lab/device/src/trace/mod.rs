//! Recorded requests: readers of the common trace formats, behind one interface.
//!
//! ```text
//!   text ──► lines ──► one reader per format ──► disks ──► times ──► addresses ──► Request
//!            (line.rs)  (disksim.rs, spc.rs…)  └────────── adjust.rs ──────────┘
//! ```
//!
//! [`read`] returns requests one at a time, in the order of the trace, and holds at most one line.
//! A line that can't be parsed ends the trace with an error that names the line, the column, the
//! text found and the text expected. No request is guessed, and a bad line is skipped only if
//! [`TraceOptions::skip_bad`] allows it, and counted. Lines without a
//! request (blkparse's other events, comments) are counted in [`Tally::other_lines`].
//!
//! ```
//! use merganser_device::trace::{self, TraceOptions};
//! let text = "0.000000 0 2048 8 1\n1.500000 0 4096 16 0\n";
//! let requests: Result<Vec<_>, _> = trace::read(text.as_bytes(), &TraceOptions::default())?.collect();
//! let requests = requests?;
//! assert_eq!((requests[1].arrival.0, requests[1].offset, requests[1].len), (1_500_000, 4096 * 512, 8192));
//! # Ok::<(), trace::TraceError>(())
//! ```

mod adjust;
mod blkparse;
mod detect;
mod disksim;
mod error;
mod event;
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

pub use adjust::{AddressConversion, Disks, TraceOptions};
pub use error::{NoRequest, TraceError};
pub use event::BlkparseEvent;
pub use format::TraceFormat;
pub use own::{HEADER, TraceWriter};
pub use parsed::TraceDisk;
pub use reader::{TraceReader, read};
pub use record::{RecordingDirectory, TraceRecorder};
pub use repeat::Repeat;
pub use tally::Tally;
