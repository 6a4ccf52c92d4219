//! The folder of unfinished work: whose it is, and that only one process works in it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use merganser_sort::journal::SortJournal;
use merganser_sort::note::NOTE_NAME;
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, own};
use rustix::fs::{Mode, fchmod};

use super::contents::{WorkContents, is_ours};
use super::names::FILES_NAME;
use super::publish::{open_own_file, rename_to_free};
use super::verdict::{Verdict, judge};
use super::{LOCK_PATIENCE, ResultAttributes, Target, holder_of, unclaim_all, work_name};
use crate::error::WorkError;
use crate::{Notice, ResultsError};

/// The folder of unfinished work of a result, locked. All files in it were written by this user: no
/// other user may write there, and a folder that another user prepared is refused.
///
/// A command that succeeds ends with [`WorkFolder::close`]. Dropped for an error, it removes the folder
/// if that is empty, and keeps it otherwise.
pub struct WorkFolder {
    path: PathBuf,
    /// Locked as long as its process lives, which tells a leftover from work in progress.
    lock: File,
    /// Whether it was there before.
    found: bool,
    /// Whether the command that used it before was in its last step.
    was_finished: bool,
    standing: FolderStanding,
}

/// Whether a folder of unfinished work still is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderStanding {
    /// Nothing else: it has its own name.
    Folder,
    /// The result, which is a view.
    View,
    /// Nothing: it is removed, or its removal was tried.
    Removed,
}

/// The bit of a folder's mode that means nothing to the system in a folder that one user writes to: here, that its work has
/// ended, but for the folder's removal. A new folder, whose work has not begun, doesn't have it.
const FINISHED: Mode = Mode::SVTX;

