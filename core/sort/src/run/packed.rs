//! Inputs that are compressed, found by their first bytes ([`magic`]) and not by their names.
//!
//! | what | memory |
//! |---|---|
//! | gzip, bgzf: any number of members, zeros behind them | fixed, about 64 KiB |
//! | Zstandard: any number of frames, skippable ones among them | the window that the first frame names |
//! | bzip2: any number of streams | fixed, 4 MiB |
//! | xz: any number of streams | the dictionary that the first block names |
//! | LZ4: any number of frames, skippable ones among them | three blocks of the first frame |
//!
//! A decompressor is made when its input is first read, so however many inputs there are, only those that
//! are being read have memory. How much it is, the first bytes of a file tell before; those of a pipe are
//! not read before its turn, because its writer may have to write another one first.
//!
//! A damaged or cut input is an error that says where: a decompressor checks what it gives. What a text input
//! holds is looked at, too: an archive or a file of binary columns is an error before its first byte is given.

mod gzip;
mod lz4;
mod xz;

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bzip2::bufread::MultiBzDecoder;
use merganser_storage::{Storage, StorageExt};

use super::magic::{self, Codec, ContentKind, Deed, Foreign, HEAD_BYTES};
use crate::budget::Reservation;
use crate::{Budget, Error, Result};

/// The magic of a skippable frame and the length of its content.
const SKIP_HEADER_BYTES: u64 = 8;
/// The least window.
const WINDOW_BYTES_MIN: u64 = 1 << 10;
/// Compressed bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// The distance to the bytes that the storage is asked to read ahead, if it goes through the page cache.
const AHEAD_BYTES: u64 = 8 << 20;
/// A window that every decoder of Zstandard should take (RFC 8878, section 3.1.1.1.2), as a power of two.
const WINDOW_LOG_USUAL: u32 = 23;
/// The memory of bzip2's decoder for blocks of 900 KB.
const BZIP2_BYTES: u64 = 4 << 20;
/// That of `zstd` itself, unless it was asked for more.
const WINDOW_LOG_OF_PIPES: u32 = 21;
/// Later frames may have windows of the usual length if that is no more than this part of the memory, 1 / 4.
const USUAL_SHARE: u64 = 4;

/// Compressed bytes, counted.
type PackedBytes = Box<dyn BufRead + Send>;

/// The bytes that a file or a pipe holds, decompressed if they are compressed.
pub struct Unpacked {
    name: String,
    state: UnpackState,
    content: ContentKind,
    budget: Budget,
    memory_bytes: u64,
    packed_bytes: Option<u64>,
    counts: Arc<UnpackCounts>,
}

enum UnpackState {
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
pub(crate) struct UnpackCounts {
    packed: AtomicU64,
    unpacked: AtomicU64,
    /// Reading the compressed bytes failed.
    source_failed: AtomicBool,
}

impl UnpackCounts {
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
    /// The storage's own; a file that is no `content`.
    pub fn of_storage(
        storage: &Arc<dyn Storage>,
        content: ContentKind,
        budget: &Budget,
    ) -> Result<Option<Self>> {
        let (name, size) = (storage.name().to_owned(), storage.size());
        let (packing, skipped) = match Front::of_storage(&**storage, content, budget)? {
            Front::Plain => return Ok(None),
            Front::Packed { packing, skipped } => (packing, skipped),
        };
        let counts = Arc::new(UnpackCounts::default());
        counts.packed.store(skipped, Ordering::Relaxed);
        let bytes = Box::new(StorageStream { storage: Arc::clone(storage), at: skipped, size });
        Ok(Some(Unpacked {
            name,
            state: UnpackState::Known(packing, bytes),
            content,
            budget: budget.clone(),
            memory_bytes: packing.memory_bytes(),
            packed_bytes: Some(size),
            counts,
        }))
    }

