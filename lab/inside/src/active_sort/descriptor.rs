//! The bytes that a host writes to the control address: the chunks to merge, their order, and the
//! range in which it will read the result.
//!
//! ```text
//!    0 ┌ magic "MGNSRmrg" ─────────────┬ version u32 ─┬ length u32 ─┐
//!   16 ├ merge u64 ┬ command u32 ┬ spec u32 ┬ chunks u32 ┬ zero u32 ┤
//!   40 ├ interface: first sector u64, sectors u64 ──────────────────┤
//!   56 ├ specification: the order as JSON ──────────────────────────┤
//!      ├ a chunk: bytes u64, extents u32, zero u32 ─────────────────┤  for each chunk
//!      │   its extents: first sector u64, sectors u64 … ────────────┤
//!      └ CRC32C of all before ┴─ the rest is ignored ─────┘
//! ```
//!
//! Integers are little-endian, and sectors have 512 bytes. docs/formats.md has the tables.
//! Addresses are addresses of the device, so the device needs no file system to read them.

use std::ops::Range;

use merganser_sort::key::{Order, OrderSpec};
use merganser_sort::record::Format;

/// Bytes of a sector, the unit of all addresses in a descriptor.
pub const SECTOR_BYTES: u64 = 512;
/// The only version.
pub const VERSION: u32 = 1;
/// The longest descriptor, in bytes: 4,096 chunks of 15 extents.
pub const BYTES_MAX: usize = 1 << 20;
/// The most chunks of one merge.
pub const CHUNKS_MAX: usize = 4096;

const MAGIC: &[u8; 8] = b"MGNSRmrg";
const HEADER_BYTES: usize = 56;
const CRC_BYTES: usize = 4;
const OPEN: u32 = 1;
const CLOSE: u32 = 2;

/// The number of a merge, which the host chooses and uses to close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MergeId(pub u64);

/// Consecutive sectors of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorExtent {
    /// Its first sector.
    pub first: u64,
    /// Their number; at least 1.
    pub sectors: u64,
}

impl SectorExtent {
    /// Its bytes on the device.
    #[must_use]
    pub fn bytes(self) -> Range<u64> {
        self.first * SECTOR_BYTES..(self.first + self.sectors) * SECTOR_BYTES
    }
}

/// One sorted input: `bytes` of records in consecutive `extents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedChunk {
    /// Bytes of its records; the rest of the last extent is ignored.
    pub bytes: u64,
    /// The extents that hold the records.
    pub extents: Vec<SectorExtent>,
}

/// The merge that the host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The host's number for it.
    pub merge: MergeId,
    /// The format and order of the records; every chunk is already sorted by it.
    pub order: OrderSpec,
    /// The chunks; of equal records, those of an earlier chunk come first.
    pub chunks: Vec<SortedChunk>,
    /// The range in which the result can be read: at least as many bytes as all chunks have. The
    /// rest of it reads as zeros.
    pub interface: SectorExtent,
}

/// A command to the control address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeCommand {
    /// Start to answer reads of an interface range.
    Open(Descriptor),
    /// End a merge and release its memory.
    Close(MergeId),
}

/// Why a command is refused. Shown as one sentence that names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// The bytes do not begin as a command, or end too early.
    #[error("this is no merge descriptor: {0}")]
    Shape(&'static str),
    /// The command is from another version of the program.
    #[error("the descriptor has version {found}; this device reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// The checksum of the bytes is wrong.
    #[error("the descriptor is damaged: its CRC is {found:08x}, that of its bytes {expected:08x}")]
    Checksum {
        /// The checksum in the command.
        found: u32,
        /// The checksum of its bytes.
        expected: u32,
    },
    /// A field that is wrong by itself or contradicts another.
    #[error("{field} of the descriptor: {reason}")]
    Field {
        /// The name of the field.
        field: String,
        /// The reason, or a correct value.
        reason: String,
    },
}

fn field(field: impl Into<String>, reason: impl Into<String>) -> DescriptorError {
    DescriptorError::Field { field: field.into(), reason: reason.into() }
}

