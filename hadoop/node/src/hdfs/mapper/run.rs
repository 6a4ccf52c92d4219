//! Runs an SSDlet over the records of a split.
//!
//! It gets chunks of whole records, each with one byte behind it: LF, or the job's own delimiter. Records that end
//! with CR or CRLF are copied with an LF, so that an SSDlet sees what Hadoop's reader would give and not how the file
//! was written. A built-in one sees the text that Java makes of a record, so that its result is that of a mapper in Java;
//! guests get the bytes.
//!
//! ```text
//!   file       a b CR LF c LF │ d            split, chunk, and the last record of the file
//!   chunks     a b LF c LF    │ d LF
//! ```

use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::hdfs::batch::SplitBatch;
use crate::hdfs::java_text::decoded;
use crate::hdfs::output::MappedRows;
use crate::hdfs::request::Writable;
use crate::hdfs::{HdfsError, HdfsResult};
use merganser_map::ssdlet::{Chunk, Emitter, RowTaker, Ssdlet, SsdletError, Worker};

/// The most bytes of a chunk, unless it is one record.
pub(super) const CHUNK_BYTES: usize = 512 << 10;

/// The longest text that is made of a record that is not UTF-8, in bytes.
const DECODED_BYTES_MAX: usize = 256 << 10;

/// Memory for such a text, in bytes: a vector has room for twice as many.
pub(super) const DECODING_BYTES: u64 = 2 * DECODED_BYTES_MAX as u64;

/// A program that maps records.
pub(in crate::hdfs) struct SsdletMapper {
    name: String,
    worker: Box<dyn Worker>,
    /// The byte behind each record.
    ends: u8,
    /// The classes of values.
    value: Writable,
    /// Records that could not be handed over where they are.
    copied: Vec<u8>,
    /// Whether texts are handed over as Java decodes them, and not the bytes.
    decodes: bool,
    /// Where they are decoded.
    decoding: Vec<u8>,
}

/// A failure of what a job brings.
pub(super) fn failed(error: SsdletError) -> HdfsError {
    match error {
        SsdletError::Args { ssdlet, detail } => HdfsError::Arguments { ssdlet, detail },
        error => HdfsError::Program { detail: error.to_string() },
    }
}

impl SsdletMapper {
    /// One that sees texts as a mapper in Java does.
    pub(super) fn of_java(
        name: &str,
        ssdlet: &dyn Ssdlet,
        value: Writable,
        ends: u8,
    ) -> HdfsResult<Self> {
        let mapper = SsdletMapper::of_module(name, ssdlet, value, ends)?;
        Ok(SsdletMapper { decodes: true, ..mapper })
    }

    /// One that sees the bytes of records.
    pub(super) fn of_module(
        name: &str,
        ssdlet: &dyn Ssdlet,
        value: Writable,
        ends: u8,
    ) -> HdfsResult<Self> {
        let worker = ssdlet.worker().map_err(failed)?;
        let (name, copied) = (name.to_owned(), Vec::new());
        let decoding = Vec::new();
        Ok(SsdletMapper { name, worker, ends, value, copied, decodes: false, decoding })
    }

    fn chunk(&mut self, bytes: &[u8], offset: u64, out: &mut MappedRows<'_>) -> HdfsResult<()> {
        let mut rows = MapperRows { name: &self.name, value: self.value, out };
        let chunk = Chunk { input: 0, offset, bytes };
        let done = self.worker.chunk(chunk, &mut Emitter::rows(&mut rows));
        done.map_err(|error| match error {
            SsdletError::Record { offset, detail } if self.decodes => {
                HdfsError::Record { offset, detail }
            }
            error => failed(error),
        })
    }

    /// Hands the copied records over.
    fn flush(&mut self, offset: u64, out: &mut MappedRows<'_>) -> HdfsResult<()> {
        if self.copied.is_empty() {
            return Ok(());
        }
        let mut copied = std::mem::take(&mut self.copied);
        let result = self.chunk(&copied, offset, out);
        copied.clear();
        // The room of a long record is not kept.
        self.copied = if copied.capacity() > CHUNK_BYTES { Vec::new() } else { copied };
        result
    }

