//! Rows to files.
//!
//! ```text
//!   rows ─► piece ─► batches ─► columns of a row group ─► Parquet      a piece for each processor, written in order
//!   the same, by partitions and sizes ─► the files of a folder
//!   rows ─► piece ─► batch with its own types ─► Arrow, csv, lines of JSON
//! ```

mod arrow;
mod batches;
mod dictionaries;
mod files;
mod hive_names;
mod parquet;
mod text;

use std::io::Write;
use std::path::Path;

use merganser_sort::Progress;

use crate::TableError;
use crate::codec::TableLayout;
use crate::source::FileKind;
use crate::table_rows::TableRows;
use arrow::{write_arrow_file, write_arrow_stream};
use text::{write_csv, write_json_lines};

pub use batches::BatchSize;
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

impl TableFormat {
    /// The format that the end of the name of `file` says.
    #[must_use]
    pub fn of_name(file: &Path) -> Option<TableFormat> {
        TableFormat::of_end(file.extension()?.to_str()?)
    }

    /// The format of files whose names have this end, such as `parquet`.
    #[must_use]
    pub fn of_end(end: &str) -> Option<TableFormat> {
        Some(match end.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => TableFormat::Parquet,
            "arrow" | "feather" | "ipc" => TableFormat::ArrowFile,
            "arrows" => TableFormat::ArrowStream,
            "csv" => TableFormat::Csv,
            "jsonl" | "ndjson" => TableFormat::JsonLines,
            _ => return None,
        })
    }
}

impl From<FileKind> for TableFormat {
    fn from(kind: FileKind) -> TableFormat {
        match kind {
            FileKind::Parquet => TableFormat::Parquet,
            FileKind::ArrowFile => TableFormat::ArrowFile,
            FileKind::ArrowStream => TableFormat::ArrowStream,
        }
    }
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
