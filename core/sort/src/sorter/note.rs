//! The note in a folder of unfinished work: the inputs that it is made from, and whether they lose bytes
//! meanwhile.
//!
//! It is written before the first record comes into the folder, synced, and never changed. So it says what
//! the folder is also after its journal was lost: a view that is made from inputs that stay, or the only
//! copy of records that their inputs have no more.

use std::sync::Arc;

use merganser_storage::{Directory, DirectoryExt, StorageExt};
use serde::{Deserialize, Serialize};

use super::journal::{FileNote, JournalText};
use crate::run::format::corrupt;
use crate::sealed::{seal, unseal};
use crate::{Error, Result};

/// Name of the note in the folder of unfinished work.
pub const NOTE_NAME: &str = "work-note";
const FORMAT_NAME: &str = "merganser-work-note";
const VERSION: u32 = 1;
/// No note is larger: 100,000 inputs take some 25 MB.
const BYTES_MAX: u64 = 128 << 20;

/// An input, as it was when the work began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedInput {
    /// Its absolute path, or the name of a stream.
    pub path: JournalText,
    /// The file; `None` for a stream, whose bytes are read once.
    pub file: Option<FileNote>,
}

/// The content of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkNote {
    format: String,
    version: u32,
    /// Whether the inputs lose their bytes while the work is done.
    pub consumes: bool,
    /// The absolute path of the result.
    pub output: JournalText,
    /// The inputs, in order; `None` if they were too many to be noted.
    pub inputs: Option<Vec<NotedInput>>,
}

impl WorkNote {
    /// The note of work that begins.
    #[must_use]
    pub fn new(consumes: bool, output: JournalText, inputs: Option<Vec<NotedInput>>) -> Self {
        WorkNote { format: FORMAT_NAME.to_owned(), version: VERSION, consumes, output, inputs }
    }

    /// Reads the note in `folder`, if it has one.
    ///
    /// # Errors
    /// As [`WorkNote::decode`]; the storage's own.
    pub fn read(folder: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let Some(file) = folder.open_if_exists(NOTE_NAME)? else { return Ok(None) };
        if file.size() > BYTES_MAX {
            return Err(corrupt(file.name(), BYTES_MAX, "too large for a note".to_owned()));
        }
        let bytes = file.read_vec(0, file.size() as usize)?;
        Self::decode(file.name(), &bytes).map(Some)
    }

    /// Reads the bytes of a note; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::UnknownVersion`].
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let note: WorkNote = unseal(file, "note of unfinished work", bytes)?;
        if note.format != FORMAT_NAME || note.version != VERSION {
            return Err(Error::UnknownVersion {
                file: file.to_owned(),
                kind: note.format,
                version: note.version,
                known: format!("{FORMAT_NAME} version {VERSION}"),
            });
        }
        Ok(note)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    /// Makes this the note of `folder`, durably.
    ///
    /// # Errors
    /// The storage's own.
    pub fn write(&self, folder: &Arc<dyn Directory>) -> Result<()> {
        Ok(folder.publish(NOTE_NAME, &self.encode())?)
    }

    /// Removes the note of `folder`: its result is complete.
    ///
    /// # Errors
    /// The storage's own.
    pub fn remove(folder: &Arc<dyn Directory>) -> Result<()> {
        folder.remove_if_exists(NOTE_NAME)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> WorkNote {
        let file = FileNote {
            device: 2049,
            inode: 131_074,
            born_unix_ns: Some(1_700_000_000_000_000_001),
            size: 100,
            modified_unix_ns: 1_700_000_000_000_000_002,
        };
        let inputs = vec![
            NotedInput { path: JournalText(b"/data/in".to_vec()), file: Some(file) },
            NotedInput { path: JournalText(b"standard input".to_vec()), file: None },
        ];
        WorkNote::new(true, JournalText(b"/data/out".to_vec()), Some(inputs))
    }

    #[test]
    fn the_bytes_are_pinned() {
        let text = String::from_utf8(note().encode()).expect("text");
        let golden = include_str!("golden/work-note");
        assert_eq!(text, golden, "docs/formats.md and the version must follow");
        assert_eq!(WorkNote::decode("x", golden.as_bytes()).expect("whole"), note());
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = note().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            assert!(matches!(WorkNote::decode("x", &damaged), Err(Error::Corrupt { .. })), "{at}");
            assert!(WorkNote::decode("x", &bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
