//! Parts of command lines that several commands have, as they are typed. Their doc comments are the help.

mod migration;
mod nbd;
mod order;
mod progress;
mod range;
mod report;
mod row_form;
mod size;
mod strategy;
mod temp;
mod text;

pub use migration::MigrationName;
pub use nbd::NbdArgs;
pub use order::{FormatName, OrderArgs, SortWord};
pub use progress::{ProgressArgs, ProgressName};
pub use range::TypedRange;
pub use report::ReportArgs;
pub use row_form::RowForm;
pub use size::{BufferSize, TypedCount, TypedSize};
pub use strategy::StrategyName;
pub use temp::TempArgs;
pub use text::{QuotesName, TextArgs};
