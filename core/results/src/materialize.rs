//! A view that is copied to a file, and one that is *consumed*: it loses its bytes while the file grows.
//!
//! ```text
//!   whole view ──► marked ──► copying ──► complete ──► published ──► view removed ──► nothing
//! ```
//!
//! Each arrow is durable before the next one starts. The engine copies ([`merganser_sort::output`]); here are the checks
//! before it, the name that the result gets, and the ends of work that was interrupted.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::activity::Activity;
use merganser_sort::budget::OwnerPeak;
use merganser_sort::journal::{FileNote, JournalText, SortJournal, SortPhase};
use merganser_sort::output::{Materialize, PARTIAL_NAME, Resume, materialize};
use merganser_sort::{Budget, Progress};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use crate::unfinished::{
    LockHolder, ResultAttributes, Target, WorkError, WorkFolder, holder_of, lock_file, note_of,
    publish,
};
use crate::{Notice, ResultsError};

/// Why a view is not copied to a file.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// What any result can fail with.
    #[error(transparent)]
    Results(ResultsError),
    /// The result would be in the view, which is removed once it is consumed.
    #[error("{}: is inside the view", .0.display())]
    Inside(PathBuf),
    /// A file of the view has other hard links: it is a part of another copy of the view, whose content would vanish, too.
    #[error("{}: has other hard links", .0.display())]
    OtherLinks(PathBuf),
    /// Another process has the view open, so it can't be consumed.
    #[error("{}: another process is reading or consuming this view now", view.display())]
    ViewBusy {
        /// The view.
        view: PathBuf,
        /// That process, if the system names it.
        by: Option<LockHolder>,
    },
    /// The copy has begun and failed. The same command continues.
    #[error("{error}; every record is in {} and {}", view.display(), work.display())]
    Begun {
        /// Why it failed.
        error: Box<CopyError>,
        /// The view.
        view: PathBuf,
        /// The folder of unfinished work.
        work: PathBuf,
        /// The result.
        output: PathBuf,
    },
}

impl<E: Into<ResultsError>> From<E> for CopyError {
    fn from(error: E) -> Self {
        CopyError::Results(error.into())
    }
}

/// A view that a command line names, and the file that it becomes.
#[derive(Debug, Clone, Copy)]
pub struct CopyJob<'a> {
    /// The view, as it was typed.
    pub view: &'a Path,
    /// The file, as it was typed.
    pub output: &'a Path,
    /// Whether the view is removed while it is copied.
    pub consume: bool,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
}

/// A copy that is whole and has its name.
#[derive(Debug, Default)]
pub struct CopyDone {
    /// Bytes of the file. 0 if an earlier command had finished it.
    pub bytes: u64,
    /// The peak memory of each owner.
    pub memory: Vec<OwnerPeak>,
}

/// Copies the view to a file that appears complete. A call that was killed, repeated, continues.
///
/// # Errors
/// When the view can't be read, or its file can't get its name; a view that is consumed must be only this process's.
pub fn copy_to_file(
    job: &CopyJob<'_>,
    progress: &dyn Progress,
    tell: &dyn Fn(&Notice),
) -> Result<CopyDone, CopyError> {
    let target = Target::new(job.output)?;
    let replaced = target.check_file()?;
    let work = WorkFolder::open(&target)?;
    let attributes = replaced.as_ref().map_or_else(ResultAttributes::of_new, |old| old.attributes);
    let replaces = replaced.as_ref().map(|old| note_of(&old.found));
    let goal = CopyGoal { target: &target, replaces, attributes, before: &|_| Ok(()) };
    let view_path = match fs::canonicalize(job.view) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound && job.consume => {
            return after_the_view(job, work, &goal, error, progress, tell);
        }
        Err(error) => return Err(ResultsError::on(job.view)(error).into()),
    };
    // The process that had the lock before may have made it, out of a view that is gone.
    if let Some(now) = target.found()?
        && !replaces.is_some_and(|then| then.is_same_file(&note_of(&now)))
    {
        return Err(WorkError::Taken(target.shown().to_owned()).into());
    }
    refuse_inside(&target, &view_path)?;
    let view: Arc<dyn Directory> = FileDirectory::open(job.view).map_err(ResultsError::Named)?;
    let _lock = if job.consume { Some(lock_view(job.view, &view)?) } else { None };
    if job.consume {
        refuse_other_links(job.view)?;
    }
    refuse_foreign_work(&work, &view_path, tell)?;
    let copy = ViewCopy {
        view: Activity::here().directory(view),
        view_path: view_path.clone(),
        work: &work,
        goal,
        consume: job.consume,
        memory_bytes: job.memory_bytes,
        threads: job.threads,
    };
    let copied = copy.run(progress).map_err(|error| begun(error.into(), job, &work))?;
    if job.consume {
        remove_folder(&view_path, tell)?;
        work.mark_finished()?;
        let files: Arc<dyn Directory> = work.directory()?;
        merganser_sort::output::forget(&files)?;
    }
    work.close()?;
    Ok(copied)
}

