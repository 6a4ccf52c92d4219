//! Records of the ActiveSort experiments: made when they are written, checked when they are read.

use std::ops::Range;

use merganser_inside::active_sort::descriptor::{
    Descriptor, MergeCommand, MergeId, SECTOR_BYTES, SectorExtent, SortedChunk,
};
use merganser_inside::active_sort::{ActiveSort, ActiveSortSettings};
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;

use super::host::ModelledHost;
use crate::error::ExperimentError;
use merganser_random::Random;

/// Where a merged result is read, in bytes of the device.
pub(super) const INTERFACE: u64 = 64 << 30;
/// Where descriptors are written.
pub(super) const CONTROL: u64 = 100 << 30;
/// Chunks of every experiment, as in the paper.
pub(super) const CHUNKS: u64 = 4;

/// How the keys of the chunks interleave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Each is random: what the paper's benchmark has.
    Random,
    /// Chunks give one record each, in turn.
    Turns,
    /// Chunks give this many records each, in turn.
    Bursts(u64),
    /// Random, but the later the chunk, the smaller its keys.
    Skewed,
}

/// One data set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    /// Bytes of a record, which divide a page or are one.
    pub record_bytes: u64,
    /// Bytes of its key, at its start.
    pub key_bytes: u64,
    /// Records of a chunk.
    pub chunk_records: u64,
    /// How keys lie.
    pub keys: Keys,
    /// Bytes that are left out between chunks: where they begin decides on which channel.
    pub gap_bytes: u64,
}

