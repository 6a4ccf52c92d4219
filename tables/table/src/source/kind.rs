//! The kind of a file, by its first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use merganser_storage::address::is_address;

use crate::TableError;

/// Kinds of files that hold tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Parquet.
    Parquet,
    /// Arrow's file of batches, also called Feather.
    ArrowFile,
    /// Arrow's stream of batches.
    ArrowStream,
}

/// The kind of the file at `path`.
///
/// # Errors
/// The system's own; a file that is no table, or encrypted.
pub fn kind_of(path: &Path) -> Result<FileKind, TableError> {
    if is_address(path) {
        return Err(TableError::Address { address: path.to_owned() });
    }
    let mut first = Vec::new();
    let file = File::open(path).map_err(TableError::on(path))?;
    file.take(HEAD_BYTES).read_to_end(&mut first).map_err(TableError::on(path))?;
    kind_of_head(path, &first)
}

/// Bytes at the front of a file that tell its kind.
pub(super) const HEAD_BYTES: u64 = 8;

/// The kind of the file at `path`, which begins with these bytes.
pub(super) fn kind_of_head(path: &Path, first: &[u8]) -> Result<FileKind, TableError> {
    if first.starts_with(b"PARE") {
        return Err(TableError::Encrypted { file: path.to_owned() });
    }
    kind_of_bytes(first).ok_or_else(|| TableError::NotATable { file: path.to_owned() })
}

/// The kind of a file that begins with these bytes; `None` if it is no table.
fn kind_of_bytes(first: &[u8]) -> Option<FileKind> {
    if first.starts_with(b"PAR1") {
        Some(FileKind::Parquet)
    } else if first.starts_with(b"ARROW1") {
        Some(FileKind::ArrowFile)
    } else if first.starts_with(&[0xFF, 0xFF, 0xFF, 0xFF]) && first.len() >= 8 {
        Some(FileKind::ArrowStream)
    } else {
        None
    }
}
