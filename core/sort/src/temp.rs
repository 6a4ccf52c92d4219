//! The folder for temporary files where a caller names none.

use std::sync::Arc;

use merganser_storage::Directory;
use merganser_storage::file::LazyDirectory;

/// The system's folder for temporary files, `$TMPDIR` or `/tmp`: it is opened when the first file in it is made.
#[must_use]
pub fn system_temp() -> Arc<dyn Directory> {
    LazyDirectory::new(std::env::temp_dir())
}
