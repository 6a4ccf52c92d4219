//! The messages between map tasks and this process, versions 1 to 3. All integers are big-endian. A request carries the
//! lowest version that can express it, so that processes of older releases take what they know.
//!
//! ```text
//!   request  "MGHN" ─ version u16 ─ kind u16 ─ length u32 ─ body
//!     1 map       see MapRequest
//!     2 hello     nothing
//!     3 upload    a module of WebAssembly, since version 2; answered by accepted, or by an error
//!     4 state     whether to look at the folders u8, since version 3
//!   answer   frames: type u8 ─ length u32 ─ body
//!     1 data      bytes of the current spill, in order
//!     2 end       twelve counters of u64
//!     3 error     kind u16 ─ a sentence in UTF-8
//!     4 hello     version u16 ─ maps u32 ─ memory u64 ─ maps at most u32 ─ memory at most u64
//!                 ─ count u16 ─ names of SSDlets: length u16, UTF-8 ─ the product's version in UTF-8
//!     5 accepted  memory u64
//!     6 progress  bytes of the split u64 ─ records u64
//!     7 spill     number u32 ─ records u64 ─ partitions u32 ─ per partition offset u64, raw u64, part u64
//!     8 state     as hello up to the names ─ the product's version: length u16, UTF-8 ─ uploads u8
//!                 ─ six totals of u64 ─ count u16 of kinds of errors: kind u16, number u64
//!                 ─ count u16 of folders: state u8, path: length u16, UTF-8
//! ```
//!
//! A map is answered by `accepted`, then data and progress, a `spill` behind the data of each spill, and `end`;
//! or by an error, at any point. Requests and frames have the heads of the shuffle's protocol, and its error
//! frame, so that a client at the wrong socket can read the answer.

use std::borrow::Cow;

use super::HdfsError;
use super::ifile::SegmentIndex;
use super::module::MODULE_BYTES_MAX;
use super::replica::FolderState;
use super::request::{MapRequest, SsdletName, TAIL_BYTES_MAX};
use super::task::MapCounters;
pub use crate::message::{
    BadMessage, FRAME_BODY_BYTES_MAX, FRAME_HEAD_BYTES, HEAD_BYTES, RequestHead, frame_head,
};
use crate::message::{BodyReader, DATA, Heads, frame, frame_of, push_text};

/// The newest version.
pub const VERSION: u16 = 3;
/// The first version.
const FIRST: u16 = 1;
/// The longest body of a request, in bytes.
pub const BODY_BYTES_MAX: usize = TAIL_BYTES_MAX + (1 << 20);

const MAP: u16 = 1;
const HELLO: u16 = 2;
const UPLOAD: u16 = 3;
const STATE: u16 = 4;

/// The most folders that a state has: as many paths as fit into one frame.
pub(super) const FOLDERS_MAX: usize = 128;
/// The longest path that it has, in bytes.
pub(super) const FOLDER_BYTES_MAX: usize = 4096;

const _: () = assert!(MODULE_BYTES_MAX <= BODY_BYTES_MAX, "a request holds a module");
const _: () = assert!(FOLDERS_MAX * (FOLDER_BYTES_MAX + 3) < FRAME_BODY_BYTES_MAX / 4 * 3);

const HEADS: Heads = Heads {
    magic: *b"MGHN",
    versions: FIRST..=VERSION,
    kinds: &[MAP, HELLO, UPLOAD, STATE],
    body_bytes_max: BODY_BYTES_MAX,
};

const END: u8 = 2;
const ERROR: u8 = 3;
const HELLO_FRAME: u8 = 4;
const ACCEPTED: u8 = 5;
const PROGRESS: u8 = 6;
const SPILL: u8 = 7;
const STATE_FRAME: u8 = 8;

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HdfsRequest {
    /// To map a split.
    Map(Box<MapRequest>),
    /// For the version, the load and the SSDlets.
    Hello,
    /// To keep the module of an SSDlet for maps that follow.
    Upload(Vec<u8>),
    /// For all that operators want to know.
    State {
        /// Whether the folders are looked at, which may wait for a disk.
        folders: bool,
    },
}

