//! Uploads that a killed process left.

use std::path::Path;
use std::sync::Arc;

use merganser_results::uploads::{OpenUpload, UploadNote, UploadNoteError};

use super::parts::abort;
use crate::ObjectsError;
use crate::address::ObjectAddress;
use crate::connect::UploadStore;
use crate::find::{answered, key_of};
use crate::requests::Requests;

/// The note of the uploads of a result, and those that are left of an earlier process.
pub(super) fn noted(
    folder: &Path,
    result: &ObjectAddress,
) -> Result<(UploadNote, Vec<OpenUpload>), ObjectsError> {
    UploadNote::begin(folder, &result.shown()).map_err(|error| match error {
        UploadNoteError::Busy(name) => {
            ObjectsError::Store { name, why: "another process is writing it now".to_owned() }
        }
        UploadNoteError::Results(error) => error.into(),
    })
}

/// Aborts uploads that the note names, whose process is dead: it has lost the lock of the note.
pub(super) fn abort_left(
    requests: &Arc<Requests>,
    store: &Arc<dyn UploadStore>,
    note: &mut UploadNote,
    left: &[OpenUpload],
) -> Result<(), ObjectsError> {
    for upload in left {
        let address = ObjectAddress::parse(&upload.object)?;
        if let Some(id) = &upload.id {
            let key = key_of(&address, &address.key)?;
            answered(abort(requests, store, (&key, id.clone())), &address)?;
        }
        note.ended(&upload.object)?;
    }
    Ok(())
}