impl MergeCommand {
    /// Decodes a command from the bytes written to the control address.
    ///
    /// # Errors
    /// Bytes that are no command, or a merge that cannot be made.
    pub fn decode(bytes: &[u8]) -> Result<MergeCommand, DescriptorError> {
        let body = checked(bytes)?;
        let mut fields = DescriptorFields { rest: &body[16..] };
        let merge = MergeId(fields.u64()?);
        let command = fields.u32()?;
        let (spec_bytes, chunk_count) = (fields.u32()? as usize, fields.u32()? as usize);
        if fields.u32()? != 0 {
            return Err(field("reserved field", "it is not zero"));
        }
        let interface = SectorExtent { first: fields.u64()?, sectors: fields.u64()? };
        match command {
            OPEN => {}
            CLOSE if fields.rest.is_empty() && spec_bytes == 0 && chunk_count == 0 => {
                return Ok(MergeCommand::Close(merge));
            }
            CLOSE => return Err(field("length", "a close has no specification and no chunks")),
            other => return Err(field("command", format!("{other} is neither 1 nor 2"))),
        }
        let spec = fields.take(spec_bytes)?;
        let order: OrderSpec = serde_json::from_slice(spec)
            .map_err(|e| field("specification", format!("it is no order: {e}")))?;
        if chunk_count > CHUNKS_MAX {
            let reason = format!("{chunk_count} chunks; at most {CHUNKS_MAX} can be merged");
            return Err(field("chunks", reason));
        }
        let mut chunks = Vec::new();
        for _ in 0..chunk_count {
            let bytes = fields.u64()?;
            let extent_count = fields.u32()? as usize;
            if fields.u32()? != 0 {
                return Err(field(format!("chunk {}", chunks.len()), "reserved field not zero"));
            }
            let mut extents = Vec::new();
            for _ in 0..extent_count {
                extents.push(SectorExtent { first: fields.u64()?, sectors: fields.u64()? });
            }
            chunks.push(SortedChunk { bytes, extents });
        }
        if !fields.rest.is_empty() {
            return Err(field("length", "there are bytes between the last chunk and the CRC"));
        }
        let descriptor = Descriptor { merge, order, chunks, interface };
        descriptor.compile()?;
        Ok(MergeCommand::Open(descriptor))
    }

    /// The bytes to write, a multiple of sectors long.
    ///
    /// # Errors
    /// When they would be more than [`BYTES_MAX`], or the merge is one that cannot be made.
    pub fn encode(&self) -> Result<Vec<u8>, DescriptorError> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        match self {
            MergeCommand::Close(merge) => {
                out.extend(merge.0.to_le_bytes());
                out.extend(CLOSE.to_le_bytes());
                out.extend([0; 28]);
            }
            MergeCommand::Open(descriptor) => {
                descriptor.compile()?;
                descriptor.encode_into(&mut out);
            }
        }
        let len = out.len() + CRC_BYTES;
        if len > BYTES_MAX {
            let reason = format!("{len} bytes; at most {BYTES_MAX} are read");
            return Err(field("length", reason));
        }
        out[12..16].copy_from_slice(&(len as u32).to_le_bytes());
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out.resize(out.len().next_multiple_of(SECTOR_BYTES as usize), 0);
        Ok(out)
    }
}

impl Descriptor {
    /// Bytes of the result.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes).sum()
    }

    /// Checks that all fields are consistent, and compiles the order.
    ///
    /// # Errors
    /// The first field that does not.
    pub fn compile(&self) -> Result<Order, DescriptorError> {
        let order = self.order.compile(None).map_err(|e| field("specification", e.to_string()))?;
        if self.order.format.has_header() {
            let reason = "chunks have no header row; name columns by their numbers";
            return Err(field("specification", reason));
        }
        if self.order.format.sequences().is_some() {
            let reason = "a sequence ends where the next one begins, which may be in another page; \
                          merge sequences in the host";
            return Err(field("specification", reason));
        }
        if self.order.unique {
            let reason = "without repeated keys the size of the result is not known beforehand; \
                          drop them in the host";
            return Err(field("specification", reason));
        }
        if matches!(self.order.format, Format::Fixed { bytes: 0 }) {
            return Err(field("specification", "a record has at least 1 byte"));
        }
        check_extent("interface", self.interface)?;
        if self.chunks.is_empty() {
            return Err(field("chunks", "there is nothing to merge"));
        }
        let mut total = 0_u64;
        for (number, chunk) in self.chunks.iter().enumerate() {
            chunk.check(&format!("chunk {number}"), self.order.format)?;
            let overlaps = |extent: &SectorExtent| overlap(extent.bytes(), self.interface.bytes());
            if chunk.extents.iter().any(overlaps) {
                let reason = "it is in the range from which the result is read";
                return Err(field(format!("chunk {number}"), reason));
            }
            total = total.saturating_add(chunk.bytes);
        }
        let room = self.interface.bytes().end - self.interface.bytes().start;
        if total > room {
            let reason = format!("{room} bytes cannot hold the result, which has {total}");
            return Err(field("interface", reason));
        }
        Ok(order)
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        let spec = serde_json::to_vec(&self.order).expect("an order has no maps");
        out.extend(self.merge.0.to_le_bytes());
        out.extend(OPEN.to_le_bytes());
        out.extend((spec.len() as u32).to_le_bytes());
        out.extend((self.chunks.len() as u32).to_le_bytes());
        out.extend([0; 4]);
        self.interface.encode_into(out);
        out.extend(&spec);
        for chunk in &self.chunks {
            out.extend(chunk.bytes.to_le_bytes());
            out.extend((chunk.extents.len() as u32).to_le_bytes());
            out.extend([0; 4]);
            chunk.extents.iter().for_each(|extent| extent.encode_into(out));
        }
    }
}

