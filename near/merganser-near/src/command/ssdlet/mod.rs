//! `merganser ssdlet`: projects, checks and lists of programs that run near the data.
//!
//! ```text
//!   new     a project from a template      list    built-in ones, or the files of a folder
//!   check   everything about a file
//! ```

mod check;
mod list;
mod new;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use merganser_map::ssdlet::SsdletError;
use merganser_shell::failure::Failure;
use merganser_shell::shown;

use crate::config::SsdletConfig;

/// Does it.
pub(super) fn run(config: &SsdletConfig) -> Result<(), Failure> {
    match config {
        SsdletConfig::New { language, dir, name } => new::run(*language, dir, name),
        SsdletConfig::Check(check) => check::run(check),
        SsdletConfig::List { dir, json } => list::run(dir.as_deref(), *json),
    }
}

/// At most the first `most` bytes of a file; one more than that tells that there are more.
pub(super) fn read(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let read = || {
        let file = File::open(path)?;
        let mut bytes = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| Failure::on(path, &error))
}

/// The failure of the SSDlet in a file.
pub(super) fn failure(path: &Path, error: SsdletError) -> Failure {
    let sentence = match error {
        SsdletError::Engine(error) => return error.into(),
        error => error.to_string(),
    };
    format!("{}: {sentence}", shown::name(path)).into()
}

/// SHA-256 in hexadecimal digits.
fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
