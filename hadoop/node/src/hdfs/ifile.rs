//! A sorted spill as Hadoop writes it: a segment per partition, end to end.
//!
//! ```text
//!   ├ records of partition 0 ─ FF FF ─ CRC32 ├ records of partition 1 ─ FF FF ─ CRC32 ├ ...
//!   ├──────────── raw ──────────────┤        │
//!   ├──────────── part ──────────────────────┤
//! ```
//! The bytes leave as they are made, so a spill takes no more memory than one of its records and a buffer. The
//! index of its segments is known at the end.

use merganser_sort::record::ifile::{END_MARKER, push_vlong};

use super::HdfsResult;

/// Bytes that are collected before they leave.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of a checksum.
const CRC_BYTES: u64 = 4;

/// Where a segment is in its spill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentIndex {
    /// Its first byte.
    pub offset: u64,
    /// Bytes of its records and the end marker.
    pub raw: u64,
    /// All its bytes.
    pub part: u64,
}

/// Takes the result of a map while it is made. An error ends the map.
pub trait Sink {
    /// More bytes of the current spill.
    ///
    /// # Errors
    /// [`super::HdfsError::Gone`].
    fn data(&mut self, bytes: &[u8]) -> HdfsResult<()>;

    /// The current spill is complete, with `records` records.
    ///
    /// # Errors
    /// [`super::HdfsError::Gone`].
    fn spill(&mut self, number: u32, records: u64, index: Vec<SegmentIndex>) -> HdfsResult<()>;

    /// `split_bytes` bytes of the split were mapped, `records` records.
    ///
    /// # Errors
    /// [`super::HdfsError::Gone`].
    fn progress(&mut self, split_bytes: u64, records: u64) -> HdfsResult<()>;
}

/// Writes one spill. Its rows come in the order of partitions.
pub(super) struct IFileSpillWriter<'a> {
    sink: &'a mut dyn Sink,
    partitions: u32,
    buffer: Vec<u8>,
    /// The first byte of the buffer that is not in the checksum yet.
    unchecked: usize,
    crc: crc32fast::Hasher,
    /// Bytes of the spill that left the buffer.
    gone: u64,
    /// Where the current segment begins in the spill.
    begin: u64,
    index: Vec<SegmentIndex>,
    records: u64,
}

/// The most bytes that leave at once: a full buffer, a piece of a record or the lengths of one, an end.
const PIECE_BYTES: usize = 2 * BUFFER_BYTES + 64;
/// The memory of an [`IFileSpillWriter`] without its index, in bytes.
pub(super) const WRITER_BYTES: u64 = PIECE_BYTES as u64;

