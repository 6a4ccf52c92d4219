//! Files in, files or views out: whole sorts in one call, for programs that have paths and no storages.
//!
//! ```text
//!   sort_file(input, output, &options)            a file, replaced in one step when the new one is complete
//!   sort_file_to_view(input, folder, &options)    a view, which appears when it is complete
//!   open_view(folder, &budget, threads)           reads it
//! ```
//!
//! A result exists whole and survives a power cut, or it doesn't exist. A file that had its name before is untouched until then.
//! [`UnpublishedFile`] and [`UnfinishedView`] are the same for callers of [`sort()`](crate::sort()) with inputs or progress
//! of their own.
//!
//! The types for that are here, too: [`FileStorage`] is an open file, [`FileDirectory`] a folder,
//! [`LazyDirectory`] a folder for temporary files that is opened when one is needed.
//!
//! ```
//! use merganser_sort::{SortOptions, files};
//!
//! # let place = tempfile::tempdir()?;
//! # let (fruit, sorted) = (place.path().join("fruit"), place.path().join("sorted"));
//! std::fs::write(&fruit, "pear\nfig\napple\n")?;
//! files::sort_file(&fruit, &sorted, &SortOptions::default())?;
//! assert_eq!(std::fs::read_to_string(&sorted)?, "apple\nfig\npear\n");
//! # Ok::<(), merganser_sort::Error>(())
//! ```

mod unfinished_view;

use std::path::Path;
use std::sync::Arc;

use merganser_storage::Directory;

pub use merganser_storage::file::{
    FileDirectory, FileOptions, FileStorage, LazyDirectory, UnpublishedFile,
};
pub use unfinished_view::UnfinishedView;

pub use crate::temp::system_temp;

use crate::run::SortInput;
use crate::view::View;
use crate::{Budget, Result, Silent, SortOptions, SortOutput, SortReport, sort};

/// Sorts the file `input` into the file `output`, which may be the same one.
///
/// A compressed input is decompressed; the output never is compressed. The output replaces a file of that name, whose mode
/// stays.
///
/// # Errors
/// As [`sort()`](crate::sort()). `output` is then as it was, or, if only the last sync of its folder failed, complete.
pub fn sort_file(
    input: impl AsRef<Path>,
    output: impl AsRef<Path>,
    options: &SortOptions,
) -> Result<SortReport> {
    let inputs = vec![open_input(input.as_ref(), options)?];
    let output = UnpublishedFile::create(output, FileOptions::default())?;
    let report = sort(inputs, SortOutput::Storage(output.storage()), options, &Silent)?;
    output.publish()?;
    Ok(report)
}

/// Sorts the file `input` into the view `view`, a new folder.
///
/// # Errors
/// As [`sort()`](crate::sort()) and [`UnfinishedView::create`]. There is no view then, or, if only the last sync of the
/// folder it is in failed, a complete one.
pub fn sort_file_to_view(
    input: impl AsRef<Path>,
    view: impl AsRef<Path>,
    options: &SortOptions,
) -> Result<SortReport> {
    let (input, path) = (input.as_ref(), view.as_ref());
    let inputs = vec![open_input(input, options)?];
    let view = UnfinishedView::create(path, &[input])?;
    let output = SortOutput::View { folder: view.directory(), name: view_name(path) };
    let report = sort(inputs, output, options, &Silent)?;
    view.publish()?;
    Ok(report)
}

/// The name of the view in this folder, which a mount shows: the folder's name without `.view`.
#[must_use]
pub fn view_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".view").unwrap_or(&name).to_owned()
}

/// Opens the view in the folder `view`; see [`View::open`].
///
/// # Errors
/// As there.
pub fn open_view(view: impl AsRef<Path>, budget: &Budget, threads: usize) -> Result<View> {
    let folder: Arc<dyn Directory> = FileDirectory::open(view)?;
    View::open(&folder, budget, threads)
}

fn open_input(path: &Path, options: &SortOptions) -> Result<SortInput> {
    let file = SortInput::Storage(FileStorage::open_path(path, false)?);
    file.unpacked(options.order.format.content(), &options.budget)
}
