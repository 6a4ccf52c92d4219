//! A folder of files that is made from inputs that stay.
//!
//! ```text
//!   .OUT.unfinished/work-note     the inputs, which have all records
//!   .OUT.unfinished/files/...     the folder as it will be; its last step is a rename to OUT
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use merganser_storage::file::rename_to_free;

use super::names::FILES_NAME;
use super::noted::NotedWork;
use super::{DoomedFolders, Target, WorkError};
use crate::{Notice, ResultSource, ResultsError};

/// A result of files in folders that is being made from inputs that stay. If it is dropped before
/// [`UnfinishedFiles::publish`], all of it is removed. A killed process leaves the folder of unfinished work, and the next
/// process that makes the same result removes it.
pub struct UnfinishedFiles(NotedWork);

impl UnfinishedFiles {
    /// Starts the folder `path`, which is made of `inputs`. Its folder of unfinished work is on the list `doomed` until it is
    /// published or removed; `tell` gets what is cleared away.
    ///
    /// # Errors
    /// When something has that name, unless it is an empty folder; as [`super::WorkFolder::open`] and [`super::WorkFolder::clear`].
    pub fn create(
        path: &Path,
        inputs: &[ResultSource<'_>],
        doomed: Box<dyn DoomedFolders>,
        tell: &dyn Fn(&Notice),
    ) -> Result<Self, ResultsError> {
        let target = Target::new(path)?;
        refuse_taken(&target)?;
        let work = NotedWork::begin(target, inputs, doomed, tell, refuse_taken)?;
        let files = UnfinishedFiles(work);
        fs::create_dir(files.path()).map_err(ResultsError::on(&files.path()))?;
        Ok(files)
    }

    /// The folder that files are made in, and folders.
    pub fn path(&self) -> PathBuf {
        self.0.path().join(FILES_NAME)
    }

    /// Gives the folder its name, durably. The files in it are synced already; their folders are synced here.
    ///
    /// # Errors
    /// When something else has got the name, or the system refuses. Nothing is left then.
    pub fn publish(self) -> Result<(), ResultsError> {
        self.0.spare();
        self.publish_files()?;
        let folder = self.0.finish();
        // The result is complete. If a step fails, the last one says so, and the next process removes the rest.
        let _ = folder.mark_finished();
        let _ = folder.discard(&|_| {});
        folder.close()
    }

    fn publish_files(&self) -> Result<(), ResultsError> {
        let target = self.0.target();
        let on_target = ResultsError::on(target.shown());
        let (from, to) = (self.path(), target.path());
        sync_folders(&from).map_err(on_target)?;
        let renamed = match target.found()? {
            None => rename_to_free(&from, &to),
            // The system replaces a folder only if it is empty.
            Some(_) => fs::rename(&from, &to),
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotADirectory => WorkError::Taken(target.shown().to_owned()).into(),
            _ => on_target(error),
        })?;
        File::open(target.folder()).and_then(|folder| folder.sync_all()).map_err(on_target)
    }
}

/// Refuses a name that something has, unless that is an empty folder.
fn refuse_taken(target: &Target) -> Result<(), ResultsError> {
    let on_target = ResultsError::on(target.shown());
    match target.found()? {
        None => Ok(()),
        Some(found) if found.is_dir() => {
            let mut entries = fs::read_dir(target.path()).map_err(on_target)?;
            match entries.next() {
                None => Ok(()),
                Some(_) => Err(WorkError::NotFree(target.shown().to_owned()).into()),
            }
        }
        Some(_) => Err(WorkError::NotFree(target.shown().to_owned()).into()),
    }
}

/// Makes the names in a folder, and in the folders in it, survive a power cut.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}
