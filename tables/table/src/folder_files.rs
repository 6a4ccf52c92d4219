//! Which files a folder of results has, and what that does not go with.

use crate::key::TableKey;
use crate::sort::{EqualRows, TableOptions};
use crate::table::TableOrder;

/// The least size of files: the end of each one takes some thousands of bytes.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// Folders in folders that are removed after a kill, and found as inputs.
const PARTITION_COLUMNS_MAX: usize = 6;

/// Which files a folder has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderFiles {
    /// The columns whose values name folders, the outer one first. They are the first ones of the order, and not in the files.
    /// Rows are equal only if they are in one folder.
    pub partition_by: Vec<String>,
    /// Bytes of a file, at most, unless one row group is larger. Without it, a folder has one file.
    pub file_bytes: Option<u64>,
}

/// Why a sort can't make such files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderMisuse {
    /// Files that are hardly more than their ends.
    #[error("files have at least 64K")]
    SmallFiles,
    /// Too many folders in folders.
    #[error("name at most 6 columns")]
    ManyColumns,
    /// The first rows are wanted.
    #[error("the first rows are those of one order, and each folder has its own")]
    Top,
    /// Inputs that are in order are to be merged.
    #[error("inputs in order are not in the order of these columns")]
    SortedInputs,
    /// One of equal rows is kept, and equal keys do not mean one folder.
    #[error("rows with equal keys may be in several folders; add column {column} to the keys")]
    Distinct {
        /// A column of the folders that is no key.
        column: String,
    },
}

impl FolderFiles {
    /// Checks that a sort with `options` can make these files.
    ///
    /// # Errors
    /// What does not go together.
    pub fn check(&self, options: &TableOptions) -> Result<(), FolderMisuse> {
        if self.file_bytes.is_some_and(|bytes| bytes < FILE_BYTES_MIN) {
            return Err(FolderMisuse::SmallFiles);
        }
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
