//! The checks before the first byte of an input is given back: they look for everything that could
//! keep the command from ending.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use merganser_sort::journal::{InputProgress, JournalText};
use merganser_sort::run::magic::{self, ContentKind, Deed, Foreign, HEAD_BYTES};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::{ConsumeError, ConsumeJob, UnfitInput};
use crate::unfinished::{
    NAME_BYTES_MAX, ResultAttributes, Target, claimed_path, find, may_remove, note_of, open_input,
};
use crate::{ResultSource, ResultsError};

/// The inputs of a command, by name and as they are now.
pub(super) struct Inputs {
    /// Absolute paths, links in their folders followed.
    pub paths: Vec<PathBuf>,
    /// As they were typed, for messages.
    pub shown: Vec<PathBuf>,
}

impl Inputs {
    /// The inputs of a command; they may be missing.
    ///
    /// # Errors
    /// When one is not a name of a file.
    pub(super) fn of_job(job: &ConsumeJob<'_>) -> Result<Self, ConsumeError> {
        let mut inputs = Inputs { paths: Vec::new(), shown: Vec::new() };
        for input in job.inputs {
            let ResultSource::File(path) = input else { return Err(ConsumeError::Stream) };
            inputs.paths.push(place_of(path)?);
            inputs.shown.push(path.to_path_buf());
        }
        Ok(inputs)
    }

    /// How the journal names them.
    pub(super) fn texts(&self) -> impl Iterator<Item = JournalText> {
        self.paths.iter().map(|path| JournalText::from(path.as_os_str()))
    }
}

/// A name with the links of its folder followed, but not the one that it may be itself.
fn place_of(path: &Path) -> Result<PathBuf, ConsumeError> {
    let on_path = ResultsError::on(path);
    let absolute = std::path::absolute(path).map_err(on_path)?;
    let Some(name) = absolute.file_name() else {
        return Err(ConsumeError::Directory(path.to_owned()));
    };
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    Ok(fs::canonicalize(folder).map_err(on_path)?.join(name))
}

/// The inputs, checked, for a journal, and the result's attributes.
pub(super) struct CheckedInputs {
    /// One for each input.
    pub inputs: Vec<InputProgress>,
    /// The attributes of the result.
    pub attributes: ResultAttributes,
}

/// Checks inputs and result.
///
/// # Errors
/// The first thing that would stop the command later, such as an input that is compressed, or no `content` of the job.
pub(super) fn check(
    inputs: &Inputs,
    target: &Target,
    job: &ConsumeJob<'_>,
) -> Result<CheckedInputs, ConsumeError> {
    let mut found = Vec::new();
    for (path, shown) in inputs.paths.iter().zip(&inputs.shown) {
        found.push(check_input(path, shown)?);
        refuse_packed(path, shown, job.content)?;
    }
    refuse_twice(&found, &inputs.shown)?;
    let old = if job.is_view {
        target.check_name()?;
        None
    } else {
        target.check_file()?
    };
    let attributes = match &old {
        Some(old) => old.attributes,
        None => ResultAttributes::of_sources(&found),
    };
    let taken = |(path, found): (&PathBuf, &Metadata)| InputProgress {
        path: JournalText::from(path.as_os_str()),
        file: note_of(found),
        taken: 0,
        given_back: 0,
    };
    Ok(CheckedInputs { inputs: inputs.paths.iter().zip(&found).map(taken).collect(), attributes })
}

fn check_input(path: &Path, shown: &Path) -> Result<Metadata, ConsumeError> {
    let on_input = ResultsError::on(shown);
    let refuse = |why| Err(ConsumeError::Unfit { input: shown.to_owned(), why });
    let found = path.symlink_metadata().map_err(on_input)?;
    if found.is_symlink() {
        return refuse(UnfitInput::Link);
    }
    if !found.is_file() {
        return refuse(UnfitInput::NotRegular);
    }
    if found.nlink() > 1 {
        return refuse(UnfitInput::OtherLinks);
    }
    // The system itself says whether it may be written to.
    open_input(path, true).map_err(on_input)?;
    let hidden = claimed_path(path);
    if hidden.file_name().is_some_and(|name| name.len() > NAME_BYTES_MAX) {
        return refuse(UnfitInput::LongName);
    }
    if find(&hidden).map_err(on_input)?.is_some() {
        return refuse(UnfitInput::Claimed(hidden));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    if !may_remove(folder, found.uid())? {
        return refuse(UnfitInput::NotRemovable);
    }
    Ok(found)
}

/// A compressed file can be read only from its beginning, so a sort that was interrupted could not continue
/// in its middle.
fn refuse_packed(path: &Path, shown: &Path, content: ContentKind) -> Result<(), ConsumeError> {
    let mut head = Vec::new();
    open_input(path, false)
        .and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head))
        .map_err(ResultsError::on(shown))?;
    let Some(magic) = magic::of_head(&head, content) else { return Ok(()) };
    if let Deed::Refuse(advice) = magic.deed {
        let foreign = Foreign { what: magic.what, advice, inside: false };
        return Err(ResultsError::on(shown)(foreign.into()).into());
    }
    Err(ConsumeError::Packed(shown.to_owned()))
}

fn refuse_twice(found: &[Metadata], shown: &[PathBuf]) -> Result<(), ConsumeError> {
    let mut files = std::collections::HashMap::new();
    for (found, shown) in found.iter().zip(shown) {
        if let Some(first) = files.insert((found.dev(), found.ino()), shown) {
            let (first, second) = (first.clone(), shown.clone());
            return Err(ConsumeError::Twice { first, second });
        }
    }
    Ok(())
}

/// Whether `file` has data between two places: whether anything there is not a hole. A file system
/// that knows no holes has data everywhere.
///
/// # Errors
/// The system's own.
pub(super) fn has_data(file: &File, from: u64, to: u64) -> io::Result<bool> {
    Ok(from < to && seek(file, SeekFrom::Data(from))?.is_some_and(|data| data < to))
}

/// Whether `file` has a hole between two places.
///
/// # Errors
/// The system's own.
pub(super) fn has_hole(file: &File, from: u64, to: u64) -> io::Result<bool> {
    Ok(from < to && seek(file, SeekFrom::Hole(from))?.is_some_and(|hole| hole < to))
}

/// The next data or hole; `None` if the file ends before one.
fn seek(file: &File, to: SeekFrom) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, to) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
