//! Folders and views, opened.

use std::path::Path;
use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::view::View;
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use crate::failure::Failure;
use crate::shown;

/// The folder at `path`.
///
/// # Errors
/// When it can't be opened.
pub fn open_folder(path: &Path) -> Result<Arc<FileDirectory>, Failure> {
    match FileDirectory::open(path) {
        Ok(folder) => Ok(folder),
        Err(error) => Err(Failure::named(&error)),
    }
}

/// The view at `path`, whose records may be the rows of a table.
///
/// # Errors
/// When it can't be opened.
pub fn open_view_of_any(path: &Path, memory_bytes: u64, threads: usize) -> Result<View, Failure> {
    let folder: Arc<dyn Directory> = open_folder(path)?;
    Ok(View::open(&folder, &Budget::new(memory_bytes), threads)?)
}

/// The view at `path`.
///
/// # Errors
/// When it can't be opened, or is a view of a table.
pub fn open_view(path: &Path, memory_bytes: u64, threads: usize) -> Result<View, Failure> {
    let view = open_view_of_any(path, memory_bytes, threads)?;
    if view.manifest().table.is_some() {
        let name = shown::name(path);
        let what = "is a view of a table, whose bytes no program reads";
        return Err(format!("{name}: {what}; merganser cat VIEW writes its rows").into());
    }
    Ok(view)
}