/// The error of a copy, and where the records are if they are not in the view alone.
fn begun(error: CopyError, job: &CopyJob<'_>, work: &WorkFolder) -> CopyError {
    let has_begun = || {
        let files: Arc<dyn Directory> = work.directory().ok()?;
        Resume::read(&files).ok()?
    };
    match has_begun() {
        None => error,
        Some(_) => CopyError::Begun {
            error: Box::new(error),
            view: job.view.to_owned(),
            work: work.path().to_owned(),
            output: job.output.to_owned(),
        },
    }
}

/// The view is gone: either an earlier command consumed it to its end, or there never was one.
fn after_the_view(
    job: &CopyJob<'_>,
    work: WorkFolder,
    goal: &CopyGoal<'_>,
    missing: io::Error,
    progress: &dyn Progress,
    tell: &dyn Fn(&Notice),
) -> Result<CopyDone, CopyError> {
    let files: Arc<dyn Directory> = work.directory()?;
    let absolute = std::path::absolute(job.view).map_err(ResultsError::on(job.view))?;
    let is_its = |resume: &Resume| {
        let view = Path::new(resume.view.as_os_str());
        resume.complete && resume.consume && view.file_name() == absolute.file_name()
    };
    match Resume::read(&files)?.filter(is_its) {
        Some(resume) => {
            let path = work.path().join(PARTIAL_NAME);
            let give_name = |_: &_| goal.publish(&path);
            merganser_sort::output::finish(&files, &give_name, progress)?;
            work.mark_finished()?;
            merganser_sort::output::forget(&files)?;
            work.close()?;
            Ok(CopyDone { bytes: resume.total, memory: Vec::new() })
        }
        None if work.was_finished()? && goal.target.found()?.is_some() => {
            tell(&Notice::FinishedBefore(job.output.to_owned()));
            work.close()?;
            Ok(CopyDone::default())
        }
        None => Err(ResultsError::on(job.view)(missing).into()),
    }
}

/// A view is removed once it is consumed, and an output in it would go with it.
fn refuse_inside(target: &Target, view: &Path) -> Result<(), CopyError> {
    if !target.folder().starts_with(view) {
        return Ok(());
    }
    Err(CopyError::Inside(target.shown().to_owned()))
}

/// A file with other hard links is a part of another copy of the view, whose content would vanish, too.
fn refuse_other_links(view: &Path) -> Result<(), CopyError> {
    let on_view = ResultsError::on(view);
    for entry in fs::read_dir(view).map_err(on_view)? {
        let entry = entry.map_err(on_view)?;
        let found = entry.metadata().map_err(on_view)?;
        if found.is_file() && found.nlink() > 1 {
            return Err(CopyError::OtherLinks(entry.path()));
        }
    }
    Ok(())
}

