//! Keys that hurt, and records round them.

use std::borrow::Cow;
use std::fmt;

use crate::Random;

/// The order and the kind of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Random bytes, 0 to 24 of them.
    Random,
    /// Ascending.
    Sorted,
    /// Descending.
    Reversed,
    /// Ascending, except one key in a hundred.
    AlmostSorted,
    /// Ascending stretches, each from the start again.
    Sawtooth,
    /// Ascending to the middle, then descending.
    OrganPipe,
    /// One key.
    AllEqual,
    /// Seven keys.
    FewDistinct,
    /// Many keys of very unequal frequency.
    Zipf,
    /// Forty bytes in common, then a difference.
    CommonPrefix,
    /// Keys made of NULs and ones, so that padding with NULs would confuse them.
    EmbeddedNul,
    /// Most keys empty, some of one byte.
    Empty,
    /// Lengths from nothing to 10 KB.
    Lengths,
    /// Bytes around the sign bit: 0x00, 0x7f, 0x80, 0xff.
    HighBytes,
}

impl Pattern {
    /// Each of them.
    pub const ALL: [Pattern; 14] = [
        Pattern::Random,
        Pattern::Sorted,
        Pattern::Reversed,
        Pattern::AlmostSorted,
        Pattern::Sawtooth,
        Pattern::OrganPipe,
        Pattern::AllEqual,
        Pattern::FewDistinct,
        Pattern::Zipf,
        Pattern::CommonPrefix,
        Pattern::EmbeddedNul,
        Pattern::Empty,
        Pattern::Lengths,
        Pattern::HighBytes,
    ];

    /// The `count` keys of this pattern that `seed` fixes.
    #[must_use]
    pub fn keys(self, count: usize, seed: u64) -> Vec<Vec<u8>> {
        let mut random = Random::new(seed);
        (0..count).map(|at| self.key(at, count, &mut random)).collect()
    }

    fn key(self, at: usize, count: usize, random: &mut Random) -> Vec<u8> {
        // Numbers of one length, so that byte order is number order.
        let number = |n: usize| format!("{n:09}").into_bytes();
        match self {
            Pattern::Random => {
                let len = random.index(25);
                random.bytes(len)
            }
            Pattern::Sorted => number(at),
            Pattern::Reversed => number(count - at),
            Pattern::AlmostSorted if random.one_in(100) => number(random.index(count)),
            Pattern::AlmostSorted => number(at),
            Pattern::Sawtooth => number(at % (count / 8).max(3)),
            Pattern::OrganPipe => number(at.min(count - at)),
            Pattern::AllEqual => b"the same".to_vec(),
            Pattern::FewDistinct => format!("key {}", random.below(7)).into_bytes(),
            // Rank r about as often as 1/r: uniform in the logarithm.
            Pattern::Zipf => number((count as f64).powf(random.fraction()) as usize),
            Pattern::CommonPrefix => {
                let mut key = vec![b'p'; 40];
                key.extend(number(random.index(count)));
                key
            }
            Pattern::EmbeddedNul => (0..random.index(12)).map(|_| random.below(2) as u8).collect(),
            Pattern::Empty if random.one_in(3) => random.bytes(1),
            Pattern::Empty => Vec::new(),
            Pattern::Lengths => {
                // Uniform in the number of digits of the length.
                let len = 10_000_f64.powf(random.fraction()) as usize - 1;
                let byte = b'a' + random.below(3) as u8;
                vec![byte; len]
            }
            Pattern::HighBytes => {
                let len = random.index(6);
                (0..len).map(|_| [0x00, 0x7f, 0x80, 0xff][random.index(4)]).collect()
            }
        }
    }
}

/// How a key becomes a record. All layouts except `Lines` carry a serial number, which shows
/// whether equal keys stayed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordLayout {
    /// The key, then `delimiter`.
    Lines {
        /// Ends a record; keys have the next byte in its place.
        delimiter: u8,
    },
    /// The key, a tab, the serial number in decimal, then `delimiter`.
    Numbered {
        /// Ends a record; keys have the next byte in its and the tab's place.
        delimiter: u8,
    },
    /// The key quoted as RFC 4180 says where it has to be, a comma, the serial number, a newline.
    Csv,
    /// `key_bytes` of key, cut or filled with NULs, then the serial number in 8 bytes, big-endian,
    /// then dots.
    Fixed {
        /// Length of a record: at least `key_bytes + 8`.
        bytes: usize,
        /// Length of the key.
        key_bytes: usize,
    },
    /// Length of the key and of the value as little-endian `u32`, the key, the serial number in 8
    /// bytes, big-endian.
    Keyed,
}

