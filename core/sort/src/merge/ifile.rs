//! Sorted segments of Hadoop's map outputs, merged as they are read.
//!
//! ```text
//!   source 0  ├ window ┤ ... left          Only the head of each segment's next record, its lengths and
//!   source 1  ├ window ┤ ... left    ──►   its key, must be in its window. The value goes through in as
//!   source k  ├ window ┤ ... left          many pieces as the windows and the output make of it.
//! ```
//! So a record may be larger than all memory, and the tree is built once, however small the windows
//! are: the kernel of other merges, which wants whole records and builds a tree for each window, would
//! play more matches than needed when 64 segments share little memory.

use std::cmp::Ordering;

use super::tree::{self, Leaves, Node};
use crate::key::writable::{EncodedReader, KeyReader};
use crate::key::{KeyFault, WritableOrder};
use crate::prefix::Word;
use crate::record::ifile::{HEADER_BYTES_MAX, LengthsFault, header};

/// The records of one segment, without the marker behind them.
pub trait Source {
    /// Why bytes could not be had.
    type Error;

    /// The next bytes, as many as are in memory.
    fn window(&self) -> &[u8];

    /// Bytes that are left, those in memory included.
    fn left(&self) -> u64;

    /// Moves on by `n` bytes, which are in memory.
    fn consume(&mut self, n: usize);

    /// Makes a window that is shorter at least `n` bytes long; the source has that many left.
    ///
    /// # Errors
    /// When they can't be read, or don't fit in memory.
    fn fill(&mut self, n: usize) -> Result<(), Self::Error>;
}

/// A segment in memory.
impl Source for &[u8] {
    type Error = std::convert::Infallible;

    fn window(&self) -> &[u8] {
        self
    }

    fn left(&self) -> u64 {
        self.len() as u64
    }

    fn consume(&mut self, n: usize) {
        *self = &self[n..];
    }

    fn fill(&mut self, _n: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Why a merge can't continue. Its caller must not try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IFileError<E> {
    /// A source failed.
    Source(E),
    /// Bytes that are not a record.
    Record {
        /// The number of its segment.
        segment: usize,
        /// Bytes of the segment that were left when it began.
        left: u64,
        /// The fault in it.
        fault: RecordFault,
    },
    /// The next record is larger than the output, and whole records were asked for. Nothing is
    /// lost: the merge continues with a larger output.
    Output {
        /// Bytes of the record.
        needed: u64,
    },
}

/// The fault in a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// Its lengths.
    #[error("{0}")]
    Header(#[from] LengthsFault),
    /// Its key.
    #[error("{0}")]
    Key(#[from] KeyFault),
    /// It goes past the end of its segment.
    #[error("a record that goes past the end of its segment, where {left} bytes are left")]
    Long {
        /// Bytes that are left from its start on.
        left: u64,
    },
}

/// Counts of what a merge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IFileCount {
    /// Records written whole.
    pub records: u64,
    /// Matches played.
    pub compares: u64,
}

/// A merge of sorted segments: records in order, those with equal keys in the order of their segments.
///
/// ```
/// use merganser_sort::merge::ifile::IFileMerge;
///
/// let order = "raw".parse()?;
/// let segments = vec![&b"\x01\x01a0\x01\x01c0"[..], b"\x01\x01a1"];
/// let mut merge = IFileMerge::new(&order, segments);
/// let mut out = [0; 32];
/// let n = merge.read(&mut out).expect("sound segments");
/// assert_eq!(&out[..n], b"\x01\x01a0\x01\x01a1\x01\x01c0");
/// # Ok::<(), merganser_sort::key::WritableOrderError>(())
/// ```
#[derive(Debug)]
pub struct IFileMerge<S> {
    order: WritableOrder,
    state: MergeByKey<S>,
}

/// One for each way to read keys, compiled once each.
#[derive(Debug)]
enum MergeByKey<S> {
    Slices(SourceMerge<S, std::ops::Range<u32>, u128>),
    Words(SourceMerge<S, (), u64>),
    Encoded(SourceMerge<S, Vec<u8>, u128>),
}

/// Runs `$body` with the state and the reader of a merge bound.
macro_rules! with_state {
    ($merge:expr, $state:ident, $reader:ident => $body:expr) => {{
        let merge = $merge;
        match &mut merge.state {
            MergeByKey::Slices($state) => {
                let $reader = merge.order.slice_reader().expect("chosen by it");
                $body
            }
            MergeByKey::Words($state) => {
                let $reader = merge.order.word_reader().expect("chosen by it");
                $body
            }
            MergeByKey::Encoded($state) => {
                let $reader = EncodedReader(&merge.order);
                $body
            }
        }
    }};
}

impl<S: Source> IFileMerge<S> {
    /// A merge of `sources`, each sorted by `order`, that has read nothing yet.
    #[must_use]
    pub fn new(order: &WritableOrder, sources: Vec<S>) -> Self {
        let state = if order.slice_reader().is_some() {
            MergeByKey::Slices(SourceMerge::new(sources))
        } else if order.word_reader().is_some() {
            MergeByKey::Words(SourceMerge::new(sources))
        } else {
            MergeByKey::Encoded(SourceMerge::new(sources))
        };
        IFileMerge { order: order.clone(), state }
    }

