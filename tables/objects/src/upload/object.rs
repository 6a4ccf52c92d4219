//! A result that is one object.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use merganser_results::stopped::Stopped;
use merganser_results::uploads::{OpenUpload, UploadNote};
use parking_lot::Mutex;

use super::left::{abort_left, noted};
use super::parts::{ObjectParts, UploadLink};
use super::plan::UploadPlan;
use crate::address::ObjectAddress;
use crate::connect::writing;
use crate::find::key_of;
use crate::{ObjectStores, ObjectsError};

/// An object that is being written. It appears, or replaces another, with [`ObjectWriter::finish`]. If it is dropped before,
/// nothing of it is left.
pub struct ObjectWriter {
    parts: Option<ObjectParts>,
    note: Option<Arc<Mutex<UploadNote>>>,
    left: Vec<OpenUpload>,
}

impl ObjectStores {
    /// Begins the object at the address `typed`. As long as its upload is open, a note in `note_folder` names it.
    ///
    /// # Errors
    /// An address that no object can be written to; settings that are missing; another process that writes it; those of
    /// the store.
    pub fn create(
        &self,
        typed: &Path,
        plan: UploadPlan,
        note_folder: &Path,
    ) -> Result<ObjectWriter, ObjectsError> {
        let address = ObjectAddress::parse(&typed.to_string_lossy())?;
        if address.is_folder() {
            return Err(address.refused("is a folder; name an object in it, or make files in it with --file-size or --partition-by"));
        }
        let store = writing(&address, plan.most_bytes())?;
        let key = key_of(&address, &address.key)?;
        let (mut note, left) = noted(note_folder, &address)?;
        abort_left(&self.requests, &store, &mut note, &left)?;
        let note = Arc::new(Mutex::new(note));
        let link =
            UploadLink { requests: Arc::clone(&self.requests), store, note: Arc::clone(&note) };
        let mut parts = ObjectParts::new(&link, (&address, key), plan);
        drop(link);
        // If it fails, its note is removed again.
        let begun = parts.begin();
        let writer = ObjectWriter { parts: Some(parts), note: Some(note), left };
        begun.map(|_| writer)
    }
}

impl ObjectWriter {
    /// The uploads of this result that a killed process left, and that are aborted now.
    #[must_use]
    pub fn aborted(&self) -> &[OpenUpload] {
        &self.left
    }

    /// Makes the object, with all bytes that were written.
    ///
    /// # Errors
    /// Those of the store. There is no object then, or the one that was there before.
    pub fn finish(mut self) -> Result<(), ObjectsError> {
        let mut parts = self.parts.take().ok_or(ObjectsError::Cancelled)?;
        parts.finish()
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let refused = || io::Error::other("an earlier part can't be sent");
        let parts = self.parts.as_mut().ok_or_else(refused)?;
        parts.write(bytes).map_err(|error| {
            // The object can't be whole any more.
            self.parts = None;
            as_io(error)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        self.parts = None;
        remove(self.note.take());
    }
}

/// Removes a note whose uploads are all ended. If it can't be removed, `recover` names it.
pub(super) fn remove(note: Option<Arc<Mutex<UploadNote>>>) {
    if let Some(note) = note.and_then(Arc::into_inner) {
        let _ = note.into_inner().finish();
    }
}

/// The error of a write.
pub(super) fn as_io(error: ObjectsError) -> io::Error {
    match error {
        ObjectsError::Cancelled => Stopped::Cancelled.into(),
        error => io::Error::other(error),
    }
}
