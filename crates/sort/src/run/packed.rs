//! Inputs that are compressed, found by their first bytes and not by their names.
//!
//! | first bytes | what | memory |
//! |---|---|---|
//! | `1f 8b 08` | gzip, any number of members | fixed, about 64 KiB |
//! | `28 b5 2f fd` | Zstandard, any number of frames | the window that the first frame names |
//!
//! A decompressor is made when its input is first read, so however many inputs there are, only those that
//! are being read have memory. How much it is, the first bytes of a file tell before; those of a pipe are
//! not read before its turn, because its writer may have to write another one first.
//!
//! A damaged or cut input is an error that says where: a decompressor checks what it gives.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use merganser_storage::{Storage, StorageExt};

use crate::budget::Reservation;
use crate::{Budget, Result};

const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes that tell what an input is: a Zstandard frame header has 18 at most.
pub const HEAD_BYTES: usize = 18;
/// The least window.
const WINDOW_BYTES_MIN: u64 = 1 << 10;
/// Compressed bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// The distance to the bytes that the storage is asked to read ahead, if it goes through the page cache.
const AHEAD_BYTES: u64 = 8 << 20;
/// A window that every decoder of Zstandard should take (RFC 8878, section 3.1.1.1.2), as a power of two.
const WINDOW_LOG_USUAL: u32 = 23;
/// That of `zstd` itself, unless it was asked for more.
const WINDOW_LOG_OF_PIPES: u32 = 21;
/// Later frames may have windows of the usual length if that is no more than this part of the memory, 1 / 4.
const USUAL_SHARE: u64 = 4;

/// The bytes that a file or a pipe holds, decompressed if they are compressed.
pub struct Unpacked {
    name: String,
    state: State,
    budget: Budget,
    memory_bytes: u64,
    packed_bytes: Option<u64>,
    counts: Arc<Counts>,
}

enum State {
    /// Its first bytes were not looked at.
    Unknown(Box<dyn Read + Send>),
    /// Compressed bytes.
    Known(Packing, Box<dyn Read + Send>),
    /// The bytes that it holds.
    Open(Box<dyn Read + Send>),
    Failed,
}

/// How much was decompressed.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    packed: AtomicU64,
    unpacked: AtomicU64,
    /// Reading the compressed bytes failed.
    source_failed: AtomicBool,
}

impl Counts {
    /// Bytes before and after.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.packed.load(Ordering::Relaxed), self.unpacked.load(Ordering::Relaxed))
    }
}

impl Unpacked {
    /// The bytes that `storage` holds, if it is compressed. The decompressor's memory is of `budget`, from
    /// the first read on.
    ///
    /// # Errors
    /// The storage's own.
    pub fn of_storage(storage: &Arc<dyn Storage>, budget: &Budget) -> Result<Option<Self>> {
        let mut head = [0; HEAD_BYTES];
        let read = storage.read_at(0, &mut head)?;
        let Some(packing) = Packing::of(&head[..read], budget) else { return Ok(None) };
        let (name, size) = (storage.name().to_owned(), storage.size());
        let bytes = Box::new(Whole { storage: Arc::clone(storage), at: 0, size });
        Ok(Some(Unpacked {
            name,
            state: State::Known(packing, bytes),
            budget: budget.clone(),
            memory_bytes: packing.memory_bytes(),
            packed_bytes: Some(size),
            counts: Arc::default(),
        }))
    }

    /// The bytes of a pipe, decompressed if they are compressed. Nothing is read of it yet. There is memory
    /// for a window of 8 MiB, or 2 MiB if that is more than a quarter of `budget`; a longer one takes
    /// what is free.
    #[must_use]
    pub fn of_stream(name: String, reader: Box<dyn Read + Send>, budget: &Budget) -> Self {
        let log = window_log_max(budget).unwrap_or(WINDOW_LOG_OF_PIPES);
        Unpacked {
            name,
            state: State::Unknown(reader),
            budget: budget.clone(),
            memory_bytes: READ_BYTES as u64 + (1 << log),
            packed_bytes: None,
            counts: Arc::default(),
        }
    }

    /// Its name in error messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Memory that it takes while it is read, in bytes; less where a pipe is not compressed.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Its size as it is stored, in bytes; `None` for a pipe.
    #[must_use]
    pub fn packed_bytes(&self) -> Option<u64> {
        self.packed_bytes
    }

