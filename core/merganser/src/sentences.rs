//! The sentences for errors of the library of results that name flags and commands of this program.

use std::path::Path;

use merganser_results::consume::{ConsumeError, UnfitInput, WrittenInput};
use merganser_results::materialize::CopyError;
use merganser_shell::failure::Failure;
use merganser_shell::shown;
use merganser_sort::journal::{FileNote, SortPhase};

use crate::advised::AdvisedCommand;

/// An error that ends a command with a sentence of this program.
pub(crate) trait Told {
    /// The end.
    fn told(self) -> Failure;
}

impl Told for CopyError {
    fn told(self) -> Failure {
        Failure::Error(match self {
            CopyError::Results(error) => return error.into(),
            CopyError::Begun { error, view, work, output } => {
                return error.told().and(Some(format!(
                    "every record is in {} and {}: repeat the command to continue, or see 'merganser recover {}'",
                    shown::name(&view),
                    shown::name(&work),
                    shown::shell_word(&output)
                )));
            }
            CopyError::Inside(target) => {
                format!("{}: is inside the view; give -o a name outside of it", target.display())
            }
            CopyError::OtherLinks(file) => format!(
                "{}: --consume: has other hard links, perhaps in a copy of the view, whose content would vanish, too; remove them, or leave out --consume",
                shown::name(&file)
            ),
            CopyError::ViewBusy { view, by } => {
                let by = by.map_or_else(|| "another process".to_owned(), |by| by.to_string());
                format!(
                    "{}: --consume: {by} is reading or consuming this view now; wait for its end, or leave out --consume",
                    shown::name(&view)
                )
            }
        })
    }
}

impl Told for ConsumeError {
    fn told(self) -> Failure {
        Failure::Error(match self {
            ConsumeError::Results(error) => return error.into(),
            ConsumeError::Begun { error, folder, phase, output } => {
                let where_else = if phase == SortPhase::Sorting { "the inputs and " } else { "" };
                return error.told().and(Some(format!(
                    "every record is in {where_else}{}: repeat the command to continue, or see 'merganser recover {}'",
                    folder.display(),
                    shown::shell_word(&output)
                )));
            }
            ConsumeError::Stream => {
                "--consume: standard input has no space to give back; name a file".to_owned()
            }
            ConsumeError::Directory(_) => self.to_string(),
            ConsumeError::Unfit { input, why } => {
                format!("{}: --consume: {}", input.display(), unfit_sentence(&why))
            }
            ConsumeError::Packed(input) => format!(
                "{}: --consume: is compressed, and bytes can't be given back from the middle of a compressed file; decompress it first, or leave out --consume",
                input.display()
            ),
            ConsumeError::Twice { first, second } => format!(
                "--consume: '{}' and '{}' are one file; name it once",
                first.display(),
                second.display()
            ),
            ConsumeError::Busy { input, by } => {
                let by = by.map(|by| format!(": {by}")).unwrap_or_default();
                format!(
                    "{}: another process is reading or consuming this input now{by}",
                    shown::name(&input)
                )
            }
            ConsumeError::Gone { place, known } => format!(
                "{}: is gone, and the interrupted sort was reading it; put the file of {} bytes back; after you restored it from a copy: {}",
                shown::name(&place),
                known.size,
                touch(&known, &place)
            ),
            ConsumeError::NotTheInput { place, known } => format!(
                "{}: is not the file of {} bytes that the interrupted sort was reading; move it away and put that one back; after you restored it from a copy: {}",
                shown::name(&place),
                known.size,
                touch(&known, &place)
            ),
            ConsumeError::OtherWork { target, journal } => format!(
                "{}: holds an interrupted sort --consume of other inputs or with other keys; finish that one first{}",
                target.display(),
                match AdvisedCommand::sort(&journal) {
                    Some(command) => format!(": {}", command.line()),
                    None => String::new(),
                }
            ),
            ConsumeError::Written(written) => written_sentence(&written),
            ConsumeError::NotRead { target, input } => format!(
                "{}: is finished, but {} is a newer file than the one that was sorted; it was not read and is still there",
                target.display(),
                input.display()
            ),
            ConsumeError::MayHaveFinished { input, output } => format!(
                "{}: no such file; {} is there, so an earlier 'sort --consume' may have finished",
                input.display(),
                output.display()
            ),
        })
    }
}

/// Why an input can't be consumed, and what helps.
fn unfit_sentence(why: &UnfitInput) -> String {
    match why {
        UnfitInput::Link => format!("{why}; name the file itself"),
        UnfitInput::LongName => format!("{why}; rename it"),
        UnfitInput::Claimed(_) => format!("{why}; finish that first, see 'merganser recover'"),
        UnfitInput::NotRegular | UnfitInput::OtherLinks | UnfitInput::NotRemovable => {
            why.to_string()
        }
    }
}