    /// Hands over records that are copied, each with the byte behind it; how many they are.
    fn copies(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        let mut count = 0;
        let mut decoding = std::mem::take(&mut self.decoding);
        for record in batch.records() {
            count += 1;
            let record = match self.decodes {
                false => record,
                true => text_of(record, &mut decoding, batch.offset)?,
            };
            if self.copied.len() + record.len() >= CHUNK_BYTES {
                self.flush(batch.offset, out)?;
            }
            if self.copied.capacity() <= record.len() {
                // It is empty: a record of this length has flushed it.
                self.copied = Vec::new();
                self.copied.try_reserve_exact(CHUNK_BYTES.max(record.len() + 1))?;
            }
            self.copied.extend_from_slice(record);
            self.copied.push(self.ends);
        }
        self.flush(batch.offset, out)?;
        self.decoding = decoding;
        Ok(count)
    }

    /// Maps records that follow each other; how many they are.
    ///
    /// # Errors
    /// Records that make no sense to it.
    pub(in crate::hdfs) fn map(
        &mut self,
        batch: &SplitBatch<'_>,
        out: &mut MappedRows<'_>,
    ) -> HdfsResult<u64> {
        let as_it_is = |bytes: &&[u8]| !self.decodes || str::from_utf8(bytes).is_ok();
        let whole = batch.ending_with(self.ends).filter(as_it_is);
        let Some(mut rest) = whole else { return self.copies(batch, out) };
        let mut offset = batch.offset;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(chunk_bytes(rest, self.ends));
            self.chunk(chunk, offset, out)?;
            offset += chunk.len() as u64;
            rest = after;
        }
        Ok(batch.count())
    }

    /// After the last record.
    ///
    /// # Errors
    /// As [`SsdletMapper::map`].
    pub(in crate::hdfs) fn finish(&mut self, out: &mut MappedRows<'_>) -> HdfsResult<()> {
        let mut rows = MapperRows { name: &self.name, value: self.value, out };
        self.worker.close(&mut Emitter::rows(&mut rows)).map_err(failed)
    }
}

/// The text that Java makes of `record`, which is at `offset` or behind it.
fn text_of<'a>(record: &'a [u8], room: &'a mut Vec<u8>, offset: u64) -> HdfsResult<&'a [u8]> {
    decoded(record, room, DECODED_BYTES_MAX).ok_or_else(|| {
        let detail = format!(
            "a record that is not UTF-8, and of more than {DECODED_BYTES_MAX} bytes as text"
        );
        HdfsError::Record { offset, detail }
    })
}

/// Bytes of the next chunk of `records`: as many whole ones as [`CHUNK_BYTES`] hold, or one.
fn chunk_bytes(records: &[u8], ends: u8) -> usize {
    let most = &records[..records.len().min(CHUNK_BYTES)];
    let last = memrchr(ends, most).or_else(|| memchr(ends, records));
    last.expect("a batch has whole records") + 1
}

/// Takes what an SSDlet hands out.
struct MapperRows<'a, 'b> {
    name: &'a str,
    value: Writable,
    out: &'a mut MappedRows<'b>,
}

impl MapperRows<'_, '_> {
    #[cold]
    fn fail(&mut self, what: &str) {
        self.out.fail(HdfsError::Program { detail: format!("{}: {what}", self.name) });
    }
}

impl RowTaker for MapperRows<'_, '_> {
    fn row(&mut self, key: &[u8], value: &[u8]) {
        if self.value == Writable::Text {
            return self.out.put(key, value);
        }
        match value.try_into() {
            Ok(number) => self.number(key, 0..key.len(), i64::from_le_bytes(number)),
            Err(_) => self.fail("it handed out a number that has not 8 bytes"),
        }
    }

    fn number(&mut self, bytes: &[u8], span: Range<usize>, number: i64) {
        match self.value {
            Writable::Text => self.fail("it handed out a number, and its values are texts"),
            Writable::Int if i32::try_from(number).is_err() => {
                self.fail("it handed out a number that no IntWritable has");
            }
            Writable::Int | Writable::Long => self.out.number_within(bytes, span, number),
        }
    }

    fn misused(&mut self) {
        self.fail("it handed out records in order, but its output is keyed");
    }
}
