//! What the library of results needs of a program: sentences for its errors and notices, and the folders that a signal
//! removes.

use std::path::Path;

use merganser_results::unfinished::{
    DoomedFolders, TargetError, UnfinishedFiles, UnfinishedView, Verdict, WorkError,
};
use merganser_results::{Notice, ResultsError};

use crate::failure::{self, Failure, plain};
use crate::input::Input;
use crate::output::output_sentence;
use crate::{shown, signals};

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Failure::from(&error)
    }
}

impl From<&ResultsError> for Failure {
    fn from(error: &ResultsError) -> Self {
        match error {
            ResultsError::File { path, error } => Failure::on(path, error),
            ResultsError::Named(error) => Failure::named(error),
            ResultsError::Sort(error) => error.into(),
            ResultsError::Journal(error) => error.into(),
            ResultsError::Target(error) => Failure::Error(target_sentence(error)),
            ResultsError::Work(error) => Failure::Error(work_sentence(error)),
            ResultsError::Output(error) => Failure::Error(output_sentence(error)),
            ResultsError::BusyReport(path) => {
                let shown = shown::name(path);
                Failure::Error(format!("{shown}: another run writes it now; name another file"))
            }
        }
    }
}

impl From<WorkError> for Failure {
    fn from(error: WorkError) -> Self {
        Failure::Error(work_sentence(&error))
    }
}

/// The sentence for a name that no result can have.
fn target_sentence(error: &TargetError) -> String {
    match error {
        TargetError::Directory(_) => format!("{error}; -o takes a file"),
        TargetError::Special { .. } => format!("{error}; give -o a file"),
        TargetError::OtherOwner(_) => format!("{error}; give -o another name"),
        TargetError::NoName(_) | TargetError::LongName { .. } => error.to_string(),
    }
}

/// The sentence for a folder of unfinished work that can't be used, or a name that a result can't get.
fn work_sentence(error: &WorkError) -> String {
    match error {
        WorkError::Busy { target, by } => {
            let by = by.as_ref().map(|by| format!(": {by}")).unwrap_or_default();
            format!("{}: another process is making this now{by}", shown::name(target))
        }
        WorkError::Kept { path, verdict, trouble } => {
            let trouble = trouble.as_deref().map(|error| format!("{}; ", told(error)));
            kept_sentence(path, *verdict, &trouble.unwrap_or_default())
        }
        WorkError::Stranger { path, name } => format!(
            "{}: holds '{}', which no merganser command writes there; move it away",
            shown::name(path),
            shown::name(Path::new(name))
        ),
        WorkError::NotRemoved { path, error } => format!(
            "the result is complete, but {} can't be removed: {}",
            shown::name(path),
            plain(error)
        ),
        WorkError::ViewExists(_) => format!("{error}; move it away or give --view another name"),
        WorkError::NotFree(_) => format!("{error}; move it away or give -o another name"),
        WorkError::NoFolder(_)
        | WorkError::OtherUser { .. }
        | WorkError::Writable(_)
        | WorkError::Taken(_)
        | WorkError::NotRegular(_) => error.to_string(),
    }
}

/// The sentence for a folder that is not cleared, since it may have the only copy of records.
fn kept_sentence(path: &Path, verdict: Verdict, trouble: &str) -> String {
    let shown = shown::name(path);
    let see = format!("see 'merganser recover {}'", shown::shell_word(path));
    match verdict {
        Verdict::Sort(_) => format!(
            "{shown}: holds records of an interrupted sort --consume; repeat that command to finish it, or {see}"
        ),
        Verdict::Copy { .. } => format!(
            "{shown}: holds records of an interrupted materialize --consume; repeat that command to finish it, or {see}"
        ),
        Verdict::Pipeline { .. } => format!(
            "{shown}: holds the work of an interrupted pipeline; repeat that command to finish it, or {see}"
        ),
        Verdict::Orphaned { .. } => format!(
            "{trouble}{shown}: holds records of an interrupted command whose journal is lost or damaged, and perhaps nothing else has them: {see}, and move it away"
        ),
        Verdict::Unexplained { .. } => format!(
            "{shown}: holds records of an interrupted command, and no file there says whether they are anywhere else: {see}, and move it away"
        ),
        Verdict::Foreign | Verdict::Empty | Verdict::Begun | Verdict::Copies { .. } => {
            unreachable!("a folder that is {verdict:?} is not kept for its records")
        }
    }
}