impl RecordLayout {
    /// The record with `key` and `serial`.
    #[must_use]
    pub fn record(self, key: &[u8], serial: u64) -> Vec<u8> {
        let mut record = Vec::with_capacity(key.len() + 24);
        match self {
            RecordLayout::Lines { delimiter } => {
                record.extend(key.iter().map(|&b| avoid(b, &[delimiter])));
                record.push(delimiter);
            }
            RecordLayout::Numbered { delimiter } => {
                record.extend(key.iter().map(|&b| avoid(b, &[delimiter, b'\t'])));
                record.extend(format!("\t{serial}").bytes());
                record.push(delimiter);
            }
            RecordLayout::Csv => {
                if key.iter().any(|b| b",\"\r\n".contains(b)) {
                    record.push(b'"');
                    for &byte in key {
                        record.extend(std::iter::repeat_n(byte, 1 + usize::from(byte == b'"')));
                    }
                    record.push(b'"');
                } else {
                    record.extend(key);
                }
                record.extend(format!(",{serial}\n").bytes());
            }
            RecordLayout::Fixed { bytes, key_bytes } => {
                record.extend(&key[..key.len().min(key_bytes)]);
                record.resize(key_bytes, 0);
                record.extend(serial.to_be_bytes());
                assert!(record.len() <= bytes, "no room for the serial number");
                record.resize(bytes, b'.');
            }
            RecordLayout::Keyed => {
                let key_bytes = u32::try_from(key.len()).expect("a short key");
                record.extend(key_bytes.to_le_bytes());
                record.extend(8_u32.to_le_bytes());
                record.extend(key);
                record.extend(serial.to_be_bytes());
            }
        }
        record
    }

    /// The key of a `record` made by [`RecordLayout::record`].
    #[must_use]
    pub fn key(self, record: &[u8]) -> Cow<'_, [u8]> {
        let plain = match self {
            RecordLayout::Lines { .. } => &record[..record.len() - 1],
            RecordLayout::Numbered { .. } => {
                &record[..record.iter().position(|&b| b == b'\t').expect("has a tab")]
            }
            RecordLayout::Csv => {
                let field =
                    &record[..record.iter().rposition(|&b| b == b',').expect("has a comma")];
                match field {
                    [b'"', quoted @ .., b'"'] => return Cow::Owned(unquote(quoted)),
                    plain => plain,
                }
            }
            RecordLayout::Fixed { key_bytes, .. } => &record[..key_bytes],
            RecordLayout::Keyed => &record[8..record.len() - 8],
        };
        Cow::Borrowed(plain)
    }

    /// Splits `bytes`, a sequence of records, each with its terminator.
    ///
    /// # Panics
    /// When the last record is cut short.
    #[must_use]
    pub fn split(self, bytes: &[u8]) -> Vec<&[u8]> {
        let mut records = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = self.record_len(rest).unwrap_or_else(|| {
                panic!(
                    "{self:?}: the last record, at byte {}, is cut short",
                    bytes.len() - rest.len()
                )
            });
            let (record, more) = rest.split_at(len);
            records.push(record);
            rest = more;
        }
        records
    }

    fn record_len(self, bytes: &[u8]) -> Option<usize> {
        let len = match self {
            RecordLayout::Lines { delimiter } | RecordLayout::Numbered { delimiter } => {
                bytes.iter().position(|&b| b == delimiter)? + 1
            }
            RecordLayout::Csv => {
                let mut quoted = false;
                let ends = |&byte: &u8| {
                    quoted ^= byte == b'"';
                    byte == b'\n' && !quoted
                };
                bytes.iter().position(ends)? + 1
            }
            RecordLayout::Fixed { bytes, .. } => bytes,
            RecordLayout::Keyed => {
                let number = |at: usize| -> Option<usize> {
                    let four = bytes.get(at..at + 4)?.try_into().expect("four bytes");
                    Some(u32::from_le_bytes(four) as usize)
                };
                8 + number(0)? + number(4)?
            }
        };
        (len <= bytes.len()).then_some(len)
    }
}

fn avoid(byte: u8, reserved: &[u8]) -> u8 {
    let mut byte = byte;
    while reserved.contains(&byte) {
        byte = byte.wrapping_add(1);
    }
    byte
}

