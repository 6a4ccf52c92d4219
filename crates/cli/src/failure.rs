//! Why a command did not do what was asked, and what the shell is told.

use std::io::{self, Write};
use std::path::Path;

use crate::input::Input;
use crate::signals::CANCELLED;

/// The end of a command that is not plain success.
#[derive(Debug)]
pub enum Failure {
    /// Records are out of order; the sentence is left out where none was asked for.
    Disorder(Option<String>),
    /// It can't be done; the sentence names the file, the offset or the flag and what to do.
    Error(String),
    /// A signal asked for the end.
    Cancelled,
    /// The reader of standard output went away: nothing more to do, and nothing to say.
    ClosedPipe,
}

impl Failure {
    /// An error on `path`, as the system tells it.
    pub fn on(path: &Path, error: &io::Error) -> Self {
        Failure::Error(format!("{}: {}", path.display(), plain(error)))
    }

    /// An error on an input.
    pub fn on_input(input: &Input, error: &io::Error) -> Self {
        Failure::Error(format!("{input}: {}", plain(error)))
    }

    /// An error whose own text names the file. A closed pipe can only be a reader that went away:
    /// nothing is read through one that breaks.
    pub fn named(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            io::ErrorKind::Interrupted | CANCELLED => Failure::Cancelled,
            _ => Failure::Error(plain(error)),
        }
    }

    /// An error on standard output; a closed pipe is none.
    pub fn on_stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Error(format!("standard output: {}", plain(error))),
        }
    }

    /// The sentence for stderr, if any.
    pub fn sentence(&self) -> Option<&str> {
        match self {
            Failure::Disorder(sentence) => sentence.as_deref(),
            Failure::Error(sentence) => Some(sentence),
            Failure::ClosedPipe | Failure::Cancelled => None,
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::Disorder(_) => 1,
            Failure::Error(_) | Failure::Cancelled => 2,
        }
    }
}

/// Tells something that is no failure, on stderr.
pub fn notice(sentence: &str) {
    let line = sentence.replace('\n', "\\n");
    // Nobody may be listening.
    let _ = writeln!(io::stderr(), "merganser: {line}");
}

/// A word as a shell takes it: quoted where it must be.
pub fn quoted(word: &std::ffi::OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

impl From<String> for Failure {
    fn from(sentence: String) -> Self {
        Failure::Error(sentence)
    }
}

impl From<export::Error> for Failure {
    fn from(error: export::Error) -> Self {
        Failure::Error(plain_text(error.to_string()))
    }
}

impl From<sort::key::KeyError> for Failure {
    fn from(error: sort::key::KeyError) -> Self {
        Failure::Error(error.to_string())
    }
}

impl From<sort::Error> for Failure {
    fn from(error: sort::Error) -> Self {
        match error {
            sort::Error::Io(error) => Failure::named(&error),
            sort::Error::Cancelled => Failure::Cancelled,
            error => Failure::Error(plain_text(error.to_string())),
        }
    }
}

fn plain(error: &io::Error) -> String {
    plain_text(error.to_string())
}

/// The system's words without the error number.
fn plain_text(mut text: String) -> String {
    if let Some(at) = text.find(" (os error ")
        && let Some(len) = text[at..].find(')')
    {
        text.replace_range(at..=at + len, "");
    }
    text
}