/// A part of an answer. Data is sent without being copied into one: see [`frame_head`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapFrame {
    /// Bytes of the current spill.
    Data(Vec<u8>),
    /// The map is done.
    End(MapCounters),
    /// It is not, and all that was sent is void.
    Error {
        /// Why.
        kind: HdfsErrorKind,
        /// The same, as a sentence.
        sentence: String,
    },
    /// The process.
    Hello(Hello),
    /// The map begins, or an upload was taken.
    Accepted {
        /// Memory that the map has, or that the guest of each map takes, in bytes.
        memory_bytes: u64,
    },
    /// The map continues.
    Progress {
        /// Bytes of the split that were mapped.
        split_bytes: u64,
        /// Records that were mapped.
        records: u64,
    },
    /// All data of the current spill was sent.
    Spill {
        /// Its number, from 0.
        number: u32,
        /// Its records.
        records: u64,
        /// Where the segment of each partition is.
        index: Vec<SegmentIndex>,
    },
    /// The process, and what it did.
    State(MapServerState),
}

/// The state of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The highest version of this protocol that it speaks.
    pub version: u16,
    /// Maps that are running.
    pub maps: u32,
    /// Bytes of memory that they have.
    pub memory_bytes: u64,
    /// Maps that may run at once.
    pub maps_max: u32,
    /// Bytes of memory for all of them.
    pub memory_bytes_max: u64,
    /// Names of the SSDlets for map tasks.
    pub ssdlets: Vec<String>,
    /// The version of the product.
    pub product: String,
}

/// All that operators want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapServerState {
    /// Its load.
    pub hello: Hello,
    /// Whether jobs may bring SSDlets.
    pub uploads: bool,
    /// What it did since it started.
    pub totals: Totals,
    /// The folders of the DataNode, if they were asked for.
    pub folders: Vec<(FolderState, String)>,
}

/// What a process did since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// How long ago that was, in seconds.
    pub seconds: u64,
    /// Maps whose results their tasks have.
    pub maps: u64,
    /// Bytes that those maps read, checksums included.
    pub read_bytes: u64,
    /// Bytes of their spills.
    pub spill_bytes: u64,
    /// Their processor time, in nanoseconds.
    pub cpu_ns: u64,
    /// Maps whose tasks left before they had the result, or were too slow to take it.
    pub left: u64,
    /// Requests that were refused or failed, by the number of an [`HdfsErrorKind`]; those that never occurred are left out.
    pub errors: Vec<(u16, u64)>,
}

/// Why there is no result. Below 100 nothing was mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HdfsErrorKind {
    /// No place, or no memory, within the task's patience; or a module can't be compiled now.
    Busy = 1,
    /// The request is malformed or beyond a limit. The connection ends.
    Request = 2,
    /// There is no such SSDlet.
    Ssdlet = 3,
    /// The SSDlet doesn't take these arguments.
    Arguments = 4,
    /// The SSDlet gives other types, or can't combine in this way.
    Types = 5,
    /// The block is not here as a finalized replica.
    Replica = 6,
    /// The replica has another generation stamp.
    Generation = 7,
    /// The replica has another length.
    Length = 8,
    /// Records are not clear with this delimiter.
    Delimiter = 9,
    /// Too little memory.
    Memory = 10,
    /// Checksums of an unknown kind.
    Checksum = 11,
    /// The SSDlet that the job brings is not here: the task uploads it and asks again.
    Absent = 12,
    /// No job may bring an SSDlet.
    Uploads = 13,
    /// The module that was uploaded is no SSDlet, or wants more than it may have.
    Module = 14,
    /// Bytes don't match their checksums.
    Damaged = 101,
    /// The system failed to read.
    Io = 102,
    /// A record is longer than the memory holds.
    Record = 103,
    /// The tail does not hold the end of the last record.
    Tail = 104,
    /// The SSDlet that the job brings failed.
    Program = 105,
    /// A mistake in this program.
    Mistake = 106,
}

