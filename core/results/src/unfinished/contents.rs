//! The files in a folder of unfinished work, as they are.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use merganser_sort::journal::{FileNote, SortJournal};
use merganser_sort::note::{NOTE_NAME, WorkNote};
use merganser_sort::output::{PARTIAL_NAME, RESUME_NAME, Resume};
use merganser_sort::view::{CONSUMED_NAME, MANIFEST_NAME};
use merganser_storage::Directory;

use super::names::FILES_NAME;
use super::{Evidence, NoteFacts, PipelineFacts, SortFacts, WorkFacts, has_claimed, note_of};
use crate::ResultsError;
use crate::pipeline::{self, Left, PARTS_NAME};

/// A folder as it is.
pub struct WorkContents {
    /// What counts of it.
    pub facts: WorkFacts,
    /// Its journal.
    pub journal: Option<SortJournal>,
    /// Its resume point.
    pub resume: Option<Resume>,
    /// Its pipeline.
    pub pipeline: Option<Left>,
    /// Whether it has files in folders, of a table that is written so.
    pub files: bool,
    /// A name that no command of this program writes there.
    pub stranger: Option<OsString>,
    /// Why one of its files can't be read.
    pub trouble: Option<ResultsError>,
}

impl WorkContents {
    /// Looks at the folder `path`, whose files are `files`. Nothing is changed.
    ///
    /// # Errors
    /// When it can't be listed.
    pub fn of_path(path: &Path, files: &Arc<dyn Directory>) -> Result<Self, ResultsError> {
        let mut trouble = None;
        let journal = evidence(SortJournal::read(files), &mut trouble);
        let note = evidence(WorkNote::read(files), &mut trouble);
        let resume = evidence(Resume::read(files), &mut trouble);
        let pipeline = evidence(pipeline::left_in(path), &mut trouble);
        let names = Names::of_path(path)?;
        let facts = WorkFacts {
            stranger: names.stranger.is_some(),
            records: names.records,
            whole_view: names.manifest && !names.consumed && resume == Evidence::Absent,
            journal: journal.as_ref().map(|journal| SortFacts {
                phase: journal.phase,
                untouched: journal.is_untouched() && !has_claimed(journal),
            }),
            note: note.as_ref().map(|note| NoteFacts {
                consumes: note.consumes,
                inputs_whole: note.inputs.as_ref().is_some_and(|inputs| {
                    are_whole(inputs.iter().map(|input| (input.path.as_os_str(), input.file)))
                }),
            }),
            copy: resume.as_ref().map(|resume| resume.consume),
            pipeline: pipeline.as_ref().map(|left| PipelineFacts {
                inputs_whole: are_whole(left.inputs.iter().map(|input| {
                    let path = Path::new(left.command.folder.as_os_str());
                    (path.join(input.name.as_os_str()), input.file)
                })),
            }),
        };
        Ok(WorkContents {
            facts,
            journal: journal.said(),
            resume: resume.said(),
            pipeline: pipeline.said(),
            files: names.files,
            stranger: names.stranger,
            trouble,
        })
    }
}

fn evidence<T, E: Into<ResultsError>>(
    read: Result<Option<T>, E>,
    trouble: &mut Option<ResultsError>,
) -> Evidence<T> {
    match read {
        Ok(None) => Evidence::Absent,
        Ok(Some(read)) => Evidence::Says(read),
        Err(error) => {
            trouble.get_or_insert(error.into());
            Evidence::Damaged
        }
    }
}

/// Whether all these inputs, at least one, are files that are there as they were.
fn are_whole<P: AsRef<Path>>(inputs: impl Iterator<Item = (P, Option<FileNote>)>) -> bool {
    let mut count = 0;
    let whole = inputs.inspect(|_| count += 1).all(|(path, known)| {
        // A link names an input as well as its own name does.
        let now = fs::metadata(&path).ok();
        known.is_some_and(|known| {
            now.is_some_and(|now| {
                let now = note_of(&now);
                let content = (now.size, now.modified_unix_ns);
                known.is_same_file(&now) && content == (known.size, known.modified_unix_ns)
            })
        })
    });
    whole && count > 0
}

/// What the names in a folder tell.
struct Names {
    stranger: Option<OsString>,
    records: bool,
    manifest: bool,
    consumed: bool,
    files: bool,
}

impl Names {
    fn of_path(path: &Path) -> Result<Self, ResultsError> {
        let on_path = ResultsError::on(path);
        let mut all = Names {
            stranger: None,
            records: false,
            manifest: false,
            consumed: false,
            files: false,
        };
        for entry in fs::read_dir(path).map_err(on_path)? {
            let entry = entry.map_err(on_path)?;
            let (file_name, found) = (entry.file_name(), entry.metadata().map_err(on_path)?);
            let name = file_name.to_str().unwrap_or_default();
            let is_parts = name == PARTS_NAME && found.is_dir();
            let is_files = name == FILES_NAME && found.is_dir();
            if !(is_parts || is_files || found.is_file() && is_ours(name)) {
                all.stranger.get_or_insert_with(|| file_name.clone());
            }
            all.manifest |= name == MANIFEST_NAME;
            all.consumed |= name == CONSUMED_NAME;
            all.files |= is_files;
            all.records |= match name {
                // An output that has no byte yet is made before its resume point.
                PARTIAL_NAME => found.len() > 0,
                // The folder is made before its files.
                FILES_NAME => {
                    is_files && fs::read_dir(entry.path()).map_err(on_path)?.next().is_some()
                }
                name => is_parts || name == MANIFEST_NAME || is_numbered(name),
            };
        }
        Ok(all)
    }
}

/// Whether the commands of this program write a file of this name into a folder of unfinished work.
pub(super) fn is_ours(name: &str) -> bool {
    let whole = name.strip_suffix(".new").unwrap_or(name);
    let known = [
        MANIFEST_NAME,
        merganser_sort::journal::JOURNAL_NAME,
        NOTE_NAME,
        CONSUMED_NAME,
        PARTIAL_NAME,
        RESUME_NAME,
        pipeline::JOURNAL_NAME,
    ];
    is_numbered(name) || known.contains(&whole)
}

/// Whether this is the name of a file of sorted records, or of buckets.
fn is_numbered(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    name.split_once('.').is_some_and(|(number, kind)| {
        number.len() >= 6
            && number.bytes().all(|b| b.is_ascii_digit())
            && ["run", "buckets"].contains(&kind)
    })
}