fn unquote(quoted: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(byte);
        if byte == b'"' {
            bytes.next();
        }
    }
    plain
}

/// An input to sort, and how it was made. Its `Display` is for messages of failed tests.
#[derive(Debug, Clone)]
pub struct SampleInput {
    /// Kind of keys.
    pub pattern: Pattern,
    /// Kind of records.
    pub layout: RecordLayout,
    /// The seed that everything was drawn from.
    pub seed: u64,
    /// The records, terminators included.
    pub records: Vec<Vec<u8>>,
}

impl SampleInput {
    /// `count` records.
    #[must_use]
    pub fn new(pattern: Pattern, layout: RecordLayout, count: usize, seed: u64) -> SampleInput {
        let keys = pattern.keys(count, seed);
        let records = keys.iter().zip(0..).map(|(key, at)| layout.record(key, at)).collect();
        SampleInput { pattern, layout, seed, records }
    }

    /// The records on end.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.records.concat()
    }
}

impl fmt::Display for SampleInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SampleInput { pattern, layout, seed, records } = self;
        write!(f, "{} records, {pattern:?}, {layout:?}, seed {seed:#x}", records.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [RecordLayout; 6] = [
        RecordLayout::Lines { delimiter: b'\n' },
        RecordLayout::Numbered { delimiter: b'\n' },
        RecordLayout::Numbered { delimiter: 0 },
        RecordLayout::Csv,
        RecordLayout::Fixed { bytes: 100, key_bytes: 10 },
        RecordLayout::Keyed,
    ];

    #[test]
    fn records_look_as_documented() {
        let record = |layout: RecordLayout| layout.record(b"a\"\n", 5);
        assert_eq!(record(LAYOUTS[0]), b"a\"\x0b\n");
        assert_eq!(record(LAYOUTS[1]), b"a\"\x0b\t5\n");
        assert_eq!(record(RecordLayout::Csv), b"\"a\"\"\n\",5\n");
        let fixed = RecordLayout::Fixed { bytes: 14, key_bytes: 4 };
        assert_eq!(record(fixed), b"a\"\n\0\0\0\0\0\0\0\0\x05..");
        assert_eq!(record(RecordLayout::Keyed), b"\x03\0\0\0\x08\0\0\0a\"\n\0\0\0\0\0\0\0\x05");
    }

    #[test]
    fn every_pattern_survives_every_layout() {
        for (pattern, layout) in Pattern::ALL.iter().flat_map(|&p| LAYOUTS.map(|l| (p, l))) {
            for count in [0, 1, 2, 3, 300] {
                let sample = SampleInput::new(pattern, layout, count, 9);
                assert_eq!(sample.records.len(), count);
                assert_eq!(layout.split(&sample.bytes()), sample.records, "{sample}");
            }
            let keys = pattern.keys(300, 9);
            assert_eq!(keys, pattern.keys(300, 9), "the same from the same seed");
            if matches!(layout, RecordLayout::Csv | RecordLayout::Keyed) {
                for (key, record) in
                    keys.iter().zip(SampleInput::new(pattern, layout, 300, 9).records)
                {
                    assert_eq!(layout.key(&record), *key, "{pattern:?} {layout:?}");
                }
            }
        }
    }

    #[test]
    fn patterns_match_their_names() {
        let keys = |pattern: Pattern| pattern.keys(1000, 3);
        let distinct =
            |pattern| keys(pattern).into_iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(keys(Pattern::Sorted).is_sorted());
        assert!(keys(Pattern::Reversed).iter().rev().is_sorted());
        assert!(!keys(Pattern::AlmostSorted).is_sorted());
        assert!(keys(Pattern::OrganPipe)[..500].is_sorted());
        assert!(keys(Pattern::OrganPipe)[500..].iter().rev().is_sorted());
        assert_eq!((distinct(Pattern::AllEqual), distinct(Pattern::FewDistinct)), (1, 7));
        assert_eq!(distinct(Pattern::Sawtooth), 125);
        assert!(distinct(Pattern::Random) > 900);
        let lens: Vec<usize> = keys(Pattern::Lengths).iter().map(Vec::len).collect();
        assert!(lens.contains(&0) && lens.iter().any(|&len| len > 5000));
        let zipf = keys(Pattern::Zipf);
        let ones = zipf.iter().filter(|key| key.ends_with(b"000000001")).count();
        assert!((50..250).contains(&ones) && distinct(Pattern::Zipf) > 100);
    }
}
