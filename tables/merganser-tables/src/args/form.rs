//! Formats of tables, and how they are packed.

use clap::ValueEnum;
use merganser_tables::{ParquetCompression, TableFormat};

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableForm {
    /// Parquet.
    Parquet,
    /// A file of Arrow.
    Arrow,
    /// A stream of Arrow.
    Arrows,
    /// Comma-separated values.
    Csv,
    /// Lines of JSON.
    Jsonl,
}

impl From<TableForm> for TableFormat {
    fn from(form: TableForm) -> TableFormat {
        match form {
            TableForm::Parquet => TableFormat::Parquet,
            TableForm::Arrow => TableFormat::ArrowFile,
            TableForm::Arrows => TableFormat::ArrowStream,
            TableForm::Csv => TableFormat::Csv,
            TableForm::Jsonl => TableFormat::JsonLines,
        }
    }
}

/// How pages of Parquet are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackingName {
    /// Not at all.
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
    /// Deflate.
    Gzip,
}

impl From<PackingName> for ParquetCompression {
    fn from(name: PackingName) -> ParquetCompression {
        match name {
            PackingName::None => ParquetCompression::None,
            PackingName::Snappy => ParquetCompression::Snappy,
            PackingName::Lz4 => ParquetCompression::Lz4,
            PackingName::Zstd => ParquetCompression::Zstd,
            PackingName::Gzip => ParquetCompression::Gzip,
        }
    }
}