impl WorkFolder {
    /// Opens the folder of `target`, which is made if it is missing.
    ///
    /// # Errors
    /// When another process works in it, when it is not this user's own, or when it can't be made.
    pub fn open(target: &Target) -> Result<Self, ResultsError> {
        target.check_name()?;
        let path = target.folder().join(work_name(target.name()));
        loop {
            let found = match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
                Err(error) => return Err(ResultsError::on(target.shown())(error)),
            };
            let locked = lock(&path, target).inspect_err(|_| {
                if !found {
                    // It was made a moment ago. Only an empty folder can be removed so.
                    let _ = fs::remove_dir(&path);
                }
            });
            if let Some(lock) = locked? {
                let mode = lock.metadata().map_err(ResultsError::on(&path))?.mode();
                let was_finished = mode & FINISHED.as_raw_mode() != 0;
                if was_finished {
                    let cleared = fchmod(&lock, Mode::RWXU).map_err(io::Error::from);
                    cleared.map_err(ResultsError::on(&path))?;
                }
                // If an error drops the folder, it is removed if it is empty.
                let folder = WorkFolder {
                    path,
                    lock,
                    found,
                    was_finished,
                    standing: FolderStanding::Folder,
                };
                // Its name must survive a power cut before any work depends on its files.
                let parent = File::open(target.folder()).and_then(|parent| parent.sync_all());
                parent.map_err(ResultsError::on(target.folder()))?;
                return Ok(folder);
            }
        }
    }

    /// The folder that has become the view `target`, whose last steps are to be done.
    ///
    /// # Errors
    /// When another process does them.
    pub fn of_view(target: &Target) -> Result<Self, ResultsError> {
        let path = target.path();
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
        let lock = options.open(&path).map_err(ResultsError::on(target.shown()))?;
        wait_for(&lock, target)?;
        Ok(WorkFolder {
            path,
            lock,
            found: true,
            was_finished: false,
            standing: FolderStanding::View,
        })
    }

    /// Whether it has become a view.
    pub fn is_view(&self) -> bool {
        self.standing == FolderStanding::View
    }

    /// Notes that only the removal of its files, and then of itself, is left.
    ///
    /// # Errors
    /// The system's own.
    pub fn mark_finished(&self) -> Result<(), ResultsError> {
        if self.standing != FolderStanding::Folder {
            return Ok(());
        }
        let marked = fchmod(&self.lock, Mode::RWXU | FINISHED).map_err(io::Error::from);
        marked.map_err(ResultsError::on(&self.path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether an earlier command left something in it.
    ///
    /// # Errors
    /// When it can't be listed.
    pub fn has_leftovers(&self) -> Result<bool, ResultsError> {
        Ok(self.found && !self.names()?.is_empty())
    }

    /// Whether it was there, empty: an earlier command ended in its very last step.
    ///
    /// # Errors
    /// When it can't be listed.
    pub fn was_finished(&self) -> Result<bool, ResultsError> {
        Ok(self.was_finished && self.names()?.is_empty())
    }

    fn names(&self) -> Result<Vec<String>, ResultsError> {
        let folder: Arc<dyn Directory> = self.directory()?;
        folder.list().map_err(ResultsError::Named)
    }

    /// The files in it.
    ///
    /// # Errors
    /// When it can't be opened.
    pub fn directory(&self) -> Result<Arc<FileDirectory>, ResultsError> {
        FileDirectory::open(&self.path).map_err(ResultsError::Named)
    }

    /// Removes files of a killed command whose records are also elsewhere, as far as its files prove it
    /// ([`judge`]), and tells it. All else is refused.
    ///
    /// # Errors
    /// When it may hold records that are nowhere else, or files of unknown origin.
    pub fn clear(&self, tell: &dyn Fn(&Notice)) -> Result<(), ResultsError> {
        let folder: Arc<dyn Directory> = self.directory()?;
        let contents = WorkContents::of_path(&self.path, &folder)?;
        let verdict = judge(&contents.facts);
        // The name of a file that is not ours says more than that there is one.
        if !verdict.may_clear() && verdict != Verdict::Foreign {
            let trouble = contents.trouble.map(Box::new);
            return Err(WorkError::Kept { path: self.path.clone(), verdict, trouble }.into());
        }
        if let Some(name) = contents.stranger {
            return Err(WorkError::Stranger { path: self.path.clone(), name }.into());
        }
        assert!(verdict.may_clear(), "{verdict:?} is refused above");
        if self.names()?.is_empty() {
            return Ok(());
        }
        self.discard(tell)?;
        tell(&Notice::Cleared(self.path.clone()));
        Ok(())
    }

    /// Removes the files that commands of this program write here, whatever they hold. Inputs of a
    /// sort that had only begun get their names back first.
    ///
    /// # Errors
    /// The system's own.
    pub fn discard(&self, tell: &dyn Fn(&Notice)) -> Result<(), ResultsError> {
        let folder: Arc<dyn Directory> = self.directory()?;
        if let Some(journal) = SortJournal::read(&folder)? {
            unclaim_all(&journal, tell)?;
        }
        // Before the note, which says that their rows are elsewhere.
        let files = self.path.join(FILES_NAME);
        match fs::remove_dir_all(&files) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ResultsError::on(&files)(error));
            }
            _ => {}
        }
        for name in self.names()?.iter().filter(|name| is_ours(name)) {
            folder.remove(name).map_err(ResultsError::Named)?;
        }
        Ok(())
    }

    /// Removes the folder, which is empty, unless it has become the result: the result has its name.
    ///
    /// # Errors
    /// When it can't be removed. The result is complete all the same.
    pub fn close(mut self) -> Result<(), ResultsError> {
        if self.standing != FolderStanding::Folder {
            return Ok(());
        }
        self.standing = FolderStanding::Removed;
        fs::remove_dir(&self.path)
            .map_err(|error| WorkError::NotRemoved { path: self.path.clone(), error }.into())
    }

    /// Makes the folder the result itself: a view.
    ///
    /// # Errors
    /// When a file already has the name, or the system refuses.
    pub fn become_view(
        &mut self,
        target: &Target,
        attributes: ResultAttributes,
    ) -> Result<(), ResultsError> {
        let on_target = ResultsError::on(target.shown());
        let taken = || WorkError::Taken(target.shown().to_owned()).into();
        for name in self.names()? {
            let file = open_own_file(&self.path.join(name)).map_err(on_target)?;
            attributes.apply(&file).map_err(on_target)?;
        }
        self.lock.sync_all().map_err(on_target)?;
        // An attempt without a look would change the folder's attributes.
        if target.found()?.is_some() {
            return Err(taken());
        }
        attributes.apply_to_folder(&self.lock).map_err(on_target)?;
        rename_to_free(&self.path, &target.path()).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => on_target(error),
        })?;
        self.standing = FolderStanding::View;
        let parent = File::open(target.folder()).map_err(on_target)?;
        parent.sync_all().map_err(on_target)?;
        // The view has its name, so the note has no use any more. A note that stays does no harm.
        let _ = fs::remove_file(target.path().join(NOTE_NAME));
        Ok(())
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if self.standing == FolderStanding::Folder {
            // Only an empty folder can be removed so.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Locks the folder at `path`; `None` if it was removed meanwhile by the process that held it.
fn lock(path: &Path, target: &Target) -> Result<Option<File>, ResultsError> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
    let folder = match options.open(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
            return Err(WorkError::NoFolder(path.to_owned()).into());
        }
        Err(error) => return Err(ResultsError::on(path)(error)),
    };
    let held = folder.metadata().map_err(ResultsError::on(path))?;
    if held.uid() != own::user() {
        return Err(WorkError::OtherUser { path: path.to_owned(), user: held.uid() }.into());
    }
    if held.mode() & 0o022 != 0 {
        return Err(WorkError::Writable(path.to_owned()).into());
    }
    wait_for(&folder, target)?;
    // The process that held the lock may have removed the folder, or given it another name.
    match path.symlink_metadata() {
        Ok(now) if (now.dev(), now.ino()) == (held.dev(), held.ino()) => Ok(Some(folder)),
        _ => Ok(None),
    }
}

/// Locks the folder that `target` is made in.
fn wait_for(folder: &File, target: &Target) -> Result<(), ResultsError> {
    // A child of a process that was just killed shares the lock until it runs its program.
    let until = Instant::now() + LOCK_PATIENCE;
    while folder.try_lock().is_err() {
        if Instant::now() >= until {
            let target = target.shown().to_owned();
            return Err(WorkError::Busy { target, by: holder_of(folder) }.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
