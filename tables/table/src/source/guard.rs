//! What libraries do with damaged files: they return errors, or panic.

use std::path::Path;

use merganser_storage::contained::{Cause, run};

use crate::TableError;

/// Calls a library on a file that may be anybody's. Its panics are errors of the file, since its decoders trust much of
/// what a file says. Their state is not used again.
pub(super) fn guarded<T, E: std::fmt::Display>(
    (file, place): (&Path, &str),
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, TableError> {
    let damaged =
        |why: String| TableError::Damaged { file: file.to_owned(), place: place.to_owned(), why };
    match run(Cause::Input, call) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(damaged(error.to_string())),
        Err(panic) => {
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(damaged(format!("is damaged: {}", why.unwrap_or("it can't be decoded"))))
        }
    }
}
