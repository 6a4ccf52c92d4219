//! Where a result goes, and where its temporary files.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::args::TempArgs;
use crate::setting::temp_dirs_of_variable;

/// The destination of a sort's result.
#[derive(Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
    /// A new view.
    View(PathBuf),
}

impl Destination {
    /// The file's or view's name.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Destination::Stdout => None,
            Destination::File(path) | Destination::View(path) => Some(path),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Stdout => f.write_str("standard output"),
            Destination::File(path) | Destination::View(path) => path.display().fmt(f),
        }
    }
}

/// Where temporary files go: none but the view's own folder, if one is made and no folder is named. `$MERGANSER_TEMP_DIR`
/// names folders for all other results.
pub fn temp_dirs(typed: TempArgs, destination: &Destination) -> Vec<PathBuf> {
    match destination {
        _ if !typed.dirs.is_empty() => typed.dirs,
        Destination::View(_) => Vec::new(),
        destination => {
            let named = temp_dirs_of_variable();
            if named.is_empty() { vec![default_temp_dir(destination)] } else { named }
        }
    }
}

/// `$TMPDIR`, or else the folder of the output: the same amount of space is needed there anyway.
fn default_temp_dir(destination: &Destination) -> PathBuf {
    if let Some(dir) = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty()) {
        return dir.into();
    }
    match destination {
        Destination::File(path) => match path.parent() {
            Some(dir) if dir != Path::new("") => dir.to_owned(),
            _ => PathBuf::from("."),
        },
        Destination::Stdout | Destination::View(_) => PathBuf::from("/tmp"),
    }
}
