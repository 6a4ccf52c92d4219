//! Results in folders: what `--partition-by` and `--file-size` mean.

use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_tables::{FolderFiles, TableFormat};

use crate::args::TableSortArgs;

/// The files of a folder, if the result is one.
///
/// # Errors
/// When the result is none.
pub(super) fn folder_files(
    typed: &TableSortArgs,
    (destination, format): (&Destination, Option<TableFormat>),
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
    Ok(Some(FolderFiles { partition_by: by.clone(), file_bytes }))
}