impl HdfsErrorKind {
    pub(super) const ALL: [Self; 20] = {
        use HdfsErrorKind::*;
        [
            Busy, Request, Ssdlet, Arguments, Types, Replica, Generation, Length, Delimiter,
            Memory, Checksum, Absent, Uploads, Module, Damaged, Io, Record, Tail, Program, Mistake,
        ]
    };

    fn of_number(number: u16) -> Result<Self, BadMessage> {
        let found = HdfsErrorKind::ALL.into_iter().find(|kind| *kind as u16 == number);
        found.ok_or_else(|| BadMessage(format!("there are no errors of kind {number}")))
    }
}

impl From<&HdfsError> for HdfsErrorKind {
    fn from(error: &HdfsError) -> Self {
        match error {
            HdfsError::Busy { .. } => HdfsErrorKind::Busy,
            HdfsError::Ssdlet { .. } => HdfsErrorKind::Ssdlet,
            HdfsError::Absent { .. } => HdfsErrorKind::Absent,
            HdfsError::Uploads => HdfsErrorKind::Uploads,
            HdfsError::Module { .. } => HdfsErrorKind::Module,
            HdfsError::Program { .. } => HdfsErrorKind::Program,
            HdfsError::Arguments { .. } => HdfsErrorKind::Arguments,
            HdfsError::Types { .. } => HdfsErrorKind::Types,
            HdfsError::Replica { .. } => HdfsErrorKind::Replica,
            HdfsError::Generation { .. } => HdfsErrorKind::Generation,
            HdfsError::Length { .. } => HdfsErrorKind::Length,
            HdfsError::Delimiter => HdfsErrorKind::Delimiter,
            HdfsError::Memory { .. } => HdfsErrorKind::Memory,
            HdfsError::Checksum { .. } => HdfsErrorKind::Checksum,
            HdfsError::Damaged { .. } => HdfsErrorKind::Damaged,
            // No client is left to read it.
            HdfsError::Io { .. } | HdfsError::Gone => HdfsErrorKind::Io,
            HdfsError::Record { .. } => HdfsErrorKind::Record,
            HdfsError::Tail { .. } => HdfsErrorKind::Tail,
        }
    }
}

impl HdfsRequest {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// When it is not of this version. The connection is useless then.
    pub fn head(bytes: [u8; HEAD_BYTES]) -> Result<RequestHead, BadMessage> {
        HEADS.decode(bytes)
    }

    /// Reads the body of a request. A module is not copied if the body is a `Vec`.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode<'a>(
        head: RequestHead,
        body: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Self, BadMessage> {
        let body = body.into();
        let request = match head.kind {
            HELLO => {
                BodyReader(&body).end("request")?;
                HdfsRequest::Hello
            }
            UPLOAD => {
                if body.len() > MODULE_BYTES_MAX {
                    return Err(BadMessage(format!(
                        "a module has at most {MODULE_BYTES_MAX} bytes, not {}",
                        body.len()
                    )));
                }
                HdfsRequest::Upload(body.into_owned())
            }
            STATE => {
                let mut rest = BodyReader(&body);
                let folders = flag(&mut rest)?;
                rest.end("request")?;
                HdfsRequest::State { folders }
            }
            _ => {
                let mut rest = BodyReader(&body);
                let map = MapRequest::decode(&mut rest)?;
                rest.end("request")?;
                HdfsRequest::Map(Box::new(map))
            }
        };
        let (found, first) = (head.version, request.version());
        if found != first {
            return Err(BadMessage(format!(
                "a request of version {found} with the content of version {first}"
            )));
        }
        Ok(request)
    }

