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

use super::kernel::{self, KeptTree, MergeCount};
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
    /// Continued by the next step: building it would cost a match for each segment.
    tree: Option<KeptTree<u64>>,
}

impl StepMerge {
    /// A merge that has not begun.
    #[must_use]
    pub fn new(order: Order) -> Self {
        StepMerge { order, cut: None, tree: None }
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
        self.tree = None;
    }

    /// Merges `segments`, which each hold whole records in order, into `out`. It ends when `out` is
    /// full, when nothing is left, or when a segment is used up that has more to come. Each segment
    /// keeps the bytes that were not written. After a step that cut a record, the next step must be
    /// given the rest of the record at the start of its segment.
    ///
    /// Once one segment is left and no other has more to come, its bytes are copied without looking
    /// for records, and they are not counted as such. The count of compares is that of all matches
    /// played, those of building the tree included. It is built by the first step, and where the
    /// segments that have records change.
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
            if let Some(tree) = &mut self.tree {
                tree.winner_written();
            }
        }
        let out = &mut out[count.bytes as usize..];
        let before: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
        let tree = &mut self.tree;
        let (merged, built) = with_access!(&self.order, framing, access => {
            kernel::merge_on(framing, access, segments, false, out, tree)
        });
        let used = before - segments.iter().map(|segment| segment.bytes.len()).sum::<usize>();
        let written = merged.bytes as usize - used;
        if let Some(segment) = merged.cut
            && written > 0
        {
            let bytes = segments[segment].bytes;
            let len = self.order.format().first_len(bytes).expect("it was framed to be cut");
            segments[segment].bytes = &bytes[written..];
            self.cut = Some(Cut { segment, written, left: len - written });
        }
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

    /// Steps of a page of few records play the matches of one merge: the tree is built once.
    #[test]
    fn small_steps_play_no_more_matches_than_one_large_one() {
        const K: usize = 60;
        const RECORDS: usize = 40;
        let order = OrderSpec::new(Format::Fixed { bytes: 64 }).compile(None).expect("a format");
        let mut random = merganser_random::Random::new(3);
        let runs: Vec<Vec<[u8; 64]>> = (0..K)
            .map(|_| {
                let mut run: Vec<[u8; 64]> = (0..RECORDS)
                    .map(|_| std::array::from_fn(|_| random.below(256) as u8))
                    .collect();
                run.sort_unstable();
                run
            })
            .collect();
        let bytes: Vec<&[u8]> = runs.iter().map(|run| run.as_flattened()).collect();
        let mut expected = runs.concat();
        expected.sort_unstable();
        // Whole, in pages of two and a half records, and with segments that run dry at each record.
        let compares = |out_bytes: usize, at_hand: usize| {
            let mut merge = StepMerge::new(order.clone());
            let (mut taken, mut compares, mut all) = (vec![0; K], 0, Vec::new());
            while all.len() < expected.len() * 64 {
                let mut segments: Vec<SortedSlice<'_>> = bytes
                    .iter()
                    .zip(&taken)
                    .map(|(bytes, &from)| {
                        // To the end of a record: a cut one is at hand to its end.
                        let end = (from + at_hand).next_multiple_of(64).min(bytes.len());
                        SortedSlice { bytes: &bytes[from..end], more: end < bytes.len() }
                    })
                    .collect();
                let before: Vec<usize> = segments.iter().map(|s| s.bytes.len()).collect();
                let mut out = vec![0; out_bytes];
                let count = merge.merge(&mut segments, &mut out);
                compares += count.compares;
                all.extend_from_slice(&out[..count.bytes as usize]);
                for ((taken, before), segment) in taken.iter_mut().zip(before).zip(&segments) {
                    *taken += before - segment.bytes.len();
                }
            }
            assert_eq!(all, expected.as_flattened());
            compares
        };
        let most = (K * RECORDS * 6) as u64 + (K * K) as u64;
        for (out_bytes, at_hand) in [(1 << 20, 1 << 20), (160, 1 << 20), (160, 64), (1 << 20, 64)] {
            let found = compares(out_bytes, at_hand);
            assert!(found <= most, "{out_bytes} {at_hand}: {found} compares, at most {most}");
        }
    }
}
