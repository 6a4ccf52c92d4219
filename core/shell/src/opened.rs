//! Folders and views, opened.

use std::path::Path;
use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::view::{Manifest, View};
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
    refuse_table(path)?;
    open_view_of_any(path, memory_bytes, threads)
}

/// Refuses the view of a table: its bytes mean nothing without its manifest.
///
/// # Errors
/// Such a view. One that can't be read is left to others.
pub fn refuse_table(path: &Path) -> Result<(), Failure> {
    let manifest = FileDirectory::open(path).ok().and_then(|folder| {
        let folder: Arc<dyn Directory> = folder;
        Manifest::read(&folder).ok()
    });
    if manifest.is_none_or(|manifest| manifest.table.is_none()) {
        return Ok(());
    }
    let name = shown::name(path);
    let what = "is a view of a table, whose bytes no program reads";
    Err(format!("{name}: {what}; merganser cat VIEW -o FILE.parquet writes its rows").into())
}