/// The sentence for an input that another program changed, with the ways out.
fn written_sentence(written: &WrittenInput) -> String {
    let WrittenInput { input, own, place, known } = written;
    let (taken, size) = (known.taken, known.file.size);
    let word = shown::shell_word(place);
    let touch = touch(&known.file, place);
    let other_way = if taken == 0 && place != own {
        let own = shown::shell_word(own);
        format!(
            "to sort it as it is now instead, unless it belongs to another sort --consume (see 'merganser recover'): mv {word} {own}"
        )
    } else {
        "or remove it if those are all bytes".to_owned()
    };
    format!(
        "{}: another program changed this input, now {word}, after its first {taken} of {size} bytes were sorted: save what it wrote, make the file what it was, then: {touch}; {other_way}",
        input.display()
    )
}

/// The command that gives a file at `place` the time of its last change that the journal knows.
fn touch(known: &FileNote, place: &Path) -> String {
    let seconds = known.modified_unix_ns.div_euclid(1_000_000_000);
    let rest = known.modified_unix_ns.rem_euclid(1_000_000_000);
    format!("touch -d @{seconds}.{rest:09} {}", shown::shell_word(place))
}

#[cfg(test)]
mod tests {
    use std::io;

    use merganser_results::ResultsError;
    use merganser_sort::journal::{InputProgress, JournalText};

    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        Path::new(name).to_owned()
    }

    const KNOWN: FileNote = FileNote {
        device: 1,
        inode: 2,
        born_unix_ns: None,
        size: 9,
        modified_unix_ns: 1_000_000_005,
    };

    fn written(place: &str, taken: u64) -> ConsumeError {
        let known = InputProgress {
            path: JournalText(b"/d/in".to_vec()),
            file: KNOWN,
            taken,
            given_back: 0,
        };
        let (input, own, place) = (path("in"), path("/d/in"), path(place));
        ConsumeError::Written(Box::new(WrittenInput { input, own, place, known }))
    }

    #[test]
    fn sentences_have_the_commands_that_help() {
        let full = || ResultsError::Named(io::Error::other("it ended"));
        for (failure, sentence) in [
            (
                written("/d/.in.merganser-consumed", 0).told(),
                "in: another program changed this input, now /d/.in.merganser-consumed, after its first 0 of 9 bytes were sorted: save what it wrote, make the file what it was, then: touch -d @1.000000005 /d/.in.merganser-consumed; to sort it as it is now instead, unless it belongs to another sort --consume (see 'merganser recover'): mv /d/.in.merganser-consumed /d/in",
            ),
            (
                written("/d/.in.merganser-consumed", 4).told(),
                "in: another program changed this input, now /d/.in.merganser-consumed, after its first 4 of 9 bytes were sorted: save what it wrote, make the file what it was, then: touch -d @1.000000005 /d/.in.merganser-consumed; or remove it if those are all bytes",
            ),
            (
                ConsumeError::Gone { place: path("/d/x y"), known: KNOWN }.told(),
                "/d/x y: is gone, and the interrupted sort was reading it; put the file of 9 bytes back; after you restored it from a copy: touch -d @1.000000005 '/d/x y'",
            ),
            (
                ConsumeError::Unfit { input: path("in"), why: UnfitInput::Claimed(path("/d/.in")) }
                    .told(),
                "in: --consume: an earlier file of this name is still being consumed, as /d/.in; finish that first, see 'merganser recover'",
            ),
            (
                ConsumeError::Begun {
                    error: Box::new(full().into()),
                    folder: path("/d/.out.unfinished"),
                    phase: SortPhase::Sorting,
                    output: path("out"),
                }
                .told(),
                "it ended; every record is in the inputs and /d/.out.unfinished: repeat the command to continue, or see 'merganser recover out'",
            ),
            (
                CopyError::Begun {
                    error: Box::new(full().into()),
                    view: path("v"),
                    work: path("/d/.out.unfinished"),
                    output: path("a b"),
                }
                .told(),
                "it ended; every record is in v and /d/.out.unfinished: repeat the command to continue, or see 'merganser recover 'a b''",
            ),
            (
                CopyError::ViewBusy { view: path("v"), by: None }.told(),
                "v: --consume: another process is reading or consuming this view now; wait for its end, or leave out --consume",
            ),
        ] {
            assert_eq!(failure.sentence(), Some(sentence));
        }
    }
}
