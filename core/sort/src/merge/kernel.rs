//! `k` sorted slices in memory, merged into one output slice by the loser tree ([`tree`]).
//!
//! A node holds the key's first eight or sixteen bytes ([`KeyWord`]); which of the two is better,
//! `width` finds out.
//! The copies are counted by the caller: exactly the bytes written.

use std::cmp::Ordering;

use super::tree::{self, Leaves, Node};
use crate::access::KeyAccess;
use crate::prefix::Word;
use crate::record::Framing;

/// Counts of one merge, for charging a clock and for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeCount {
    /// Records written (a last one that was cut short included).
    pub records: u64,
    /// Matches played in the tree.
    pub compares: u64,
    /// The matches among them in which the words of both records were equal.
    pub ties: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The segment that does not hold whole records: the merge stopped at its broken one.
    pub broken: Option<usize>,
    /// The segment whose first record did not fit and is cut, while others were live.
    pub cut: Option<usize>,
}

/// The first bytes of a key, as many as a node of the tree holds.
pub(crate) trait KeyWord: Word {
    /// The word of a loaded record; `prefix` is its key's first eight bytes.
    fn of_record<A: KeyAccess>(access: A, record: &[u8], kept: &A::Kept, prefix: u64) -> Self;
}

impl KeyWord for u64 {
    #[inline]
    fn of_record<A: KeyAccess>(_access: A, _record: &[u8], _kept: &A::Kept, prefix: u64) -> Self {
        prefix
    }
}

impl KeyWord for u128 {
    #[inline]
    fn of_record<A: KeyAccess>(access: A, record: &[u8], kept: &A::Kept, prefix: u64) -> Self {
        access.widen(record, kept, prefix)
    }
}

/// One sorted input of a merge.
#[derive(Debug, Clone, Copy)]
pub struct SortedSlice<'a> {
    /// Whole records.
    pub bytes: &'a [u8],
    /// Whether records follow that are not in memory: the merge stops when these are used up.
    pub more: bool,
}

struct Cursor<'a, K, W> {
    /// Its number among the segments.
    number: usize,
    rest: &'a [u8],
    more: bool,
    len: usize,
    kept: K,
    word: W,
}

impl<'a, K: Default, W: KeyWord> Cursor<'a, K, W> {
    #[inline]
    fn record(&self) -> &'a [u8] {
        &self.rest[..self.len]
    }

    #[inline]
    fn load<F: Framing, A: KeyAccess<Kept = K>>(&mut self, framing: F, access: A) -> bool {
        let Some(len) = framing.first(self.rest) else { return false };
        self.len = len;
        let record = &self.rest[..self.len];
        let prefix = access.load(record, &mut self.kept);
        self.word = W::of_record(access, record, &self.kept, prefix);
        true
    }
}

/// The tree of a merge that continues in a later call: the heads of all its leaves are what they were,
/// except the winner's.
#[derive(Debug, Clone)]
pub(crate) struct KeptTree<W> {
    tree: Vec<Node<W>>,
    winner: Node<W>,
    /// The segment of each leaf.
    numbers: Vec<usize>,
    /// The winner's record was written: its leaf has another one.
    written: bool,
}

impl<W> KeptTree<W> {
    /// The winner's record, which was cut, is written.
    pub(crate) fn winner_written(&mut self) {
        self.written = true;
    }
}

