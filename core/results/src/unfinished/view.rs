//! A view that is made from inputs that stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::journal::JournalText;
use merganser_sort::note::{NotedInput, WorkNote};
use merganser_storage::Directory;

use super::{ResultAttributes, Target, WorkError, WorkFolder, find, note_of};
use crate::{Notice, ResultSource, ResultsError};

/// The most inputs that the note of a view names: it must not take time.
const NOTED_MAX: usize = 1000;

/// The list of folders that hold nothing of value: they are removed when the process ends by a signal or a crash.
pub trait DoomedFolders {
    /// Adds a folder.
    fn add(&self, folder: &Path);

    /// Takes a folder off the list: it is removed or finished.
    fn remove(&self, folder: &Path);
}

/// The inputs for a note; `None` if they are too many.
pub(super) fn noted(inputs: &[ResultSource<'_>]) -> Result<Option<Vec<NotedInput>>, ResultsError> {
    if inputs.len() > NOTED_MAX {
        return Ok(None);
    }
    let note = |input: &ResultSource<'_>| match input {
        ResultSource::Stream(called) => {
            Ok(NotedInput { path: JournalText(called.as_bytes().to_vec()), file: None })
        }
        ResultSource::File(path) => {
            let absolute = std::path::absolute(path).map_err(ResultsError::on(path))?;
            let found = fs::metadata(path).ok().filter(fs::Metadata::is_file);
            let file = found.as_ref().map(note_of);
            Ok(NotedInput { path: JournalText::from(absolute.as_os_str()), file })
        }
    };
    inputs.iter().map(note).collect::<Result<_, _>>().map(Some)
}

/// A view that is being made from inputs that stay. If it is dropped before
/// [`UnfinishedView::publish`], its folder is removed. A killed process leaves the folder, and the next
/// process that makes the same view removes it.
pub struct UnfinishedView {
    folder: Option<WorkFolder>,
    target: Target,
    path: PathBuf,
    doomed: Box<dyn DoomedFolders>,
}

impl UnfinishedView {
    /// Starts the view `path`, which is made of `inputs`. Its folder is on the list `doomed` until it is published or
    /// removed; `tell` gets what is cleared away.
    ///
    /// # Errors
    /// When a file already has that name; as [`WorkFolder::open`] and [`WorkFolder::clear`].
    pub fn create(
        path: &Path,
        inputs: &[ResultSource<'_>],
        doomed: Box<dyn DoomedFolders>,
        tell: &dyn Fn(&Notice),
    ) -> Result<Self, ResultsError> {
        let exists = || WorkError::ViewExists(path.to_owned()).into();
        if find(path).map_err(ResultsError::on(path))?.is_some() {
            return Err(exists());
        }
        let target = Target::new(path)?;
        let folder = WorkFolder::open(&target)?;
        // The process that had the lock before may have made it.
        if target.found()?.is_some() {
            return Err(exists());
        }
        folder.clear(tell)?;
        let path = folder.path().to_owned();
        doomed.add(&path);
        let files: Arc<dyn Directory> = folder.directory()?;
        let view = UnfinishedView { folder: Some(folder), target, path, doomed };
        let output = JournalText::from(view.target.path().as_os_str());
        WorkNote::new(false, output, noted(inputs)?).write(&files)?;
        Ok(view)
    }

    /// The folder that it grows in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the view its name, durably.
    ///
    /// # Errors
    /// As [`WorkFolder::become_view`].
    pub fn publish(mut self) -> Result<(), ResultsError> {
        let mut folder = self.folder.take().expect("published once");
        // Another process may soon have a folder of this name, which a signal to this one must not remove.
        self.doomed.remove(&self.path);
        let done = folder.become_view(&self.target, ResultAttributes::of_new());
        if done.is_err() && !folder.is_view() {
            // The folder is still locked. If the removal fails, the next process that makes this view removes it.
            let _ = fs::remove_dir_all(&self.path);
        }
        done
    }
}

impl Drop for UnfinishedView {
    fn drop(&mut self) {
        if self.folder.is_some() {
            // If the removal fails, the next process that makes this view removes the folder.
            let _ = fs::remove_dir_all(&self.path);
        }
        self.doomed.remove(&self.path);
    }
}