    /// The bytes of a pipe, decompressed if they are compressed. Nothing is read of it yet. There is memory
    /// for a window of 8 MiB, or 2 MiB if that is more than a quarter of `budget`; a longer one takes
    /// what is free.
    #[must_use]
    pub fn of_stream(
        name: String,
        reader: Box<dyn Read + Send>,
        content: ContentKind,
        budget: &Budget,
    ) -> Self {
        let log = window_log_max(budget).unwrap_or(WINDOW_LOG_OF_PIPES);
        Unpacked {
            name,
            state: UnpackState::Unknown(reader),
            content,
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

    pub(crate) fn counts(&self) -> &Arc<UnpackCounts> {
        &self.counts
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut reader = match std::mem::replace(&mut self.state, UnpackState::Failed) {
            UnpackState::Open(reader) => reader,
            UnpackState::Known(packing, bytes) => self.opened(packing, bytes)?,
            UnpackState::Unknown(mut reader) => {
                let (front, whole) = Front::of_stream(&mut reader, self.content, &self.budget)?;
                let whole = Box::new(whole.chain(reader));
                match front {
                    Front::Plain => whole,
                    Front::Packed { packing, skipped } => {
                        self.counts.packed.store(skipped, Ordering::Relaxed);
                        self.opened(packing, whole)?
                    }
                }
            }
            UnpackState::Failed => return Err(io::Error::other("it failed before")),
        };
        let read = reader.read(out);
        // An interrupted read is repeated.
        if !read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            self.state = UnpackState::Open(reader);
        }
        read
    }
}

impl Unpacked {
    /// A decompressor for `bytes`, whose own first bytes were looked at.
    fn opened(
        &self,
        packing: Packing,
        bytes: Box<dyn Read + Send>,
    ) -> io::Result<Box<dyn Read + Send>> {
        let mut reader = packing.reader(bytes, &self.budget, &self.counts)?;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        if self.content == ContentKind::Text
            && let Some(magic) = magic::of_head(&head, ContentKind::Text)
        {
            let advice = match magic.deed {
                Deed::Refuse(advice) => advice,
                Deed::Unpack(_) | Deed::Skip => "decompress it once before",
            };
            return Err(Foreign { what: magic.what, advice, inside: true }.into());
        }
        Ok(Box::new(io::Cursor::new(head).chain(reader)))
    }
}

/// What the first bytes of an input say.
enum Front {
    /// They are taken as they are.
    Plain,
    /// They are compressed, behind skippable frames of `skipped` bytes.
    Packed { packing: Packing, skipped: u64 },
}

impl Front {
    fn of_storage(storage: &dyn Storage, content: ContentKind, budget: &Budget) -> Result<Self> {
        // A storage names itself.
        let named = |error| Error::reading(storage.name(), error);
        let mut head = [0; HEAD_BYTES];
        let mut at = 0;
        loop {
            let read = storage.read_at(at, &mut head)?;
            match Self::of_head(&head[..read], at, content, budget).map_err(named)? {
                FrontSearch::Front(front) => return Ok(front),
                FrontSearch::Behind(skipped) if skipped <= storage.size() => at = skipped,
                FrontSearch::Behind(_) => return Self::cut(at, content).map_err(named),
            }
        }
    }

    /// Also gives bytes that were read and count.
    fn of_stream(
        mut reader: impl Read,
        content: ContentKind,
        budget: &Budget,
    ) -> io::Result<(Self, io::Cursor<Vec<u8>>)> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let mut at = 0;
        // The bytes before `at` are needed if it turns out to be no frame.
        let mut before = Vec::new();
        loop {
            let missing = (HEAD_BYTES - head.len()) as u64;
            reader.by_ref().take(missing).read_to_end(&mut head)?;
            match Self::of_head(&head, at, content, budget)? {
                FrontSearch::Front(Front::Plain) => {
                    before.append(&mut head);
                    return Ok((Front::Plain, io::Cursor::new(before)));
                }
                FrontSearch::Front(front) => return Ok((front, io::Cursor::new(head))),
                FrontSearch::Behind(skipped) => {
                    let frame = usize::try_from(skipped - at).unwrap_or(usize::MAX);
                    if content == ContentKind::Binary {
                        // As long as it may be a record, it is kept; frames of this size are only at the front of texts.
                        if frame > head.len() {
                            before.append(&mut head);
                            return Ok((Front::Plain, io::Cursor::new(before)));
                        }
                        before.extend(head.drain(..frame));
                    } else if frame <= head.len() {
                        head.drain(..frame);
                    } else {
                        let rest = (frame - head.len()) as u64;
                        head.clear();
                        let passed = io::copy(&mut reader.by_ref().take(rest), &mut io::sink())?;
                        if passed < rest {
                            let front = Self::cut(at, content)?;
                            return Ok((front, io::Cursor::default()));
                        }
                    }
                    at = skipped;
                }
            }
        }
    }

