//! What interrupted commands left at a place: read, and never changed.
//!
//! ```text
//!   leftovers(place) ──► each leftover: where, whose, how large, in use? ──► LeftBehind: what it is
//!                                                                            (a folder of work: judge)
//! ```
//!
//! The programs above make the words and the commands that a user is advised to give. A user may follow them literally,
//! so everything that decides about a removal is looked at here.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::journal::{SortJournal, SortPhase};
use merganser_sort::output::{PARTIAL_NAME, Resume};
use merganser_sort::view::{CONSUMED_NAME, MANIFEST_NAME, consumed_into};
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, own, unpublished_name_of};

use crate::ResultsError;
use crate::pipeline::Left;
use crate::unfinished::{
    NextStep, Verdict, WorkContents, claimed_name, is_work_name, judge, work_name,
};
use crate::uploads::{NotedUploads, noted_name, read_note};

/// Something that an interrupted command left.
#[derive(Debug)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// Number of the user who owns it.
    pub owner: u32,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
    /// Whether a process works on it now.
    pub in_use: bool,
    /// Whether it holds records that exist nowhere else, as far as can be seen.
    pub only_copy: bool,
    /// What it is.
    pub found: LeftBehind,
}

/// What a leftover is.
#[derive(Debug)]
pub enum LeftBehind {
    /// A folder of unfinished work that can't be read.
    Unreadable(ResultsError),
    /// The folder of a sort that consumes its inputs.
    Sort {
        /// Its journal.
        journal: Box<SortJournal>,
        /// How far its output is copied.
        resume: Option<Resume>,
        /// Whether the folder is where the sort makes it.
        in_place: bool,
        /// Whether a file has the name of the result, which the sort has not delivered.
        name_taken: bool,
    },
    /// The folder of a copy of a view to a file.
    Copy {
        /// How far it is.
        resume: Resume,
        /// Whether the folder is where the copy makes it.
        in_place: bool,
        /// Whether a file has the name of the result, which is not published.
        name_taken: bool,
    },
    /// The folder of a pipeline.
    Pipeline {
        /// What it holds.
        left: Box<Left>,
        /// Whether all inputs are there as they were.
        inputs_whole: bool,
    },
    /// A folder of unfinished work without a journal that can be trusted.
    Folder {
        /// What it is: [`Verdict::Foreign`], [`Verdict::Empty`], [`Verdict::Copies`], [`Verdict::Orphaned`] or
        /// [`Verdict::Unexplained`].
        verdict: Verdict,
        /// A name that no command of this program writes there.
        stranger: Option<OsString>,
        /// Why one of its files can't be read.
        trouble: Option<ResultsError>,
        /// A free name that the whole view in it can be copied to.
        copy_to: Option<PathBuf>,
        /// Whether it has files in folders, of a table that is written so.
        files: bool,
    },
    /// The rest of an input that a sort consumes.
    Input {
        /// Its own name.
        input: PathBuf,
        /// The journals next to it that name it, each in its place.
        sorts: Vec<SortJournal>,
    },
    /// The note of uploads to an object store.
    Uploads(NotedUploads),
    /// A second name of a result.
    SecondName,
    /// A result that was not given its name.
    Unpublished,
    /// A view that is being consumed.
    ConsumedView {
        /// Its place, without links.
        place: PathBuf,
        /// The result that it is consumed into.
        output: PathBuf,
        /// Whether the folder of unfinished work next to that result says the same.
        is_copied: bool,
        /// Whether only this user can write to it.
        is_own: bool,
    },
    /// A whole view that still has the journal of its sort.
    SortedView {
        /// The journal.
        journal: Box<SortJournal>,
        /// Whether it is the view that the journal says.
        is_its: bool,
        /// Whether only this user can write to it.
        is_own: bool,
    },
}

/// Finds leftovers in a folder, or next to a result: those in the folder by name, then the work that is next to it.
///
/// # Errors
/// When the place can't be looked at. A leftover that can't be read is one of [`LeftBehind::Unreadable`].
pub fn leftovers(path: &Path) -> Result<Vec<Leftover>, ResultsError> {
    let is_leftover = |path: &Path| path.file_name().is_some_and(|name| result_of(name).is_some());
    let is_view = path.join(MANIFEST_NAME).exists() || path.join(CONSUMED_NAME).exists();
    let absolute = std::path::absolute(path).map_err(ResultsError::on(path))?;
    let name = absolute.file_name().unwrap_or_default();
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    if path.is_dir() && !is_view && !is_leftover(path) {
        let mut found = in_folder(path, None)?;
        // It may have taken the name of a view that was being made.
        let next_to_it = folder.join(work_name(name));
        if next_to_it.symlink_metadata().is_ok() {
            found.push(work(&next_to_it));
        }
        return Ok(found);
    }
    in_folder(folder, Some(&result_of(name).unwrap_or_else(|| name.to_owned())))
}

