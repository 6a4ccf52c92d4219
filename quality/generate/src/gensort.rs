//! The records of the Sort Benchmark (<http://sortbenchmark.org>), byte for byte as its `gensort`
//! makes them.
//!
//! Random number `n` of the generator is the key of record `n`:
//!
//! ```text
//!   binary   0        10        20            90       100
//!            │ key    │ r(n+1)  │ r(n+2) ...  │ r(n+9) │    top 80 bits of each, masked with a constant
//!
//!   ascii    0        10 12                44 46                   98   100
//!            │ key    │  │ record number   │  │ 13 digits x 4       │ \r\n │
//!            base 95      32 hex digits        of the low 52 bits
//! ```
//!
//! *Skewed* records have the first bits of their key (0 to 48 of them, none in a quarter of the
//! records) replaced by those of record `log2(n) + 1`, so every doubling of the record number
//! brings a new frequent prefix.

use std::ops::Range;

use merganser_random::Random;

use super::generator::Generator;

use super::lcg::Lcg;

const RECORD_BYTES: usize = Gensort::RECORD_BYTES;
const KEY_BYTES: usize = 10;

const PARTS: usize = RECORD_BYTES / KEY_BYTES;
const FILLER_AT: usize = 46;
/// The masks of the parts of a binary record, so that no part repeats the key of a later
/// record.
const MASKS: [u128; PARTS] = [
    0,
    0xF0E8_E4E2_E1D8_D4D2_D1CC,
    0xCAC9_C6C5_C3B8_B4B2_B1AC,
    0xAAA9_A6A5_A39C_9A99_9695,
    0x938E_8D8B_8778_7472_716C,
    0x6A69_6665_635C_5A59_5655,
    0x534E_4D4B_473C_3A39_3635,
    0x332E_2D2B_271E_1D1B_170F,
    0xC8C4_C2C1_9894_9291_8CE0,
    0x170F_332E_2D2B_271E_1D1B,
];
/// Records made from one array of random numbers.
const BATCH: usize = 64;

/// Which records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GensortKind {
    /// All bytes random.
    Binary,
    /// Printable lines.
    Ascii,
}

impl GensortKind {
    /// Bytes of the shortest record with room for all fields: the key, or all but the filler.
    pub fn record_bytes_min(self) -> usize {
        match self {
            GensortKind::Binary => KEY_BYTES,
            GensortKind::Ascii => FILLER_AT + 2,
        }
    }
}

/// The generator of one data set.
#[derive(Debug)]
pub struct Gensort {
    kind: GensortKind,
    record_bytes: usize,
    seed: u64,
    /// The keys of records 0 to 64, whose prefixes are the frequent ones.
    skewed: Option<Vec<[u8; KEY_BYTES]>>,
}

impl Gensort {
    /// Bytes of the benchmark's own records.
    pub const RECORD_BYTES: usize = 100;

    /// Records of `record_bytes`, at least [`GensortKind::record_bytes_min`]. Seed 0 and
    /// [`Gensort::RECORD_BYTES`] give the benchmark's own.
    pub fn new(kind: GensortKind, record_bytes: usize, skew: bool, seed: u64) -> Self {
        assert!(
            record_bytes >= kind.record_bytes_min(),
            "{record_bytes} bytes are no room for the fields"
        );
        let skewed = skew.then(|| {
            let mut random = Lcg::after(seed, 0);
            (0..=64).map(|_| key(kind, random.number())).collect()
        });
        Gensort { kind, record_bytes, seed, skewed }
    }

    fn binary(&self, random: &[u128; PARTS], record: &mut [u8]) {
        // Each store of 16 bytes leaves 6 too many, which the next one overwrites.
        let mut parts = [0u8; RECORD_BYTES + 6];
        for (part, (number, mask)) in random.iter().zip(MASKS).enumerate() {
            let bytes = (number ^ (mask << 48)).to_be_bytes();
            parts[part * KEY_BYTES..][..16].copy_from_slice(&bytes);
        }
        match record.split_at_mut_checked(RECORD_BYTES) {
            None => record.copy_from_slice(&parts[..record.len()]),
            Some((head, rest)) => {
                head.copy_from_slice(&parts[..RECORD_BYTES]);
                let mut filler = Random::new((random[0] >> 64) as u64 ^ random[0] as u64);
                for bytes in rest.chunks_mut(8) {
                    bytes.copy_from_slice(&filler.bits().to_le_bytes()[..bytes.len()]);
                }
            }
        }
    }

    fn ascii(number: u64, random: u128, record: &mut [u8]) {
        record[..10].copy_from_slice(&key(GensortKind::Ascii, random));
        record[10..28].copy_from_slice(b"  0000000000000000");
        for (digit, byte) in record[28..44].iter_mut().enumerate() {
            *byte = hex_digit(number >> (60 - 4 * digit));
        }
        record[44..FILLER_AT].copy_from_slice(b"  ");
        let end = record.len() - 2;
        for (group, bytes) in record[FILLER_AT..end].chunks_mut(4).enumerate() {
            bytes.fill(hex_digit((random >> (48 - 4 * (group % 13))) as u64));
        }
        record[end..].copy_from_slice(b"\r\n");
    }

