//! The journal of a sort that consumes its inputs: which command owns the folder, how far it is,
//! and where every record is.
//!
//! ```text
//!   sorting ──► sorted ──► removed ──► delivered ──► (the journal is removed last)
//!      │           │           │           └ the result has its name; only leftovers are removed
//!      │           │           └ the inputs are gone; no later step removes anything of theirs
//!      │           └ the view in the folder has every record; the inputs may be removed
//!      └ records are in the runs that are named here, or in the inputs from `taken` on
//! ```
//!
//! It is written in full before each step that depends on it, synced, and renamed into place.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use merganser_storage::{Directory, DirectoryExt, StorageExt};
use serde::{Deserialize, Serialize};

use crate::key::OrderSpec;
use crate::run::Compression;
use crate::run::format::corrupt;
use crate::sealed::{seal, unseal};
pub use crate::text::JournalText;
use crate::view::Segment;
use crate::{Error, Result};

/// Name of the journal in the folder of the unfinished result.
pub const JOURNAL_NAME: &str = "sort-journal";
const FORMAT_NAME: &str = "merganser-sort-journal";
const VERSION: u32 = 1;
/// No journal is larger: 100,000 inputs and as many runs take some 50 MB.
const BYTES_MAX: u64 = 256 << 20;

/// How far a sort that consumes its inputs is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SortPhase {
    /// Records are in the named runs or in the inputs.
    Sorting,
    /// The view is durable and has every record. The inputs may be removed.
    Sorted,
    /// The inputs are removed, and that is durable.
    Removed,
    /// The result has its name, and that is durable.
    Delivered,
}

/// A file as it was when a command looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNote {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
    /// When the file was made, in nanoseconds since 1970, where the file system knows.
    pub born_unix_ns: Option<i64>,
    /// Bytes.
    pub size: u64,
    /// When its content changed last, in nanoseconds since 1970.
    pub modified_unix_ns: i64,
}

impl FileNote {
    /// The identity of a file, and the outer signs of its content: size and times.
    #[must_use]
    pub fn of_metadata(found: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        let born = found.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        FileNote {
            device: found.dev(),
            inode: found.ino(),
            born_unix_ns: born.and_then(|born| i64::try_from(born.as_nanos()).ok()),
            size: found.len(),
            modified_unix_ns: nanoseconds(found.mtime(), found.mtime_nsec()),
        }
    }

    /// Whether `other` is the same file, whatever its content. Where the time of birth is known,
    /// the number of the device is not compared: it can change when the machine starts again.
    #[must_use]
    pub fn is_same_file(&self, other: &FileNote) -> bool {
        self.inode == other.inode
            && match (self.born_unix_ns, other.born_unix_ns) {
                (Some(here), Some(there)) => here == there,
                _ => self.device == other.device,
            }
    }
}

/// An input, and how much of it is in runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProgress {
    /// Its absolute path.
    pub path: JournalText,
    /// The file when the sort began. `modified_unix_ns` follows what the sort itself did to it.
    pub file: FileNote,
    /// Its first bytes that are in runs.
    pub taken: u64,
    /// Its first bytes that are given back to the file system for certain.
    pub given_back: u64,
}

/// The command that owns the folder, for a user who finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandNote {
    /// The command line, word by word.
    pub words: Vec<JournalText>,
    /// Where it was typed.
    pub folder: JournalText,
    /// The absolute path of the result.
    pub output: JournalText,
    /// Whether the result is a view instead of a file.
    pub view: bool,
    /// Permission bits that the result gets.
    pub mode: u32,
    /// User and group that the result gets, where this user may set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortJournal {
    format: String,
    version: u32,
    /// How far the sort is.
    pub phase: SortPhase,
    /// Whose it is.
    pub command: CommandNote,
    /// Format and order of the records.
    pub order: OrderSpec,
    /// The inputs, in order.
    pub inputs: Vec<InputProgress>,
    /// The file that is the result, from the moment before it gets its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<FileNote>,
    pub(super) header: JournalText,
    /// The runs so far, in tie order.
    pub runs: Vec<Segment>,
    pub(super) block_bytes: u32,
    pub(super) compression: Compression,
}

impl SortJournal {
    /// The journal of a sort that has done nothing yet.
    #[must_use]
    pub fn new(command: CommandNote, order: OrderSpec, inputs: Vec<InputProgress>) -> Self {
        SortJournal {
            format: FORMAT_NAME.to_owned(),
            version: VERSION,
            phase: SortPhase::Sorting,
            command,
            order,
            inputs,
            result: None,
            header: JournalText(Vec::new()),
            runs: Vec::new(),
            block_bytes: 0,
            compression: Compression::Off,
        }
    }

