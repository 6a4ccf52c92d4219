//! Why a sort that consumes its inputs ends early.

use std::path::PathBuf;

use merganser_sort::journal::{FileNote, InputProgress, SortJournal, SortPhase};

use crate::ResultsError;
use crate::unfinished::LockHolder;

/// The errors of [`consume`](super::consume). No record is lost with any of them.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    /// What any result can fail with.
    #[error(transparent)]
    Results(ResultsError),
    /// An input is a stream, which has no space to give back.
    #[error("standard input has no space to give back")]
    Stream,
    /// An input is no name of a file.
    #[error("{}: is a directory", .0.display())]
    Directory(PathBuf),
    /// An input can't be consumed.
    #[error("{}: {why}", input.display())]
    Unfit {
        /// The input.
        input: PathBuf,
        /// Why not.
        why: UnfitInput,
    },
    /// An input is compressed: it can be read only from its beginning, so a sort could not continue in its middle.
    #[error("{}: is compressed", .0.display())]
    Packed(PathBuf),
    /// Two names of inputs are of one file.
    #[error("'{}' and '{}' are one file", first.display(), second.display())]
    Twice {
        /// The one name.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Another process has an input open.
    #[error("{}: another process is reading or consuming this input now", input.display())]
    Busy {
        /// The input.
        input: PathBuf,
        /// That process, if the system names it.
        by: Option<LockHolder>,
    },
    /// An input of the interrupted sort is gone, and a part of it is not sorted yet.
    #[error("{}: is gone, and the interrupted sort was reading it", place.display())]
    Gone {
        /// Its hidden name.
        place: PathBuf,
        /// What it was.
        known: FileNote,
    },
    /// Something else has the name of an input that is not sorted yet.
    #[error("{}: is not the file that the interrupted sort was reading", place.display())]
    NotTheInput {
        /// The name.
        place: PathBuf,
        /// What the input was.
        known: FileNote,
    },
    /// The folder of unfinished work holds the work of another command.
    #[error("{}: holds an interrupted sort of other inputs or with other keys", target.display())]
    OtherWork {
        /// The result.
        target: PathBuf,
        /// The journal of that sort.
        journal: Box<SortJournal>,
    },
    /// Something was written to an input after it was read.
    #[error("{}: another program changed this input", .0.input.display())]
    Written(Box<WrittenInput>),
    /// The earlier work is finished, and an input is a newer file, which was not read.
    #[error("{}: is finished, but {} is a newer file", target.display(), input.display())]
    NotRead {
        /// The result.
        target: PathBuf,
        /// The input.
        input: PathBuf,
    },
    /// Inputs are missing, and the result is there: perhaps it has their records.
    #[error("{}: no such file; {} is there", input.display(), output.display())]
    MayHaveFinished {
        /// The first input that is missing.
        input: PathBuf,
        /// The result.
        output: PathBuf,
    },
    /// The sort has begun and failed. The same command continues.
    #[error("{error}; records are in {}", folder.display())]
    Begun {
        /// Why it failed.
        error: Box<ConsumeError>,
        /// The folder of unfinished work.
        folder: PathBuf,
        /// How far the work is. Up to [`SortPhase::Sorting`], records are also in the inputs.
        phase: SortPhase,
        /// The result.
        output: PathBuf,
    },
}

impl<E: Into<ResultsError>> From<E> for ConsumeError {
    fn from(error: E) -> Self {
        ConsumeError::Results(error.into())
    }
}

/// Why an input can't be consumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitInput {
    /// It is a symbolic link.
    #[error("is a symbolic link")]
    Link,
    /// It is no regular file.
    #[error("is no regular file, so it has no space to give back")]
    NotRegular,
    /// It has other hard links.
    #[error("has other hard links, whose content would vanish, too")]
    OtherLinks,
    /// The hidden name next to it would be too long.
    #[error("its name is too long to get a hidden one next to it")]
    LongName,
    /// An earlier file of this name has this hidden name, and is still being consumed.
    #[error("an earlier file of this name is still being consumed, as {}", .0.display())]
    Claimed(PathBuf),
    /// This user may not remove it from its folder.
    #[error("can't be removed from its folder by this user")]
    NotRemovable,
}

/// An input that something was written to after it was read.
#[derive(Debug)]
pub struct WrittenInput {
    /// As it was typed.
    pub input: PathBuf,
    /// Its own name.
    pub own: PathBuf,
    /// The name that it has now: its own or the hidden one.
    pub place: PathBuf,
    /// What the journal knows of it.
    pub known: InputProgress,
}
