//! The bytes of a bucket file, version 1: a run that is not sorted. All integers are little-endian.
//!
//! ```text
//!   0          header, 4096 bytes: magic, version, block size, CRC; the rest zero
//!   4096       extents, each from a multiple of 4096 on: blocks of records, end to end
//!   index      specification (JSON); then each bucket: totals, its extents, a CRC32C a block
//!   footer     64 bytes at the very end: where the index is, totals, CRCs
//! ```
//!
//! The place of each field is drawn in docs/formats.md and pinned by a golden dump.

use merganser_storage::{Operation, Storage, StorageExt};

use super::bucket::{BucketExtent, StoredBucket};
use crate::run::format::{FOOTER_BYTES, HEADER_BYTES, SIZE_BYTES_MAX, corrupt, u32_at, u64_at};
use crate::{Error, Result};

/// Magic of the header.
const HEADER_MAGIC: [u8; 8] = *b"MGNSRbkt";
/// Magic of the footer.
const FOOTER_MAGIC: [u8; 8] = *b"MGNSRbke";
/// Version of everything in this module.
const VERSION: u32 = 1;
/// The least and the greatest block size.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 4096..=(1 << 20);
const BUCKET_FIXED_BYTES: usize = 8 + 8 + 8 + 4;
const EXTENT_BYTES: usize = 8 + 8;
/// The most bytes that the keys of a bucket can take. Sums of them then fit into 64 bits.
const KEY_BYTES_MAX: u64 = 1 << 60;

/// The checked header and footer of a bucket file; its index is not in memory yet.
pub(crate) struct BucketFileEnds {
    index_offset: u64,
    index_bytes: u64,
    /// Pins which file it is.
    pub(crate) index_crc: u32,
    block_bytes: u32,
    buckets: u64,
    records: u64,
    data_bytes: u64,
}

/// Writes header, index and footer around the extents of `buckets`, which are all extents in
/// `storage`, and syncs it. Returns the checksum of the index.
pub(crate) fn seal(
    storage: &dyn Storage,
    spec: &str,
    block_bytes: u32,
    buckets: &[&StoredBucket],
) -> Result<u32> {
    let mut index = Vec::new();
    index.extend_from_slice(&(spec.len() as u32).to_le_bytes());
    index.extend_from_slice(spec.as_bytes());
    let mut data_end = HEADER_BYTES as u64;
    let (mut records, mut data_bytes) = (0, 0);
    for bucket in buckets {
        index.extend_from_slice(&bucket.bytes.to_le_bytes());
        index.extend_from_slice(&bucket.records.to_le_bytes());
        index.extend_from_slice(&bucket.key_bytes.to_le_bytes());
        index.extend_from_slice(&(bucket.extents.len() as u32).to_le_bytes());
        for extent in &bucket.extents {
            index.extend_from_slice(&extent.physical.to_le_bytes());
            index.extend_from_slice(&extent.bytes.to_le_bytes());
            data_end = data_end.max(extent.physical + extent.bytes.next_multiple_of(4096));
        }
        for crc in &bucket.crcs {
            index.extend_from_slice(&crc.to_le_bytes());
        }
        records += bucket.records;
        data_bytes += bucket.bytes;
    }
    let index_crc = crc32c::crc32c(&index);
    let mut footer = [0; FOOTER_BYTES];
    footer[0..8].copy_from_slice(&data_end.to_le_bytes());
    footer[8..16].copy_from_slice(&(index.len() as u64).to_le_bytes());
    footer[16..24].copy_from_slice(&(buckets.len() as u64).to_le_bytes());
    footer[24..32].copy_from_slice(&records.to_le_bytes());
    footer[32..40].copy_from_slice(&data_bytes.to_le_bytes());
    footer[40..44].copy_from_slice(&index_crc.to_le_bytes());
    footer[44..48].copy_from_slice(&block_bytes.to_le_bytes());
    let crc = crc32c::crc32c(&footer[..52]);
    footer[52..56].copy_from_slice(&crc.to_le_bytes());
    footer[56..64].copy_from_slice(&FOOTER_MAGIC);
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&HEADER_MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&block_bytes.to_le_bytes());
    let crc = crc32c::crc32c(&header[..HEADER_BYTES - 4]);
    header[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    let size = data_end + (index.len() + FOOTER_BYTES) as u64;
    index.extend_from_slice(&footer);
    storage.write_at(0, &header)?;
    storage.write_at(data_end, &index)?;
    storage.run(Operation::SetSize { size })?;
    storage.sync()?;
    Ok(index_crc)
}