/// The name that a leftover belongs to.
fn result_of(name: &OsStr) -> Option<OsString> {
    let own = is_work_name(name).or_else(|| claimed_name(name));
    own.or_else(|| unpublished_name_of(name)).or_else(|| noted_name(name))
}

/// The leftovers in `folder`, of the result or input `only` if that is given.
fn in_folder(folder: &Path, only: Option<&OsStr>) -> Result<Vec<Leftover>, ResultsError> {
    let on_folder = ResultsError::on(folder);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(on_folder)? {
        let name = entry.map_err(on_folder)?.file_name();
        let path = folder.join(&name);
        let belongs_to = result_of(&name).unwrap_or_else(|| name.clone());
        if only.is_some_and(|only| only != belongs_to) {
            continue;
        }
        let left = if is_work_name(&name).is_some() {
            Some(work(&path))
        } else if let Some(input) = claimed_name(&name) {
            Some(input_left(&path, folder.join(input), folder))
        } else if unpublished_name_of(&name).is_some() {
            Some(unpublished(&path))
        } else if noted_name(&name).is_some() {
            Some(uploads(&path))
        } else if path.is_dir() {
            view(&path)
        } else {
            None
        };
        found.extend(left);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

impl Leftover {
    fn new(path: &Path, only_copy: bool, found: LeftBehind) -> Self {
        let owner = path.symlink_metadata().map_or(u32::MAX, |found| found.uid());
        let (path, bytes, in_use) = (path.to_owned(), bytes_of(path), is_locked(path));
        Leftover { path, owner, bytes, in_use, only_copy, found }
    }
}

/// A folder of unfinished work.
fn work(path: &Path) -> Leftover {
    let read = || {
        let files: Arc<dyn Directory> =
            FileDirectory::open_own(path).map_err(ResultsError::Named)?;
        WorkContents::of_path(path, &files)
    };
    match read() {
        Ok(contents) => read_work(path, contents),
        Err(error) => Leftover::new(path, false, LeftBehind::Unreadable(error)),
    }
}

/// A folder of unfinished work whose files were read.
fn read_work(path: &Path, contents: WorkContents) -> Leftover {
    let verdict = judge(&contents.facts);
    let WorkContents { journal, resume, pipeline, files, stranger, trouble, .. } = contents;
    let only_copy = verdict.may_be_only_copy() && verdict != Verdict::Foreign;
    let found = match (verdict, journal, resume, pipeline) {
        (Verdict::Sort(_) | Verdict::Begun, Some(journal), resume, _) => {
            let output = Path::new(journal.command.output.as_os_str());
            LeftBehind::Sort {
                in_place: is_in_place(path, output),
                name_taken: journal.phase != SortPhase::Delivered
                    && output.symlink_metadata().is_ok(),
                journal: Box::new(journal),
                resume,
            }
        }
        (Verdict::Copy { .. }, _, Some(resume), _) => {
            let output = Path::new(resume.output.as_os_str());
            LeftBehind::Copy {
                in_place: is_in_place(path, output),
                name_taken: path.join(PARTIAL_NAME).exists() && output.symlink_metadata().is_ok(),
                resume,
            }
        }
        (Verdict::Pipeline { inputs_whole }, .., Some(left)) => {
            let bytes = left.bytes;
            let found = LeftBehind::Pipeline { left: Box::new(left), inputs_whole };
            return Leftover { bytes, ..Leftover::new(path, only_copy, found) };
        }
        (verdict, ..) => {
            let copy_to = match verdict.next_step() {
                NextStep::CopyOut => recovered_name(path),
                _ => None,
            };
            LeftBehind::Folder { verdict, stranger, trouble, copy_to, files }
        }
    };
    Leftover::new(path, only_copy, found)
}

/// A free name for a copy of the view in the folder of unfinished work `path`.
fn recovered_name(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name().and_then(is_work_name).unwrap_or_default();
    name.push(".recovered");
    let output = std::path::absolute(path).ok()?.with_file_name(name);
    output.symlink_metadata().is_err().then_some(output)
}

/// Whether the folder of unfinished work `path` is where the command makes it that writes `output`.
fn is_in_place(path: &Path, output: &Path) -> bool {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let folder = fs::canonicalize(parent.unwrap_or(Path::new("."))).ok();
    folder.as_deref() == output.parent()
        && path.file_name().and_then(is_work_name).as_deref() == output.file_name()
}

/// An input that has lost bytes already, because its sort gave them back.
fn input_left(path: &Path, input: PathBuf, folder: &Path) -> Leftover {
    let sorts = sorts_of(&input, folder).unwrap_or_default();
    Leftover::new(path, true, LeftBehind::Input { input, sorts })
}

/// The journals in the work folders of `folder` that name `input`.
fn sorts_of(input: &Path, folder: &Path) -> Option<Vec<SortJournal>> {
    let input = fs::canonicalize(folder).ok()?.join(input.file_name()?);
    let entries = fs::read_dir(folder).ok()?.flatten();
    let works = entries.filter(|entry| is_work_name(&entry.file_name()).is_some());
    let journal_of = |work: fs::DirEntry| {
        let files: Arc<dyn Directory> = FileDirectory::open_own(work.path()).ok()?;
        let journal = SortJournal::read(&files).ok()??;
        let output = Path::new(journal.command.output.as_os_str());
        let is_its = journal.inputs.iter().any(|known| Path::new(known.path.as_os_str()) == input);
        (is_its && is_in_place(&work.path(), output)).then_some(journal)
    };
    Some(works.filter_map(journal_of).collect())
}

/// A file that was being given its name.
fn unpublished(path: &Path) -> Leftover {
    let found = path.symlink_metadata().ok();
    let is_own = found.as_ref().is_some_and(|found| found.is_file() && found.uid() == own::user());
    if is_own && found.is_some_and(|found| found.nlink() > 1) {
        return Leftover::new(path, false, LeftBehind::SecondName);
    }
    Leftover::new(path, true, LeftBehind::Unpublished)
}

/// The note of uploads.
fn uploads(path: &Path) -> Leftover {
    // The inputs stay, so the parts are no only copy.
    Leftover::new(
        path,
        false,
        match read_note(path) {
            Ok(noted) => LeftBehind::Uploads(noted),
            Err(error) => LeftBehind::Unreadable(error),
        },
    )
}

/// A view that is being consumed, or that still has the journal of its sort.
fn view(path: &Path) -> Option<Leftover> {
    let opened = FileDirectory::open(path).ok()?;
    let is_own = opened.file().metadata().is_ok_and(|found| own::check_folder(&found).is_ok());
    let folder: Arc<dyn Directory> = opened;
    let place = fs::canonicalize(path).ok()?;
    if let Ok(Some(output)) = consumed_into(&folder) {
        let output = PathBuf::from(output.as_os_str());
        // Without its other half, the marker alone proves nothing.
        let is_copied = is_copy_of(&place, &output);
        let found = LeftBehind::ConsumedView { place, output, is_copied, is_own };
        return Some(Leftover::new(path, true, found));
    }
    let journal =
        path.join(MANIFEST_NAME).exists().then(|| SortJournal::read(&folder).ok())???;
    let is_its = journal.command.view && Path::new(journal.command.output.as_os_str()) == place;
    let found = LeftBehind::SortedView { journal: Box::new(journal), is_its, is_own };
    Some(Leftover::new(path, false, found))
}

/// Whether a folder of unfinished work next to `output` says that the view at `place` is consumed into it.
fn is_copy_of(place: &Path, output: &Path) -> bool {
    let Some(name) = output.file_name() else { return false };
    let Ok(files) = FileDirectory::open_own(output.with_file_name(work_name(name))) else {
        return false;
    };
    let files: Arc<dyn Directory> = files;
    let resume = Resume::read(&files).ok().flatten();
    resume.is_some_and(|resume| {
        resume.consume
            && Path::new(resume.view.as_os_str()) == place
            && Path::new(resume.output.as_os_str()) == output
    })
}

/// Bytes on the disk of a file, or of the files in a folder and its folders.
fn bytes_of(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    match fs::read_dir(path) {
        Ok(entries) if found.is_dir() => {
            entries.flatten().map(|entry| bytes_of(&entry.path())).sum()
        }
        _ => found.blocks() * 512,
    }
}

/// Whether a process holds the lock that tells work in progress from a leftover. A shared lock stops no
/// command that looks for work at the same moment.
fn is_locked(path: &Path) -> bool {
    let is_regular = path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir());
    is_regular && File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}
