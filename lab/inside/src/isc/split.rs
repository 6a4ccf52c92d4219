//! Splits of an input for a device that can't ask another for the rest of a record.
//!
//! ```text
//!   records     │a    │b      │c  │d        │e   │f        │
//!   splits      ├────────────────┼────────────────┼────────┤
//!   mapped      ├─ a b c ──┤                  ├ f ┤            (without start and end offset)
//!   split records             ├─ d ─────┤  e ends at a border: it is not split
//! ```
//!
//! Hadoop cuts files at multiples of a size, wherever records end. The host finds the record that
//! crosses each border and has it mapped as an input of its own; the split gets a *start offset* and
//! an *end offset*, the lengths of the parts that the device leaves out (the ISC paper, section 3.3.3).

use std::io;
use std::ops::Range;

use merganser_sort::record::{Format, SplitRule};
use merganser_storage::{Storage, StorageExt};

/// The first look for the end of a record, in bytes; each later one is twice as long.
const LOOK_BYTES: u64 = 4096;

/// A split of an input, in bytes of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitCut {
    /// All of it.
    pub range: Range<u64>,
    /// Bytes at its start that belong to a record which begins before it.
    pub start_offset: u64,
    /// Bytes at its end that belong to a record which ends after it.
    pub end_offset: u64,
}

impl SplitCut {
    /// The bytes that are mapped as a part of this split: whole records.
    #[must_use]
    pub fn mapped(&self) -> Range<u64> {
        self.range.start + self.start_offset..self.range.end - self.end_offset
    }
}

/// An input in splits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// The splits, in order.
    pub splits: Vec<SplitCut>,
    /// The records that cross their ends, in order.
    pub records: Vec<Range<u64>>,
}

impl Cuts {
    /// The mapped parts of splits and the split records, in the order of the input: what a device must
    /// map so that each record is mapped once. `true` marks a split record.
    #[must_use]
    pub fn in_order(&self) -> Vec<(Range<u64>, bool)> {
        let splits = self.splits.iter().map(|cut| (cut.mapped(), false));
        let records = self.records.iter().map(|record| (record.clone(), true));
        let mut all: Vec<(Range<u64>, bool)> =
            splits.chain(records).filter(|(range, _)| !range.is_empty()).collect();
        all.sort_by_key(|(range, _)| range.start);
        all
    }
}

/// Cuts `storage` at multiples of `split_bytes`, and finds the records that cross the borders. Only
/// lines and records of fixed length can be cut: the ends of others depend on everything before them,
/// so they stay one split.
///
/// # Errors
/// The storage's own.
///
/// # Panics
/// When `split_bytes` is 0.
pub fn cut(storage: &dyn Storage, split_bytes: u64, format: Format) -> io::Result<Cuts> {
    let size = storage.size();
    let split_bytes = if format.split_rule().is_local() { split_bytes } else { size.max(1) };
    assert!(split_bytes > 0, "a split has bytes");
    let mut cuts = Cuts { splits: Vec::new(), records: Vec::new() };
    // The record that crosses the border before the split, or an empty range at the border.
    let mut before = 0..0;
    let mut start = 0;
    while start < size {
        let end = (start + split_bytes).min(size);
        let after = if end == size || before.end > end {
            // The end of the input, or a record that crosses the next border too.
            if end == size { size..size } else { before.clone() }
        } else {
            record_across(storage, end, before.end, format)?
        };
        cuts.splits.push(SplitCut {
            range: start..end,
            start_offset: before.end.min(end) - start,
            end_offset: end - after.start.max(before.end.min(end)),
        });
        if !after.is_empty() && after != before {
            cuts.records.push(after.clone());
        }
        (before, start) = (after, end);
    }
    Ok(cuts)
}

/// The record that begins before `border` and ends after it; `border..border` if a record ends there.
/// A record begins at `least`.
fn record_across(
    storage: &dyn Storage,
    border: u64,
    least: u64,
    format: Format,
) -> io::Result<Range<u64>> {
    let size = storage.size();
    match format.split_rule() {
        SplitRule::Multiples { bytes } => {
            let bytes = bytes as u64;
            let start = border / bytes * bytes;
            Ok(if start == border { border..border } else { start..(start + bytes).min(size) })
        }
        SplitRule::Behind { delimiter } => {
            let start = line_start(storage, border, least, delimiter)?;
            if start == border {
                return Ok(border..border);
            }
            Ok(start..line_end(storage, border, delimiter)?)
        }
        SplitRule::FromTheFront => unreachable!("they are one split"),
    }
}

