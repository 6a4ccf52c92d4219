//! Results that are made in stages, and what is left of them when a command is killed: the code that could lose a user's
//! only copy.
//!
//! ```text
//!   a program: flags, sentences, signals
//!      │ paths, what to do            ▲ typed errors, notices
//!      ▼                              │
//!   unfinished   the folder where a result grows, and how the result gets its name
//!   consume      a sort whose inputs give their space back
//!   materialize  a view that becomes a file, and perhaps loses its bytes meanwhile
//!   leftover     what interrupted commands left at a place
//!   output       a result that is written in one go: a new file, a device, a pipe, standard output
//!   kept         reports, which keep their old content until the run begins
//!   stopped      the end that is no failure: cancelled, or the reader went away
//!   removal      the folder's removal when the process has no memory left
//!   uploads      the note of uploads to an object store that are open
//!   pipeline     the journal of a pipeline of programs
//! ```
//!
//! Nothing here needs a process of its own: a test calls it in a temporary folder. It prints nothing and names no flags.
//! [`ResultsError`] carries what was found, and a closure gets each [`Notice`]. [`Cancellation`](stopped::Cancellation) and
//! [`DoomedFolders`](unfinished::DoomedFolders) stand for the signals.
//!
//! Whoever finds a folder of unfinished work must know what is in it, without the program that made it: whether the
//! records are anywhere else, and what continues the work. [`unfinished::judge`] decides that. [`pipeline`] has the
//! journal of a pipeline; the journal of a sort that consumes its inputs is [`merganser_sort::journal`].

pub mod consume;
mod error;
pub mod kept;
pub mod leftover;
pub mod materialize;
mod notice;
pub mod output;
pub mod pipeline;
pub mod removal;
mod source;
pub mod stopped;
pub mod unfinished;
pub mod uploads;

pub use error::ResultsError;
pub use notice::Notice;
pub use source::ResultSource;