    /// Fills `out` with the next bytes; less than `out.len()` of them only at the end, where it is 0
    /// from then on.
    ///
    /// # Errors
    /// When a source fails or a record is damaged. What `out` then holds means nothing.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, IFileError<S::Error>> {
        with_state!(self, state, reader => state.read(reader, out, false))
    }

    /// Fills `out` with whole records, as many as fit; 0 bytes at the end.
    ///
    /// # Errors
    /// As [`IFileMerge::read`], and when the next record does not fit.
    ///
    /// # Panics
    /// When [`IFileMerge::read`] stopped inside a record.
    pub fn read_records(&mut self, out: &mut [u8]) -> Result<usize, IFileError<S::Error>> {
        with_state!(self, state, reader => {
            assert_eq!(state.unwritten, 0, "whole records were asked for inside of one");
            state.read(reader, out, true)
        })
    }

    /// The counts so far.
    #[must_use]
    pub fn count(&self) -> IFileCount {
        match &self.state {
            MergeByKey::Slices(state) => state.count,
            MergeByKey::Words(state) => state.count,
            MergeByKey::Encoded(state) => state.count,
        }
    }
}

/// A source and its next record.
#[derive(Debug)]
struct Leaf<S, K, W> {
    source: S,
    /// Bytes of the record; 0 at the end.
    len: u64,
    word: W,
    kept: K,
}

impl<S: Source, K, W: Word> Leaf<S, K, W> {
    /// Reads the head of the next record; false at the end.
    #[inline]
    fn load<R>(&mut self, number: usize, reader: R) -> Result<bool, IFileError<S::Error>>
    where
        R: KeyReader<Kept = K, Word = W>,
    {
        let left = self.source.left();
        if left == 0 {
            self.len = 0;
            return Ok(false);
        }
        let damaged = |fault| IFileError::Record { segment: number, left, fault };
        let mut found = header(self.source.window()).map_err(|e| damaged(e.into()))?;
        let wanted = left.min(HEADER_BYTES_MAX as u64) as usize;
        if found.is_none() && self.source.window().len() < wanted {
            self.source.fill(wanted).map_err(IFileError::Source)?;
            found = header(self.source.window()).map_err(|e| damaged(e.into()))?;
        }
        let Some(header) = found.filter(|header| header.record_bytes() <= left) else {
            return Err(damaged(RecordFault::Long { left }));
        };
        let end = header.bytes + header.key;
        if self.source.window().len() < end {
            self.source.fill(end).map_err(IFileError::Source)?;
        }
        let key = header.bytes..end;
        let word = reader.load(self.source.window(), key, &mut self.kept);
        self.word = word.map_err(|e| damaged(e.into()))?;
        self.len = header.record_bytes();
        Ok(true)
    }
}

/// The tree and its leaves.
#[derive(Debug)]
struct SourceMerge<S, K, W> {
    leaves: Vec<Leaf<S, K, W>>,
    tree: Vec<Node<W>>,
    /// The leaf with the next record; `None` before the first read.
    winner: Option<Node<W>>,
    /// Leaves that have a record.
    live: usize,
    /// Bytes of the winner's record that are not written though others of it are.
    unwritten: u64,
    count: IFileCount,
}

struct Playing<'a, S, R: KeyReader> {
    leaves: &'a [Leaf<S, R::Kept, R::Word>],
    reader: R,
}

impl<S: Source, R: KeyReader> Leaves for Playing<'_, S, R> {
    type Word = R::Word;

    #[inline]
    fn count(&self) -> usize {
        self.leaves.len()
    }

    #[inline]
    fn word(&self, leaf: usize) -> Option<R::Word> {
        let leaf = &self.leaves[leaf];
        (leaf.len > 0).then_some(leaf.word)
    }

    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.leaves[a], &self.leaves[b]);
        self.reader.compare((a.source.window(), &a.kept), (b.source.window(), &b.kept))
    }
}

