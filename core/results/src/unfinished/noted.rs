//! Unfinished work on a result of inputs that stay, with a note that says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::journal::JournalText;
use merganser_sort::note::{NotedInput, WorkNote};
use merganser_storage::Directory;

use super::names::FILES_NAME;
use super::{Target, WorkFolder, note_of};
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
fn noted(inputs: &[ResultSource<'_>]) -> Result<Option<Vec<NotedInput>>, ResultsError> {
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

/// The folder of unfinished work of a result that is made from inputs that stay. If it is dropped before it is
/// [finished](NotedWork::finish), the folder is removed.
pub(super) struct NotedWork {
    folder: Option<WorkFolder>,
    target: Target,
    path: PathBuf,
    doomed: Box<dyn DoomedFolders>,
}

impl NotedWork {
    /// Starts the work on `target`, which `refuse_taken` refuses if something has its name: the process that had the lock
    /// before may have made it.
    pub(super) fn begin(
        target: Target,
        inputs: &[ResultSource<'_>],
        doomed: Box<dyn DoomedFolders>,
        tell: &dyn Fn(&Notice),
        refuse_taken: impl FnOnce(&Target) -> Result<(), ResultsError>,
    ) -> Result<NotedWork, ResultsError> {
        let folder = WorkFolder::open(&target)?;
        refuse_taken(&target)?;
        folder.clear(tell)?;
        let path = folder.path().to_owned();
        doomed.add(&path);
        let names: Arc<dyn Directory> = folder.directory()?;
        let work = NotedWork { folder: Some(folder), target, path, doomed };
        let output = JournalText::from(work.target.path().as_os_str());
        // The note first: a folder without one is kept, since nothing says that its records are elsewhere.
        WorkNote::new(false, output, noted(inputs)?).write(&names)?;
        Ok(work)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Takes it off the list of doomed folders, since a signal must remove no part of what gets the name now, and nothing of
    /// another process that has a folder of this name soon.
    pub(super) fn spare(&self) {
        self.doomed.remove(&self.path);
    }

    /// The folder of unfinished work, whose result has its name, or gets it now.
    pub(super) fn finish(mut self) -> WorkFolder {
        self.folder.take().expect("finished once")
    }
}

impl Drop for NotedWork {
    fn drop(&mut self) {
        if self.folder.is_some() {
            // The note goes last. If a removal fails, the next process that makes this result removes the rest.
            let _ = fs::remove_dir_all(self.path.join(FILES_NAME));
            let _ = fs::remove_dir_all(&self.path);
        }
        self.doomed.remove(&self.path);
    }
}