impl<'a> IFileSpillWriter<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink, partitions: u32) -> Self {
        IFileSpillWriter {
            sink,
            partitions,
            buffer: Vec::with_capacity(PIECE_BYTES),
            unchecked: 0,
            crc: crc32fast::Hasher::new(),
            gone: 0,
            begin: 0,
            index: Vec::with_capacity(partitions as usize),
            records: 0,
        }
    }

    /// Appends a record to `partition`: a key as `Text`, a value as it is.
    pub(super) fn push(
        &mut self,
        partition: u32,
        key: &[u8],
        value: IFileValue<'_>,
    ) -> HdfsResult<()> {
        while (self.index.len() as u32) < partition {
            self.end_segment()?;
        }
        push_vlong(text_bytes(key.len()) as i64, &mut self.buffer);
        push_vlong(value.bytes() as i64, &mut self.buffer);
        self.text(key)?;
        match value {
            IFileValue::Int(number) => self.bytes(&number.to_be_bytes())?,
            IFileValue::Long(number) => self.bytes(&number.to_be_bytes())?,
            IFileValue::Text(text) => self.text(text)?,
        }
        self.records += 1;
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> HdfsResult<()> {
        push_vlong(text.len() as i64, &mut self.buffer);
        self.bytes(text)
    }

    /// Appends bytes of any length; the buffer does not grow.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> HdfsResult<()> {
        for piece in bytes.chunks(BUFFER_BYTES) {
            self.buffer.extend_from_slice(piece);
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Ends the spill; how many records and bytes it has.
    pub(super) fn finish(mut self, number: u32) -> HdfsResult<(u64, u64)> {
        while (self.index.len() as u32) < self.partitions {
            self.end_segment()?;
        }
        self.flush()?;
        self.sink.spill(number, self.records, self.index)?;
        Ok((self.records, self.gone))
    }

    fn end_segment(&mut self) -> HdfsResult<()> {
        self.buffer.extend_from_slice(&END_MARKER);
        self.check();
        let crc = std::mem::take(&mut self.crc).finalize();
        self.buffer.extend_from_slice(&crc.to_be_bytes());
        self.unchecked = self.buffer.len();
        let end = self.gone + self.buffer.len() as u64;
        let part = end - self.begin;
        self.index.push(SegmentIndex { offset: self.begin, raw: part - CRC_BYTES, part });
        self.begin = end;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Adds what came since the last time to the checksum.
    fn check(&mut self) {
        self.crc.update(&self.buffer[self.unchecked..]);
        self.unchecked = self.buffer.len();
    }

    fn flush(&mut self) -> HdfsResult<()> {
        self.check();
        if !self.buffer.is_empty() {
            self.sink.data(&self.buffer)?;
        }
        self.gone += self.buffer.len() as u64;
        self.buffer.clear();
        self.unchecked = 0;
        Ok(())
    }
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IFileValue<'a> {
    /// An `IntWritable`.
    Int(i32),
    /// A `LongWritable`.
    Long(i64),
    /// A `Text`.
    Text(&'a [u8]),
}

impl IFileValue<'_> {
    /// Bytes that it takes when it is written.
    pub(super) fn bytes(&self) -> usize {
        match self {
            IFileValue::Int(_) => size_of::<i32>(),
            IFileValue::Long(_) => size_of::<i64>(),
            IFileValue::Text(text) => text_bytes(text.len()),
        }
    }
}

/// Bytes of a `Text` of `len` bytes.
#[inline]
pub(super) fn text_bytes(len: usize) -> usize {
    let length_bytes = match len {
        0..=0x7f => 1,
        0x80..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 5,
    };
    length_bytes + len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Collected {
        bytes: Vec<u8>,
        index: Vec<SegmentIndex>,
    }

    impl Sink for Collected {
        fn data(&mut self, bytes: &[u8]) -> HdfsResult<()> {
            assert!(bytes.len() <= PIECE_BYTES);
            self.bytes.extend(bytes);
            Ok(())
        }

        fn spill(&mut self, _: u32, _: u64, index: Vec<SegmentIndex>) -> HdfsResult<()> {
            self.index = index;
            Ok(())
        }

        fn progress(&mut self, _: u64, _: u64) -> HdfsResult<()> {
            Ok(())
        }
    }

    #[test]
    fn a_spill_is_pinned() {
        let mut sink = Collected::default();
        let mut writer = IFileSpillWriter::new(&mut sink, 3);
        writer.push(1, b"a", IFileValue::Int(1)).expect("taken");
        writer.push(1, b"bc", IFileValue::Int(-1)).expect("taken");
        assert_eq!(writer.finish(0).expect("taken"), (2, 6 + 23 + 6));
        let empty = b"\xff\xff\xff\xff\x00\x00";
        // The checksum of FF FF is FFFF0000.
        assert_eq!(crc32fast::hash(b"\xff\xff"), 0xffff_0000);
        let records = b"\x02\x04\x01a\x00\x00\x00\x01\x03\x04\x02bc\xff\xff\xff\xff\xff\xff";
        let crc = crc32fast::hash(records).to_be_bytes();
        assert_eq!(sink.bytes, [&empty[..], records, &crc, empty].concat());
        let index = |offset, raw| SegmentIndex { offset, raw, part: raw + 4 };
        assert_eq!(sink.index, [index(0, 2), index(6, 19), index(29, 2)]);
    }

    #[test]
    fn lengths_of_texts_are_those_that_are_written() {
        for len in [0, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 24, (1 << 24) - 1] {
            let mut written = Vec::new();
            push_vlong(len as i64, &mut written);
            assert_eq!(written.len() + len, text_bytes(len), "{len}");
        }
    }

    #[test]
    fn records_longer_than_the_buffer_leave_in_pieces() {
        let mut sink = Collected::default();
        let mut writer = IFileSpillWriter::new(&mut sink, 1);
        let long = vec![b'x'; 3 * BUFFER_BYTES + 1];
        for _ in 0..3 {
            writer.push(0, &long, IFileValue::Text(&long)).expect("taken");
        }
        let (records, bytes) = writer.finish(0).expect("taken");
        assert_eq!((records, bytes), (3, sink.bytes.len() as u64));
        let (covered, crc) = sink.bytes.split_at(sink.bytes.len() - 4);
        assert_eq!(crc32fast::hash(covered).to_be_bytes(), crc);
        let record = 2 * (4 + long.len()) + 8;
        assert_eq!(covered.len(), 3 * record + 2);
    }
}