/// The place after the last `delimiter` before `border`, `least` at least.
fn line_start(storage: &dyn Storage, border: u64, least: u64, delimiter: u8) -> io::Result<u64> {
    let (mut end, mut look) = (border, LOOK_BYTES);
    while end > least {
        let from = end.saturating_sub(look).max(least);
        let bytes = storage.read_vec(from, (end - from) as usize)?;
        if let Some(at) = memchr::memrchr(delimiter, &bytes) {
            return Ok(from + at as u64 + 1);
        }
        (end, look) = (from, (look * 2).min(1 << 20));
    }
    Ok(least)
}

/// The place after the first `delimiter` from `border` on, or the end.
fn line_end(storage: &dyn Storage, border: u64, delimiter: u8) -> io::Result<u64> {
    let (mut from, mut look) = (border, LOOK_BYTES);
    let size = storage.size();
    while from < size {
        let end = (from + look).min(size);
        let bytes = storage.read_vec(from, (end - from) as usize)?;
        if let Some(at) = memchr::memchr(delimiter, &bytes) {
            return Ok(from + at as u64 + 1);
        }
        (from, look) = (end, (look * 2).min(1 << 20));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_storage::memory::MemoryStorage;
    use proptest::prelude::*;

    const LINES: Format = Format::Lines { delimiter: b'\n' };

    fn cut_text(text: &[u8], split_bytes: u64, format: Format) -> Cuts {
        let storage = MemoryStorage::new("input");
        storage.write_at(0, text).expect("written");
        cut(&*storage, split_bytes, format).expect("read")
    }

    #[test]
    fn the_papers_example() {
        // Figure 8: a record is cut in two.
        let cuts = cut_text(b"In\nStorage\nHadoop\nx\n", 13, LINES);
        let expected = [(0..13, 0, 2), (13..20, 5, 0)];
        for (cut, (range, start_offset, end_offset)) in cuts.splits.iter().zip(expected) {
            assert_eq!(*cut, SplitCut { range, start_offset, end_offset });
        }
        assert_eq!((cuts.records.len(), &cuts.records[0]), (1, &(11..18)));
    }

    #[test]
    fn a_record_longer_than_splits() {
        let cuts = cut_text(b"a\nbbbbbbbbbbb\nc\n", 4, LINES);
        assert_eq!((cuts.records.len(), &cuts.records[0]), (1, &(2..14)));
        let mapped: Vec<_> = cuts.in_order();
        assert_eq!(mapped, [(0..2, false), (2..14, true), (14..16, false)]);
    }

    #[test]
    fn formats_without_local_ends_are_one_split() {
        assert_eq!(cut_text(b"\"a\nb\"\nc\n", 2, Format::Keyed).splits.len(), 1);
        assert_eq!(cut_text(b"", 2, LINES).splits, []);
    }

    /// Every record is mapped once, whole, whatever the size of splits.
    fn check(text: &[u8], split_bytes: u64, format: Format) {
        let cuts = cut_text(text, split_bytes, format);
        let mut at = 0;
        for (range, _) in cuts.in_order() {
            assert_eq!(range.start, at, "{cuts:?}");
            at = range.end;
            let ends = match format {
                Format::Fixed { bytes } => at.is_multiple_of(bytes as u64),
                _ => text[at as usize - 1] == b'\n',
            };
            assert!(ends || at == text.len() as u64, "{range:?} of {cuts:?}");
        }
        assert_eq!(at, text.len() as u64);
        let sizes: u64 = cuts.splits.iter().map(|cut| cut.range.end - cut.range.start).sum();
        assert_eq!(sizes, text.len() as u64);
        for cut in &cuts.splits {
            assert!(cut.start_offset + cut.end_offset <= cut.range.end - cut.range.start);
        }
    }

    #[test]
    fn all_short_texts() {
        for len in 0..10_u32 {
            for bits in 0..1 << len {
                let newline = |at| if bits >> at & 1 == 1 { b'\n' } else { b'x' };
                let text: Vec<u8> = (0..len).map(newline).collect();
                for split_bytes in 1..=u64::from(len) + 1 {
                    check(&text, split_bytes, LINES);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn long_lines(lens in prop::collection::vec(0_usize..12_000, 0..12), split in 1_u64..30_000) {
            let text: Vec<u8> =
                lens.iter().flat_map(|len| [vec![b'x'; *len], vec![b'\n']].concat()).collect();
            check(&text, split, LINES);
        }

        #[test]
        fn fixed(count in 0_usize..50, bytes in 1_usize..40, split in 1_u64..300) {
            check(&vec![1; count * bytes], split, Format::Fixed { bytes });
        }
    }
}
