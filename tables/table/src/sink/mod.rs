//! Rows to files.
//!
//! ```text
//!   rows ─► piece ─► batches ─► columns of a row group ─► Parquet      a piece for each processor, written in order
//!   the same, by partitions and sizes ─► the files of a folder
//!   rows ─► piece ─► batch with its own types ─► Arrow, csv, lines of JSON
//! ```

mod arrow;
mod batches;
mod files;
mod hive_names;
mod parquet;
mod text;

use std::io::Write;

use merganser_sort::Progress;

use crate::TableError;
use crate::codec::TableLayout;
use crate::table_rows::TableRows;
use arrow::{write_arrow_file, write_arrow_stream};
use text::{write_csv, write_json_lines};

pub(crate) use batches::{WantedColumns, each_batch};
pub use files::{DiskFolder, FolderFile, TableFolder};
pub(crate) use hive_names::can_name_folders;
pub use parquet::{ParquetCompression, ParquetOptions};
pub(crate) use parquet::{write_parquet, write_parquet_files, writer_bytes};
pub(crate) use text::fits_csv;

/// Formats of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Parquet.
    Parquet,
    /// A file of Arrow.
    ArrowFile,
    /// A stream of Arrow.
    ArrowStream,
    /// Comma-separated values, with a header.
    Csv,
    /// An object of JSON in each line.
    JsonLines,
}

/// Writes rows in a format that one thread writes.
pub(crate) fn write_as(
    rows: &mut dyn TableRows,
    what: (&TableLayout, &WantedColumns),
    mut to: &mut dyn Write,
    format: TableFormat,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    match format {
        TableFormat::Parquet => unreachable!("several threads write Parquet"),
        TableFormat::ArrowFile => write_arrow_file(rows, what, &mut to, progress),
        TableFormat::ArrowStream => write_arrow_stream(rows, what, &mut to, progress),
        TableFormat::Csv => write_csv(rows, what, &mut to, progress),
        TableFormat::JsonLines => write_json_lines(rows, what, &mut to, progress),
    }
}
