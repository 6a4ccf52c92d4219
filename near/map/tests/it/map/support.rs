//! SSDlets, a model and sinks for the tests of maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use merganser_map::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};
use merganser_map::{MapInput, MapOptions, MapOutput, MapReport, PartitionSize, RowSink, map};
use merganser_sort::record::Format;
use merganser_sort::{Budget, Silent};
use merganser_storage::Storage;
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};

pub(super) const LINES: Format = Format::Lines { delimiter: b'\n' };
pub(super) const EVERY_COMBINE: [Combine; 6] =
    [Combine::Sum, Combine::Min, Combine::Max, Combine::Count, Combine::First, Combine::None];

/// The work of a test SSDlet on one record and the place of its first byte.
pub(super) type Each = fn(&[u8], u64, &mut Emitter<'_>) -> Result<(), SsdletError>;

/// An SSDlet of one function.
pub(super) struct Plain {
    description: SsdletDescription,
    each: Each,
}

impl Plain {
    pub(super) fn keyed(input: Format, combine: Combine, value: Type, each: Each) -> Self {
        let output = SsdletOutput::Keyed { key: Type::Bytes, value, combine };
        Self::new(input, output, each)
    }

    pub(super) fn ordered(input: Format, each: Each) -> Self {
        Self::new(input, SsdletOutput::Ordered { format: LINES }, each)
    }

    pub(super) fn new(input: Format, output: SsdletOutput, each: Each) -> Self {
        let name = "plain".to_owned();
        Plain { description: SsdletDescription { name, input, output, worker_bytes: 100 }, each }
    }
}

impl Ssdlet for Plain {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(PlainWorker { format: self.description.input, each: self.each, seen: 0 }))
    }
}

struct PlainWorker {
    format: Format,
    each: Each,
    seen: u64,
}

impl Worker for PlainWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        assert!(!chunk.bytes.is_empty(), "no chunk is empty");
        let mut at = 0;
        while at < chunk.bytes.len() {
            let len = self.format.record_len(&chunk.bytes[at..]).expect("whole records");
            (self.each)(&chunk.bytes[at..at + len], chunk.offset + at as u64, out)?;
            at += len;
        }
        self.seen += at as u64;
        Ok(())
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.seen)
    }
}

/// Hands out each word of a line with a number that depends on the word's place.
pub(super) fn words(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let line = record.strip_suffix(b"\n").unwrap_or(record);
    for (i, word) in line.split(|byte| *byte == b' ').enumerate() {
        let number = (offset as i64 * 31 + i as i64) % 1009 - 400;
        out.emit(word, &number.to_le_bytes());
    }
    Ok(())
}

/// As [`words`], faster ways in turn.
pub(super) fn spans(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let line = record.strip_suffix(b"\n").unwrap_or(record);
    let mut at = 0;
    for (i, word) in line.split(|byte| *byte == b' ').enumerate() {
        let number = (offset as i64 * 31 + i as i64) % 1009 - 400;
        if i % 2 == 0 {
            out.add_span(record, at..at + word.len(), number);
        } else {
            out.add(word, number);
        }
        at += word.len() + 1;
    }
    Ok(())
}

/// Rows that came out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    pub keyed: Vec<(Vec<u8>, Vec<u8>)>,
    pub ordered: Vec<u8>,
    /// A limit of calls.
    pub most: Option<usize>,
    pub calls: usize,
}

impl Rows {
    fn wants_more(&mut self) -> bool {
        self.calls += 1;
        self.most.is_none_or(|most| self.calls < most)
    }
}

impl RowSink for Rows {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.keyed.push((key.to_vec(), value.to_vec()));
        Ok(self.wants_more())
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        self.ordered.extend_from_slice(records);
        Ok(self.wants_more())
    }
}

/// What a naive program makes of `values`, by key, in the order of the input.
pub(super) fn model(
    emitted: &BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    combine: Combine,
    of: Type,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let number = |value: &Vec<u8>| i64::from_le_bytes(value[..].try_into().expect("8 bytes"));
    let mut rows = Vec::new();
    for (key, values) in emitted {
        let mut sorted = values.clone();
        match of {
            Type::I64 => sorted.sort_by_key(number),
            _ => sorted.sort(),
        }
        let value = match combine {
            Combine::Sum => values.iter().map(number).sum::<i64>().to_le_bytes().to_vec(),
            Combine::Count => (values.len() as i64).to_le_bytes().to_vec(),
            Combine::Min => sorted[0].clone(),
            Combine::Max => sorted[sorted.len() - 1].clone(),
            Combine::First => values[0].clone(),
            Combine::None => {
                sorted = values.clone();
                sorted.sort();
                rows.extend(sorted.into_iter().map(|value| (key.clone(), value)));
                continue;
            }
        };
        rows.push((key.clone(), value));
    }
    rows
}