impl<S: Source, K: Default, W: Word> SourceMerge<S, K, W> {
    fn new(sources: Vec<S>) -> Self {
        let leaf = |source| Leaf { source, len: 0, word: W::ZERO, kept: K::default() };
        SourceMerge {
            leaves: sources.into_iter().map(leaf).collect(),
            tree: Vec::new(),
            winner: None,
            live: 0,
            unwritten: 0,
            count: IFileCount::default(),
        }
    }

    fn read<R>(
        &mut self,
        reader: R,
        out: &mut [u8],
        whole: bool,
    ) -> Result<usize, IFileError<S::Error>>
    where
        R: KeyReader<Kept = K, Word = W>,
    {
        let Some(mut winner) = self.begin(reader)? else { return Ok(0) };
        let mut at = 0;
        while self.live > 0 {
            let leaf = &mut self.leaves[winner.leaf()];
            let space = out.len() - at;
            if self.unwritten == 0 && leaf.len <= space.min(leaf.source.window().len()) as u64 {
                let len = leaf.len as usize;
                out[at..at + len].copy_from_slice(&leaf.source.window()[..len]);
                leaf.source.consume(len);
                at += len;
            } else {
                if self.unwritten == 0 {
                    if whole && leaf.len > space as u64 {
                        if at == 0 {
                            return Err(IFileError::Output { needed: leaf.len });
                        }
                        break;
                    }
                    self.unwritten = leaf.len;
                }
                while self.unwritten > 0 && at < out.len() {
                    if leaf.source.window().is_empty() {
                        leaf.source.fill(1).map_err(IFileError::Source)?;
                    }
                    let window = leaf.source.window();
                    let most = window.len().min(out.len() - at) as u64;
                    let n = self.unwritten.min(most) as usize;
                    out[at..at + n].copy_from_slice(&window[..n]);
                    leaf.source.consume(n);
                    at += n;
                    self.unwritten -= n as u64;
                }
                if self.unwritten > 0 {
                    break;
                }
            }
            self.count.records += 1;
            if leaf.load(winner.leaf(), reader)? {
                winner.word = leaf.word;
                if self.live == 1 {
                    continue;
                }
            } else {
                self.live -= 1;
                winner.end();
            }
            let playing = Playing { leaves: &self.leaves, reader };
            self.count.compares += tree::replay(&playing, &mut self.tree, &mut winner).compares;
        }
        self.winner = Some(winner);
        Ok(at)
    }

    /// The winner. The first call plays all matches; `None` without any leaf.
    fn begin<R>(&mut self, reader: R) -> Result<Option<Node<W>>, IFileError<S::Error>>
    where
        R: KeyReader<Kept = K, Word = W>,
    {
        if self.winner.is_none() && !self.leaves.is_empty() {
            for (number, leaf) in self.leaves.iter_mut().enumerate() {
                self.live += usize::from(leaf.load(number, reader)?);
            }
            let (tree, winner) = tree::build(&Playing { leaves: &self.leaves, reader });
            self.tree = tree;
            self.winner = Some(winner);
            self.count.compares += self.leaves.len() as u64 - 1;
        }
        Ok(self.winner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::ifile::push_record;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn segment(pairs: &Pairs) -> Vec<u8> {
        let mut bytes = Vec::new();
        pairs.iter().for_each(|(key, value)| push_record(key, value, &mut bytes));
        bytes
    }

    /// A segment that has few of its bytes in memory at once.
    #[derive(Debug)]
    struct Trickle<'a> {
        bytes: &'a [u8],
        at: usize,
        at_a_time: usize,
        in_memory: usize,
    }

    impl Source for Trickle<'_> {
        type Error = usize;

        fn window(&self) -> &[u8] {
            &self.bytes[self.at..self.at + self.in_memory]
        }

        fn left(&self) -> u64 {
            (self.bytes.len() - self.at) as u64
        }

        fn consume(&mut self, n: usize) {
            self.at += n;
            self.in_memory -= n;
        }

        fn fill(&mut self, n: usize) -> Result<(), usize> {
            assert!(n as u64 <= self.left() && n > self.in_memory);
            self.in_memory = n.max(self.at_a_time).min(self.bytes.len() - self.at);
            Ok(())
        }
    }

    fn by_key(order: &WritableOrder, a: &[u8], b: &[u8]) -> Ordering {
        order.compare(a, b).expect("keys of this order")
    }

