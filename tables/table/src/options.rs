//! The settings of a sort of a table.

use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::run::Compression;
use merganser_storage::Directory;

use crate::error::FolderMisuse;
use crate::key::TableKey;
use crate::sink::ParquetOptions;
use crate::table::TableOrder;

/// The least size of files: the end of each one takes some thousands of bytes.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// Folders in folders that are removed after a kill, and found as inputs.
const PARTITION_COLUMNS_MAX: usize = 6;

/// What becomes of rows with equal keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EqualRows {
    /// All are kept, in the order of the input.
    #[default]
    KeepAll,
    /// The first one is kept.
    KeepFirst,
    /// The first one is kept, with a column that says how many there were.
    Count,
}

/// The settings of a sort of a table.
#[derive(Clone)]
#[non_exhaustive]
pub struct TableOptions {
    /// The order.
    pub order: TableOrder,
    /// What becomes of rows with equal keys.
    pub equal: EqualRows,
    /// How many rows, from the front, are wanted.
    pub top: Option<u64>,
    /// The inputs are in order already: they are merged, and rows that are not in order are an error. So many files that their
    /// readers would take more than half of the memory, or of the files that a process may open, are sorted instead. Files of
    /// Parquet stay where they are if the result is a view: it names them.
    pub sorted_inputs: bool,
    /// All memory that grows with data.
    pub budget: Budget,
    /// Threads that read, sort and write.
    pub threads: usize,
    /// Where temporary runs go.
    pub temp: Vec<Arc<dyn Directory>>,
    /// How runs of a view are packed.
    pub packed: Compression,
    /// How Parquet is written.
    pub parquet: ParquetOptions,
}

impl TableOptions {
    /// Sorts in this order within `budget`, with two threads.
    #[must_use]
    pub fn new(order: TableOrder, budget: Budget, temp: Vec<Arc<dyn Directory>>) -> TableOptions {
        TableOptions {
            order,
            equal: EqualRows::KeepAll,
            top: None,
            sorted_inputs: false,
            budget,
            threads: 2,
            temp,
            packed: Compression::Off,
            parquet: ParquetOptions::default(),
        }
    }
}

/// Which files a folder has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderFiles {
    /// The columns whose values name folders, the outer one first. They are the first ones of the order, and not in the files.
    /// Rows are equal only if they are in one folder.
    pub partition_by: Vec<String>,
    /// Bytes of a file, at most, unless one row group is larger. Without it, a folder has one file.
    pub file_bytes: Option<u64>,
}

impl FolderFiles {
    /// Checks that a sort with `options` can make these files, and that they are of use.
    ///
    /// # Errors
    /// Settings that do not go together, and files that are hardly more than their ends.
    pub fn check(&self, options: &TableOptions) -> Result<(), FolderMisuse> {
        if self.file_bytes.is_some_and(|bytes| bytes < FILE_BYTES_MIN) {
            return Err(FolderMisuse::SmallFiles);
        }
        self.check_order(options)
    }

    /// The same for files of any size.
    pub(crate) fn check_order(&self, options: &TableOptions) -> Result<(), FolderMisuse> {
        let by = &self.partition_by;
        if by.len() > PARTITION_COLUMNS_MAX {
            return Err(FolderMisuse::ManyColumns);
        }
        if by.is_empty() {
            return Ok(());
        }
        if options.top.is_some() {
            return Err(FolderMisuse::Top);
        }
        if options.sorted_inputs {
            return Err(FolderMisuse::SortedInputs);
        }
        let is_key = |keys: &[TableKey], name: &String| keys.iter().any(|key| key.column == *name);
        if let (TableOrder::Keys(keys), false) =
            (&options.order, options.equal == EqualRows::KeepAll)
            && let Some(column) = by.iter().find(|name| !is_key(keys, name))
        {
            return Err(FolderMisuse::Distinct { column: column.clone() });
        }
        Ok(())
    }
}
