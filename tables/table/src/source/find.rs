//! Files, folders and patterns, as they are typed.

use std::path::{Path, PathBuf};

use merganser_sort::run::magic::has_name_of_table;
use merganser_storage::address::is_address;

use crate::TableError;

/// The files that `typed` names, in order: a file is itself, a folder all tables in it and in its folders, and a pattern
/// (`in/*.parquet`) the files that match it. The files of a folder or a pattern are in the order of their names. Names that
/// begin with a dot or an underscore are left out, as other programs do, except folders such as `_year=2024`.
///
/// # Errors
/// Folders that can't be read; a folder or pattern without files; the address of an object.
pub fn find_files(typed: &[PathBuf]) -> Result<Vec<PathBuf>, TableError> {
    let mut files = Vec::new();
    for path in typed {
        let known = files.len();
        if is_address(path) {
            return Err(TableError::Address { address: path.clone() });
        }
        if path.is_dir() {
            find_in(path, &mut files)?;
        } else if !path.exists() && is_pattern(path) {
            let pattern = path.to_str().and_then(|pattern| glob::glob(pattern).ok());
            let no_files = || TableError::NoFiles { folder: path.clone() };
            for found in pattern.ok_or_else(no_files)? {
                let found = found.map_err(|error| TableError::Io {
                    file: error.path().to_owned(),
                    error: error.into(),
                })?;
                if found.is_dir() {
                    find_in(&found, &mut files)?;
                } else {
                    files.push(found);
                }
            }
        } else {
            files.push(path.clone());
            continue;
        }
        if files.len() == known {
            return Err(TableError::NoFiles { folder: path.clone() });
        }
    }
    Ok(files)
}

/// Whether a name that is no file is a pattern.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

fn find_in(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), TableError> {
    let entries = std::fs::read_dir(folder).map_err(TableError::on(folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(TableError::on(folder))?;
        let name = entry.file_name();
        let is_left_out = match name.as_encoded_bytes() {
            [b'.', ..] => true,
            [b'_', rest @ ..] => !rest.contains(&b'='),
            _ => false,
        };
        if !is_left_out {
            paths.push(entry.path());
        }
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            find_in(&path, files)?;
        } else if has_name_of_table(&path) {
            files.push(path);
        }
    }
    Ok(())
}