    /// Gives the key of record `number` its frequent prefix.
    fn skew(&self, skewed: &[[u8; KEY_BYTES]], number: u64, random: u128, record: &mut [u8]) {
        // The benchmark's own search stops at 64 from 2^60 on.
        let rank = if number >> 60 != 0 { 64 } else { 64 - number.leading_zeros() as usize };
        let prefix = &skewed[rank];
        match self.kind {
            GensortKind::Binary => {
                let bits = (random >> 32) as u32 & 0x3F;
                let bits = if bits > 48 { 0 } else { bits };
                let keep = u64::MAX.checked_shr(bits).unwrap_or(0);
                let old = u64::from_be_bytes(*record.first_chunk().expect("a key"));
                let new = u64::from_be_bytes(*prefix.first_chunk().expect("a key"));
                record[..8].copy_from_slice(&((new & !keep) | (old & keep)).to_be_bytes());
            }
            GensortKind::Ascii => {
                let bytes = (random >> 32) as usize & 7;
                let bytes = if bytes > 6 { 0 } else { bytes };
                record[..bytes].copy_from_slice(&prefix[..bytes]);
            }
        }
    }
}

impl Generator for Gensort {
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>) {
        let mut lcg = Lcg::after(self.seed, numbers.start);
        let mut random = [0u128; BATCH + PARTS - 1];
        for ahead in &mut random[BATCH..] {
            *ahead = lcg.number();
        }
        let count = usize::try_from(numbers.end - numbers.start).expect("a block fits in memory");
        let begin = out.len();
        out.resize(begin + count * self.record_bytes, 0);
        let records = out[begin..].chunks_exact_mut(self.record_bytes);
        for (at, (number, record)) in numbers.zip(records).enumerate() {
            if at % BATCH == 0 {
                random.copy_within(BATCH.., 0);
                for next in &mut random[PARTS - 1..] {
                    *next = lcg.number();
                }
            }
            let own: &[u128; PARTS] =
                random[at % BATCH..].first_chunk().expect("nine numbers ahead");
            match self.kind {
                GensortKind::Binary => self.binary(own, record),
                GensortKind::Ascii => Self::ascii(number, own[0], record),
            }
            if let Some(skewed) = &self.skewed {
                self.skew(skewed, number, own[0], record);
            }
        }
    }

    fn record_bytes_mean(&self) -> u64 {
        self.record_bytes as u64
    }
}

fn key(kind: GensortKind, random: u128) -> [u8; KEY_BYTES] {
    match kind {
        GensortKind::Binary => *random.to_be_bytes().first_chunk().expect("16 bytes"),
        GensortKind::Ascii => {
            let mut key = [0; KEY_BYTES];
            let (mut high, mut low) = ((random >> 64) as u64, random as u64);
            for byte in &mut key[..8] {
                *byte = b' ' + (high % 95) as u8;
                high /= 95;
            }
            for byte in &mut key[8..] {
                *byte = b' ' + (low % 95) as u8;
                low /= 95;
            }
            key
        }
    }
}

#[inline]
fn hex_digit(number: u64) -> u8 {
    b"0123456789ABCDEF"[(number & 0xF) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(generator: &Gensort, numbers: Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        generator.records(numbers, &mut out);
        out
    }

    #[test]
    fn the_first_ascii_records_are_the_benchmarks() {
        let two = made(&Gensort::new(GensortKind::Ascii, 100, false, 0), 0..2);
        assert_eq!(
            String::from_utf8(two).expect("printable"),
            "AsfAGHM5om  00000000000000000000000000000000  \
             0000222200002222000022220000222200002222000000001111\r\n\
             ~sHd0jDv6X  00000000000000000000000000000001  \
             77779999444488885555CCCC777755555555BBBB666644446666\r\n"
        );
    }

    #[test]
    fn any_stretch_is_a_part_of_the_whole() {
        for kind in [GensortKind::Binary, GensortKind::Ascii] {
            for (bytes, skew, seed) in
                [(100, false, 0), (100, true, 0), (129, true, 5), (60, false, 1)]
            {
                let generator = Gensort::new(kind, bytes, skew, seed);
                let whole = made(&generator, 0..300);
                for (from, to) in
                    [(0, 1), (1, 64), (63, 65), (64, 128), (100, 300), (299, 300), (7, 7)]
                {
                    let part = &whole[from * bytes..to * bytes];
                    assert!(
                        made(&generator, from as u64..to as u64) == part,
                        "{kind:?} {from}..{to}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_longer_or_shorter_record_begins_alike() {
        let whole = made(&Gensort::new(GensortKind::Binary, 100, true, 0), 0..200);
        for bytes in [10, 11, 99, 101, 4096] {
            let other = made(&Gensort::new(GensortKind::Binary, bytes, true, 0), 0..200);
            let same = bytes.min(100);
            for (a, b) in whole.chunks(100).zip(other.chunks(bytes)) {
                assert_eq!(a[..same], b[..same]);
            }
        }
    }

    #[test]
    fn ascii_records_are_lines_of_any_length() {
        for bytes in [GensortKind::Ascii.record_bytes_min(), 49, 100, 301] {
            let lines = made(&Gensort::new(GensortKind::Ascii, bytes, true, 3), 0..50);
            assert!(lines.chunks(bytes).all(|line| line.ends_with(b"\r\n")));
            let printable = lines.iter().filter(|byte| (b' '..=b'~').contains(byte)).count();
            assert_eq!(printable, 50 * (bytes - 2));
        }
    }

    #[test]
    fn skew_repeats_prefixes_and_seeds_differ() {
        let prefixes = |skew, seed| {
            let all = made(&Gensort::new(GensortKind::Binary, 10, skew, seed), 0..10_000);
            let mut prefixes: Vec<_> = all.chunks(10).map(|key| key[..4].to_vec()).collect();
            prefixes.sort();
            prefixes.dedup();
            prefixes.len()
        };
        assert!(prefixes(false, 0) > 9_990);
        assert!(prefixes(true, 0) < 8_000);
        let of = |seed| made(&Gensort::new(GensortKind::Binary, 100, false, seed), 0..10);
        assert_ne!(of(0), of(1));
        assert_ne!(of(1), of(2));
    }
}
