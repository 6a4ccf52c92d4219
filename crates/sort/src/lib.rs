//! The engine.
mod access;
pub mod budget;
pub mod error;
pub mod merge;
pub mod key;
pub mod progress;
pub mod record;
pub mod run;
pub mod verify;
pub use budget::Budget;
pub use error::{Error, Result};
pub use progress::{Progress, Silent};
pub mod output;
pub mod view;
pub mod plan;
mod sorter;
pub use sorter::{CompressionChoice, SortOptions, SortOutput, SortReport, sort};
