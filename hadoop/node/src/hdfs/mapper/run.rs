//! SSDlets in WebAssembly that a job brings.
//!
//! A guest gets chunks of whole records, each with one byte behind it: LF, or the job's own delimiter. Records that end
//! with CR or CRLF are copied with an LF, so that a guest sees what Hadoop's reader would give and not how the file
//! was written.
//!
//! ```text
//!   file       a b CR LF c LF │ d            split, chunk, and the last record of the file
//!   chunks     a b LF c LF    │ d LF
//! ```

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memrchr};
use merganser_sort::record::Format;

use super::HdfsMapper;
use crate::hdfs::batch::SplitBatch;
use crate::hdfs::output::MappedRows;
use crate::hdfs::request::{CombineKind, MapRequest, Writable};
use crate::hdfs::{HdfsError, HdfsResult};
use merganser_map::ssdlet::{
    self, Chunk, Combine, Emitter, MapperModule, RowTaker, SsdletError, Type, Worker,
};

/// The most bytes of a chunk, unless it is one record.
pub(super) const CHUNK_BYTES: usize = 512 << 10;

pub(super) struct GuestMapper {
    name: String,
    worker: Box<dyn Worker>,
    /// The byte behind each record.
    ends: u8,
    /// The classes of values.
    value: Writable,
    /// Records that could not be handed over where they are.
    copied: Vec<u8>,
}

/// Checks that `module` does what the job expects; the byte behind each of its records.
pub(super) fn check(module: &dyn MapperModule, request: &MapRequest) -> HdfsResult<u8, String> {
    let description = module.description();
    let ends = match request.delimiter[..] {
        [] => b'\n',
        [byte] => byte,
        _ => return Err("its records end with one byte, and the job's delimiter has more".into()),
    };
    if description.input != (Format::Lines { delimiter: ends }) {
        return Err(format!(
            "its input is {:?} and the job's is lines that end with byte {ends}",
            description.input
        ));
    }
    if module.asks_for_places() {
        return Err("it asks for the place of its records, which depends on the split".into());
    }
    let ssdlet::SsdletOutput::Keyed { key, value, combine } = description.output else {
        return Err("it hands out records in order and not keys with values".into());
    };
    let is_text = |of| matches!(of, Type::Text | Type::Bytes);
    let fits = is_text(key)
        && request.key == Writable::Text
        && match request.value {
            Writable::Text => is_text(value),
            Writable::Int | Writable::Long => value == Type::I64,
        };
    if !fits {
        return Err(format!(
            "it hands out ({key:?}, {value:?}) and the job expects ({:?}, {:?})",
            request.key, request.value
        ));
    }
    let allowed: &[_] = match combine {
        Combine::Sum => &[CombineKind::None, CombineKind::Sum],
        Combine::None if value != Type::I64 => &[CombineKind::None, CombineKind::Distinct],
        Combine::None => &[CombineKind::None],
        _ => &[],
    };
    if !allowed.contains(&request.combine) {
        return Err(format!(
            "its values are combined by {combine:?} and those of the job by {:?}",
            request.combine
        ));
    }
    Ok(ends)
}

/// Starts a guest.
pub(super) fn open(
    module: &Arc<dyn MapperModule>,
    request: &MapRequest,
    ends: u8,
) -> HdfsResult<Box<dyn HdfsMapper>> {
    let ssdlet = module.open(&request.arguments).map_err(failed)?;
    let worker = ssdlet.worker().map_err(failed)?;
    let name = module.description().name.clone();
    Ok(Box::new(GuestMapper { name, worker, ends, value: request.value, copied: Vec::new() }))
}

fn failed(error: SsdletError) -> HdfsError {
    match error {
        SsdletError::Args { ssdlet, detail } => HdfsError::Arguments { ssdlet, detail },
        error => HdfsError::Program { detail: error.to_string() },
    }
}

impl GuestMapper {
    fn chunk(&mut self, bytes: &[u8], offset: u64, out: &mut MappedRows<'_>) -> HdfsResult<()> {
        let mut rows = GuestRows { name: &self.name, value: self.value, out };
        let chunk = Chunk { input: 0, offset, bytes };
        self.worker.chunk(chunk, &mut Emitter::rows(&mut rows)).map_err(failed)
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
        for record in batch.records() {
            count += 1;
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
        Ok(count)
    }
}

impl HdfsMapper for GuestMapper {
    fn map(&mut self, batch: &SplitBatch<'_>, out: &mut MappedRows<'_>) -> HdfsResult<u64> {
        let Some(mut rest) = batch.ending_with(self.ends) else { return self.copies(batch, out) };
        let mut offset = batch.offset;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(chunk_bytes(rest, self.ends));
            self.chunk(chunk, offset, out)?;
            offset += chunk.len() as u64;
            rest = after;
        }
        Ok(batch.count())
    }

    fn finish(&mut self, out: &mut MappedRows<'_>) -> HdfsResult<()> {
        let mut rows = GuestRows { name: &self.name, value: self.value, out };
        self.worker.close(&mut Emitter::rows(&mut rows)).map_err(failed)
    }
}

/// Bytes of the next chunk of `records`: as many whole ones as [`CHUNK_BYTES`] hold, or one.
fn chunk_bytes(records: &[u8], ends: u8) -> usize {
    let most = &records[..records.len().min(CHUNK_BYTES)];
    let last = memrchr(ends, most).or_else(|| memchr(ends, records));
    last.expect("a batch has whole records") + 1
}

/// Takes what a guest hands out.
struct GuestRows<'a, 'b> {
    name: &'a str,
    value: Writable,
    out: &'a mut MappedRows<'b>,
}

impl GuestRows<'_, '_> {
    #[cold]
    fn fail(&mut self, what: &str) {
        self.out.fail(HdfsError::Program { detail: format!("{}: {what}", self.name) });
    }
}

impl RowTaker for GuestRows<'_, '_> {
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
