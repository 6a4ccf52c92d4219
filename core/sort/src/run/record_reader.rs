//! The records of inputs one after the other, for programs that do not sort them.

use super::chunk::Chunk;
use super::chunk_reader::ChunkReader;
use super::header_lines::HeaderRule;
use super::input::SortInput;
use crate::budget::Reservation;
use crate::key::OrderSpec;
use crate::{Budget, Progress, Result};

/// Most bytes read at a time.
const READ_BYTES_MAX: usize = 8 << 20;
/// Fewest bytes read at a time.
const READ_BYTES_MIN: usize = 64 << 10;

/// Reads inputs as a sort does: compressed ones, headers, last records that lack their end.
pub struct RecordReader {
    reader: ChunkReader,
    chunk: Chunk,
    _memory: Reservation,
}

impl RecordReader {
    /// The least memory of a reader, in bytes.
    #[must_use]
    pub fn least_bytes() -> u64 {
        Chunk::memory_bytes(READ_BYTES_MIN) as u64
    }

    /// A reader of `inputs` in about `memory_bytes` of `budget`; `order` says the format and the header. No record may be
    /// longer than a third of that memory.
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(
        inputs: Vec<SortInput>,
        order: &OrderSpec,
        budget: &Budget,
        memory_bytes: u64,
    ) -> Result<Self> {
        order.check_format()?;
        let mut bytes = READ_BYTES_MAX;
        while bytes > READ_BYTES_MIN && Chunk::memory_bytes(bytes) as u64 > memory_bytes {
            bytes /= 2;
        }
        let memory = budget.reserve(Chunk::memory_bytes(bytes) as u64, "reading")?;
        let reader = ChunkReader::new(inputs, order.format, bytes);
        let reader = reader.with_header(HeaderRule::of_order(order));
        Ok(RecordReader { reader, chunk: Chunk::new(bytes)?, _memory: memory })
    }

    /// Reads the next records; false after the last ones.
    ///
    /// # Errors
    /// Bad input, [`crate::Error::Cancelled`].
    pub fn advance(&mut self, progress: &dyn Progress) -> Result<bool> {
        if self.reader.finished() {
            return Ok(false);
        }
        self.reader.fill(&mut self.chunk, progress)?;
        Ok(true)
    }

    /// The records that were read last, in stretches of whole ones.
    pub fn stretches(&self) -> impl Iterator<Item = &[u8]> {
        self.chunk.spans.iter().map(|span| &self.chunk.bytes()[span.clone()])
    }

    /// The bytes before the records of the first input, once records were read: the row of a csv header, header lines.
    #[must_use]
    pub fn preamble(&self) -> Option<&[u8]> {
        self.reader.preamble()
    }
}