impl Data {
    /// About `bytes`: chunks of as many pages on every channel, so that all begin on the same one.
    pub(crate) fn new(bytes: u64, record_bytes: u64, key_bytes: u64) -> Self {
        const PAGES: u64 = 4 * (32 << 10);
        let chunk = (bytes / CHUNKS).next_multiple_of(PAGES).max(PAGES);
        let (keys, chunk_records) = (Keys::Random, chunk / record_bytes);
        Data { record_bytes, key_bytes, chunk_records, keys, gap_bytes: 0 }
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.chunk_records * self.record_bytes
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> u64 {
        CHUNKS * self.chunk_bytes()
    }

    /// The place of a chunk on the device.
    pub(crate) fn place(&self, chunk: u64) -> Range<u64> {
        let start = chunk * (self.chunk_bytes() + self.gap_bytes);
        start..start + self.chunk_bytes()
    }

    fn key(&self, chunk: u64, record: u64) -> u128 {
        let mut random = Random::of_record(chunk + 1, record);
        let uniform = u128::from(random.bits()) << 64 | u128::from(random.bits());
        match self.keys {
            Keys::Random => uniform,
            Keys::Turns => u128::from(record * CHUNKS + chunk) << 96,
            Keys::Bursts(len) => {
                u128::from((record / len * CHUNKS + chunk) * len + record % len) << 96
            }
            Keys::Skewed => {
                let high = (uniform >> 96) as f64 / f64::from(u32::MAX);
                let power = high.powi(chunk as i32 + 1);
                ((power * f64::from(u32::MAX - 1)) as u128) << 96 | uniform >> 32
            }
        }
    }

    /// All chunks, each sorted.
    pub(crate) fn sorted(self) -> SortedChunks {
        let chunk = |chunk| {
            let mut records: Vec<(u128, u32)> =
                (0..self.chunk_records).map(|r| (self.key(chunk, r), r as u32)).collect();
            records.sort_unstable();
            records
        };
        SortedChunks { data: self, chunks: (0..CHUNKS).map(chunk).collect() }
    }

    /// The descriptor of its merge.
    pub(crate) fn descriptor(&self) -> Descriptor {
        let chunk = |chunk| {
            let place = self.place(chunk);
            let sectors = (place.end - place.start) / SECTOR_BYTES;
            SortedChunk {
                bytes: self.chunk_bytes(),
                extents: vec![SectorExtent { first: place.start / SECTOR_BYTES, sectors }],
            }
        };
        Descriptor {
            merge: MergeId(1),
            order: OrderSpec {
                keys: vec![format!("0:{}", self.key_bytes)],
                ..OrderSpec::new(Format::Fixed { bytes: self.record_bytes as usize })
            },
            chunks: (0..CHUNKS).map(chunk).collect(),
            interface: SectorExtent {
                first: INTERFACE / SECTOR_BYTES,
                sectors: self.bytes() / SECTOR_BYTES,
            },
        }
    }
}

/// A data set whose chunks are sorted.
pub(crate) struct SortedChunks {
    data: Data,
    chunks: Vec<Vec<(u128, u32)>>,
}

impl SortedChunks {
    /// Fills `out`, whole records, with what is stored at `offset`.
    pub(crate) fn fill(&self, offset: u64, out: &mut [u8]) {
        let Data { record_bytes, key_bytes, gap_bytes, .. } = self.data;
        let stride = self.data.chunk_bytes() + gap_bytes;
        for (i, record) in (0_u64..).zip(out.chunks_mut(record_bytes as usize)) {
            let at = offset + i * record_bytes;
            let (chunk, place) = (at / stride, at % stride / record_bytes);
            let Some(&(key, number)) =
                self.chunks.get(chunk as usize).and_then(|chunk| chunk.get(place as usize))
            else {
                continue;
            };
            record[..key_bytes as usize].copy_from_slice(&key.to_be_bytes()[..key_bytes as usize]);
            let serial = chunk * self.data.chunk_records + u64::from(number);
            record[key_bytes as usize..][..8].copy_from_slice(&serial.to_le_bytes());
        }
    }
}

/// Looks at every record of a merged result.
#[derive(Debug, Default)]
pub(super) struct ResultCheck {
    last: Vec<u8>,
    records: u64,
    serials: u64,
    disorder: bool,
}

impl ResultCheck {
    /// The next bytes, whole records.
    pub(super) fn take(&mut self, data: &Data, bytes: &[u8]) {
        let key_bytes = data.key_bytes as usize;
        for record in bytes.chunks(data.record_bytes as usize) {
            let key = &record[..key_bytes];
            self.disorder |= key < &self.last[..];
            self.last.clear();
            self.last.extend_from_slice(key);
            let serial = record[key_bytes..][..8].try_into().expect("eight bytes");
            self.serials = self
                .serials
                .wrapping_add(u64::from_le_bytes(serial).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            self.records += 1;
        }
    }

    /// That it was all records, in order.
    pub(super) fn finish(self, data: &Data) -> Result<(), ExperimentError> {
        let count = CHUNKS * data.chunk_records;
        let product = (0..count).fold(0_u64, |sum, serial| {
            sum.wrapping_add(serial.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        });
        if self.disorder || self.records != count || self.serials != product {
            let found = self.records;
            return Err(ExperimentError::Model(format!(
                "the modelled device returned {found} records of {count}, or other records, or out of order"
            )));
        }
        Ok(())
    }
}

/// The program for a modelled device.
pub(super) fn program(settings: ActiveSortSettings) -> Box<ActiveSort> {
    Box::new(ActiveSort::new(CONTROL, settings))
}

/// Opens the merge of `data`, reads all of it in calls of `call_bytes`, checks it, and closes it.
pub(super) fn read_merged(
    host: &mut ModelledHost,
    data: &Data,
    call_bytes: u64,
) -> Result<(), ExperimentError> {
    let encoded = |command: MergeCommand| {
        command.encode().map_err(|e| ExperimentError::Model(format!("the merge of this data: {e}")))
    };
    let descriptor = data.descriptor();
    let merge = descriptor.merge;
    host.command(CONTROL, &encoded(MergeCommand::Open(descriptor))?)?;
    let mut check = ResultCheck::default();
    let (mut at, end) = (INTERFACE, INTERFACE + data.bytes());
    while at < end {
        let next = (at + call_bytes).min(end);
        host.read(at..next, end - next, |_, bytes| check.take(data, bytes))?;
        at = next;
    }
    check.finish(data)?;
    host.command(CONTROL, &encoded(MergeCommand::Close(merge))?)
}