/// A folder that holds a sort is not this command's.
fn refuse_foreign_work(
    work: &WorkFolder,
    view: &Path,
    tell: &dyn Fn(&Notice),
) -> Result<(), ResultsError> {
    let files: Arc<dyn Directory> = work.directory()?;
    let names = files.list().map_err(ResultsError::Named)?;
    let is_copy = |name: &String| {
        let name = name.strip_suffix(".new").unwrap_or(name);
        [PARTIAL_NAME, merganser_sort::output::RESUME_NAME].contains(&name)
    };
    if work.path() == view || names.iter().all(is_copy) {
        return Ok(());
    }
    work.clear(tell)
}

/// Locks a view for this process, so that no other process reads or consumes it meanwhile. If the sort that made the
/// view was interrupted in its very last step, its journal is removed.
fn lock_view(shown: &Path, view: &Arc<dyn Directory>) -> Result<File, CopyError> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_DIRECTORY);
    let folder = options.open(shown).map_err(ResultsError::on(shown))?;
    if !lock_file(&folder) {
        return Err(CopyError::ViewBusy { view: shown.to_owned(), by: holder_of(&folder) });
    }
    if SortJournal::read(view)?.is_some_and(|journal| journal.phase >= SortPhase::Removed) {
        SortJournal::remove(view)?;
    }
    Ok(folder)
}

/// Removes the folder of a view that was consumed, unless something else is in it.
fn remove_folder(view: &Path, tell: &dyn Fn(&Notice)) -> Result<(), ResultsError> {
    match fs::remove_dir(view) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            tell(&Notice::ViewStays(view.to_owned()));
            Ok(())
        }
        Err(error) => Err(ResultsError::on(view)(error)),
        Ok(()) => {
            let parent = std::path::absolute(view).ok();
            let parent = parent.as_deref().and_then(Path::parent).unwrap_or(Path::new("/"));
            let synced = File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(ResultsError::on(parent))
        }
    }
}

/// The result of a copy.
pub struct CopyGoal<'a> {
    /// Its name.
    pub target: &'a Target,
    /// The file that it replaces; another one is not replaced.
    pub replaces: Option<FileNote>,
    /// Its mode and owner.
    pub attributes: ResultAttributes,
    /// Called with the complete file before it gets its name.
    pub before: &'a dyn Fn(&Path) -> io::Result<()>,
}

impl CopyGoal<'_> {
    /// Gives the complete file its name.
    fn publish(&self, partial: &Path) -> io::Result<()> {
        (self.before)(partial)?;
        publish(partial, self.target, self.replaces.as_ref(), self.attributes)
    }
}

/// A view to be copied out to a file.
pub struct ViewCopy<'a> {
    /// The view.
    pub view: Arc<dyn Directory>,
    /// Its path, without links.
    pub view_path: PathBuf,
    /// Where the copy grows.
    pub work: &'a WorkFolder,
    /// The result that it becomes.
    pub goal: CopyGoal<'a>,
    /// Whether the view is removed while it is copied.
    pub consume: bool,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
}

impl ViewCopy<'_> {
    /// Copies.
    ///
    /// # Errors
    /// As [`materialize`]; when the name can't be taken.
    pub fn run(&self, progress: &dyn Progress) -> Result<CopyDone, ResultsError> {
        let work = Activity::here().directory(self.work.directory()?);
        let partial = self.work.path().join(PARTIAL_NAME);
        let budget = Budget::new(self.memory_bytes);
        let what = Materialize {
            folder: &self.view,
            work: &work,
            publish: &|_| self.goal.publish(&partial),
            output: JournalText::from(self.goal.target.path().as_os_str()),
            view: JournalText::from(self.view_path.as_os_str()),
            consume: self.consume,
            budget: &budget,
            threads: self.threads,
            checkpoint_bytes: None,
        };
        let bytes = materialize(&what, progress)?;
        Ok(CopyDone { bytes, memory: budget.owner_peaks() })
    }
}
