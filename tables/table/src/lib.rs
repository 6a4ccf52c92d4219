//! Tables of Parquet and Arrow, sorted within a limit of memory.
//!
//! ```text
//!   source    files, folders, patterns ─► batches            sink      rows ─► Parquet, Arrow, csv, JSON
//!   hive      names of folders that are values of columns: country=FR
//!   types     the plain forms of columns                     sort      all of it; merge: inputs that are in order
//!   key, row  columns ─► byte strings ─► columns             view      sorted rows that are read as batches
//!   sorted_files   views that hold no rows, over files that are in order
//! ```
//!
//! A row becomes a key, whose bytes are in the order that is wanted, and a value, which has the rest. The engine
//! ([`merganser_sort::rows`]) sorts these and knows no columns. So the memory that a sort takes depends on the limit that is
//! set, and not on row groups, types or how many files there are.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{Int64Array, RecordBatch, StringArray};
//! use arrow_schema::{DataType, Field, Schema};
//! use merganser_sort::{Budget, Silent};
//! use merganser_storage::memory::MemoryDirectory;
//! use merganser_tables::{Table, TableFormat, TableKey, TableOptions, TableOrder, TableOutput, sort_table};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("in.arrows");
//! let columns = [Field::new("city", DataType::Utf8, false), Field::new("people", DataType::Int64, true)];
//! let schema = Arc::new(Schema::new(columns.to_vec()));
//! let cities = StringArray::from(vec!["Rome", "Bern", "Paris"]);
//! let people = Int64Array::from(vec![Some(2_750_000), None, Some(2_100_000)]);
//! let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(cities), Arc::new(people)])?;
//! let mut file = arrow_ipc::writer::StreamWriter::try_new(std::fs::File::create(&path)?, &schema)?;
//! file.write(&batch)?;
//! file.finish()?;
//!
//! let table = Table::open(&[path])?;
//! let order = TableOrder::Keys(vec!["people:r:last".parse()?]);
//! let options = TableOptions::new(order, Budget::new(64 << 20), vec![MemoryDirectory::new()]);
//! let mut sorted = Vec::new();
//! let output = TableOutput::Bytes { to: &mut sorted, format: TableFormat::Csv };
//! sort_table(&table, output, &options, &Silent)?;
//! assert_eq!(String::from_utf8(sorted)?, "city,people\nRome,2750000\nParis,2100000\nBern,\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cells;
mod codec;
mod column;
mod error;
mod hex;
mod hive;
mod key;
mod merge;
mod options;
#[cfg(test)]
mod random_table;
mod row;
mod schema;
mod sink;
mod sort;
mod sorted_files;
mod source;
mod table;
mod table_rows;
mod types;
mod verify;
mod view;

pub use error::{FolderMisuse, TableError};
pub use key::{NullsAt, TableKey};
pub use options::{EqualRows, FolderFiles, TableOptions};
pub use sink::{
    BatchSize, DiskFolder, FolderFile, ParquetCompression, ParquetOptions, TableFolder, TableFormat,
};
pub use sort::{TableOutput, TableReport, sort_table};
pub use source::{
    FileKind, HiveColumns, ObjectError, RangeRead, StoredObject, TableInput, find_files, kind_of,
};
pub use table::{Table, TableOrder};
pub use verify::{TableSummary, verify_table};
pub use view::{FilesOfView, RowsWanted, TableView, ViewBatches};
