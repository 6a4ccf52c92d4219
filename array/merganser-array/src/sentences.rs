//! The sentences for errors of volumes.

use merganser_shell::failure::{Failure, plain_text};

/// The end of a command by an error of a volume.
pub(crate) fn told(error: merganser_array::Error) -> Failure {
    match error {
        merganser_array::Error::Io(error) | merganser_array::Error::Unreadable(error) => {
            Failure::named(&error)
        }
        error => Failure::Error(plain_text(error.to_string())),
    }
}
