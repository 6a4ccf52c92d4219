//! The engine.
mod access;
pub mod budget;
pub mod error;
pub mod key;
pub mod merge;
pub mod progress;
pub mod record;
pub mod run;
pub mod verify;
pub use budget::Budget;
pub use error::{Error, Result};
pub use progress::{Progress, Silent};
pub mod output;
pub mod plan;
mod sorter;
pub mod view;
pub use sorter::{
    CompressionChoice, SortOptions, SortOutput, SortReport, is_interrupted_sort, sort,
    sort_consuming,
};
