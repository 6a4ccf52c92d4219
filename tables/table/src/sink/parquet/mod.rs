//! Files of Parquet.
//!
//! ```text
//!   plan        types, packing, notes
//!   groups      rows ─► row groups, in order ─┬─► one_file      a file or a stream
//!                                             └─► many_files    the files of a folder, each of a size
//! ```

mod group_sink;
mod groups;
mod many_files;
mod one_file;
mod plan;

use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use merganser_sort::{Budget, Progress};
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;

use super::batches::WantedColumns;
use super::files::TableFolder;
use super::hive_names::PartitionNames;
use crate::TableError;
use crate::codec::TableLayout;
use crate::source::ParquetOrigin;
use crate::table_rows::TableRows;
use crate::types::{Held, plain_schema};
use groups::{GroupColumns, GroupCut, write_groups};
use many_files::ManyFiles;
use one_file::OneFile;
use plan::plan;

/// How pages of columns are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetCompression {
    /// Not at all.
    None,
    /// Snappy: quick.
    Snappy,
    /// LZ4, as blocks.
    Lz4,
    /// Zstandard: small.
    Zstd,
    /// Deflate, for old readers.
    Gzip,
}

impl FromStr for ParquetCompression {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        Ok(match typed {
            "none" | "off" => ParquetCompression::None,
            "snappy" => ParquetCompression::Snappy,
            "lz4" => ParquetCompression::Lz4,
            "zstd" => ParquetCompression::Zstd,
            "gzip" => ParquetCompression::Gzip,
            _ => return Err("choose none, snappy, lz4, zstd or gzip".to_owned()),
        })
    }
}

impl ParquetCompression {
    fn codec(self) -> Compression {
        match self {
            ParquetCompression::None => Compression::UNCOMPRESSED,
            ParquetCompression::Snappy => Compression::SNAPPY,
            ParquetCompression::Lz4 => Compression::LZ4_RAW,
            ParquetCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
            ParquetCompression::Gzip => Compression::GZIP(GzipLevel::default()),
        }
    }
}

/// How Parquet is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParquetOptions {
    /// The packing of all columns; `None` for that of each column of the input.
    pub compression: Option<ParquetCompression>,
    /// Rows of a row group, at most.
    pub group_rows: u64,
    /// Bytes of values of a row group, about.
    pub group_bytes: u64,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions { compression: None, group_rows: 128 << 10, group_bytes: 128 << 20 }
    }
}

/// How rows become the columns of a file: the layout of the rows, the columns that are wanted, and what the input says.
pub(crate) type ParquetColumns<'a> =
    (&'a TableLayout, &'a WantedColumns, Option<&'a ParquetOrigin>);

/// The memory that [`write_parquet`] and [`write_parquet_files`] take.
pub(crate) fn writer_bytes(
    budget: &Budget,
    threads: usize,
    options: &ParquetOptions,
    file_bytes: Option<u64>,
) -> u64 {
    GroupCut::new(budget, threads, options, file_bytes).memory_bytes()
}

/// Writes all rows as a file of Parquet to `output`; how many.
///
/// # Errors
/// Those of the rows and of `output`; [`merganser_sort::Error::Cancelled`].
pub(crate) fn write_parquet(
    rows: &mut dyn TableRows,
    (layout, wanted, origin): ParquetColumns<'_>,
    output: &mut (dyn Write + Send),
    options: &ParquetOptions,
    (budget, threads): (&Budget, usize),
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let (root, properties) = plan(layout, wanted, origin, options)?;
    let file = SerializedFileWriter::new(output, root, properties).map_err(of_output)?;
    let plain = &plain_schema(&wanted.schema, Held::AsOffsets);
    let factory = &ArrowRowGroupWriterFactory::new(&file, Arc::clone(plain));
    let columns = GroupColumns { layout, wanted, plain, factory };
    let cut = GroupCut::new(budget, threads, options, None);
    write_groups(rows, columns, &mut OneFile(file), (cut, budget), progress)
}

/// Writes all rows as files of Parquet to `folder`: each partition to folders of its own, in files of `file_bytes` at most;
/// how many rows.
///
/// # Errors
/// Those of the rows and of `folder`; [`merganser_sort::Error::Cancelled`].
pub(crate) fn write_parquet_files(
    rows: &mut dyn TableRows,
    (layout, wanted, origin): ParquetColumns<'_>,
    (folder, file_bytes): (&dyn TableFolder, Option<u64>),
    options: &ParquetOptions,
    (budget, threads): (&Budget, usize),
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let planned = plan(layout, wanted, origin, options)?;
    let (root, properties) = planned.clone();
    let like = SerializedFileWriter::new(std::io::sink(), root, properties)
        .map_err(TableError::Parquet)?;
    let plain = &plain_schema(&wanted.schema, Held::AsOffsets);
    let factory = &ArrowRowGroupWriterFactory::new(&like, Arc::clone(plain));
    let columns = GroupColumns { layout, wanted, plain, factory };
    let cut = GroupCut::new(budget, threads, options, file_bytes);
    let names = PartitionNames::new(&layout.keys[..layout.partitions]);
    let mut files = ManyFiles::new(folder, planned, names, layout.partitions == 0, file_bytes)?;
    write_groups(rows, columns, &mut files, (cut, budget), progress)
}

/// The error of a file that is written: that of its output, if that failed.
pub(super) fn of_output(error: ParquetError) -> TableError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => merganser_sort::Error::from(*error).into(),
            Err(inner) => TableError::Parquet(ParquetError::External(inner)),
        },
        other => TableError::Parquet(other),
    }
}
