//! A result that is a folder of objects.
//!
//! A store can't give a folder its name in one step. So the parts of all objects are sent first, and no object is there; then
//! all uploads are completed, eight at a time. Only a process that dies in this last step leaves a part of the folder.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use merganser_results::uploads::{OpenUpload, UploadNote};
use merganser_tables::{FolderFile, TableFolder};
use parking_lot::Mutex;

use super::left::{abort_left, noted};
use super::object::{as_io, remove};
use super::parts::{ObjectParts, UploadLink};
use super::plan::UploadPlan;
use crate::address::ObjectAddress;
use crate::connect::writing;
use crate::find::{Finder, key_of};
use crate::{ObjectStores, ObjectsError};

/// Uploads that are completed at once.
const COMPLETED_AT_ONCE: usize = 8;

/// A folder of objects that are being written. They appear with [`ObjectFolder::finish`]. If it is dropped before, nothing of
/// them is left.
pub struct ObjectFolder {
    address: ObjectAddress,
    sealed: Arc<Mutex<Vec<ObjectParts>>>,
    link: Option<UploadLink>,
    left: Vec<OpenUpload>,
}

impl ObjectStores {
    /// Begins the folder of objects at the address `typed`, which has none yet. As long as uploads are open, a note in
    /// `note_folder` names them.
    ///
    /// # Errors
    /// A folder that has objects; as [`ObjectStores::create`].
    pub fn create_folder(
        &self,
        typed: &Path,
        note_folder: &Path,
    ) -> Result<ObjectFolder, ObjectsError> {
        let typed = typed.to_string_lossy();
        let address = ObjectAddress::parse(&format!("{}/", typed.trim_end_matches('/')))?;
        let store = writing(&address, UploadPlan::of_file().most_bytes())?;
        let (mut note, left) = noted(note_folder, &address)?;
        abort_left(&self.requests, &store, &mut note, &left)?;
        let note = Arc::new(Mutex::new(note));
        let link = UploadLink { requests: Arc::clone(&self.requests), store, note };
        let folder = ObjectFolder { address, sealed: Arc::default(), link: Some(link), left };
        // The note is removed again by the folder.
        folder.refuse_taken(self)?;
        Ok(folder)
    }
}

impl ObjectFolder {
    /// As [`super::ObjectWriter::aborted`].
    #[must_use]
    pub fn aborted(&self) -> &[OpenUpload] {
        &self.left
    }

    fn refuse_taken(&self, stores: &ObjectStores) -> Result<(), ObjectsError> {
        let store = stores.reading(&self.address)?;
        let finder = Finder { requests: &stores.requests, store: &store, address: &self.address };
        if finder.has_objects()? {
            return Err(ObjectsError::NotEmpty { name: self.address.shown() });
        }
        Ok(())
    }

    /// Makes all objects.
    ///
    /// # Errors
    /// Those of the stores; objects that another program has put there meanwhile. Nothing is there then, unless the sentence says
    /// how many objects are.
    pub fn finish(self, stores: &ObjectStores) -> Result<(), ObjectsError> {
        self.refuse_taken(stores)?;
        let mut left = std::mem::take(&mut *self.sealed.lock());
        left.sort_by_key(ObjectParts::name);
        let (all, mut completed, mut failed) = (left.len(), 0, None);
        let (mut left, mut begun) = (VecDeque::from(left), VecDeque::new());
        loop {
            while begun.len() < COMPLETED_AT_ONCE
                && failed.is_none()
                && let Some(parts) = left.pop_front()
            {
                begun.push_back((parts.completion(), parts));
            }
            // After an error, too: the others of those eight may be there.
            let Some((request, mut parts)) = begun.pop_front() else { break };
            match parts.completed(request.wait()) {
                Ok(()) => completed += 1,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            None => Ok(()),
            Some(error) if completed == 0 => Err(error),
            Some(error) => Err(ObjectsError::Store {
                name: self.address.shown(),
                why: format!(
                    "{completed} of {all} objects are there, and the others are not: {error}; repeat the command with another -o"
                ),
            }),
        }
    }
}

impl TableFolder for ObjectFolder {
    fn create(&self, folders: &[String], name: &str) -> io::Result<Box<dyn FolderFile>> {
        let mut key = self.address.key.clone();
        for folder in folders {
            key.push_str(folder);
            key.push('/');
        }
        key.push_str(name);
        let link = self.link.as_ref().expect("it is not dropped");
        let address = self.address.with_key(&key);
        let key = key_of(&address, &key).map_err(as_io)?;
        let parts = Some(ObjectParts::new(link, (&address, key), UploadPlan::of_file()));
        Ok(Box::new(ObjectFile { parts, sealed: Arc::clone(&self.sealed) }))
    }
}

impl Drop for ObjectFolder {
    fn drop(&mut self) {
        self.sealed.lock().clear();
        remove(self.link.take().map(|link| -> Arc<Mutex<UploadNote>> { link.note }));
    }
}

/// An object of a folder.
struct ObjectFile {
    parts: Option<ObjectParts>,
    sealed: Arc<Mutex<Vec<ObjectParts>>>,
}

impl Write for ObjectFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let refused = || io::Error::other("was ended before, or an earlier part can't be sent");
        let parts = self.parts.as_mut().ok_or_else(refused)?;
        parts.write(bytes).map_err(|error| {
            self.parts = None;
            as_io(error)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FolderFile for ObjectFile {
    /// The store has all parts, and keeps them. The object is there when all are.
    fn sync(&mut self) -> io::Result<()> {
        if let Some(mut parts) = self.parts.take() {
            parts.seal().map_err(as_io)?;
            self.sealed.lock().push(parts);
        }
        Ok(())
    }
}
