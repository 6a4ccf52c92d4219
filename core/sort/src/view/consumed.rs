//! The marker of a view that is being consumed: readers refuse it, and the command that began continues.

use std::sync::Arc;

use merganser_storage::numbers::usize_of;
use merganser_storage::{Directory, DirectoryExt, StorageExt};

use crate::Result;
use crate::text::JournalText;

/// Name of the marker in the folder of a view that is being consumed.
pub const CONSUMED_NAME: &str = "consumed-into";

/// The output that the view in `folder` is being consumed into, if it is.
///
/// # Errors
/// The storage's own.
pub fn consumed_into(folder: &Arc<dyn Directory>) -> Result<Option<JournalText>> {
    let Some(file) = folder.open_if_exists(CONSUMED_NAME)? else { return Ok(None) };
    let mut bytes = file.read_vec(0, usize_of(file.size().min(4096)))?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(Some(JournalText(bytes)))
}
