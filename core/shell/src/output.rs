//! Where results go: the output that a command line names, and the sentences about its name.

use std::path::Path;
use std::sync::Arc;

use merganser_results::output::{OutputError, ResultOutput, codec_by_name};
use merganser_storage::address::is_address;

use crate::failure::Failure;
use crate::signals::Cancel;
use crate::{shown, standard};

/// Opens `path`; `None` and `-` are standard output. Writes that wait for a reader end with `cancel`.
///
/// # Errors
/// When it can't be written.
pub fn open(path: Option<&Path>, cancel: &Cancel) -> Result<ResultOutput, Failure> {
    if let Some(path) = path.filter(|path| is_address(path)) {
        let name = shown::name(path);
        return Err(format!(
            "{name}: only tables are written to object stores; write a file, and copy it there"
        )
        .into());
    }
    let cancel = Arc::new(cancel.clone());
    match path.filter(|path| *path != Path::new("-")) {
        Some(path) => Ok(ResultOutput::open(path, cancel)?),
        None => ResultOutput::standard(standard::output(), cancel)
            .map_err(|error| Failure::on_stdout(&error)),
    }
}

/// Refuses the name of an output that would be compressed, where `why` it can't be.
///
/// # Errors
/// Such a name.
pub fn refuse_compressed(path: &Path, why: &str) -> Result<(), Failure> {
    match codec_by_name(path)? {
        None => Ok(()),
        Some(_) => {
            let name = shown::name(path);
            Err(format!(
                "{name}: an output is compressed as its name says, and {why}; give a plain name"
            )
            .into())
        }
    }
}

/// The sentence for an output that can't be written.
pub fn output_sentence(error: &OutputError) -> String {
    match error {
        OutputError::Directory(path) => {
            format!("{}: is a directory; -o takes a file", shown::name(path))
        }
        OutputError::NoRoomBeside(path) => format!(
            "{}: no new file may be made in its folder; write to another folder, then copy the result over with cat",
            shown::name(path)
        ),
        OutputError::Unwritten { path, ending } => format!(
            "{}: an output is compressed as its name says, and .{ending} is not written here; take .gz, .zst or a plain name, or redirect standard output",
            shown::name(path)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_be_compressed_is_refused() {
        assert!(refuse_compressed(Path::new("a.gz"), "it is not").is_err());
        assert!(refuse_compressed(Path::new("a.txt"), "it is not").is_ok());
        let refused = refuse_compressed(Path::new("x.bz2"), "it is not").expect_err("refused");
        let said = refused.sentence().expect("an error");
        assert!(said.starts_with("x.bz2: ") && said.contains(".gz, .zst"), "{said}");
    }
}