    /// Its memory is of `budget` from now on.
    pub(crate) fn set_budget(&mut self, budget: &Budget) {
        self.budget = budget.clone();
    }

    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

/// Whether a file that begins with `head` is compressed: its first [`HEAD_BYTES`], or all of it if it has
/// fewer.
#[must_use]
pub fn is_packed(head: &[u8]) -> bool {
    Packing::of(head, &Budget::new(0)).is_some()
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut reader = match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(reader) => reader,
            State::Known(packing, bytes) => packing.reader(bytes, &self.budget, &self.counts)?,
            State::Unknown(mut reader) => {
                let mut head = Vec::with_capacity(HEAD_BYTES);
                reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
                let packing = Packing::of(&head, &self.budget);
                let whole = Box::new(io::Cursor::new(head).chain(reader));
                match packing {
                    Some(packing) => packing.reader(whole, &self.budget, &self.counts)?,
                    None => whole,
                }
            }
            State::Failed => return Err(io::Error::other("it failed before")),
        };
        let read = reader.read(out);
        // An interrupted read is repeated.
        if !read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            self.state = State::Open(reader);
        }
        read
    }
}

/// The usual window, if later frames may have it.
fn window_log_max(budget: &Budget) -> Option<u32> {
    let usual = READ_BYTES as u64 + (1 << WINDOW_LOG_USUAL);
    (usual <= budget.limit_bytes() / USUAL_SHARE).then_some(WINDOW_LOG_USUAL)
}

/// How bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    /// The longest window of a frame, as a power of two.
    Zstd(u32),
}

impl Packing {
    /// That of bytes that begin with `head`; `None` if they are not compressed.
    fn of(head: &[u8], budget: &Budget) -> Option<Packing> {
        if head.starts_with(&GZIP) {
            return Some(Packing::Gzip);
        }
        let window = head.starts_with(&ZSTD).then(|| zstd_window_bytes(head).unwrap_or(0))?;
        // A frame can name more than memory has; that is an error of the plan.
        let first = window.clamp(WINDOW_BYTES_MIN, 1 << 40).next_power_of_two().ilog2();
        Some(Packing::Zstd(window_log_max(budget).map_or(first, |usual| usual.max(first))))
    }

    fn memory_bytes(self) -> u64 {
        let window = match self {
            Packing::Gzip => 0,
            Packing::Zstd(log) => 1 << log,
        };
        READ_BYTES as u64 + window
    }

    /// A decompressor for `bytes`.
    fn reader(
        self,
        bytes: Box<dyn Read + Send>,
        budget: &Budget,
        counts: &Arc<Counts>,
    ) -> Result<Box<dyn Read + Send>> {
        let memory = budget.reserve(self.memory_bytes(), "decompressing")?;
        let bytes = BufReader::with_capacity(READ_BYTES, bytes);
        let bytes = Counted { bytes, counts: Arc::clone(counts) };
        let decoder: Box<dyn Read + Send> = match self {
            Packing::Gzip => Box::new(MultiGzDecoder::new(bytes)),
            Packing::Zstd(log) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                decoder.window_log_max(log)?;
                Box::new(decoder)
            }
        };
        Ok(Box::new(Decoding { decoder, counts: Arc::clone(counts), _memory: memory }))
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

/// Compressed bytes that can't be decompressed.
#[derive(Debug)]
struct Damage {
    /// How many of them were taken before, and how many bytes they gave.
    packed: u64,
    unpacked: u64,
    cause: io::Error,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { packed, unpacked, cause } = self;
        write!(
            f,
            "at byte {packed} of the compressed file, after {unpacked} bytes of what it holds: {cause}; the file is damaged or cut, restore it from a copy"
        )
    }
}

impl std::error::Error for Damage {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// A decompressor with its memory.
struct Decoding {
    decoder: Box<dyn Read + Send>,
    counts: Arc<Counts>,
    _memory: Reservation,
}

impl Read for Decoding {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let counts = &self.counts;
        match self.decoder.read(out) {
            Ok(read) => {
                counts.unpacked.fetch_add(read as u64, Ordering::Relaxed);
                Ok(read)
            }
            Err(cause) if counts.source_failed.swap(false, Ordering::Relaxed) => Err(cause),
            Err(cause) => {
                let (packed, unpacked) = counts.bytes();
                Err(io::Error::new(cause.kind(), Damage { packed, unpacked, cause }))
            }
        }
    }
}

/// Compressed bytes, counted as they are taken.
struct Counted<R> {
    bytes: BufReader<R>,
    counts: Arc<Counts>,
}

impl<R: Read> Counted<R> {
    fn noted<T>(counts: &Counts, result: io::Result<T>) -> io::Result<T> {
        counts.source_failed.store(result.is_err(), Ordering::Relaxed);
        result
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = Self::noted(&self.counts, self.bytes.read(out))?;
        self.counts.packed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl<R: Read> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Self::noted(&self.counts, self.bytes.fill_buf())
    }

    fn consume(&mut self, bytes: usize) {
        self.counts.packed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.bytes.consume(bytes);
    }
}

/// The bytes of a storage, in order.
struct Whole {
    storage: Arc<dyn Storage>,
    at: u64,
    size: u64,
}

impl Read for Whole {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let want = out.len().min(usize::try_from(self.size - self.at).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        let out = &mut out[..want];
        // Nothing else asks for the bytes while a block is decompressed.
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