    /// The lowest version that can express it.
    fn version(&self) -> u16 {
        match self {
            HdfsRequest::Map(map) if matches!(map.ssdlet, SsdletName::BuiltIn(_)) => FIRST,
            HdfsRequest::Hello => FIRST,
            HdfsRequest::Map(_) | HdfsRequest::Upload(_) => 2,
            HdfsRequest::State { .. } => 3,
        }
    }

    /// The whole request.
    ///
    /// # Errors
    /// When a text or the whole is too long for the protocol.
    pub fn encode(&self) -> Result<Vec<u8>, BadMessage> {
        let mut body = Vec::new();
        let kind = match self {
            HdfsRequest::Hello => HELLO,
            HdfsRequest::Upload(module) => {
                body.extend(module);
                UPLOAD
            }
            HdfsRequest::State { folders } => {
                body.push((*folders).into());
                STATE
            }
            HdfsRequest::Map(map) => {
                map.encode(&mut body)?;
                MAP
            }
        };
        HEADS.encode(self.version(), kind, &body)
    }
}

impl MapFrame {
    /// The whole frame.
    ///
    /// # Panics
    /// When its body is longer than [`FRAME_BODY_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        frame(|bytes| self.encode_body(bytes))
    }

    fn encode_body(&self, bytes: &mut Vec<u8>) -> u8 {
        match self {
            MapFrame::Data(data) => {
                bytes.extend(data);
                DATA
            }
            MapFrame::End(counters) => {
                counters.fields().iter().for_each(|n| bytes.extend(n.to_be_bytes()));
                END
            }
            MapFrame::Error { kind, sentence } => {
                bytes.extend((*kind as u16).to_be_bytes());
                bytes.extend(sentence.as_bytes());
                ERROR
            }
            MapFrame::Hello(hello) => {
                hello.encode(bytes);
                HELLO_FRAME
            }
            MapFrame::Accepted { memory_bytes } => {
                bytes.extend(memory_bytes.to_be_bytes());
                ACCEPTED
            }
            MapFrame::Progress { split_bytes, records } => {
                bytes.extend(split_bytes.to_be_bytes());
                bytes.extend(records.to_be_bytes());
                PROGRESS
            }
            MapFrame::Spill { number, records, index } => {
                bytes.extend(number.to_be_bytes());
                bytes.extend(records.to_be_bytes());
                bytes.extend((index.len() as u32).to_be_bytes());
                for SegmentIndex { offset, raw, part } in index {
                    [offset, raw, part].iter().for_each(|n| bytes.extend(n.to_be_bytes()));
                }
                SPILL
            }
            MapFrame::State(state) => {
                state.encode(bytes);
                STATE_FRAME
            }
        }
    }

    /// Reads a frame that begins `bytes`, and how long it is; `None` when it does not end within them.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadMessage> {
        let Some((kind, body)) = frame_of(bytes)? else { return Ok(None) };
        let mut rest = BodyReader(body);
        let frame = match kind {
            DATA => MapFrame::Data(std::mem::take(&mut rest.0).to_vec()),
            END => MapFrame::End(MapCounters::decode(&mut rest)?),
            ERROR => MapFrame::Error {
                kind: HdfsErrorKind::of_number(rest.u16()?)?,
                sentence: rest.rest_of_text()?,
            },
            HELLO_FRAME => MapFrame::Hello(Hello::decode(&mut rest)?),
            ACCEPTED => MapFrame::Accepted { memory_bytes: rest.u64()? },
            PROGRESS => MapFrame::Progress { split_bytes: rest.u64()?, records: rest.u64()? },
            SPILL => {
                let (number, records) = (rest.u32()?, rest.u64()?);
                let count = rest.u32()? as usize;
                if count > rest.0.len() / (3 * 8) {
                    return Err(BadMessage(format!(
                        "{count} partitions in {} bytes",
                        rest.0.len()
                    )));
                }
                let mut index = Vec::with_capacity(count);
                for _ in 0..count {
                    let (offset, raw, part) = (rest.u64()?, rest.u64()?, rest.u64()?);
                    index.push(SegmentIndex { offset, raw, part });
                }
                MapFrame::Spill { number, records, index }
            }
            STATE_FRAME => MapFrame::State(MapServerState::decode(&mut rest)?),
            _ => return Err(BadMessage(format!("there are no frames of type {kind}"))),
        };
        rest.end("frame")?;
        Ok(Some((frame, FRAME_HEAD_BYTES + body.len())))
    }
}