    /// The meaning of `head`, which is `at` bytes behind the beginning of the input.
    fn of_head(
        head: &[u8],
        at: u64,
        content: ContentKind,
        budget: &Budget,
    ) -> io::Result<FrontSearch> {
        let damage = |why: &str| {
            let cause = io::Error::new(io::ErrorKind::InvalidData, why);
            Err(Damage { packed: at, unpacked: 0, cause }.into())
        };
        let deed = magic::of_head(head, content).map(|magic| (magic.what, magic.deed));
        Ok(FrontSearch::Front(match deed {
            Some((_, Deed::Skip)) => match head.get(4..SKIP_HEADER_BYTES as usize) {
                Some(len) => {
                    let len = u32::from_le_bytes(len.try_into().expect("four bytes"));
                    return Ok(FrontSearch::Behind(at + SKIP_HEADER_BYTES + u64::from(len)));
                }
                None => Self::cut(at, content)?,
            },
            Some((_, Deed::Unpack(codec)))
                if at == 0 || matches!(codec, Codec::Zstd | Codec::Lz4) =>
            {
                Front::Packed { packing: Packing::of_codec(codec, head, budget)?, skipped: at }
            }
            Some((what, Deed::Refuse(advice))) if at == 0 => {
                return Err(Foreign { what, advice, inside: false }.into());
            }
            _ if at == 0 || content == ContentKind::Binary => Front::Plain,
            _ if head.is_empty() => Front::Packed { packing: Packing::Nothing, skipped: at },
            _ => return damage("no frame of Zstandard or LZ4 follows a skippable one"),
        }))
    }

    /// A skippable frame, `at` bytes behind the beginning, that has no end.
    fn cut(at: u64, content: ContentKind) -> io::Result<Self> {
        if content == ContentKind::Binary {
            return Ok(Front::Plain);
        }
        let cause = io::Error::new(io::ErrorKind::UnexpectedEof, "a skippable frame is cut");
        Err(Damage { packed: at, unpacked: 0, cause }.into())
    }
}

/// What a look at the bytes behind skippable frames gives.
enum FrontSearch {
    Front(Front),
    /// A skippable frame, which ends at this byte of the input.
    Behind(u64),
}

/// The window that later frames may have, whatever the first one has: the usual one, or that of `zstd` itself. The first
/// frame may be empty, and its window small.
fn window_log_max(budget: &Budget) -> Option<u32> {
    let most = budget.limit_bytes() / USUAL_SHARE;
    let fits = |log: &u32| READ_BYTES as u64 + (1 << log) <= most;
    [WINDOW_LOG_USUAL, WINDOW_LOG_OF_PIPES].into_iter().find(fits)
}

/// How bytes are compressed, and what is needed to decompress them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// Skippable frames alone, and nothing behind them.
    Nothing,
    Gzip,
    /// The longest window of a frame, as a power of two.
    Zstd(u32),
    Bzip2,
    /// Memory for the dictionary and the state.
    Xz(u64),
    /// Memory for the blocks of a frame.
    Lz4(u64),
}

impl Packing {
    /// That of bytes of this kind, which begin with `head`.
    fn of_codec(codec: Codec, head: &[u8], budget: &Budget) -> io::Result<Packing> {
        Ok(match codec {
            Codec::Gzip => Packing::Gzip,
            Codec::Bzip2 => Packing::Bzip2,
            Codec::Lz4 => Packing::Lz4(lz4::memory_bytes(head)),
            Codec::Xz => {
                // `xz` without options has 8 MiB; later streams may have that if memory is not short.
                let usual = xz::memory_bytes(xz::DICTIONARY_BYTES_USUAL);
                let first = xz::memory_bytes(xz::dictionary_bytes(head).unwrap_or(0));
                let usual = if usual <= budget.limit_bytes() / USUAL_SHARE { usual } else { 0 };
                Packing::Xz(first.max(usual))
            }
            Codec::Zstd => {
                let header = zstd_header(head);
                if header.is_some_and(|header| header.has_dictionary) {
                    return Err(NEEDS_DICTIONARY.into());
                }
                let window = header.map_or(0, |header| header.window_bytes);
                // A frame can name more than memory has; that is an error of the plan.
                let first = window.clamp(WINDOW_BYTES_MIN, 1 << 40).next_power_of_two().ilog2();
                let usual = window_log_max(budget);
                Packing::Zstd(usual.map_or(first, |usual| usual.max(first)))
            }
        })
    }

    fn memory_bytes(self) -> u64 {
        let window = match self {
            Packing::Nothing | Packing::Gzip => 0,
            Packing::Zstd(log) => 1 << log,
            Packing::Bzip2 => BZIP2_BYTES,
            Packing::Xz(bytes) | Packing::Lz4(bytes) => bytes,
        };
        READ_BYTES as u64 + window
    }

