//! Counts of a volume since it was made.

/// How many numbers [`VolumeCounters`] has.
pub(crate) const COUNTERS: usize = 19;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the volume was made. After a power cut, those since the last checkpoint are
        /// missing. Pages are of 4096 bytes.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct VolumeCounters { $($(#[$doc])* pub $name: u64,)* }

        impl VolumeCounters {
            /// The numbers, in the order of the superblock.
            pub(crate) fn values(&self) -> [u64; COUNTERS] {
                [$(self.$name),*]
            }

            pub(crate) fn from_values(value: impl Fn(usize) -> u64) -> VolumeCounters {
                let mut numbers = (0..COUNTERS).map(value);
                VolumeCounters { $($name: numbers.next().expect("as many as names"),)* }
            }

            /// Names and numbers, in order.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

counters! {
    /// Pages that were read by users of the volume.
    pages_read,
    /// Pages that were written by users of the volume, also in part.
    pages_written,
    /// Pages that were trimmed.
    pages_trimmed,
    /// Flushes.
    flushes,
    /// Pages that went through fingerprint and look-up.
    pages_fingerprinted,
    /// Of these, pages that were not stored, because an equal page is.
    pages_duplicate,
    /// Of these, pages of zeros, which are never stored.
    pages_zero,
    /// Pages whose fingerprint was found, but whose bytes differ.
    pages_collided,
    /// Pages that were stored on the data members.
    pages_stored,
    /// Pages that were overwritten or trimmed in the buffer before they moved.
    pages_absorbed,
    /// Bytes of journal transactions, with their padding.
    journal_bytes,
    /// Bytes of table blocks, states and superblocks.
    table_bytes,
    /// Bytes of the index.
    index_bytes,
    /// Bytes of the log on the buffer members, with headers.
    log_bytes,
    /// Pages that were read from data members for users.
    data_pages_read,
    /// Pages that were read from buffer members for users.
    buffer_pages_read,
    /// Checkpoints.
    checkpoints,
    /// Pages that went around a buffer that was above its high-water mark.
    pages_around,
    /// Stored pages that were read and compared before another page shared them.
    pages_compared,
}

impl VolumeCounters {
    /// Bytes that were written to the data members.
    #[must_use]
    pub fn data_bytes_written(&self) -> u64 {
        4096 * self.pages_stored + self.journal_bytes + self.table_bytes + self.index_bytes
    }

    /// Bytes written to the data members for each byte that users wrote; 0 before the first write.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        match self.pages_written {
            0 => 0.0,
            pages => self.data_bytes_written() as f64 / (4096 * pages) as f64,
        }
    }

    /// Share of the fingerprinted pages that were not stored: equation 5.1 of the dissertation.
    #[must_use]
    pub fn dedup_rate(&self) -> f64 {
        match self.pages_fingerprinted {
            0 => 0.0,
            pages => self.pages_duplicate as f64 / pages as f64,
        }
    }
}