    /// Whether the inputs still have all their bytes.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.phase == SortPhase::Sorting && self.inputs.iter().all(|input| input.taken == 0)
    }

    /// Reads the journal in `folder`, if it has one.
    ///
    /// # Errors
    /// As [`SortJournal::decode`]; the storage's own.
    pub fn read(folder: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let Some(file) = folder.open_if_exists(JOURNAL_NAME)? else { return Ok(None) };
        if file.size() > BYTES_MAX {
            return Err(corrupt(file.name(), BYTES_MAX, "too large for a journal".to_owned()));
        }
        let bytes = file.read_vec(0, file.size() as usize)?;
        Self::decode(file.name(), &bytes).map(Some)
    }

    /// Reads the bytes of a journal file; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::UnknownVersion`].
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let journal: SortJournal = unseal(file, "journal of a sort", bytes)?;
        if journal.format != FORMAT_NAME || journal.version != VERSION {
            return Err(Error::UnknownVersion {
                file: file.to_owned(),
                kind: journal.format,
                version: journal.version,
                known: format!("{FORMAT_NAME} version {VERSION}"),
            });
        }
        let beyond =
            |input: &InputProgress| input.taken > input.file.size || input.given_back > input.taken;
        if journal.inputs.iter().any(beyond) {
            return Err(corrupt(file, 0, "more of an input is taken than it has".to_owned()));
        }
        Ok(journal)
    }

    /// The bytes of the journal file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    /// Makes this the journal of `folder`, durably.
    ///
    /// # Errors
    /// The storage's own; the folder then has the journal from before, or this one.
    pub fn write(&self, folder: &Arc<dyn Directory>) -> Result<()> {
        Ok(folder.publish(JOURNAL_NAME, &self.encode())?)
    }

    /// Writes the journal with another phase.
    ///
    /// # Errors
    /// As [`SortJournal::write`].
    pub fn enter(&mut self, phase: SortPhase, folder: &Arc<dyn Directory>) -> Result<()> {
        self.phase = phase;
        self.write(folder)
    }

    /// Removes the journal of `folder`: the command has ended.
    ///
    /// # Errors
    /// The storage's own.
    pub fn remove(folder: &Arc<dyn Directory>) -> Result<()> {
        folder.remove_if_exists(JOURNAL_NAME)?;
        Ok(folder.sync()?)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::record::Format;

    fn journal() -> SortJournal {
        let file = FileNote {
            device: 2049,
            inode: 12,
            born_unix_ns: Some(1_700_000_000_000_000_001),
            size: 100,
            modified_unix_ns: 1_700_000_000_000_000_002,
        };
        let command = CommandNote {
            words: ["merganser", "sort", "--consume", "big", "-o", "out"]
                .map(|word| JournalText::from(OsStr::new(word)))
                .to_vec(),
            folder: JournalText::from(OsStr::new("/data")),
            output: JournalText::from(OsStr::new("/data/out")),
            view: false,
            mode: 0o640,
            owner: Some((1000, 100)),
        };
        let path = JournalText(b"/data/big\xff".to_vec());
        let input = InputProgress { path, file, taken: 64, given_back: 0 };
        let order = OrderSpec::new(Format::Lines { delimiter: b'\n' });
        let mut journal = SortJournal::new(command, order, vec![input]);
        journal.runs.push(Segment {
            run: "000000.run".to_owned(),
            bytes: 64,
            records: 3,
            index_crc: 0x0123_4567,
            bucket: None,
        });
        journal.block_bytes = 8192;
        journal
    }

    #[test]
    fn the_bytes_are_pinned() {
        let text = String::from_utf8(journal().encode()).expect("text");
        let golden = include_str!("golden/sort-journal");
        assert_eq!(text, golden, "docs/formats.md and the version must follow");
    }

    #[test]
    fn written_bytes_are_read_back() {
        let journal = journal();
        assert_eq!(SortJournal::decode("x", &journal.encode()).expect("whole"), journal);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = journal().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let read = SortJournal::decode("x", &damaged);
            assert!(matches!(read, Err(Error::Corrupt { .. })), "byte {at}");
            assert!(SortJournal::decode("x", &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_journal_that_took_more_than_there_was_is_damaged() {
        for (taken, given_back) in [(101, 0), (64, 65)] {
            let mut wrong = journal();
            wrong.inputs[0].taken = taken;
            wrong.inputs[0].given_back = given_back;
            assert!(matches!(
                SortJournal::decode("x", &wrong.encode()),
                Err(Error::Corrupt { .. })
            ));
        }
    }
}