/// Looks at both ends of a bucket file.
///
/// # Errors
/// [`Error::Corrupt`]; [`Error::UnknownVersion`].
pub(crate) fn find(storage: &dyn Storage) -> Result<BucketFileEnds> {
    let file = storage.name();
    let size = storage.size();
    if size < (HEADER_BYTES + FOOTER_BYTES) as u64 {
        return Err(corrupt(file, size, format!("{size} bytes are too few for a bucket file")));
    }
    if size > SIZE_BYTES_MAX {
        return Err(corrupt(file, size, format!("{size} bytes are too many for a bucket file")));
    }
    let header = storage.read_vec(0, HEADER_BYTES)?;
    let crc_at = HEADER_BYTES - 4;
    if header[..8] != HEADER_MAGIC {
        let detail = "the file does not begin as a bucket file does".to_owned();
        return Err(corrupt(file, 0, detail));
    }
    check_crc(file, 0, "header", &header[..crc_at], u32_at(&header, crc_at))?;
    let version = u32_at(&header, 8);
    if version != VERSION {
        return Err(Error::UnknownVersion {
            file: file.to_owned(),
            kind: "bucket file".to_owned(),
            version,
            known: format!("version {VERSION}"),
        });
    }
    let at = size - FOOTER_BYTES as u64;
    let footer = storage.read_vec(at, FOOTER_BYTES)?;
    if footer[56..64] != FOOTER_MAGIC {
        let detail = "the file does not end as a bucket file does".to_owned();
        return Err(corrupt(file, at + 56, detail));
    }
    check_crc(file, at, "footer", &footer[..52], u32_at(&footer, 52))?;
    let (index_offset, index_bytes) = (u64_at(&footer, 0), u64_at(&footer, 8));
    let (index_crc, block_bytes) = (u32_at(&footer, 40), u32_at(&footer, 44));
    let buckets = u64_at(&footer, 16);
    let fits = index_bytes / BUCKET_FIXED_BYTES as u64 >= buckets
        && index_offset.checked_add(index_bytes) == Some(at)
        && index_offset >= HEADER_BYTES as u64
        && BLOCK_BYTES.contains(&block_bytes)
        && block_bytes.is_power_of_two()
        && block_bytes == u32_at(&header, 12)
        && footer[48..52] == [0; 4];
    if !fits {
        let detail = "the footer contradicts the header or the file's size".to_owned();
        return Err(corrupt(file, at, detail));
    }
    let (records, data_bytes) = (u64_at(&footer, 24), u64_at(&footer, 32));
    Ok(BucketFileEnds {
        index_offset,
        index_bytes,
        index_crc,
        block_bytes,
        buckets,
        records,
        data_bytes,
    })
}

impl BucketFileEnds {
    /// Bytes of memory that [`BucketFileEnds::open`] takes at most: the index as it is stored, and its buckets.
    pub(crate) fn memory_bytes(&self) -> u64 {
        const { assert!(2 * size_of::<BucketExtent>() <= 3 * EXTENT_BYTES) };
        let lists = self.index_bytes.div_ceil(2) * 3;
        self.buckets * size_of::<StoredBucket>() as u64 + lists + self.index_bytes
    }

    /// Reads the index and checks all of it. Extents are in file 0; bounds are not in the file.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; the storage's own.
    pub(crate) fn open(&self, storage: &dyn Storage) -> Result<Vec<StoredBucket>> {
        let (file, at) = (storage.name(), self.index_offset);
        let index = storage.read_vec(at, self.index_bytes as usize)?;
        check_crc(file, at, "index", &index, self.index_crc)?;
        let buckets = decode_buckets(&index, self.buckets, self.block_bytes, at);
        let buckets = buckets.filter(|buckets| {
            let records = buckets.iter().try_fold(0u64, |sum, b| sum.checked_add(b.records));
            let bytes = buckets.iter().try_fold(0u64, |sum, b| sum.checked_add(b.bytes));
            records == Some(self.records) && bytes == Some(self.data_bytes)
        });
        buckets.ok_or_else(|| corrupt(file, at, "malformed index".to_owned()))
    }
}

/// The buckets of an index whose data ends at `data_end`; `None` when it makes no sense.
fn decode_buckets(
    index: &[u8],
    count: u64,
    block_bytes: u32,
    data_end: u64,
) -> Option<Vec<StoredBucket>> {
    let (len, rest) = index.split_first_chunk::<4>()?;
    let mut rest = rest.get(u32::from_le_bytes(*len) as usize..)?;
    let mut buckets = Vec::new();
    for _ in 0..count {
        let (fixed, after) = rest.split_at_checked(BUCKET_FIXED_BYTES)?;
        let (bytes, records) = (u64_at(fixed, 0), u64_at(fixed, 8));
        let key_bytes = u64_at(fixed, 16);
        let count = u32_at(fixed, 24) as usize;
        let (listed, after) = after.split_at_checked(count.checked_mul(EXTENT_BYTES)?)?;
        let mut extents = Vec::with_capacity(count);
        let mut sum = 0u64;
        for (number, extent) in listed.chunks(EXTENT_BYTES).enumerate() {
            let (physical, bytes) = (u64_at(extent, 0), u64_at(extent, 8));
            let whole = bytes.is_multiple_of(u64::from(block_bytes)) || number + 1 == count;
            let end = physical.checked_add(bytes)?;
            let lies = physical >= HEADER_BYTES as u64 && end <= data_end;
            if !whole || bytes == 0 || !lies || !physical.is_multiple_of(4096) {
                return None;
            }
            extents.push(BucketExtent { file: 0, physical, bytes });
            sum = sum.checked_add(bytes)?;
        }
        let blocks = usize::try_from(bytes.div_ceil(u64::from(block_bytes))).ok()?;
        let (listed, after) = after.split_at_checked(blocks.checked_mul(4)?)?;
        // A record has a byte, and a key is not a thousand times longer than its record.
        let counted = (records == 0) == (bytes == 0) && records <= bytes;
        if sum != bytes || !counted || key_bytes / 1024 > bytes || key_bytes > KEY_BYTES_MAX {
            return None;
        }
        buckets.push(StoredBucket {
            lower: Vec::new(),
            one_key: false,
            bytes,
            records,
            key_bytes,
            block_bytes,
            extents,
            crcs: listed.chunks(4).map(|crc| u32_at(crc, 0)).collect(),
        });
        rest = after;
    }
    rest.is_empty().then_some(buckets)
}

fn check_crc(file: &str, offset: u64, what: &str, bytes: &[u8], expected: u32) -> Result<()> {
    let found = crc32c::crc32c(bytes);
    if found == expected {
        return Ok(());
    }
    let detail = format!("{what} CRC {found:08x} found, {expected:08x} expected");
    Err(corrupt(file, offset, detail))
}
