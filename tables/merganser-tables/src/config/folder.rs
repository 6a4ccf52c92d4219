//! Results in folders: what `--partition-by` and `--file-size` mean, and what they don't go with.

use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_tables::{FolderFiles, TableFormat, TableKey};

use crate::args::TableSortArgs;

/// The least size of files: the end of each one takes some thousands of bytes.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// Folders in folders that are removed after a kill, and found as inputs.
const PARTITION_COLUMNS_MAX: usize = 6;

/// The files of a folder, if the result is one. Of rows with equal values of the columns `distinct`, one is kept.
///
/// # Errors
/// Settings that do not go together.
pub(super) fn folder_files(
    typed: &TableSortArgs,
    (destination, format): (&Destination, Option<TableFormat>),
    distinct: Option<&[TableKey]>,
) -> Result<Option<FolderFiles>, Failure> {
    let by = &typed.partition_by;
    let file_bytes = typed.file_size.map(|size| size.0);
    let option = match (by.is_empty(), file_bytes) {
        (true, None) => return Ok(None),
        (true, Some(_)) => "--file-size",
        (false, _) => "--partition-by",
    };
    let refused = |why: &str| Err(format!("{option}: {why}").into());
    if !matches!(destination, Destination::File(_)) {
        return refused("makes files in a folder; name it with -o DIR");
    }
    if format.is_some_and(|format| format != TableFormat::Parquet) {
        return refused("files in a folder are of Parquet; take --output-format parquet");
    }
    if file_bytes.is_some_and(|bytes| bytes < FILE_BYTES_MIN) {
        return Err("--file-size: give at least 64K".to_owned().into());
    }
    if by.len() > PARTITION_COLUMNS_MAX {
        return refused("name at most 6 columns");
    }
    if !by.is_empty() && typed.top.is_some() {
        return refused("--top keeps the first rows of one order, and each folder has its own");
    }
    if !by.is_empty() && typed.merge {
        return refused(
            "the files that -m merges are not in the order of these columns; leave out -m",
        );
    }
    if let Some(keys) = distinct
        && let Some(column) = by.iter().find(|name| keys.iter().all(|key| key.column != **name))
    {
        return refused(&format!(
            "rows with equal keys may be in several folders; add --key {column}, too"
        ));
    }
    Ok(Some(FolderFiles { partition_by: by.clone(), file_bytes }))
}
