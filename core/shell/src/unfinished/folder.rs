//! The folder of unfinished work: whose it is, and that only one process works in it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use merganser_sort::journal::{JournalText, SortJournal};
use merganser_sort::note::{NOTE_NAME, NotedInput, WorkNote};
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, own};
use rustix::fs::{Mode, fchmod};

use super::publish::{open_own_file, rename_to_free};
use super::verdict::{Verdict, WorkContents, is_ours, judge};
use super::{LOCK_PATIENCE, ResultAttributes, Target, find, holder_of, note_of, unclaim_all};
use crate::failure;
use crate::failure::Failure;
use crate::input::Input;
use crate::shown;
use crate::signals;

/// The most inputs that the note of a view names: it must not take time.
const NOTED_MAX: usize = 1000;
const PREFIX: &str = ".";
const SUFFIX: &str = ".unfinished";

/// The name of the folder of unfinished work of a result.
pub fn work_name(result: &OsStr) -> OsString {
    let mut name = OsString::from(PREFIX);
    name.push(result);
    name.push(SUFFIX);
    name
}

/// The name of the result, if `name` is that of a folder of unfinished work.
pub fn is_work_name(name: &OsStr) -> Option<OsString> {
    let inner = name.as_bytes().strip_prefix(PREFIX.as_bytes())?;
    let inner = inner.strip_suffix(SUFFIX.as_bytes())?;
    (!inner.is_empty()).then(|| OsStr::from_bytes(inner).to_owned())
}

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
    pub fn open(target: &Target) -> Result<Self, Failure> {
        target.check_name()?;
        let path = target.folder().join(work_name(target.name()));
        loop {
            let found = match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
                Err(error) => return Err(Failure::on(target.shown(), &error)),
            };
            let locked = lock(&path, target).inspect_err(|_| {
                if !found {
                    // It was made a moment ago. Only an empty folder can be removed so.
                    let _ = fs::remove_dir(&path);
                }
            });
            if let Some(lock) = locked? {
                let mode = lock.metadata().map_err(|error| Failure::on(&path, &error))?.mode();
                let was_finished = mode & FINISHED.as_raw_mode() != 0;
                if was_finished {
                    let cleared = fchmod(&lock, Mode::RWXU);
                    cleared.map_err(|error| Failure::on(&path, &error.into()))?;
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
                parent.map_err(|error| Failure::on(target.folder(), &error))?;
                return Ok(folder);
            }
        }
    }

    /// The folder that has become the view `target`, whose last steps are to be done.
    ///
    /// # Errors
    /// When another process does them.
    pub fn of_view(target: &Target) -> Result<Self, Failure> {
        let path = target.path();
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
        let lock = options.open(&path).map_err(|error| Failure::on(target.shown(), &error))?;
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
    pub fn mark_finished(&self) -> Result<(), Failure> {
        if self.standing != FolderStanding::Folder {
            return Ok(());
        }
        let marked = fchmod(&self.lock, Mode::RWXU | FINISHED);
        marked.map_err(|error| Failure::on(&self.path, &error.into()))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether an earlier command left something in it.
    ///
    /// # Errors
    /// When it can't be listed.
    pub fn has_leftovers(&self) -> Result<bool, Failure> {
        Ok(self.found && !self.names()?.is_empty())
    }

    /// Whether it was there, empty: an earlier command ended in its very last step.
    ///
    /// # Errors
    /// When it can't be listed.
    pub fn was_finished(&self) -> Result<bool, Failure> {
        Ok(self.was_finished && self.names()?.is_empty())
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        let folder: Arc<dyn Directory> = self.directory()?;
        folder.list().map_err(|error| Failure::named(&error))
    }

    /// The files in it.
    ///
    /// # Errors
    /// When it can't be opened.
    pub fn directory(&self) -> Result<Arc<FileDirectory>, Failure> {
        FileDirectory::open(&self.path).map_err(|error| Failure::named(&error))
    }

    /// Removes files of a killed command whose records are also elsewhere, as far as its files prove it
    /// ([`judge`]). All else is refused.
    ///
    /// # Errors
    /// When it may hold records that are nowhere else, or files of unknown origin.
    pub fn clear(&self) -> Result<(), Failure> {
        let folder: Arc<dyn Directory> = self.directory()?;
        let contents = WorkContents::of(&self.path, &folder)?;
        let verdict = judge(&contents.facts);
        let shown = shown::name(&self.path);
        let see = format!("see 'merganser recover {}'", shown::shell_word(&self.path));
        let trouble = contents.trouble.map(|trouble| format!("{trouble}; ")).unwrap_or_default();
        let refusal = match verdict {
            Verdict::Sort(_) => Some(format!(
                "{shown}: holds records of an interrupted sort --consume; repeat that command to finish it, or {see}"
            )),
            Verdict::Copy { consume: true } => Some(format!(
                "{shown}: holds records of an interrupted materialize --consume; repeat that command to finish it, or {see}"
            )),
            Verdict::Pipeline { .. } => Some(format!(
                "{shown}: holds the work of an interrupted pipeline; repeat that command to finish it, or {see}"
            )),
            Verdict::Orphaned { .. } => Some(format!(
                "{trouble}{shown}: holds records of an interrupted command whose journal is lost or damaged, and perhaps nothing else has them: {see}, and move it away"
            )),
            Verdict::Unexplained { .. } => Some(format!(
                "{shown}: holds records of an interrupted command, and no file there says whether they are anywhere else: {see}, and move it away"
            )),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        if let Some(stranger) = contents.stranger {
            return Err(format!(
                "{shown}: holds '{stranger}', which no merganser command writes there; move it away"
            )
            .into());
        }
        assert!(verdict.may_clear(), "{verdict:?} is refused above");
        if self.names()?.is_empty() {
            return Ok(());
        }
        self.discard()?;
        failure::notice(&format!("{shown}: left by a killed command, removed"));
        Ok(())
    }

    /// Removes the files that commands of this program write here, whatever they hold. Inputs of a
    /// sort that had only begun get their names back first.
    ///
    /// # Errors
    /// The system's own.
    pub fn discard(&self) -> Result<(), Failure> {
        let folder: Arc<dyn Directory> = self.directory()?;
        if let Some(journal) = SortJournal::read(&folder)? {
            unclaim_all(&journal)?;
        }
        for name in self.names()?.iter().filter(|name| is_ours(name)) {
            folder.remove(name).map_err(|error| Failure::named(&error))?;
        }
        Ok(())
    }

    /// Removes the folder, which is empty, unless it has become the result: the result has its name.
    ///
    /// # Errors
    /// When it can't be removed. The result is complete all the same.
    pub fn close(mut self) -> Result<(), Failure> {
        if self.standing != FolderStanding::Folder {
            return Ok(());
        }
        self.standing = FolderStanding::Removed;
        fs::remove_dir(&self.path).map_err(|error| {
            let shown = shown::name(&self.path);
            let why = failure::plain(&error);
            Failure::Error(format!("the result is complete, but {shown} can't be removed: {why}"))
        })
    }

    /// Makes the folder the result itself: a view.
    ///
    /// # Errors
    /// When a file already has the name, or the system refuses.
    pub fn become_view(
        &mut self,
        target: &Target,
        attributes: ResultAttributes,
    ) -> Result<(), Failure> {
        let on_target = |error: io::Error| Failure::on(target.shown(), &error);
        for name in self.names()? {
            let file = open_own_file(&self.path.join(name)).map_err(on_target)?;
            attributes.apply(&file).map_err(on_target)?;
        }
        self.lock.sync_all().map_err(on_target)?;
        // An attempt without a look would change the folder's attributes.
        if target.found()?.is_some() {
            return Err(taken(target.shown()));
        }
        attributes.apply_to_folder(&self.lock).map_err(on_target)?;
        rename_to_free(&self.path, &target.path()).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(target.shown()),
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
fn lock(path: &Path, target: &Target) -> Result<Option<File>, Failure> {
    let shown = path.display();
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
    let folder = match options.open(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
            return Err(format!("{shown}: is no folder; move it away, it is in the way").into());
        }
        Err(error) => return Err(Failure::on(path, &error)),
    };
    let held = folder.metadata().map_err(|error| Failure::on(path, &error))?;
    if held.uid() != own::user() {
        return Err(format!(
            "{shown}: belongs to user {}, not to you; give the result another name or place",
            held.uid()
        )
        .into());
    }
    if held.mode() & 0o022 != 0 {
        return Err(format!(
            "{shown}: other users may write there, so what it holds can't be trusted; move it away"
        )
        .into());
    }
    wait_for(&folder, target)?;
    // The process that held the lock may have removed the folder, or given it another name.
    match path.symlink_metadata() {
        Ok(now) if (now.dev(), now.ino()) == (held.dev(), held.ino()) => Ok(Some(folder)),
        _ => Ok(None),
    }
}

/// Locks the folder that `target` is made in.
fn wait_for(folder: &File, target: &Target) -> Result<(), Failure> {
    // A child of a process that was just killed shares the lock until it runs its program.
    let until = Instant::now() + LOCK_PATIENCE;
    while folder.try_lock().is_err() {
        if Instant::now() >= until {
            let target = shown::name(target.shown());
            let by = holder_of(folder).map(|by| format!(": {by}")).unwrap_or_default();
            return Err(format!("{target}: another process is making this now{by}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The inputs for a note; `None` if they are too many.
fn noted(inputs: &[Input]) -> Result<Option<Vec<NotedInput>>, Failure> {
    if inputs.len() > NOTED_MAX {
        return Ok(None);
    }
    let note = |input: &Input| match input {
        Input::Stdin => {
            Ok(NotedInput { path: JournalText(input.to_string().into_bytes()), file: None })
        }
        Input::File(path) => {
            let absolute = std::path::absolute(path).map_err(|error| Failure::on(path, &error))?;
            let found = fs::metadata(path).ok().filter(fs::Metadata::is_file);
            let file = found.as_ref().map(note_of);
            Ok(NotedInput { path: JournalText::from(absolute.as_os_str()), file })
        }
    };
    inputs.iter().map(note).collect::<Result<_, _>>().map(Some)
}

/// A view that is to be made has its name already.
pub fn exists(view: &Path) -> Failure {
    let shown = view.display();
    format!("{shown}: exists; remove it or give --view another name").into()
}

/// Another file has got the name of a result while that was made.
pub fn taken(result: &Path) -> Failure {
    let shown = result.display();
    format!("{shown}: another file has taken this name since the work began; move it away, then repeat the command").into()
}

/// A view that is being made from inputs that stay. If it is dropped before
/// [`UnfinishedView::publish`], its folder is removed. A killed process leaves the folder, and the next
/// process that makes the same view removes it.
pub struct UnfinishedView {
    folder: Option<WorkFolder>,
    target: Target,
    path: PathBuf,
}

impl UnfinishedView {
    /// Starts the view `path`, which is made of `inputs`.
    ///
    /// # Errors
    /// When a file already has that name; as [`WorkFolder::open`] and [`WorkFolder::clear`].
    pub fn create(path: &Path, inputs: &[Input]) -> Result<Self, Failure> {
        if find(path).map_err(|error| Failure::on(path, &error))?.is_some() {
            return Err(exists(path));
        }
        let target = Target::new(path)?;
        let folder = WorkFolder::open(&target)?;
        // The process that had the lock before may have made it.
        if target.found()?.is_some() {
            return Err(exists(path));
        }
        folder.clear()?;
        let path = folder.path().to_owned();
        signals::remember(&path);
        let files: Arc<dyn Directory> = folder.directory()?;
        let view = UnfinishedView { folder: Some(folder), target, path };
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
    pub fn publish(mut self) -> Result<(), Failure> {
        let mut folder = self.folder.take().expect("published once");
        // Another process may soon have a folder of this name, which a signal to this one must not remove.
        signals::forget(&self.path);
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
        signals::forget(&self.path);
    }
}
