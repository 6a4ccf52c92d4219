//! The journal of a pipeline: what is done, so that a pipeline that was killed continues.
//!
//! ```text
//!   01234567 {"format":"merganser-pipeline-journal", …}\n     the work: written once
//!   89abcdef {"cut":{"k":0,"start":0,"bytes":1048576, …}}\n   one line for each thing that is done
//!   …
//! ```
//!
//! Each line begins with the CRC32C of its JSON. A line is synced before anything depends on it, and only
//! what a line names is removed or built upon. A line at the end that is cut by a crash never was: its work is
//! done again. Damage anywhere else is an error.

use merganser_sort::Error;
use merganser_sort::journal::{CommandNote, FileNote, JournalText};
use serde::{Deserialize, Serialize};

use super::PieceFormat;

const FORMAT_NAME: &str = "merganser-pipeline-journal";
const VERSION: u32 = 1;
/// No journal is longer: 100,000 partitions of ten stages take about 100 MB.
pub const BYTES_MAX: u64 = 1 << 30;

/// How an input is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partitions {
    /// Into this number, of equal bytes.
    Count(u32),
    /// Into partitions of about this size.
    Bytes(u64),
    /// Into as many as are fastest, after two small ones.
    Auto,
}

/// How the results become one output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeBy {
    /// One after the other.
    Cat,
    /// By a command.
    Command(String),
}

/// The work of a pipeline: what its output depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineWork {
    /// The records that are kept whole.
    pub records: PieceFormat,
    /// Whether the inputs are taken as they are stored, compressed or not. Older versions always decompressed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_stored: bool,
    /// How they are divided.
    pub partitions: Partitions,
    /// The stages: their names and commands.
    pub stages: Vec<(String, String)>,
    /// How results are merged.
    pub merge: MergeBy,
    /// The folder that commands run in.
    pub folder: JournalText,
}

/// An input, as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputNote {
    /// Its name.
    pub name: JournalText,
    /// The file; `None` for a stream.
    pub file: Option<FileNote>,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHeader {
    format: String,
    version: u32,
    /// The command, for a user who finds the folder.
    pub command: CommandNote,
    /// The work.
    pub work: PipelineWork,
    /// The inputs, in order.
    pub inputs: Vec<InputNote>,
}

/// A partition, as it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionCut {
    /// Its number, from 0.
    pub k: u32,
    /// Its place in the bytes of all inputs.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its records.
    pub records: u64,
    /// CRC32C of its bytes.
    pub crc: u32,
}

/// Something that is done, and durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PipelineEvent {
    /// The bytes of all inputs are known.
    Sized {
        /// How many.
        bytes: u64,
    },
    /// The number of partitions was chosen, after partition `first - 1`, which ends at `start`.
    Split {
        /// The first partition of the others.
        first: u32,
        /// Where it begins.
        start: u64,
        /// How many others.
        partitions: u32,
    },
    /// A partition is there.
    Cut(PartitionCut),
    /// All are there.
    AllCut {
        /// How many.
        partitions: u32,
    },
    /// A stage of a partition has ended, and its output is there.
    Ran {
        /// The partition.
        k: u32,
        /// The stage, from 0.
        stage: u32,
        /// Bytes of its output.
        bytes: u64,
        /// Checksum of its output; `None` in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc: Option<u32>,
    },
    /// The result of a partition is in the partial output, whose size is `bytes` now.
    Gathered {
        /// The partition.
        k: u32,
        /// Bytes of the partial output.
        bytes: u64,
        /// CRC32C of these; `None` in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc: Option<u32>,
    },
    /// The partial output is whole.
    Merged {
        /// Its bytes.
        bytes: u64,
        /// CRC32C of these; `None` in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc: Option<u32>,
    },
}

impl JournalHeader {
    /// The header of new work.
    #[must_use]
    pub fn new(command: CommandNote, work: PipelineWork, inputs: Vec<InputNote>) -> Self {
        JournalHeader { format: FORMAT_NAME.to_owned(), version: VERSION, command, work, inputs }
    }

    /// Reads the JSON of the first line.
    pub(super) fn decode(file: &str, json: &[u8]) -> Result<Self, Error> {
        // The version is looked at before the rest, which may be different in another one.
        let kind: JournalKind = parse(json).ok_or_else(|| no_journal(file))?;
        if kind.format != FORMAT_NAME || kind.version != VERSION {
            return Err(Error::UnknownVersion {
                file: file.to_owned(),
                kind: kind.format,
                version: kind.version,
                known: format!("{FORMAT_NAME} version {VERSION}"),
            });
        }
        parse(json).ok_or_else(|| no_journal(file))
    }
}