    /// A decompressor for `bytes`.
    fn reader(
        self,
        bytes: Box<dyn Read + Send>,
        budget: &Budget,
        counts: &Arc<UnpackCounts>,
    ) -> Result<Box<dyn Read + Send>> {
        let memory = budget.reserve(self.memory_bytes(), "decompressing")?;
        let bytes = BufReader::with_capacity(READ_BYTES, bytes);
        let bytes: PackedBytes = Box::new(CountedReader { bytes, counts: Arc::clone(counts) });
        let decoder: Box<dyn Read + Send> = match self {
            Packing::Nothing => bytes,
            Packing::Gzip => Box::new(gzip::GzipMembers::new(bytes)),
            Packing::Zstd(log) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                decoder.window_log_max(log)?;
                Box::new(decoder)
            }
            Packing::Bzip2 => Box::new(MultiBzDecoder::new(bytes)),
            Packing::Xz(limit) => Box::new(xz::decoder(bytes, limit)?),
            Packing::Lz4(limit) => Box::new(lz4::Lz4Frames::new(bytes, limit)),
        };
        Ok(Box::new(Decoding { decoder, counts: Arc::clone(counts), _memory: memory }))
    }
}

/// The sentence about a frame that can't be read alone.
const NEEDS_DICTIONARY: Foreign = Foreign {
    what: "a Zstandard file that needs a dictionary",
    advice: "'zstd -d -D DICTIONARY' gives what it holds",
    inside: false,
};

/// A later frame, stream or block that needs more memory than the first one said.
fn more_memory_than_first() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, MoreMemory)
}

#[derive(Debug)]
struct MoreMemory;

impl fmt::Display for MoreMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this part needs more memory than the first part")
    }
}

impl std::error::Error for MoreMemory {}

/// The facts in the header of a frame of Zstandard that count here.
#[derive(Debug, Clone, Copy)]
struct ZstdHeader {
    window_bytes: u64,
    has_dictionary: bool,
}

/// The header of a frame (RFC 8878, section 3.1.1.1), if `head` has all of it.
fn zstd_header(head: &[u8]) -> Option<ZstdHeader> {
    let descriptor = *head.get(4)?;
    let single_segment = descriptor & 0x20 != 0;
    let window_at = 5;
    let dictionary_at = window_at + usize::from(!single_segment);
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_at = dictionary_at + dictionary_bytes;
    let has_dictionary = head.get(dictionary_at..size_at)?.iter().any(|byte| *byte != 0);
    if !single_segment {
        let window = *head.get(window_at)?;
        let base = 1u64 << (10 + (window >> 3));
        let window_bytes = base + base / 8 * u64::from(window & 7);
        return Some(ZstdHeader { window_bytes, has_dictionary });
    }
    let (len, add) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let field = head.get(size_at..size_at + len)?;
    let mut number = [0; 8];
    number[..len].copy_from_slice(field);
    let window_bytes = u64::from_le_bytes(number).checked_add(add)?;
    Some(ZstdHeader { window_bytes, has_dictionary })
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
            "at byte {packed} of the compressed file, after {unpacked} bytes of what it holds: "
        )?;
        // The words of zstd's library.
        match cause.to_string().as_str() {
            "Dictionary mismatch" => f.write_str(
                "this part needs a dictionary; 'zstd -d -D DICTIONARY' gives what it holds",
            ),
            "Frame requires too much memory for decoding" => {
                write!(f, "{MoreMemory}; decompress the file before")
            }
            _ if cause.kind() == io::ErrorKind::OutOfMemory => {
                write!(f, "{cause}; decompress the file before")
            }
            why => write!(f, "{why}; the file is damaged or cut, restore it from a copy"),
        }
    }
}

impl std::error::Error for Damage {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> Self {
        io::Error::new(damage.cause.kind(), damage)
    }
}

/// A decompressor with its memory.
struct Decoding {
    decoder: Box<dyn Read + Send>,
    counts: Arc<UnpackCounts>,
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
                Err(Damage { packed, unpacked, cause }.into())
            }
        }
    }
}

/// Compressed bytes, counted as they are taken.
struct CountedReader<R> {
    bytes: BufReader<R>,
    counts: Arc<UnpackCounts>,
}

impl<R: Read> CountedReader<R> {
    fn noted<T>(counts: &UnpackCounts, result: io::Result<T>) -> io::Result<T> {
        counts.source_failed.store(result.is_err(), Ordering::Relaxed);
        result
    }
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = Self::noted(&self.counts, self.bytes.read(out))?;
        self.counts.packed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl<R: Read> BufRead for CountedReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Self::noted(&self.counts, self.bytes.fill_buf())
    }

    fn consume(&mut self, bytes: usize) {
        self.counts.packed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.bytes.consume(bytes);
    }
}

/// The bytes of a storage, in order.
struct StorageStream {
    storage: Arc<dyn Storage>,
    at: u64,
    size: u64,
}

impl Read for StorageStream {
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
