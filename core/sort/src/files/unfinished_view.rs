//! A view that appears under its name when it is complete, or not at all.
//!
//! ```text
//!   .NAME.unfinished/   while it grows: locked, private, with a note of what it is made from
//!   NAME                when it is published
//! ```
//!
//! `merganser sort --view` names and locks its folders in the same way, so that it and `merganser recover` know what a
//! killed program left, and so does the next call here.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, own, publish_file, publish_folder, rename_to_free};

use crate::journal::{FileNote, JournalText};
use crate::note::{NOTE_NAME, NotedInput, WorkNote};
use crate::view::MANIFEST_NAME;
use crate::{Error, Result};

/// A view being made from inputs that stay. If it is dropped before [`UnfinishedView::publish`], its folder is removed. A
/// killed process leaves the folder, and the next process that makes the same view removes it.
pub struct UnfinishedView {
    directory: Arc<FileDirectory>,
    /// Locked as long as its process lives, which tells a leftover from work in progress.
    lock: File,
    work: PathBuf,
    target: PathBuf,
    is_published: bool,
}

impl UnfinishedView {
    /// Starts the view `path`. The files that it is made from are noted, for users that find the folder after a power cut.
    ///
    /// # Errors
    /// [`Error::ViewExists`] if there is something of that name; [`Error::Unfinished`] if another process makes it, or if
    /// the folder in which it would grow has records that may be nowhere else; the system's own.
    pub fn create(path: impl AsRef<Path>, inputs: &[&Path]) -> Result<Self> {
        let target = path.as_ref();
        let exists = || Error::ViewExists { view: target.to_owned() };
        let Some(name) = target.file_name() else { return Err(exists()) };
        if fs::symlink_metadata(target).is_ok() {
            return Err(exists());
        }
        let target = std::path::absolute(target)?;
        let mut work_name = OsString::from(".");
        work_name.push(name);
        work_name.push(".unfinished");
        let work = target.with_file_name(work_name);
        let directory = match FileDirectory::create_own(&work) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                clear(&work)?;
                FileDirectory::create_own(&work)?
            }
            made => made?,
        };
        let lock = own::open_folder(&work)?;
        if lock.try_lock().is_err() {
            return Err(Error::Unfinished { folder: work });
        }
        let view = UnfinishedView { directory, lock, work, target, is_published: false };
        let folder: Arc<dyn Directory> = view.directory();
        let inputs = inputs.iter().map(|input| noted(input)).collect::<io::Result<_>>()?;
        let output = JournalText::from(view.target.as_os_str());
        WorkNote::new(false, output, Some(inputs)).write(&folder)?;
        Ok(view)
    }

    /// The folder that it grows in, for [`SortOutput::View`](crate::SortOutput::View).
    #[must_use]
    pub fn directory(&self) -> Arc<dyn Directory> {
        Arc::clone(&self.directory) as _
    }

    /// Syncs the folder and gives it its name.
    ///
    /// # Errors
    /// [`Error::ViewExists`] if something took the name meanwhile; the system's own.
    pub fn publish(mut self) -> Result<()> {
        for name in self.directory.list()? {
            publish_file(&File::open(self.work.join(name))?)?;
        }
        self.lock.sync_all()?;
        publish_folder(&self.lock)?;
        rename_to_free(&self.work, &self.target).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::ViewExists { view: self.target.clone() },
            _ => error.into(),
        })?;
        self.is_published = true;
        own::sync_parent(&self.target)?;
        // The view has its name, so the note has no use any more. A note that stays does no harm.
        let _ = fs::remove_file(self.target.join(NOTE_NAME));
        Ok(())
    }
}

impl Drop for UnfinishedView {
    fn drop(&mut self) {
        if !self.is_published {
            // If the removal fails, the next process that makes this view removes the folder.
            let _ = fs::remove_dir_all(&self.work);
        }
    }
}

fn noted(input: &Path) -> io::Result<NotedInput> {
    let found = fs::metadata(input)?;
    let path = JournalText::from(std::path::absolute(input)?.as_os_str());
    Ok(NotedInput { path, file: Some(FileNote::of_metadata(&found)) })
}

/// Removes the folder that a killed process left at `work`. Its files prove that the inputs have all its records: there is
/// a note that says so, or no record, and no file of other work.
fn clear(work: &Path) -> Result<()> {
    let refused = || Error::Unfinished { folder: work.to_owned() };
    let lock = own::open_folder(work)?;
    if lock.try_lock().is_err() {
        return Err(refused());
    }
    let files = FileDirectory::open_own(work)?;
    let names = files.list()?;
    let files: Arc<dyn Directory> = files;
    let is_copy = match WorkNote::read(&files)? {
        Some(note) => !note.consumes && names.iter().all(|name| is_of_view(name)),
        None => names.iter().all(|name| name.strip_suffix(".new") == Some(NOTE_NAME)),
    };
    if !is_copy {
        return Err(refused());
    }
    for name in &names {
        files.remove(name)?;
    }
    Ok(fs::remove_dir(work)?)
}

/// Whether a view that is made from inputs that stay has files of this name.
fn is_of_view(name: &str) -> bool {
    let whole = name.strip_suffix(".new").unwrap_or(name);
    let is_numbered = whole.split_once('.').is_some_and(|(number, kind)| {
        number.bytes().all(|byte| byte.is_ascii_digit()) && ["run", "buckets"].contains(&kind)
    });
    is_numbered || [NOTE_NAME, MANIFEST_NAME].contains(&whole)
}