/// A byte that is 0 or 1.
fn flag(rest: &mut BodyReader<'_>) -> Result<bool, BadMessage> {
    match rest.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(BadMessage(format!("{other} is neither 0 nor 1"))),
    }
}

impl Hello {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.encode_load(bytes);
        bytes.extend(self.product.as_bytes());
    }

    /// All but the product.
    fn encode_load(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.maps.to_be_bytes());
        bytes.extend(self.memory_bytes.to_be_bytes());
        bytes.extend(self.maps_max.to_be_bytes());
        bytes.extend(self.memory_bytes_max.to_be_bytes());
        bytes.extend((self.ssdlets.len() as u16).to_be_bytes());
        for name in &self.ssdlets {
            push_text(name, bytes).expect("names are short");
        }
    }

    fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        Hello::decode_with(rest, BodyReader::rest_of_text)
    }

    /// The same, where the product is read by `product`.
    fn decode_with<'a>(
        rest: &mut BodyReader<'a>,
        product: impl FnOnce(&mut BodyReader<'a>) -> Result<String, BadMessage>,
    ) -> Result<Self, BadMessage> {
        let (version, maps, memory_bytes) = (rest.u16()?, rest.u32()?, rest.u64()?);
        let (maps_max, memory_bytes_max) = (rest.u32()?, rest.u64()?);
        let count = rest.u16()?;
        let ssdlets = (0..count).map(|_| rest.text()).collect::<Result<_, _>>()?;
        let product = product(rest)?;
        Ok(Hello { version, maps, memory_bytes, maps_max, memory_bytes_max, ssdlets, product })
    }
}

impl MapServerState {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.hello.encode_load(bytes);
        push_text(&self.hello.product, bytes).expect("a version is short");
        bytes.push(self.uploads.into());
        self.totals.encode(bytes);
        bytes.extend((self.folders.len() as u16).to_be_bytes());
        for (state, path) in &self.folders {
            bytes.push(*state as u8);
            push_text(path, bytes).expect("paths are short");
        }
    }

    fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        let hello = Hello::decode_with(rest, BodyReader::text)?;
        let uploads = flag(rest)?;
        let totals = Totals::decode(rest)?;
        let folders = (0..rest.u16()?)
            .map(|_| Ok((FolderState::of_number(rest.u8()?)?, rest.text()?)))
            .collect::<Result<_, BadMessage>>()?;
        Ok(MapServerState { hello, uploads, totals, folders })
    }
}

impl Totals {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let Totals { seconds, maps, read_bytes, spill_bytes, cpu_ns, left, errors } = self;
        for number in [seconds, maps, read_bytes, spill_bytes, cpu_ns, left] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend((errors.len() as u16).to_be_bytes());
        for (kind, number) in errors {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(number.to_be_bytes());
        }
    }

    fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        let [seconds, maps, read_bytes] = [rest.u64()?, rest.u64()?, rest.u64()?];
        let [spill_bytes, cpu_ns, left] = [rest.u64()?, rest.u64()?, rest.u64()?];
        let errors = (0..rest.u16()?)
            .map(|_| Ok((rest.u16()?, rest.u64()?)))
            .collect::<Result<_, BadMessage>>()?;
        Ok(Totals { seconds, maps, read_bytes, spill_bytes, cpu_ns, left, errors })
    }
}

#[cfg(test)]
mod tests;
