//! SSDlets of lines that look at one record at a time.

use memchr::memchr;
use merganser_sort::record::Format;

use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};

/// The work on a record.
pub(super) trait RecordProgram: Clone + Send + Sync + 'static {
    /// Takes one record, without what ends it.
    ///
    /// # Errors
    /// The fault of the record, and the remedy.
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String>;
}

/// A program, and what it is to the world.
pub(super) struct ByRecord<P> {
    description: SsdletDescription,
    delimiter: u8,
    program: P,
}

impl<P: RecordProgram> ByRecord<P> {
    /// A program whose keys are texts. A worker takes `worker_bytes` at most.
    pub(super) fn boxed(
        name: &str,
        delimiter: u8,
        (value, combine): (Type, Combine),
        worker_bytes: u64,
        program: P,
    ) -> Box<dyn Ssdlet> {
        let description = SsdletDescription {
            name: name.to_owned(),
            input: Format::Lines { delimiter },
            output: SsdletOutput::Keyed { key: Type::Text, value, combine },
            worker_bytes,
        };
        Box::new(ByRecord { description, delimiter, program })
    }
}

impl<P: RecordProgram> Ssdlet for ByRecord<P> {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let program = self.program.clone();
        Ok(Box::new(RecordWorker { delimiter: self.delimiter, program, metered: 0 }))
    }
}

struct RecordWorker<P> {
    delimiter: u8,
    program: P,
    metered: u64,
}

impl<P: RecordProgram> Worker for RecordWorker<P> {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        each_record(self.delimiter, chunk, |offset, record| {
            let fault = |detail| SsdletError::Record { offset, detail };
            self.program.record(record, out).map_err(fault)
        })
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

/// Calls `take` with the place in the input and the bytes of each record, without what ends it.
#[inline(always)]
pub(super) fn each_record<'a>(
    delimiter: u8,
    chunk: Chunk<'a>,
    mut take: impl FnMut(u64, &'a [u8]) -> Result<(), SsdletError>,
) -> Result<(), SsdletError> {
    let mut at = 0;
    while at < chunk.bytes.len() {
        let rest = &chunk.bytes[at..];
        let len = memchr(delimiter, rest).unwrap_or(rest.len());
        take(chunk.offset + at as u64, &rest[..len])?;
        at += len + 1;
    }
    Ok(())
}

/// The part before the first `byte`, and the part after it.
pub(super) fn split_at_first(byte: u8, text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}