impl SortedChunk {
    fn check(&self, name: &str, format: Format) -> Result<(), DescriptorError> {
        let mut room = 0_u64;
        for extent in &self.extents {
            check_extent(name, *extent)?;
            room = room.saturating_add(extent.sectors * SECTOR_BYTES);
        }
        if self.bytes > room {
            let reason = format!("{} bytes, but its extents have {room}", self.bytes);
            return Err(field(name, reason));
        }
        if let Format::Fixed { bytes } = format
            && !self.bytes.is_multiple_of(bytes as u64)
        {
            let reason = format!("{} bytes are no whole records of {bytes}", self.bytes);
            return Err(field(name, reason));
        }
        Ok(())
    }
}

impl SectorExtent {
    fn encode_into(self, out: &mut Vec<u8>) {
        out.extend(self.first.to_le_bytes());
        out.extend(self.sectors.to_le_bytes());
    }
}

/// Whether two ranges have a byte in common.
pub(super) fn overlap(a: Range<u64>, b: Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn check_extent(name: &str, extent: SectorExtent) -> Result<(), DescriptorError> {
    let end = extent.first.checked_add(extent.sectors);
    if extent.sectors == 0 {
        return Err(field(name, "it has a range of no sectors"));
    }
    if end.is_none_or(|end| end > i64::MAX as u64 / SECTOR_BYTES) {
        return Err(field(name, "it ends beyond any device"));
    }
    Ok(())
}

/// The descriptor without its CRC, which is right.
fn checked(bytes: &[u8]) -> Result<&[u8], DescriptorError> {
    if !bytes.starts_with(MAGIC) {
        return Err(DescriptorError::Shape("its first bytes are not MGNSRmrg"));
    }
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().expect("four bytes")))
    };
    let (Some(version), Some(len)) = (word(8), word(12)) else {
        return Err(DescriptorError::Shape("it ends in its header"));
    };
    if version != VERSION {
        return Err(DescriptorError::Version { found: version });
    }
    let len = len as usize;
    if !(HEADER_BYTES + CRC_BYTES..=BYTES_MAX).contains(&len) {
        let reason = format!("{len} is not between {} and {BYTES_MAX}", HEADER_BYTES + CRC_BYTES);
        return Err(field("length", reason));
    }
    let Some(found) = word(len - CRC_BYTES) else {
        return Err(DescriptorError::Shape("fewer bytes were written than its length says"));
    };
    let body = &bytes[..len - CRC_BYTES];
    let expected = crc32c::crc32c(body);
    if found != expected {
        return Err(DescriptorError::Checksum { found, expected });
    }
    Ok(body)
}

struct DescriptorFields<'a> {
    rest: &'a [u8],
}

