//! A merge in steps, for callers that keep their own buffers. A step merges the bytes that are in
//! memory now, until a segment is used up or the output is full. The next step continues there.
//!
//! ```text
//!   segments   ├─ used ─┼── merged by this step ──┼─ left ─┤ more to come?
//!                                    │
//!   output                ├── written ┴───────────┤ full: the last record is cut, its rest is first
//!                                                   in the next step's output
//! ```
//!
//! It is the kernel of every other merge of this crate. A program inside a storage device uses it,
//! whose memory is a few flash pages of each input.

use super::kernel::{self, MergeCount};
use crate::access::with_access;
use crate::key::Order;

pub use super::kernel::SortedSlice;

/// A record whose first bytes were written by the last step; the others were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The number of its segment, which now begins inside it.
    pub segment: usize,
    /// Bytes of it that are written.
    pub written: usize,
    /// Bytes of it that are not.
    pub left: usize,
}

/// A merge in steps: records in order, equal ones in the order of their segments, and all of them
/// are kept.
///
/// ```
/// use merganser_sort::key::OrderSpec;
/// use merganser_sort::merge::step::{SortedSlice, StepMerge};
/// use merganser_sort::record::Format;
///
/// let order = OrderSpec::new(Format::Lines { delimiter: b'\n' }).compile(None)?;
/// let mut merge = StepMerge::new(order);
/// let mut segments =
///     [SortedSlice { bytes: b"ant\nelk\n", more: true }, SortedSlice { bytes: b"cat\nfox\n", more: false }];
/// let mut out = [0; 16];
/// let count = merge.merge(&mut segments, &mut out);
/// assert_eq!(&out[..count.bytes as usize], b"ant\ncat\nelk\n");
/// assert!(segments[0].bytes.is_empty(), "fill it again, then continue");
/// # Ok::<(), merganser_sort::key::KeyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StepMerge {
    order: Order,
    cut: Option<Cut>,
}

impl StepMerge {
    /// A merge that has not begun.
    #[must_use]
    pub fn new(order: Order) -> Self {
        StepMerge { order, cut: None }
    }

    /// The order it merges by.
    #[must_use]
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The record that the last step cut.
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Forgets where it was: the next step begins at records.
    pub fn restart(&mut self) {
        self.cut = None;
    }

    /// Merges `segments`, which each hold whole records in order, into `out`. It ends when `out` is
    /// full, when nothing is left, or when a segment is used up that has more to come. Each segment
    /// keeps the bytes that were not written. After a step that cut a record, the next step must be
    /// given the rest of the record at the start of its segment.
    ///
    /// Once one segment is left and no other has more to come, its bytes are copied without looking
    /// for records, and they are not counted as such. The count of compares is that of all matches
    /// played, those of building the tree included.
    pub fn merge(&mut self, segments: &mut [SortedSlice<'_>], out: &mut [u8]) -> MergeCount {
        let mut count = MergeCount::default();
        if let Some(cut) = &mut self.cut {
            let rest = &mut segments[cut.segment].bytes;
            let n = cut.left.min(out.len());
            out[..n].copy_from_slice(&rest[..n]);
            *rest = &rest[n..];
            count.bytes = n as u64;
            cut.written += n;
            cut.left -= n;
            if cut.left > 0 {
                return count;
            }
            self.cut = None;
        }
        let out = &mut out[count.bytes as usize..];
        let live = segments.iter().filter(|segment| !segment.bytes.is_empty()).count();
        let before: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
        let merged = with_access!(&self.order, framing, access => {
            kernel::merge::<u64, _, _>(framing, access, segments, false, out)
        });
        let used = before - segments.iter().map(|segment| segment.bytes.len()).sum::<usize>();
        let written = merged.bytes as usize - used;
        if let Some(segment) = merged.cut
            && written > 0
        {
            let bytes = segments[segment].bytes;
            let len = self.order.format().record_len(bytes).expect("it was framed to be cut");
            segments[segment].bytes = &bytes[written..];
            self.cut = Some(Cut { segment, written, left: len - written });
        }
        let built = if merged.records > 0 { live.saturating_sub(1) as u64 } else { 0 };
        MergeCount {
            bytes: count.bytes + merged.bytes,
            compares: merged.compares + built,
            ..merged
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::OrderSpec;
    use crate::record::Format;

    proptest! {
        /// However the inputs are divided into steps and however small the outputs are, the bytes
        /// are those of one stable sort.
        #[test]
        fn steps_of_any_size_give_one_merge(
            runs in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(b'a'..=b'c', 0..9), 0..12), 1..6),
            at_a_time in prop::collection::vec(1_usize..4, 1..6),
            outs in prop::collection::vec(0_usize..7, 1..6),
        ) {
            let order = OrderSpec::new(Format::Lines { delimiter: b'\n' }).compile(None).unwrap();
            let line = |text: &Vec<u8>| [text, &b"\n"[..]].concat();
            let runs: Vec<Vec<Vec<u8>>> = runs.iter().map(|run| {
                let mut lines: Vec<_> = run.iter().map(line).collect();
                lines.sort();
                lines
            }).collect();
            let mut expected = runs.concat();
            expected.sort();

            let mut merge = StepMerge::new(order);
            let mut next = vec![0; runs.len()];
            let mut at_hand: Vec<Vec<u8>> = vec![Vec::new(); runs.len()];
            let mut merged = Vec::new();
            let mut turns = at_a_time.iter().cycle();
            for out in outs.iter().cycle() {
                for (number, run) in runs.iter().enumerate() {
                    if at_hand[number].is_empty() && next[number] < run.len() {
                        let end = (next[number] + turns.next().unwrap()).min(run.len());
                        at_hand[number] = run[next[number]..end].concat();
                        next[number] = end;
                    }
                }
                if at_hand.iter().all(Vec::is_empty) {
                    break;
                }
                let mut segments: Vec<SortedSlice<'_>> = at_hand.iter().zip(&next).zip(&runs)
                    .map(|((bytes, next), run)| SortedSlice { bytes, more: *next < run.len() })
                    .collect();
                let mut bytes = vec![0; out + 1];
                let count = merge.merge(&mut segments, &mut bytes);
                prop_assert!(count.bytes > 0);
                merged.extend_from_slice(&bytes[..count.bytes as usize]);
                let left: Vec<usize> = segments.iter().map(|s| s.bytes.len()).collect();
                for (bytes, left) in at_hand.iter_mut().zip(left) {
                    bytes.drain(..bytes.len() - left);
                }
            }
            prop_assert_eq!(merged, expected.concat());
        }
    }

    #[test]
    fn matches_are_counted_even_when_a_record_is_all_there_is() {
        let order = OrderSpec::new(Format::Fixed { bytes: 2 }).compile(None).expect("a format");
        let mut merge = StepMerge::new(order);
        let mut segments =
            [&b"bb"[..], b"aa", b"cc"].map(|bytes| SortedSlice { bytes, more: true });
        let mut out = [0; 9];
        let count = merge.merge(&mut segments, &mut out);
        assert_eq!((count.records, count.compares, count.bytes), (1, 2, 2));
        assert_eq!(merge.merge(&mut segments, &mut out).bytes, 0, "the second segment is dry");
    }
}
