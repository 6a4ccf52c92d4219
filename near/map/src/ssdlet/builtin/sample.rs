//! `sample`: a random part of the records.
//!
//! A record's luck is a hash of its place and the seed, so a sample depends on neither threads nor chunks.
//! With `fraction`, each record below a bound is given, in input order. With `count`, exactly that many
//! are given: those with the smallest hashes, in that order. A worker then remembers the smallest hashes so
//! far, and hands out a record only if it may still be among them; [`Ssdlet::rows_most`] cuts the rest
//! off.

use std::collections::BinaryHeap;

use merganser_sort::record::Format;

use super::arguments::Arguments;
use super::borders::{RecordBorders, Spans};
use super::{Argument, DELIMITER, HEADER, QUOTES, SEPARATOR, argument};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument("fraction", "the part of the records, from 0 to 1", "either this or count"),
    argument("count", "how many records, from 1 to 10000000", "either this or fraction"),
    argument("seed", "another number gives another sample", "0"),
    argument("format", "\"lines\", \"csv\", \"keyed\" or \"fixed:BYTES\"", "\"lines\""),
    DELIMITER,
    SEPARATOR,
    HEADER,
    QUOTES,
];

const COUNT_MOST: u64 = 10_000_000;

#[derive(Debug, Clone, Copy)]
enum Amount {
    /// Records whose hash is below this.
    Below(u128),
    /// As many records.
    Count(u64),
}

struct SampleSsdlet {
    description: SsdletDescription,
    amount: Amount,
    seed: u64,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let format = args.records()?;
    let seed = args.take("seed")?.unwrap_or(0);
    let fraction: Option<f64> = args.take("fraction")?;
    let count: Option<u64> = args.take("count")?;
    let amount = match (fraction, count) {
        (Some(fraction), None) if (0.0..=1.0).contains(&fraction) => {
            Amount::Below((fraction * 2.0_f64.powi(64)) as u128)
        }
        (Some(fraction), None) => {
            return Err(args.fault("fraction", format!("{fraction} is not from 0 to 1")));
        }
        (None, Some(count)) if (1..=COUNT_MOST).contains(&count) => Amount::Count(count),
        (None, Some(count)) => {
            return Err(args.fault("count", format!("{count} is not from 1 to {COUNT_MOST}")));
        }
        _ => return Err(args.fault("fraction", "give either this or count")),
    };
    let (output, worker_bytes) = match amount {
        Amount::Below(_) => (SsdletOutput::Ordered { format }, 0),
        // A full heap has doubled once too often, at most.
        Amount::Count(count) => {
            let (key, value, combine) = (Type::Bytes, Type::Text, Combine::First);
            (SsdletOutput::Keyed { key, value, combine }, 2 * count * 8)
        }
    };
    let description =
        SsdletDescription { name: "sample".to_owned(), input: format, output, worker_bytes };
    Ok(Box::new(SampleSsdlet { description, amount, seed }))
}

/// A hash of a record's place: the finisher of SplitMix64, three times.
fn luck(seed: u64, input: u32, offset: u64) -> u64 {
    [u64::from(input), offset].into_iter().fold(mix(seed), |hash, part| mix(hash ^ part))
}

fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

impl Ssdlet for SampleSsdlet {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn asks_for_places(&self) -> bool {
        true
    }

    fn header(&self, row: &[u8]) -> Result<Vec<u8>, SsdletError> {
        Ok(row.to_vec())
    }

    fn rows_most(&self) -> Option<u64> {
        match self.amount {
            Amount::Below(_) => None,
            Amount::Count(count) => Some(count),
        }
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let format: Format = self.description.input;
        let borders = RecordBorders::new(format);
        let (amount, seed) = (self.amount, self.seed);
        Ok(Box::new(Sampler { borders, amount, seed, smallest: BinaryHeap::new(), metered: 0 }))
    }
}

struct Sampler {
    borders: RecordBorders,
    amount: Amount,
    seed: u64,
    /// The smallest hashes so far, as many as records are wanted.
    smallest: BinaryHeap<u64>,
    metered: u64,
}

impl Sampler {
    /// Whether a record with this hash may be among `count`.
    fn may_be_among(&mut self, count: u64, hash: u64) -> bool {
        if (self.smallest.len() as u64) < count {
            self.smallest.push(hash);
            return true;
        }
        let mut largest = self.smallest.peek_mut().expect("at least one is wanted");
        if hash > *largest {
            return false;
        }
        *largest = hash;
        true
    }
}

impl Worker for Sampler {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        let bytes = chunk.bytes;
        self.metered += bytes.len() as u64;
        let mut spans = Spans::of_bytes(bytes);
        let mut at = 0;
        while at < bytes.len() {
            let record = at..self.borders.end(bytes, at);
            at = record.end;
            let offset = chunk.offset + record.start as u64;
            let hash = luck(self.seed, chunk.input, offset);
            let amount = self.amount;
            match amount {
                Amount::Below(bound) if u128::from(hash) < bound => spans.push(record, out),
                Amount::Count(count) if self.may_be_among(count, hash) => {
                    let mut key = [0; 20];
                    key[..8].copy_from_slice(&hash.to_be_bytes());
                    key[8..12].copy_from_slice(&chunk.input.to_be_bytes());
                    key[12..].copy_from_slice(&offset.to_be_bytes());
                    out.emit(&key, self.borders.undelimited(&bytes[record]));
                }
                _ => {}
            }
        }
        spans.finish(out);
        Ok(())
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample is the same in each version and on each machine.
    #[test]
    fn the_hash_is_pinned() {
        let found = [luck(0, 0, 0), luck(0, 0, 1), luck(0, 1, 0), luck(1, 0, 0)];
        let wanted = [
            2_558_736_989_570_252_433,
            3_400_964_856_525_257_824,
            4_964_578_127_960_768_432,
            12_793_040_940_332_582_595,
        ];
        assert_eq!(found, wanted);
    }
}
