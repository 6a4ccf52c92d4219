//! The file of a block's checksums, `blk_ID_GENERATION.meta`.
//!
//! ```text
//!   version u16 = 1 ─ kind u8 ─ bytes per checksum u32 ─ checksum u32 ─ checksum u32 ─ ...
//!                     0 none                              of the first    of the next
//!                     1 CRC-32                            bytes           bytes ...
//!                     2 CRC-32C
//! ```
//! All integers are big-endian. The last checksum is that of the bytes that are left.

/// Bytes before the first checksum.
pub const HEADER_BYTES: usize = 7;
/// Bytes of a checksum.
pub const CHECKSUM_BYTES: usize = 4;
/// The most bytes that one checksum may be of. HDFS's default is 512.
pub const BYTES_PER_CHECKSUM_MAX: u32 = 1 << 20;

const VERSION: u16 = 1;

/// How the bytes of a block are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Not at all (`dfs.checksum.type` is `NULL`).
    Null,
    /// By CRC-32.
    Crc32,
    /// By CRC-32C.
    Crc32c,
}

impl Checksum {
    /// The checksum of `bytes`.
    #[must_use]
    pub fn of_bytes(self, bytes: &[u8]) -> u32 {
        match self {
            Checksum::Null => 0,
            Checksum::Crc32 => crc32fast::hash(bytes),
            Checksum::Crc32c => crc32c::crc32c(bytes),
        }
    }
}

/// The beginning of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetaHeader {
    /// The kind of the checksums.
    pub checksum: Checksum,
    /// Bytes of the block that each is of, at least 1.
    pub bytes_per_checksum: u32,
}

/// Why it is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetaHeaderFault {
    /// Another version.
    #[error("its .meta is of version {0}; version {VERSION} is known")]
    Version(u16),
    /// Another kind of checksum.
    #[error("its .meta has checksums of kind {0}; 0 (none), 1 (CRC-32) and 2 (CRC-32C) are known")]
    Kind(u8),
    /// A length that makes no sense here.
    #[error("its .meta has a checksum per {0} bytes; 1 to {BYTES_PER_CHECKSUM_MAX} are possible")]
    BytesPerChecksum(u32),
}

impl MetaHeader {
    /// Reads it.
    ///
    /// # Errors
    /// When it is of another version or kind.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, MetaHeaderFault> {
        let [a, b, kind, len @ ..] = *bytes;
        let version = u16::from_be_bytes([a, b]);
        if version != VERSION {
            return Err(MetaHeaderFault::Version(version));
        }
        let checksum = match kind {
            0 => Checksum::Null,
            1 => Checksum::Crc32,
            2 => Checksum::Crc32c,
            _ => return Err(MetaHeaderFault::Kind(kind)),
        };
        let bytes_per_checksum = u32::from_be_bytes(len);
        if !(1..=BYTES_PER_CHECKSUM_MAX).contains(&bytes_per_checksum) {
            return Err(MetaHeaderFault::BytesPerChecksum(bytes_per_checksum));
        }
        Ok(MetaHeader { checksum, bytes_per_checksum })
    }

    /// The same as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let kind = match self.checksum {
            Checksum::Null => 0,
            Checksum::Crc32 => 1,
            Checksum::Crc32c => 2,
        };
        let ([a, b], [c, d, e, f]) = (VERSION.to_be_bytes(), self.bytes_per_checksum.to_be_bytes());
        [a, b, kind, c, d, e, f]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_is_pinned() {
        // The first bytes of a .meta file that a DataNode of Hadoop 3.4.2 writes by default.
        let bytes = b"\x00\x01\x02\x00\x00\x02\x00";
        let header = MetaHeader { checksum: Checksum::Crc32c, bytes_per_checksum: 512 };
        assert_eq!(MetaHeader::decode(bytes), Ok(header));
        assert_eq!(header.encode(), *bytes);
        assert_eq!(
            MetaHeader::decode(b"\x00\x02\x02\x00\x00\x02\x00"),
            Err(MetaHeaderFault::Version(2))
        );
        assert_eq!(
            MetaHeader::decode(b"\x00\x01\x03\x00\x00\x02\x00"),
            Err(MetaHeaderFault::Kind(3))
        );
        assert_eq!(
            MetaHeader::decode(b"\x00\x01\x01\x00\x00\x00\x00"),
            Err(MetaHeaderFault::BytesPerChecksum(0))
        );
        assert_eq!(
            MetaHeader::decode(b"\x00\x01\x01\x80\x00\x00\x00"),
            Err(MetaHeaderFault::BytesPerChecksum(1 << 31))
        );
    }

    #[test]
    fn checksums_are_the_published_ones() {
        // The check values of the two polynomials.
        assert_eq!(Checksum::Crc32.of_bytes(b"123456789"), 0xcbf4_3926);
        assert_eq!(Checksum::Crc32c.of_bytes(b"123456789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes: [u8; HEADER_BYTES], kind in 0_u8..4) {
            let mut likely = bytes;
            likely[..3].copy_from_slice(&[0, 1, kind]);
            for bytes in [bytes, likely] {
                if let Ok(header) = MetaHeader::decode(&bytes) {
                    prop_assert_eq!(header.encode(), bytes);
                }
            }
        }
    }
}