/// What `ssdlet` hands out for whole inputs, collected.
pub(super) fn collected(
    ssdlet: &Plain,
    inputs: &[Vec<u8>],
) -> merganser_map::ssdlet::CollectedOutput {
    let mut collect = merganser_map::ssdlet::CollectedOutput::default();
    let mut worker = ssdlet.worker().expect("a worker");
    for (input, bytes) in inputs.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
        let mut bytes = bytes.clone();
        if let Format::Lines { delimiter } = ssdlet.description.input
            && bytes.last() != Some(&delimiter)
        {
            bytes.push(delimiter);
        }
        let chunk = Chunk { input: input as u32, offset: 0, bytes: &bytes };
        worker.chunk(chunk, &mut Emitter::collecting(&mut collect)).expect("maps");
    }
    collect
}

pub(super) fn storage(bytes: &[u8]) -> Arc<dyn Storage> {
    MemoryStorage::from_bytes("input", bytes)
}

/// Settings of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub threads: usize,
    pub partition: PartitionSize,
    pub memory: u64,
    /// Whether there is a place for spills.
    pub temp: bool,
    /// Whether inputs are streams.
    pub streams: bool,
}

impl Default for How {
    fn default() -> Self {
        How {
            threads: 2,
            partition: PartitionSize::Auto,
            memory: 32 << 20,
            temp: true,
            streams: false,
        }
    }
}

impl How {
    /// Chunks of this number of bytes, and no spills.
    pub(super) fn chunks(bytes: u64, threads: usize) -> Self {
        How { partition: PartitionSize::Bytes(bytes), threads, temp: false, ..How::default() }
    }

    pub(super) fn options(self) -> MapOptions {
        MapOptions {
            budget: Budget::new(self.memory),
            threads: self.threads,
            partition: self.partition,
            temp: if self.temp { vec![MemoryDirectory::new()] } else { Vec::new() },
        }
    }

    pub(super) fn inputs(self, inputs: &[Vec<u8>]) -> Vec<MapInput> {
        let input = |bytes: &Vec<u8>| {
            if self.streams {
                let reader = Box::new(std::io::Cursor::new(bytes.clone()));
                MapInput::Stream { name: "stream".to_owned(), reader, memory_bytes: 0 }
            } else {
                MapInput::Storage { storage: storage(bytes), range: None }
            }
        };
        inputs.iter().map(input).collect()
    }

    /// Maps `inputs` into rows; memory is all given back.
    pub(super) fn map(
        self,
        ssdlet: &dyn Ssdlet,
        inputs: Vec<MapInput>,
    ) -> Result<(Rows, MapReport), SsdletError> {
        let mut rows = Rows::default();
        let report = self.map_to(ssdlet, inputs, &mut rows)?;
        Ok((rows, report))
    }

    pub(super) fn map_to(
        self,
        ssdlet: &dyn Ssdlet,
        inputs: Vec<MapInput>,
        rows: &mut Rows,
    ) -> Result<MapReport, SsdletError> {
        let options = self.options();
        let report = map(ssdlet, inputs, MapOutput::Rows(rows), &options, &Silent);
        assert_eq!(options.budget.free_bytes(), self.memory, "all memory is back");
        let report = report?;
        assert!(report.memory_peak_bytes <= self.memory);
        Ok(report)
    }
}

/// Bytes that look like a text of few words, some of them long, with empty lines and blanks.
pub(super) fn text(bytes: usize, distinct: u64, seed: u64) -> Vec<u8> {
    let mut random = merganser_testkit::Random::new(seed);
    let mut text = Vec::with_capacity(bytes + 40);
    while text.len() < bytes {
        let word = random.below(distinct);
        let len = (word * 7 % 23) as usize;
        let start = text.len();
        text.extend_from_slice(format!("{word:x}").as_bytes());
        while text.len() < start + len {
            text.push(b'a' + (word % 26) as u8);
        }
        text.push(if random.below(6) == 0 { b'\n' } else { b' ' });
    }
    text
}
