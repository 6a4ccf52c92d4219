//! The bytes of a run file, version 1. All integers are little-endian.
//!
//! ```text
//!   0          header, 4096 bytes: magic, version, block size, CRC; the rest zero
//!   4096       data: blocks of `block_bytes` logical bytes, the last one shorter.
//!              Records are packed end to end and may cross blocks; nothing else is between them.
//!              Uncompressed blocks are end to end; compressed ones where the index says.
//!   index      specification (JSON), then one entry a block: place, CRC32C, first record
//!              that starts in it (its number, where, its key: the *fence*)
//!   footer     64 bytes at the very end: where the index is, totals, CRCs
//! ```
//!
//! The place of each field is drawn in docs/formats.md and pinned by a golden dump.
//!
//! Runs hold records and nothing else between them, since checksums and fences are at the end. So neighbouring
//! blocks are one stretch of records, a record may be longer than a block, and merged bytes need no copy.

use crate::{Error, Result};

/// Magic of the header.
pub const HEADER_MAGIC: [u8; 8] = *b"MGNSRrun";
/// Magic of the footer.
pub const FOOTER_MAGIC: [u8; 8] = *b"MGNSRend";
/// Version of everything in this module.
pub const VERSION: u32 = 1;
/// Bytes of the header; where data begins.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 64;
/// Keys longer than this are cut in fences; readers then look at the record itself.
pub const FENCE_KEY_BYTES_MAX: usize = 256;
/// `first_start` of a block in which no record starts.
pub const NO_START: u32 = u32::MAX;

/// Logical bytes of a piece, the unit in which runs are written; a multiple of every block size.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// The least and the greatest block size.
pub(crate) const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 4096..=(PIECE_BYTES as u32);

/// The largest run, bucket file or view, in bytes. Numbers that readers compute from sizes and
/// counts, such as the memory for tags of all records, then fit into 64 bits, even for a sparse
/// file with right checksums that claims to be huge.
pub(crate) const SIZE_BYTES_MAX: u64 = 1 << 56;

/// Bytes of an index entry without its key.
pub(crate) const ENTRY_FIXED_BYTES: usize = 8 + 4 + 4 + 8 + 4 + 4;
/// Bytes of the longest index entry.
pub(crate) const ENTRY_BYTES_MAX: usize = ENTRY_FIXED_BYTES + FENCE_KEY_BYTES_MAX;
const KEY_CUT: u32 = 1 << 31;

/// How the blocks of a run are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As they are.
    #[default]
    Off,
    /// LZ4 block format, one frame per block.
    Lz4,
    /// Zstandard level 1, one frame per block.
    Zstd,
}

impl Compression {
    fn code(self) -> u32 {
        match self {
            Compression::Off => 0,
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        [Compression::Off, Compression::Lz4, Compression::Zstd]
            .into_iter()
            .find(|c| c.code() == code)
    }

    /// Appends `block` compressed, or as it is where that is no longer.
    pub fn pack(self, block: &[u8], out: &mut Vec<u8>) {
        let packed = match self {
            Compression::Off => Vec::new(),
            Compression::Lz4 => lz4_flex::block::compress(block),
            Compression::Zstd => zstd::bulk::compress(block, 1).unwrap_or_default(),
        };
        if packed.is_empty() || packed.len() >= block.len() {
            out.extend_from_slice(block);
        } else {
            out.extend_from_slice(&packed);
        }
    }

    /// Decompresses `stored`, which is shorter than the block was, into the front of `block`; the length, or `None`
    /// when it is malformed.
    #[must_use]
    pub fn unpack(self, stored: &[u8], block: &mut [u8]) -> Option<usize> {
        match self {
            Compression::Off => {
                block.get_mut(..stored.len())?.copy_from_slice(stored);
                Some(stored.len())
            }
            Compression::Lz4 => lz4_flex::block::decompress_into(stored, block).ok(),
            Compression::Zstd => zstd::bulk::decompress_to_buffer(stored, block).ok(),
        }
    }
}

/// The entry of one block in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEntry {
    /// Where its stored bytes begin in the file.
    pub physical: u64,
    /// How many stored bytes it has; equal to its logical length when stored as it is.
    pub stored_bytes: u32,
    /// CRC32C of the stored bytes.
    pub crc: u32,
    /// How many records start before this block.
    pub first_record: u64,
    /// Where in the block the first record that starts in it starts, or [`NO_START`].
    pub first_start: u32,
    /// That record's full normalised key, cut to [`FENCE_KEY_BYTES_MAX`].
    pub key: Vec<u8>,
    /// Whether `key` was cut.
    pub key_cut: bool,
}

/// The footer's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// Where the index begins.
    pub index_offset: u64,
    /// Its length.
    pub index_bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of records.
    pub records: u64,
    /// Logical bytes of all records.
    pub data_bytes: u64,
    /// CRC32C of the index.
    pub index_crc: u32,
    /// Logical bytes per block.
    pub block_bytes: u32,
    /// How blocks are stored.
    pub compression: Compression,
}

