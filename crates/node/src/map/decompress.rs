//! Inputs that are compressed, found by their first bytes and not by their names.
//!
//! | first bytes | what | memory |
//! |---|---|---|
//! | `1f 8b 08` | gzip, any number of members | fixed, about 64 KiB |
//! | `28 b5 2f fd` | Zstandard, any number of frames | the window that the first frame names |
//!
//! A damaged or cut input is an error that names the file: a decompressor checks what it gives.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use merganser_storage::{Storage, StorageExt};

use super::MapInput;

const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes that tell what an input is: a Zstandard frame header has 18 at most.
const HEAD_BYTES: usize = 18;
/// Compressed bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// A window that every decoder of Zstandard should take (RFC 8878, section 3.1.1.1.2), as a power of two.
const WINDOW_LOG_MIN: u32 = 23;

impl MapInput {
    /// All of `storage`, decompressed if it is compressed. The decompressor's memory is of `budget`.
    ///
    /// # Errors
    /// The storage's own; too little memory for the window of the compressed data.
    pub fn detect(storage: Arc<dyn Storage>, budget: &Budget) -> merganser_sort::Result<MapInput> {
        let mut head = [0; HEAD_BYTES];
        let read = storage.read_at(0, &mut head)?;
        let head = &head[..read];
        if !head.starts_with(&GZIP) && !head.starts_with(&ZSTD) {
            return Ok(MapInput::Storage { storage, range: None });
        }
        let name = storage.name().to_owned();
        let size = storage.size();
        let bytes = Compressed { storage, at: 0, size };
        let reader = decompressed(head, Box::new(bytes), budget)?;
        Ok(MapInput::Stream { name, reader })
    }

    /// The bytes of a pipe, decompressed if they are compressed. It reads the first few of them.
    ///
    /// # Errors
    /// As [`MapInput::detect`].
    pub fn detect_stream(
        name: String,
        mut reader: Box<dyn Read + Send>,
        budget: &Budget,
    ) -> merganser_sort::Result<MapInput> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        let compressed = head.starts_with(&GZIP) || head.starts_with(&ZSTD);
        let whole = Box::new(io::Cursor::new(head.clone()).chain(reader));
        let reader = if compressed { decompressed(&head, whole, budget)? } else { whole };
        Ok(MapInput::Stream { name, reader })
    }
}

/// A decompressor for bytes that begin with `head`.
fn decompressed(
    head: &[u8],
    bytes: Box<dyn Read + Send>,
    budget: &Budget,
) -> merganser_sort::Result<Box<dyn Read + Send>> {
    let owner = "decompressing";
    if head.starts_with(&GZIP) {
        let memory = budget.reserve(READ_BYTES as u64, owner)?;
        let decoder = MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, bytes));
        return Ok(Box::new(Held { reader: decoder, _memory: memory }));
    }
    let window = zstd_window_bytes(head).unwrap_or(0);
    let log = window.next_power_of_two().ilog2();
    // Later frames may have other windows; up to the usual ones if there is memory.
    let usual = READ_BYTES as u64 + (1 << WINDOW_LOG_MIN);
    let (memory, log) = match budget.reserve(usual.max(READ_BYTES as u64 + window), owner) {
        Ok(memory) => (memory, log.max(WINDOW_LOG_MIN)),
        Err(_) => (budget.reserve(READ_BYTES as u64 + window, owner)?, log.max(10)),
    };
    let input = BufReader::with_capacity(READ_BYTES, bytes);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
    decoder.window_log_max(log)?;
    Ok(Box::new(Held { reader: decoder, _memory: memory }))
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
        let read = self.storage.read_at(self.at, &mut out[..want])?;
        self.at += read as u64;
        Ok(read)
    }
}