/// The sentence of an error; empty if there is nothing to say.
pub fn told(error: &ResultsError) -> String {
    Failure::from(error).sentence().unwrap_or_default().to_owned()
}

/// Says a notice on stderr.
pub fn tell(notice: &Notice) {
    failure::notice(&match notice {
        Notice::Cleared(folder) => {
            format!("{}: left by a killed command, removed", shown::name(folder))
        }
        Notice::KeepsHiddenName(hidden) => format!(
            "{}: keeps this name, since it was changed; perhaps another 'sort --consume' is reading it: see 'merganser recover'",
            shown::name(hidden)
        ),
        Notice::FinishedBefore(result) => {
            format!("{}: was finished before; nothing is left to do", result.display())
        }
        Notice::ViewStays(view) => {
            format!("{}: stays, since it holds files that are no part of the view", view.display())
        }
    });
}

/// The folders that are removed when this process ends by a signal or a crash.
struct SignalledFolders;

impl DoomedFolders for SignalledFolders {
    fn add(&self, folder: &Path) {
        signals::remember(folder);
    }

    fn remove(&self, folder: &Path) {
        signals::forget(folder);
    }
}

/// Starts the view `path`, which is made of `inputs`.
///
/// # Errors
/// As [`UnfinishedView::create`].
pub fn create_view(path: &Path, inputs: &[Input]) -> Result<UnfinishedView, Failure> {
    let sources: Vec<_> = inputs.iter().map(Input::source).collect();
    Ok(UnfinishedView::create(path, &sources, Box::new(SignalledFolders), &tell)?)
}

/// Starts the folder of files `path`, which is made of `inputs`.
///
/// # Errors
/// As [`UnfinishedFiles::create`].
pub fn create_files(path: &Path, inputs: &[Input]) -> Result<UnfinishedFiles, Failure> {
    let sources: Vec<_> = inputs.iter().map(Input::source).collect();
    Ok(UnfinishedFiles::create(path, &sources, Box::new(SignalledFolders), &tell)?)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io;

    use merganser_sort::journal::SortPhase;

    use super::*;

    #[test]
    fn sentences_name_flags_and_commands() {
        let path = || Path::new("/a b/.out.unfinished").to_owned();
        let kept = |verdict| WorkError::Kept { path: path(), verdict, trouble: None };
        for (error, sentence) in [
            (
                kept(Verdict::Sort(SortPhase::Sorted)),
                "/a b/.out.unfinished: holds records of an interrupted sort --consume; repeat that command to finish it, or see 'merganser recover '/a b/.out.unfinished''",
            ),
            (
                WorkError::Stranger { path: path(), name: OsString::from("x") },
                "/a b/.out.unfinished: holds 'x', which no merganser command writes there; move it away",
            ),
            (
                WorkError::NotRemoved {
                    path: path(),
                    error: io::Error::from_raw_os_error(libc::EACCES),
                },
                "the result is complete, but /a b/.out.unfinished can't be removed: Permission denied",
            ),
            (
                WorkError::ViewExists(path()),
                "/a b/.out.unfinished: exists; move it away or give --view another name",
            ),
        ] {
            assert_eq!(Failure::from(error).sentence(), Some(sentence));
        }
        assert_eq!(
            Failure::from(WorkError::NotFree(Path::new("d").to_owned())).sentence(),
            Some("d: exists, and is no empty folder; move it away or give -o another name")
        );
        let directory = ResultsError::from(TargetError::Directory(Path::new("d").to_owned()));
        assert_eq!(told(&directory), "d: is a directory; -o takes a file");
    }

    #[test]
    fn a_folder_that_is_kept_says_what_is_damaged() {
        let damage = io::Error::other("sort-journal: is damaged");
        let error = WorkError::Kept {
            path: Path::new(".o.unfinished").to_owned(),
            verdict: Verdict::Orphaned { whole_view: false },
            trouble: Some(Box::new(ResultsError::Named(damage))),
        };
        let said = work_sentence(&error);
        assert!(
            said.starts_with("sort-journal: is damaged; .o.unfinished: holds records"),
            "{said}"
        );
    }
}