    proptest! {
        /// However many bytes are in memory at once and however small the outputs are, the bytes
        /// are those of one stable sort.
        #[test]
        fn agrees_with_a_stable_sort(
            runs in prop::collection::vec(prop::collection::vec(
                (prop::collection::vec(b'a'..=b'c', 1..20), prop::collection::vec(any::<u8>(), 0..200)),
                0..12), 0..9),
            description in prop::sample::select(vec!["raw", "raw:desc", "fixed:1,raw", "boolean,raw:desc"]),
            at_a_time in 1_usize..64,
            outs in prop::collection::vec(1_usize..80, 1..6),
        ) {
            let order: WritableOrder = description.parse().expect("an order");
            let mut runs: Vec<Pairs> = runs;
            runs.iter_mut().for_each(|run| run.sort_by(|a, b| by_key(&order, &a.0, &b.0)));
            let mut all = runs.concat();
            all.sort_by(|a, b| by_key(&order, &a.0, &b.0));
            let segments: Vec<Vec<u8>> = runs.iter().map(segment).collect();
            let sources = || segments.iter()
                .map(|bytes| Trickle { bytes, at: 0, at_a_time, in_memory: 0 })
                .collect::<Vec<_>>();

            let mut merge = IFileMerge::new(&order, sources());
            let (mut merged, mut sizes) = (Vec::new(), outs.iter().cycle());
            loop {
                let mut out = vec![0; *sizes.next().expect("endless")];
                let n = merge.read(&mut out).expect("sound");
                merged.extend_from_slice(&out[..n]);
                if n < out.len() {
                    break;
                }
            }
            prop_assert_eq!(&merged, &segment(&all));
            prop_assert_eq!(merge.count().records, all.len() as u64);

            let mut merge = IFileMerge::new(&order, sources());
            let (mut again, mut out) = (Vec::new(), vec![0; 1]);
            loop {
                match merge.read_records(&mut out) {
                    Ok(0) => break,
                    Ok(n) => again.extend_from_slice(&out[..n]),
                    Err(IFileError::Output { needed }) => {
                        prop_assert!(needed > out.len() as u64);
                        out.resize(needed as usize, 0);
                    }
                    Err(e) => panic!("{e:?}"),
                }
            }
            prop_assert_eq!(again, merged);
        }

        #[test]
        fn any_bytes_are_merged_or_an_error(
            segments in prop::collection::vec(prop::collection::vec(0_u8..6, 0..30), 0..4),
            description in prop::sample::select(vec!["text", "bytes", "vint", "int,raw"]),
        ) {
            let order = description.parse().expect("an order");
            let sources: Vec<&[u8]> = segments.iter().map(|bytes| &bytes[..]).collect();
            let total = segments.concat().len();
            let mut out = vec![0; total + 1];
            match IFileMerge::new(&order, sources).read(&mut out) {
                Ok(n) => prop_assert_eq!(n, total),
                Err(IFileError::Record { .. }) => {}
                Err(e) => panic!("{e:?}"),
            }
        }
    }

    /// All ways to have three records with two keys in three segments.
    #[test]
    fn all_tiny_inputs() {
        let order = "raw".parse().expect("an order");
        for code in 0..6_usize.pow(3) {
            let mut runs: Vec<Pairs> = vec![Vec::new(); 3];
            for record in 0..3 {
                let choice = code / 6_usize.pow(record) % 6;
                runs[choice % 3].push((vec![(choice / 3) as u8], vec![record as u8]));
            }
            runs.iter_mut().for_each(|run| run.sort_by(|a, b| a.0.cmp(&b.0)));
            let mut all = runs.concat();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            let segments: Vec<Vec<u8>> = runs.iter().map(segment).collect();
            let mut out = [0; 13];
            let mut merge = IFileMerge::new(&order, segments.iter().map(|s| &s[..]).collect());
            assert_eq!(merge.read(&mut out), Ok(12));
            assert_eq!(out[..12], segment(&all));
            assert_eq!(merge.read(&mut out), Ok(0));
        }
    }

    #[test]
    fn damage_names_segment_and_place() {
        let order = "int".parse().expect("an order");
        let bad = b"\x04\x00\x00\x00\x00\x01\x02\x00ab";
        let mut merge = IFileMerge::new(&order, vec![&b""[..], &bad[..]]);
        let Err(IFileError::Record { segment: 1, left: 4, fault }) = merge.read(&mut [0; 64])
        else {
            panic!("a key of two bytes is no int");
        };
        assert_eq!(fault.to_string(), "a key of 2 bytes, which ends inside its field 1 (int)");
    }
}