/// The header page for blocks of `block_bytes`.
#[must_use]
pub fn encode_header(block_bytes: u32) -> [u8; HEADER_BYTES] {
    let mut page = [0; HEADER_BYTES];
    page[..8].copy_from_slice(&HEADER_MAGIC);
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    page[12..16].copy_from_slice(&block_bytes.to_le_bytes());
    let crc = crc32c::crc32c(&page[..HEADER_BYTES - 4]);
    page[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    page
}

/// Reads a header page; returns the logical bytes per block.
///
/// # Errors
/// [`Error::Corrupt`] naming `file`; [`Error::UnknownVersion`] for a whole header.
pub fn decode_header(file: &str, page: &[u8; HEADER_BYTES]) -> Result<u32> {
    const CRC_AT: usize = HEADER_BYTES - 4;
    if page[..8] != HEADER_MAGIC {
        return Err(corrupt(file, 0, "the file does not begin as a run does".to_owned()));
    }
    let (found, expected) = (u32_at(page, CRC_AT), crc32c::crc32c(&page[..CRC_AT]));
    if found != expected {
        let detail = format!("header CRC {found:08x} found, {expected:08x} expected");
        return Err(corrupt(file, CRC_AT as u64, detail));
    }
    let version = u32_at(page, 8);
    if version != VERSION {
        return Err(Error::UnknownVersion {
            file: file.to_owned(),
            kind: "run".to_owned(),
            version,
            known: format!("version {VERSION}"),
        });
    }
    Ok(u32_at(page, 12))
}

/// Appends one index entry.
pub fn encode_entry(entry: &BlockEntry, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.physical.to_le_bytes());
    out.extend_from_slice(&entry.stored_bytes.to_le_bytes());
    out.extend_from_slice(&entry.crc.to_le_bytes());
    out.extend_from_slice(&entry.first_record.to_le_bytes());
    out.extend_from_slice(&entry.first_start.to_le_bytes());
    let cut = if entry.key_cut { KEY_CUT } else { 0 };
    let len = u32::try_from(entry.key.len()).expect("fence keys are short") | cut;
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&entry.key);
}

/// Sets [`BlockEntry::first_record`] in the encoded `entry`.
pub(crate) fn set_first_record(entry: &mut [u8], record: u64) {
    entry[16..24].copy_from_slice(&record.to_le_bytes());
}

/// Takes one index entry off the front of `bytes`; `None` when it is malformed.
#[must_use]
pub fn decode_entry(bytes: &mut &[u8]) -> Option<BlockEntry> {
    let fixed = bytes.get(..ENTRY_FIXED_BYTES)?;
    let len = u32_at(fixed, 28);
    let key_len = (len & !KEY_CUT) as usize;
    if key_len > FENCE_KEY_BYTES_MAX {
        return None;
    }
    let key = bytes.get(ENTRY_FIXED_BYTES..ENTRY_FIXED_BYTES + key_len)?.to_vec();
    let entry = BlockEntry {
        physical: u64_at(fixed, 0),
        stored_bytes: u32_at(fixed, 8),
        crc: u32_at(fixed, 12),
        first_record: u64_at(fixed, 16),
        first_start: u32_at(fixed, 24),
        key,
        key_cut: len & KEY_CUT != 0,
    };
    *bytes = &bytes[ENTRY_FIXED_BYTES + key_len..];
    Some(entry)
}

/// The footer's bytes.
#[must_use]
pub fn encode_footer(footer: &Footer) -> [u8; FOOTER_BYTES] {
    let mut out = [0; FOOTER_BYTES];
    out[0..8].copy_from_slice(&footer.index_offset.to_le_bytes());
    out[8..16].copy_from_slice(&footer.index_bytes.to_le_bytes());
    out[16..24].copy_from_slice(&footer.blocks.to_le_bytes());
    out[24..32].copy_from_slice(&footer.records.to_le_bytes());
    out[32..40].copy_from_slice(&footer.data_bytes.to_le_bytes());
    out[40..44].copy_from_slice(&footer.index_crc.to_le_bytes());
    out[44..48].copy_from_slice(&footer.block_bytes.to_le_bytes());
    out[48..52].copy_from_slice(&footer.compression.code().to_le_bytes());
    out[56..64].copy_from_slice(&FOOTER_MAGIC);
    let crc = crc32c::crc32c(&out[..52]);
    out[52..56].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Reads a footer that is at `offset` of `file`.
///
/// # Errors
/// [`Error::Corrupt`].
pub fn decode_footer(file: &str, offset: u64, bytes: &[u8; FOOTER_BYTES]) -> Result<Footer> {
    if bytes[56..64] != FOOTER_MAGIC {
        return Err(corrupt(file, offset + 56, "the file does not end as a run does".to_owned()));
    }
    let (found, expected) = (u32_at(bytes, 52), crc32c::crc32c(&bytes[..52]));
    if found != expected {
        return Err(corrupt(
            file,
            offset,
            format!("footer CRC {found:08x} found, {expected:08x} expected"),
        ));
    }
    let compression = Compression::from_code(u32_at(bytes, 48))
        .ok_or_else(|| corrupt(file, offset + 48, "unknown compression".to_owned()))?;
    Ok(Footer {
        index_offset: u64_at(bytes, 0),
        index_bytes: u64_at(bytes, 8),
        blocks: u64_at(bytes, 16),
        records: u64_at(bytes, 24),
        data_bytes: u64_at(bytes, 32),
        index_crc: u32_at(bytes, 40),
        block_bytes: u32_at(bytes, 44),
        compression,
    })
}

pub(crate) fn corrupt(file: &str, offset: u64, detail: String) -> Error {
    Error::Corrupt { file: file.to_owned(), offset, detail }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
