//! Inputs that are compressed, found by their first bytes and not by their names.
//!
//! | first bytes | what | memory |
//! |---|---|---|
//! | `1f 8b 08` | gzip, any number of members | fixed, about 64 KiB |
//! | `28 b5 2f fd` | Zstandard, any number of frames | the window that the first frame names |
//!
//! A decompressor is made when its input is first read, so however many inputs there are, one of them has memory
//! at a time. How much it is, the first bytes of a file tell before; those of a pipe are not read before
//! its turn, because its writer may have to write another one first.
//!
//! A damaged or cut input is an error that names the file: a decompressor checks what it gives.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use merganser_storage::{Storage, StorageExt};

use super::MapInput;
use super::source::AHEAD_BYTES;

const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes that tell what an input is: a Zstandard frame header has 18 at most.
const HEAD_BYTES: usize = 18;
/// The least window.
const WINDOW_BYTES_MIN: u64 = 1 << 10;
/// Compressed bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// A window that every decoder of Zstandard should take (RFC 8878, section 3.1.1.1.2), as a power of two.
const WINDOW_LOG_USUAL: u32 = 23;
/// That of `zstd` itself, unless it was asked for more.
const WINDOW_LOG_OF_PIPES: u32 = 21;
/// Later frames may have windows of the usual length if that is no more than this part of the memory, 1 / 4.
const USUAL_SHARE: u64 = 4;

impl MapInput {
    /// All of `storage`, decompressed if it is compressed. The decompressor's memory is of `budget`, from
    /// its first read on.
    ///
    /// # Errors
    /// The storage's own.
    pub fn detect(storage: Arc<dyn Storage>, budget: &Budget) -> merganser_sort::Result<MapInput> {
        let mut head = [0; HEAD_BYTES];
        let read = storage.read_at(0, &mut head)?;
        let Some(packed) = Packed::of(&head[..read], budget) else {
            return Ok(MapInput::Storage { storage, range: None });
        };
        let name = storage.name().to_owned();
        let (size, budget) = (storage.size(), budget.clone());
        let bytes = Box::new(Compressed { storage, at: 0, size });
        let memory_bytes = packed.memory_bytes();
        let reader = Box::new(Late { state: State::Known(packed, bytes), budget });
        Ok(MapInput::Stream { name, reader, memory_bytes })
    }

    /// The bytes of a pipe, decompressed if they are compressed. Nothing is read of it yet. There is memory
    /// for a window of 8 MiB, or 2 MiB if that is more than a quarter of `budget`; a longer one takes
    /// what is free.
    #[must_use]
    pub fn detect_stream(name: String, reader: Box<dyn Read + Send>, budget: &Budget) -> MapInput {
        let log = window_log_max(budget).unwrap_or(WINDOW_LOG_OF_PIPES);
        let memory_bytes = READ_BYTES as u64 + (1 << log);
        let reader = Box::new(Late { state: State::Unknown(reader), budget: budget.clone() });
        MapInput::Stream { name, reader, memory_bytes }
    }

    /// Memory that it takes while it is read, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            MapInput::Storage { .. } => 0,
            MapInput::Stream { memory_bytes, .. } => *memory_bytes,
        }
    }
}

/// The usual window, if later frames may have it.
fn window_log_max(budget: &Budget) -> Option<u32> {
    let usual = READ_BYTES as u64 + (1 << WINDOW_LOG_USUAL);
    (usual <= budget.limit_bytes() / USUAL_SHARE).then_some(WINDOW_LOG_USUAL)
}

/// How bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packed {
    Gzip,
    /// The longest window of a frame, as a power of two.
    Zstd(u32),
}

impl Packed {
    /// That of bytes that begin with `head`; `None` if they are not compressed.
    fn of(head: &[u8], budget: &Budget) -> Option<Packed> {
        if head.starts_with(&GZIP) {
            return Some(Packed::Gzip);
        }
        let window = head.starts_with(&ZSTD).then(|| zstd_window_bytes(head).unwrap_or(0))?;
        // A frame can name more than memory has; that is an error of the plan.
        let first = window.clamp(WINDOW_BYTES_MIN, 1 << 40).next_power_of_two().ilog2();
        Some(Packed::Zstd(window_log_max(budget).map_or(first, |usual| usual.max(first))))
    }

    fn memory_bytes(self) -> u64 {
        let window = match self {
            Packed::Gzip => 0,
            Packed::Zstd(log) => 1 << log,
        };
        READ_BYTES as u64 + window
    }

    /// A decompressor for `bytes`.
    fn reader(
        self,
        bytes: Box<dyn Read + Send>,
        budget: &Budget,
    ) -> merganser_sort::Result<Box<dyn Read + Send>> {
        let memory = budget.reserve(self.memory_bytes(), "decompressing")?;
        let bytes = BufReader::with_capacity(READ_BYTES, bytes);
        Ok(match self {
            Packed::Gzip => Box::new(Held { reader: MultiGzDecoder::new(bytes), _memory: memory }),
            Packed::Zstd(log) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                decoder.window_log_max(log)?;
                Box::new(Held { reader: decoder, _memory: memory })
            }
        })
    }
}

/// A stream whose decompressor is made at its first read.
struct Late {
    state: State,
    budget: Budget,
}

enum State {
    /// Its first bytes were not looked at.
    Unknown(Box<dyn Read + Send>),
    /// Compressed bytes.
    Known(Packed, Box<dyn Read + Send>),
    /// The bytes that it holds.
    Open(Box<dyn Read + Send>),
    Failed,
}

impl Read for Late {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut reader = match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(reader) => reader,
            State::Known(packed, bytes) => packed.reader(bytes, &self.budget)?,
            State::Unknown(mut reader) => {
                let mut head = Vec::with_capacity(HEAD_BYTES);
                reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
                let packed = Packed::of(&head, &self.budget);
                let whole = Box::new(io::Cursor::new(head).chain(reader));
                match packed {
                    Some(packed) => packed.reader(whole, &self.budget)?,
                    None => whole,
                }
            }
            State::Failed => return Err(io::Error::other("it failed before")),
        };
        let read = reader.read(out);
        self.state = State::Open(reader);
        read
    }
}

/// The window that a frame's header names (RFC 8878, section 3.1.1.1), in bytes.
fn zstd_window_bytes(head: &[u8]) -> Option<u64> {
    let descriptor = *head.get(4)?;
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let window = *head.get(5)?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (len, add) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let field = head.get(5 + dictionary..5 + dictionary + len)?;
    let mut number = [0; 8];
    number[..len].copy_from_slice(field);
    u64::from_le_bytes(number).checked_add(add)
}

/// A reader with the memory that it takes.
struct Held<R> {
    reader: R,
    _memory: Reservation,
}

impl<R: Read> Read for Held<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reader.read(out)
    }
}

/// The bytes of a storage, in order.
struct Compressed {
    storage: Arc<dyn Storage>,
    at: u64,
    size: u64,
}

impl Read for Compressed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let want = out.len().min(usize::try_from(self.size - self.at).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        let out = &mut out[..want];
        // As far ahead as the workers ask for the bytes of other inputs.
        let from = if self.at == 0 { 0 } else { self.size.min(self.at + AHEAD_BYTES) };
        let to = self.size.min(self.at + AHEAD_BYTES + want as u64);
        if from < to {
            self.storage.read_ahead(from, to - from);
        }
        let read = match self.storage.read_now(self.at, out) {
            Some(read) => read?,
            None => self.storage.read_at(self.at, out)?,
        };
        self.at += read as u64;
        Ok(read)
    }
}
