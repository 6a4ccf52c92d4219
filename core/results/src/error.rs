//! Why a result can't be made, or a folder of unfinished work can't be read.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::pipeline::JournalError;
use crate::unfinished::{LockHolder, Verdict};

/// The errors of this crate. They carry what was found; the programs above make the sentences, which name flags and
/// remedies.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The system refused something that was done to a path.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error, which does not name it.
        error: io::Error,
    },
    /// The system refused something, and the error names the file itself.
    #[error(transparent)]
    Named(io::Error),
    /// A file of the engine can't be read or written, or is damaged.
    #[error(transparent)]
    Sort(#[from] merganser_sort::Error),
    /// The journal of a pipeline can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No result can have this name.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The folder of unfinished work can't be used, or the result can't get its name.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The output can't be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Another run writes the report at this path.
    #[error("{}: another run writes it now", .0.display())]
    BusyReport(PathBuf),
}

impl ResultsError {
    /// An error on `path`, as the system tells it.
    pub(crate) fn on(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |error| ResultsError::File { path: path.to_owned(), error }
    }
}

/// Why a folder of unfinished work can't be used, or a result can't get its name.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// Something else has the folder's name.
    #[error("{}: is no folder; move it away, it is in the way", .0.display())]
    NoFolder(PathBuf),
    /// Another user made it.
    #[error(
        "{}: belongs to user {user}, not to you; give the result another name or place",
        path.display()
    )]
    OtherUser {
        /// The folder.
        path: PathBuf,
        /// The number of its owner.
        user: u32,
    },
    /// Others may have written what it holds.
    #[error(
        "{}: other users may write there, so what it holds can't be trusted; move it away",
        .0.display()
    )]
    Writable(PathBuf),
    /// Another process works in it.
    #[error("{}: another process is making this now", target.display())]
    Busy {
        /// The result.
        target: PathBuf,
        /// That process, if the system names it.
        by: Option<LockHolder>,
    },
    /// It has, or may have, records that are nowhere else.
    #[error("{}: holds records of an interrupted command", path.display())]
    Kept {
        /// The folder.
        path: PathBuf,
        /// What it is.
        verdict: Verdict,
        /// Why one of its files can't be read.
        trouble: Option<Box<ResultsError>>,
    },
    /// A file is in it that no command of this program writes there.
    #[error("{}: holds {name:?}, which no merganser command writes there", path.display())]
    Stranger {
        /// The folder.
        path: PathBuf,
        /// The name of the file.
        name: OsString,
    },
    /// The result is complete, and the folder stays.
    #[error("the result is complete, but {} can't be removed: {error}", path.display())]
    NotRemoved {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A view that is to be made has its name already.
    #[error("{}: exists", .0.display())]
    ViewExists(PathBuf),
    /// Something has the name of a folder that is to be made, and is no empty folder.
    #[error("{}: exists, and is no empty folder", .0.display())]
    NotFree(PathBuf),
    /// Another file has got the name of a result while that was made.
    #[error(
        "{}: another file has taken this name since the work began; move it away, then repeat the command",
        .0.display()
    )]
    Taken(PathBuf),
    /// Something that is no file has got the name of a file of ours.
    #[error("{}: is no regular file any more", .0.display())]
    NotRegular(PathBuf),
}

/// Why no result can have a name.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It is no name at all, such as `..`.
    #[error("'{}' is no file name", .0.display())]
    NoName(PathBuf),
    /// A directory has the name.
    #[error("{}: is a directory", .0.display())]
    Directory(PathBuf),
    /// Something has the name that is neither file nor directory.
    #[error("{}: is {kind}, which can't hold a result that is made in stages", path.display())]
    Special {
        /// The name.
        path: PathBuf,
        /// What has it.
        kind: SpecialKind,
    },
    /// A file of another user has the name, and only that user may replace it.
    #[error("{}: belongs to another user in a folder where only owners may replace files", .0.display())]
    OtherOwner(PathBuf),
    /// The folder of unfinished work could not have its name.
    #[error(
        "{}: the name is {over_bytes} bytes too long, since unfinished work has a longer one next to it",
        path.display()
    )]
    LongName {
        /// The name.
        path: PathBuf,
        /// The bytes that are too many.
        over_bytes: usize,
    },
}

/// What is neither a file nor a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A symbolic link.
    Link,
    /// A device.
    Device,
}

impl fmt::Display for SpecialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpecialKind::Fifo => "a named pipe",
            SpecialKind::Socket => "a socket",
            SpecialKind::Link => "a symbolic link",
            SpecialKind::Device => "a device",
        })
    }
}

/// Why an output can't be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A directory has its name.
    #[error("{}: is a directory", .0.display())]
    Directory(PathBuf),
    /// A file has its name, and no new file may be made in the folder of that. It is not written in place: a kill in
    /// between would leave neither the old content nor the new.
    #[error("{}: no new file may be made in its folder", .0.display())]
    NoRoomBeside(PathBuf),
    /// Its name ends as one of a compressed file does, in a form that is not written here.
    #[error("{}: .{ending} is not written here", path.display())]
    Unwritten {
        /// The name.
        path: PathBuf,
        /// Its end.
        ending: &'static str,
    },
}
