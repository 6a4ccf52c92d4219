//! Merganser's engine: sorts what does not fit in memory, into a file or into a sorted view.
//!
//! ```text
//!   record ─► run ─────────────► merge ──────────► view        a folder that reads like the file
//!   key       tags, chunks,      bounds, windows,  └► output   a file, a stream, a consumed view
//!             blocks, fences     loser tree
//!                    plan: all sizes   budget: all memory   sorter: the whole of it
//! ```
//!
//! [`rows`] sorts keys and values that are in no file: a caller pushes them, and pulls them in order. [`reduced`] reads the
//! result of a map, a view whose rows are combined when they are read.
//!
//! [`sort()`] takes [`run::SortInput`]s and an order ([`key::OrderSpec`]) and leaves a
//! [`view::View`], a file or a stream. A view is a read-only [`merganser_storage::Storage`], so whatever
//! carries storages (a mount, a server) carries views.
//!
//! ```
//! use merganser_sort::run::SortInput;
//! use merganser_sort::{Silent, SortOptions, SortOutput, sort};
//! use merganser_storage::memory::MemoryStorage;
//!
//! let input = MemoryStorage::from_bytes("fruit", b"pear\nfig\napple\n");
//! let options = SortOptions::default().memory(64 << 20).threads(2);
//! let mut sorted = Vec::new();
//! sort(vec![SortInput::Storage(input)], SortOutput::Writer(&mut sorted), &options, &Silent)?;
//! assert_eq!(sorted, b"apple\nfig\npear\n");
//! # Ok::<(), merganser_sort::Error>(())
//! ```

mod access;
pub mod activity;
mod bound;
pub mod budget;
mod distribute;
pub mod error;
pub mod key;
pub mod merge;
pub mod output;
pub mod pipeline;
pub mod plan;
mod portion;
mod prefix;
pub mod progress;
pub mod record;
pub mod reduced;
pub mod rows;
pub mod run;
mod sealed;
mod shares;
mod sorter;
mod temp;
mod text;
pub mod verify;
pub mod view;

pub use activity::Activity;
pub use budget::Budget;
#[cfg(feature = "trial")]
pub use distribute::trial;
pub use error::{Conflict, Error, Result};
pub use progress::{Progress, Silent};
pub use sorter::{
    CompressionChoice, Consumed, Estimate, Explanation, SortOptions, SortOutput, SortReport, Stamp,
    Strategy, explain, journal, note, sort, sort_consuming,
};