/// Merges `segments` into `out`, all at once: the tree of [`merge_on`] is built, and not kept.
pub(crate) fn merge<W: KeyWord, F: Framing, A: KeyAccess>(
    framing: F,
    access: A,
    segments: &mut [SortedSlice<'_>],
    unique: bool,
    out: &mut [u8],
) -> MergeCount {
    merge_on::<W, F, A>(framing, access, segments, unique, out, &mut None).0
}

/// Merges `segments` into `out`. Each segment is sorted, and their order breaks ties. The merge
/// ends when `out` is full, when nothing is left, or when a segment is used up that has more to
/// come. The last record is cut when it does not fit. With `unique`, only the first of records with
/// equal keys is written. The rest of each segment stays in it.
///
/// The tree of the last call is continued, if the same segments have records, and is kept for the next
/// one. Also returns the matches played to build a tree, which the count leaves out.
pub(crate) fn merge_on<W: KeyWord, F: Framing, A: KeyAccess>(
    framing: F,
    access: A,
    segments: &mut [SortedSlice<'_>],
    unique: bool,
    out: &mut [u8],
    kept: &mut Option<KeptTree<W>>,
) -> (MergeCount, u64) {
    if segments.iter().any(|s| s.more && s.bytes.is_empty()) {
        return (MergeCount::default(), 0);
    }
    let mut cursors: Vec<Cursor<'_, A::Kept, W>> = (0..)
        .zip(segments.iter())
        .filter(|(_, s)| !s.bytes.is_empty())
        .map(|(number, s)| Cursor {
            number,
            rest: s.bytes,
            more: s.more,
            len: 0,
            kept: A::Kept::default(),
            word: W::ZERO,
        })
        .collect();
    let mut count = MergeCount::default();
    let built = merge_cursors(framing, access, &mut cursors, unique, out, &mut count, kept);
    for cursor in cursors {
        segments[cursor.number].bytes = cursor.rest;
    }
    (count, built)
}

fn merge_cursors<W: KeyWord, F: Framing, A: KeyAccess>(
    framing: F,
    access: A,
    cursors: &mut [Cursor<'_, A::Kept, W>],
    unique: bool,
    out: &mut [u8],
    count: &mut MergeCount,
    kept: &mut Option<KeptTree<W>>,
) -> u64 {
    let last_tree = kept.take();
    if cursors.is_empty() {
        return 0;
    }
    if cursors.len() == 1 && !unique {
        copy_rest(&mut cursors[0].rest, out, count);
        return 0;
    }
    for cursor in &mut *cursors {
        if !cursor.load(framing, access) {
            count.broken = Some(cursor.number);
            return 0;
        }
    }
    let mut live = cursors.len();
    let same = |kept: &KeptTree<W>| {
        kept.numbers.iter().copied().eq(cursors.iter().map(|cursor| cursor.number))
    };
    let mut built = 0;
    let (mut tree, mut winner) = match last_tree.filter(same) {
        Some(KeptTree { mut tree, mut winner, written, .. }) => {
            if written {
                winner.word = cursors[winner.leaf()].word;
                let played = tree::replay(&Cursors { access, cursors }, &mut tree, &mut winner);
                count.compares += played.compares;
                count.ties += played.ties;
            }
            (tree, winner)
        }
        None => {
            built = live as u64 - 1;
            tree::build(&Cursors { access, cursors })
        }
    };
    let keep = |tree, winner, written, cursors: &[Cursor<'_, A::Kept, W>]| {
        let numbers = cursors.iter().map(|cursor| cursor.number).collect();
        Some(KeptTree { tree, winner, numbers, written })
    };
    // The last record written, for `unique`: whole segments outlive the merge, its key is kept.
    let mut last: Option<(&[u8], A::Kept)> = None;
    let mut at = 0;
    loop {
        let cursor = &mut cursors[winner.leaf()];
        let record = cursor.record();
        let repeated = unique
            && last.as_ref().is_some_and(|(r, k)| {
                access.compare_keys((r, k), (record, &cursor.kept)) == Ordering::Equal
            });
        if !repeated {
            let space = out.len() - at;
            if record.len() > space {
                out[at..].copy_from_slice(&record[..space]);
                count.bytes = out.len() as u64;
                count.records += u64::from(space > 0);
                count.cut = Some(cursor.number);
                if live == cursors.len() {
                    *kept = keep(tree, winner, false, cursors);
                }
                return built;
            }
            out[at..at + record.len()].copy_from_slice(record);
            at += record.len();
            count.records += 1;
            if unique {
                last = Some((record, std::mem::take(&mut cursor.kept)));
            }
        }
        cursor.rest = &cursor.rest[cursor.len..];
        if cursor.rest.is_empty() {
            let dry = cursor.more;
            if dry && live == cursors.len() {
                *kept = keep(tree, winner, true, cursors);
                break;
            }
            live -= 1;
            if live == 0 || dry {
                break;
            }
            winner.end();
        } else {
            if !cursor.load(framing, access) {
                count.broken = Some(cursor.number);
                break;
            }
            winner.word = cursor.word;
        }
        let played = tree::replay(&Cursors { access, cursors }, &mut tree, &mut winner);
        count.compares += played.compares;
        count.ties += played.ties;
        if live == 1 && !unique {
            count.bytes = at as u64;
            copy_rest(&mut cursors[winner.leaf()].rest, &mut out[at..], count);
            return built;
        }
    }
    count.bytes = at as u64;
    built
}

/// One segment is left: no more compares. Its records are not counted one by one.
fn copy_rest(rest: &mut &[u8], out: &mut [u8], count: &mut MergeCount) {
    let n = rest.len().min(out.len());
    out[..n].copy_from_slice(&rest[..n]);
    *rest = &rest[n..];
    count.bytes += n as u64;
}

/// The cursors as the leaves of the tree.
struct Cursors<'c, 'a, A: KeyAccess, W> {
    access: A,
    cursors: &'c [Cursor<'a, A::Kept, W>],
}

impl<A: KeyAccess, W: KeyWord> Leaves for Cursors<'_, '_, A, W> {
    type Word = W;

    #[inline]
    fn count(&self) -> usize {
        self.cursors.len()
    }

    #[inline]
    fn word(&self, leaf: usize) -> Option<W> {
        Some(self.cursors[leaf].word)
    }

    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.cursors[a], &self.cursors[b]);
        self.access.compare((a.record(), &a.kept), (b.record(), &b.kept))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::access::DirectAccess;
    use crate::key::{DirectKey, Place};
    use crate::record::LineFraming;

    const LINES: LineFraming = LineFraming { delimiter: b'\n' };

    fn lines(descending: bool) -> DirectAccess {
        DirectAccess(DirectKey { place: Place::Line, descending })
    }

    fn whole<'a>(segments: &[&'a [u8]]) -> Vec<SortedSlice<'a>> {
        segments.iter().map(|bytes| SortedSlice { bytes, more: false }).collect()
    }

    fn run(segments: &[&[u8]], unique: bool, out: usize) -> Vec<u8> {
        let mut bytes = vec![0; out];
        let count =
            merge::<u64, _, _>(LINES, lines(false), &mut whole(segments), unique, &mut bytes);
        bytes.truncate(count.bytes as usize);
        bytes
    }

    #[test]
    fn three_runs_and_a_cut() {
        let segments: [&[u8]; 3] = [b"b\nd\n", b"a\nc\ne\n", b""];
        assert_eq!(run(&segments, false, 100), b"a\nb\nc\nd\ne\n");
        assert_eq!(run(&segments, false, 5), b"a\nb\nc");
        assert_eq!(run(&[], false, 5), b"");
    }

    #[test]
    fn stops_where_a_segment_runs_dry() {
        let mut segments = [
            SortedSlice { bytes: b"a\nc\n", more: true },
            SortedSlice { bytes: b"b\nd\n", more: false },
        ];
        let mut out = [0; 8];
        let count = merge::<u64, _, _>(LINES, lines(false), &mut segments, false, &mut out);
        assert_eq!((&out[..6], count.bytes), (&b"a\nb\nc\n"[..], 6));
        assert_eq!((segments[0].bytes, segments[1].bytes), (&b""[..], &b"d\n"[..]));
        assert_eq!(
            merge::<u64, _, _>(LINES, lines(false), &mut segments, false, &mut out).bytes,
            0
        );
    }

    #[test]
    fn keys_of_all_ones_do_not_hide_behind_ended_runs() {
        let high = [0xff; 9];
        let record = [&high[..], b"\n"].concat();
        let segments: [&[u8]; 3] = [b"a\n", &record, b"b\n"];
        assert_eq!(run(&segments, false, 100), [b"a\nb\n", &record[..]].concat());
    }

    proptest! {
        #[test]
        fn agrees_with_a_stable_sort(
            runs in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(b'a'..=b'c', 0..11), 0..12), 0..9),
            descending in any::<bool>(),
            unique in any::<bool>(),
        ) {
            let order = |a: &Vec<u8>, b: &Vec<u8>| if descending { b.cmp(a) } else { a.cmp(b) };
            let mut all = Vec::new();
            let mut segments = Vec::new();
            for mut run in runs {
                run.sort_by(order);
                all.extend(run.iter().cloned());
                segments.push(run.iter().flat_map(|r| [r, &b"\n"[..]].concat()).collect::<Vec<_>>());
            }
            all.sort_by(order);
            if unique { all.dedup(); }
            let expected: Vec<u8> = all.iter().flat_map(|r| [r, &b"\n"[..]].concat()).collect();
            let slices: Vec<&[u8]> = segments.iter().map(|s| &s[..]).collect();
            let total = slices.iter().map(|s| s.len()).sum();
            let mut out = vec![0; total];
            let access = lines(descending);
            let count =
                merge::<u64, _, _>(LINES, access, &mut whole(&slices), unique, &mut out);
            prop_assert_eq!(&out[..count.bytes as usize], &expected[..]);
            let count =
                merge::<u128, _, _>(LINES, access, &mut whole(&slices), unique, &mut out);
            prop_assert_eq!(&out[..count.bytes as usize], &expected[..]);
        }
    }
}
