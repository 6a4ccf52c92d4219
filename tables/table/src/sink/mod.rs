//! Rows to files.
//!
//! ```text
//!   rows ─► piece ─► batches ─► columns of a row group ─► Parquet      a piece for each processor, written in order
//!   rows ─► piece ─► batch with its own types ─► Arrow, csv, lines of JSON
//! ```

mod arrow;
mod batches;
mod parquet;
mod text;

pub(crate) use arrow::{write_arrow_file, write_arrow_stream};
pub(crate) use batches::{WantedColumns, each_batch};
pub use parquet::{ParquetCompression, ParquetOptions};
pub(crate) use parquet::{write_parquet, writer_bytes};
pub(crate) use text::{write_csv, write_json_lines};
