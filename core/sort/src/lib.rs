//! Merganser's engine: sorts what does not fit in memory, into a file or into a sorted view.
//!
//! ```text
//!   record ─► run ─────────────► merge ──────────► view        a folder that reads like the file
//!   key       tags, chunks,      bounds, windows,  └► output   a file, a stream, a consumed view
//!             blocks, fences     loser tree
//!                    plan: all sizes   budget: all memory   sorter: the whole of it
//! ```
//!
//! | you have | you want | door |
//! |---|---|---|
//! | a file | a sorted file, or a view of it | [`files::sort_file`], [`files::sort_file_to_view`] |
//! | records of your program | the same in order, one by one | [`rows::RowSorter`], with keys of any type ([`key::RowKey`]) |
//! | storages, pipes, compressed inputs | a file, a stream, a view | [`sort()`], with [`run::SortInput`]s and a [`SortOutput`] |
//! | a view | any range of its bytes, records or keys | [`files::open_view`], [`view::View`] |
//! | a file or a stream | whether it is sorted, and a checksum | [`verify`] |
//! | the result of a map | its rows | [`reduced::ResultView`] |
//!
//! [`SortOptions`] are the settings: an order ([`key::OrderSpec`]) of records in a [`record::Format`], and limits. A
//! failure is an [`Error`] that names the file, the place and the numbers. Nothing here prints, and no input is changed.
//!
//! Rows in, rows out:
//!
//! ```
#![doc = include_str!("../examples/sort_rows.rs")]
//! ```
//!
//! A file to a view, and a range of it. A view is a read-only [`merganser_storage::Storage`], so whatever carries storages
//! (a mount, a server) carries views.
//!
//! ```
#![doc = include_str!("../examples/sort_to_view.rs")]
//! ```
//!
//! [`merganser_storage`] is re-exported as [`storage`].

// Hidden items are for the crates and tests of this tree: how a program shows its work, makes results in stages, or takes
// the parts of the engine apart. They change with these.
mod access;
#[doc(hidden)]
pub mod activity;
mod bound;
pub mod budget;
mod distribute;
pub mod error;
pub mod files;
pub mod key;
pub mod merge;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod pipeline;
#[doc(hidden)]
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

#[doc(hidden)]
pub use activity::Activity;
pub use budget::Budget;
#[cfg(feature = "trial")]
pub use distribute::trial;
pub use error::{Conflict, Error, Result};
pub use merganser_storage as storage;
pub use progress::{Progress, Silent};
pub use sorter::{
    CompressionChoice, Estimate, Explanation, SortOptions, SortOutput, SortReport, SpaceNeed,
    Strategy, explain, sort, space_needed,
};
#[doc(hidden)]
pub use sorter::{Consumed, Stamp, journal, note, sort_consuming};
