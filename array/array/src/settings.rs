//! The settings of a volume: fixed when it is made, and chosen at each opening.

use crate::error::{Error, Result};

/// Pages that are moved, staged or trimmed together.
pub(crate) const BATCH_PAGES: usize = 512;

/// How pages are recognised as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// BLAKE3, cut to 160 bits.
    Blake3,
    /// SHA-1, as in the dissertation. Two different pages with one SHA-1 can be made on purpose.
    Sha1,
}

/// The settings that are fixed when a volume is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSettings {
    /// Bytes of the volume, a multiple of 4096.
    pub size: u64,
    /// Consecutive bytes on one data member; a multiple of 4096.
    pub chunk_bytes: u32,
    /// Consecutive bytes on one buffer member; a multiple of 4096.
    pub buffer_chunk_bytes: u32,
    /// How equal pages are found; `None` stores every page.
    pub dedup: Option<Hash>,
    /// Whether a stored page with an equal fingerprint is read, and compared byte by byte, before another page
    /// shares it. Without that, pages of another content with the same fingerprint become one, and a page that is
    /// written again after its stored page was damaged is lost again.
    pub compare: bool,
    /// Whether the volume may be larger than its data members: they can then become full.
    pub thin: bool,
    /// Bytes of the journal of the maps; `None` chooses by the size of the data members.
    pub journal_bytes: Option<u64>,
}

impl VolumeSettings {
    /// A volume of `size` bytes with BLAKE3, comparison of bytes, chunks of 512 KiB (data) and
    /// 1 MiB (buffer), and not larger than its data members.
    #[must_use]
    pub fn new(size: u64) -> VolumeSettings {
        VolumeSettings {
            size,
            chunk_bytes: 512 << 10,
            buffer_chunk_bytes: 1 << 20,
            dedup: Some(Hash::Blake3),
            compare: true,
            thin: false,
            journal_bytes: None,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::Settings(why));
        let (page, most) = (4096, 1 << 50);
        if self.size == 0 || !self.size.is_multiple_of(page) || self.size > most {
            return refuse(format!(
                "a volume has from 4096 bytes to 2^50, in pages of 4096, not {} bytes",
                self.size
            ));
        }
        for chunk in [self.chunk_bytes, self.buffer_chunk_bytes] {
            if chunk == 0 || !u64::from(chunk).is_multiple_of(page) || chunk > 64 << 20 {
                return refuse(format!(
                    "a chunk has from 4096 bytes to 64 MiB, in pages of 4096, not {chunk} bytes"
                ));
            }
        }
        Ok(())
    }
}

/// When buffered pages move to the data members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migration {
    /// When no request has come for a while. When the buffer passes the high-water mark, writes go around it,
    /// unless [`OpenOptions::durable_writes`] is set.
    Idle,
    /// As soon as possible, as in the dissertation.
    Immediate,
    /// Only when the buffer passes the high-water mark.
    HighWater,
}

/// How an open volume works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Memory for maps, fingerprints and the directory of the buffer, in bytes.
    pub memory_bytes: u64,
    /// Share of the buffer, in percent, beyond which writes go around it, or wait for a migration.
    pub high_water_percent: u32,
    /// When pages move.
    pub migration: Migration,
    /// Whether every write is durable before it is acknowledged. Otherwise it is after the next flush, as on a disk
    /// with a write cache.
    pub durable_writes: bool,
}

impl Default for OpenOptions {
    /// 64 MiB, three quarters of the buffer, migration when idle, durable writes.
    fn default() -> Self {
        OpenOptions {
            memory_bytes: 64 << 20,
            high_water_percent: 75,
            migration: Migration::Idle,
            durable_writes: true,
        }
    }
}

/// The least memory that a volume works with, in bytes.
pub const MEMORY_BYTES_MIN: u64 = 1 << 20;

impl OpenOptions {
    /// Memory of the directory of the buffer, in bytes.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Memory of tables and index together, in bytes.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.memory_bytes / 4 * 3
    }

    /// Memory of the index, if there is one, in bytes.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.store_bytes() / 2
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.memory_bytes < MEMORY_BYTES_MIN {
            let least = MEMORY_BYTES_MIN;
            let text = format!("a volume needs {least} bytes of memory, not {}", self.memory_bytes);
            return Err(Error::Settings(text));
        }
        if !(1..=100).contains(&self.high_water_percent) {
            let text = format!(
                "the high-water mark is from 1 to 100 percent, not {}",
                self.high_water_percent
            );
            return Err(Error::Settings(text));
        }
        Ok(())
    }
}