impl<'a> DescriptorFields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], DescriptorError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(field("length", "it ends before its last chunk does"));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, DescriptorError> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn u64(&mut self) -> Result<u64, DescriptorError> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Descriptor {
        Descriptor {
            merge: MergeId(7),
            order: OrderSpec {
                keys: vec!["0:10".to_owned()],
                ..OrderSpec::new(Format::Fixed { bytes: 100 })
            },
            chunks: vec![
                SortedChunk {
                    bytes: 2000,
                    extents: vec![
                        SectorExtent { first: 64, sectors: 2 },
                        SectorExtent { first: 96, sectors: 2 },
                    ],
                },
                SortedChunk { bytes: 100, extents: vec![SectorExtent { first: 128, sectors: 1 }] },
            ],
            interface: SectorExtent { first: 4096, sectors: 5 },
        }
    }

    fn dump(bytes: &[u8]) -> String {
        let line = |(at, row): (usize, &[u8])| {
            let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:04x}  {}\n", at * 16, hex.join(" "))
        };
        bytes.chunks(16).enumerate().map(line).collect()
    }

    #[test]
    fn the_bytes_are_the_golden_ones() {
        let bytes = MergeCommand::Open(example()).encode().expect("a good descriptor");
        let len = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
        assert!(bytes[len..].iter().all(|byte| *byte == 0));
        assert_eq!(dump(&bytes[..len]), include_str!("../../tests/golden/descriptor.hex"));
        assert_eq!(MergeCommand::decode(&bytes), Ok(MergeCommand::Open(example())));
        let close = MergeCommand::Close(MergeId(9));
        let bytes = close.encode().expect("short");
        assert_eq!((bytes.len(), MergeCommand::decode(&bytes)), (512, Ok(close)));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = MergeCommand::Open(example()).encode().expect("a good descriptor");
        let len = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
        for at in 0..len {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            assert!(MergeCommand::decode(&bytes).is_err(), "byte {at}");
            assert!(MergeCommand::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    /// The error for `change`d bytes with a correct CRC.
    fn complaint_of_bytes(change: impl Fn(&mut Vec<u8>)) -> String {
        let mut bytes = MergeCommand::Open(example()).encode().expect("a good descriptor");
        change(&mut bytes);
        let len = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
        if (4..=bytes.len()).contains(&len) {
            let crc = crc32c::crc32c(&bytes[..len - 4]);
            bytes[len - 4..len].copy_from_slice(&crc.to_le_bytes());
        }
        MergeCommand::decode(&bytes).expect_err("refused").to_string()
    }

    fn complaint(change: impl Fn(&mut Descriptor)) -> String {
        let mut descriptor = example();
        change(&mut descriptor);
        descriptor.compile().expect_err("refused").to_string()
    }

    #[test]
    fn every_bad_field_is_named() {
        type Change<'a, T> = (&'a dyn Fn(&mut T), &'a str);
        let of_bytes: [Change<'_, Vec<u8>>; 9] = [
            (&|b| b[0] = b'x', "this is no merge descriptor: its first bytes are not MGNSRmrg"),
            (&|b| b[8] = 2, "the descriptor has version 2; this device reads version 1"),
            (&|b| b[12..16].fill(0), "length of the descriptor: 0 is not between 60 and 1048576"),
            (&|b| b[12..14].fill(0xff), "fewer bytes were written than its length says"),
            (&|b| b[24] = 3, "command of the descriptor: 3 is neither 1 nor 2"),
            (&|b| b[24] = 2, "a close has no specification and no chunks"),
            (&|b| b[36] = 1, "reserved field of the descriptor: it is not zero"),
            (&|b| b[56] = b'[', "specification of the descriptor: it is no order:"),
            (&|b| b[32] = 3, "length of the descriptor: it ends before its last chunk does"),
        ];
        for (change, wanted) in of_bytes {
            let found = complaint_of_bytes(change);
            assert!(found.contains(wanted), "{found}");
        }
        assert!(complaint_of_bytes(|b| b[32] = 1).contains("between the last chunk and the CRC"));
        assert!(complaint_of_bytes(|b| b[33] = 0xff).contains("at most 4096 can be merged"));
        let of_fields: [Change<'_, Descriptor>; 9] = [
            (&|d| d.order.keys = vec!["95:10".into()], "the key ends outside the record"),
            (&|d| d.order.unique = true, "the size of the result is not known beforehand"),
            (&|d| d.order.options = "n".into(), "option n has no meaning for fixed-length records"),
            (&|d| d.chunks.clear(), "chunks of the descriptor: there is nothing to merge"),
            (&|d| d.chunks[0].bytes = 2100, "chunk 0 of the descriptor: 2100 bytes, but its"),
            (&|d| d.chunks[1].bytes = 99, "chunk 1 of the descriptor: 99 bytes are no whole"),
            (&|d| d.chunks[1].extents[0].sectors = 0, "it has a range of no sectors"),
            (&|d| d.chunks[1].extents[0].first = u64::MAX, "it ends beyond any device"),
            (&|d| d.interface.sectors = 4, "2048 bytes cannot hold the result, which has 2100"),
        ];
        for (change, wanted) in of_fields {
            let found = complaint(change);
            assert!(found.contains(wanted), "{found}");
        }
        assert!(complaint(|d| d.interface.first = 97).contains("from which the result is read"));
        let csv = Format::csv_rows(b',', true);
        assert!(complaint(|d| d.order = OrderSpec::new(csv)).contains("by their numbers"));
        for format in [Format::Fasta, Format::Fastq] {
            let found = complaint(|d| d.order = OrderSpec::new(format));
            assert!(found.contains("merge sequences in the host"), "{found}");
        }
    }
}