fn no_journal(file: &str) -> Error {
    let detail = "not a journal of a pipeline".to_owned();
    Error::Corrupt { file: file.to_owned(), offset: 0, detail }
}

/// The content of a line.
pub(super) fn parse<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineRecord {
    /// The first line.
    pub header: JournalHeader,
    /// The others, in order.
    pub events: Vec<PipelineEvent>,
    /// Bytes of all these lines. Bytes after them were cut by a crash.
    pub whole_bytes: u64,
}

impl PipelineRecord {
    /// Reads the bytes of a journal; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::UnknownVersion`].
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = |offset: usize, detail: &str| Error::Corrupt {
            file: file.to_owned(),
            offset: offset as u64,
            detail: detail.to_owned(),
        };
        let mut lines = JournalLines { bytes, at: 0 };
        let Some(first) = lines.next() else {
            return Err(corrupt(0, "no whole line of a journal"));
        };
        let header = JournalHeader::decode(file, first.0)?;
        let mut events = Vec::new();
        let mut whole_bytes = lines.at as u64;
        loop {
            let at = lines.at;
            let Some(line) = lines.next() else { break };
            let event = line.parse();
            events.push(event.ok_or_else(|| corrupt(at, "a line that says nothing known"))?);
            whole_bytes = lines.at as u64;
        }
        // Only the last line can be cut.
        let mut rest = JournalLines { bytes, at: lines.at };
        while let Some(line) = rest.skip_line() {
            if hides_line(line) {
                return Err(corrupt(lines.at, "a whole line that does not begin after a newline"));
            }
            let at = rest.at;
            if rest.next().is_some() {
                return Err(corrupt(at, "a whole line after a damaged one"));
            }
        }
        Ok(PipelineRecord { header, events, whole_bytes })
    }

    /// The bytes of a journal.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = line_of(&self.header);
        self.events.iter().for_each(|event| bytes.extend(line_of(event)));
        bytes
    }
}

#[derive(Deserialize)]
struct JournalKind {
    format: String,
    version: u32,
}

/// Lines with the right checksum.
struct JournalLines<'a> {
    bytes: &'a [u8],
    at: usize,
}

struct JournalLine<'a>(&'a [u8]);

impl JournalLine<'_> {
    fn parse<T: for<'de> Deserialize<'de>>(&self) -> Option<T> {
        parse(self.0)
    }
}

/// Bytes before the JSON of a line: eight digits and a space.
const SUM_BYTES: usize = 9;
/// More than any line but the first has.
pub(super) const EVENT_BYTES_MAX: usize = 4096;

impl<'a> JournalLines<'a> {
    /// The next line, if it is whole.
    fn next(&mut self) -> Option<JournalLine<'a>> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\n', rest)?;
        let json = line_in(&rest[..end])?;
        self.at += end + 1;
        Some(JournalLine(json))
    }

    /// Goes to the next line; gives the one that it passes, if that has an end.
    fn skip_line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\n', rest)?;
        self.at += end + 1;
        Some(&rest[..end])
    }
}

/// Whether a damaged line ends with one that is whole: the newline between them was changed. A crash cuts lines and
/// joins none.
pub(super) fn hides_line(line: &[u8]) -> bool {
    let last = &line[line.len().saturating_sub(EVENT_BYTES_MAX)..];
    (1..last.len()).any(|at| line_in(&last[at..]).is_some())
}

/// The JSON of a line without its end, if its checksum is right.
pub(super) fn line_in(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.split_at_checked(SUM_BYTES)?;
    // This alone rules out most lines.
    let may_be = sum[SUM_BYTES - 1] == b' ' && json.first() == Some(&b'{');
    (may_be && sum == format!("{:08x} ", crc32c::crc32c(json)).as_bytes()).then_some(json)
}

/// A line of the journal that says `content`, with its checksum and its end.
///
/// # Panics
/// For what is no plain data.
pub fn line_of(content: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(content).expect("plain data");
    let mut line = format!("{:08x} ", crc32c::crc32c(&json)).into_bytes();
    line.extend(json);
    line.push(b'\n');
    line
}
