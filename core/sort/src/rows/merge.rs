//! Streams of rows as one, in order; and neighbours of one key as one row.
//!
//! ```text
//!   stream 0   a 1 · c 4 · d 2 ──┐
//!   stream 1   a 3 · b 1       ──┼─► RowTree ──► a 1 · a 3 · b 1 · ... ──► CombinedRows ──► a 4 · b 1 · ...   (sum)
//!   stream 2   d 1             ──┘
//! ```

use std::cmp::Ordering;

use super::{Combine, CombinedFor, Combiner, RowStream, RowsBy, Type};
use crate::budget::Reservation;
use crate::merge::tree::{Leaves, Node, build, replay};
use crate::prefix::prefix_at;
use crate::{Budget, Error};

/// Streams of rows. It is at the least of their rows.
pub struct RowTree<S> {
    leaves: RowLeaves<S>,
    losers: Vec<Node<u64>>,
    /// `None` before the first row.
    winner: Option<Node<u64>>,
}

struct RowLeaves<S> {
    streams: Vec<S>,
    /// Which of them are at a row; of those that have ended, nothing is asked.
    at_row: Vec<bool>,
    by: RowsBy,
}

impl<S: RowStream> Leaves for RowLeaves<S> {
    type Word = u64;

    fn count(&self) -> usize {
        self.streams.len()
    }

    fn word(&self, leaf: usize) -> Option<u64> {
        self.at_row[leaf].then(|| prefix_at(self.streams[leaf].key(), 0))
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.streams[a], &self.streams[b]);
        self.by.compare((a.key(), a.value()), (b.key(), b.value()))
    }
}

impl<S: RowStream> RowTree<S> {
    /// Merges `streams` that are in order. If rows are equal, that of the earlier stream comes first.
    pub fn new(streams: Vec<S>, by: RowsBy) -> Self {
        let at_row = vec![false; streams.len()];
        RowTree { leaves: RowLeaves { streams, at_row, by }, losers: Vec::new(), winner: None }
    }

    fn stream(&self) -> &S {
        &self.leaves.streams[self.winner.as_ref().map_or(0, Node::leaf)]
    }
}

impl<S: RowStream> RowStream for RowTree<S> {
    type Error = S::Error;

    #[inline]
    fn advance(&mut self) -> Result<bool, S::Error> {
        let RowLeaves { streams, at_row, .. } = &mut self.leaves;
        let Some(winner) = &mut self.winner else {
            if streams.is_empty() {
                return Ok(false);
            }
            for (stream, at_row) in streams.iter_mut().zip(at_row) {
                *at_row = stream.advance()?;
            }
            let (losers, winner) = build(&self.leaves);
            let any = self.leaves.at_row[winner.leaf()];
            (self.losers, self.winner) = (losers, Some(winner));
            return Ok(any);
        };
        let leaf = winner.leaf();
        if !at_row[leaf] {
            return Ok(false);
        }
        if streams[leaf].advance()? {
            winner.word = prefix_at(streams[leaf].key(), 0);
        } else {
            at_row[leaf] = false;
            winner.end();
        }
        replay(&self.leaves, &mut self.losers, winner);
        Ok(self.leaves.at_row[winner.leaf()])
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.stream().key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.stream().value()
    }
}

/// Rows in order, those of one key combined.
pub struct CombinedRows<S, C> {
    rows: S,
    combine: C,
    keeps_all: bool,
    key: Vec<u8>,
    /// Whether `rows` is at a row that was not taken yet.
    at_row: bool,
    begun: bool,
    /// The memory of the copies of a key and its value.
    memory: Option<Reservation>,
}

/// Copies of a row that is combined: its key, and what becomes of its value, which may have room for twice as much.
const COPIES: u64 = 4;
/// Copies of rows up to this length are of the fixed overhead.
pub(super) const SHORT: usize = 4096;

impl<S: RowStream> CombinedRows<RowTree<S>, CombinedFor<S::Error>>
where
    S::Error: Send + 'static,
{
    /// Merges streams of results: values of one key, of the type `of`, become one. With [`Combine::First`], an earlier
    /// stream wins; with [`Combine::None`], rows are in the order of their values then.
    pub fn merged(streams: Vec<S>, combine: Combine, of: Type) -> Self {
        let by = if combine == Combine::None { RowsBy::KeyAndValue } else { RowsBy::Key };
        CombinedRows::new(RowTree::new(streams, by), CombinedFor::new(combine, of))
    }
}

impl<S, C: Combiner> CombinedRows<S, C> {
    /// Combines neighbours of `rows`.
    pub fn new(rows: S, combine: C) -> Self {
        let keeps_all = combine.keeps_all();
        CombinedRows {
            rows,
            combine,
            keeps_all,
            key: Vec::new(),
            at_row: false,
            begun: false,
            memory: None,
        }
    }

    /// Reserves what copies of long rows take from `budget`.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn within(mut self, budget: &Budget) -> Result<Self, Error> {
        self.memory = Some(budget.reserve(0, "combining rows")?);
        Ok(self)
    }

    /// The rows, wherever they are.
    pub(super) fn into_inner(self) -> S {
        self.rows
    }
}

impl<S: RowStream, C: Combiner> CombinedRows<S, C>
where
    C::Error: From<S::Error>,
{
    /// Takes all values of the next key; false after the last one.
    fn take(&mut self) -> Result<bool, C::Error> {
        if !self.begun {
            self.begun = true;
            self.at_row = self.rows.advance()?;
        }
        if !self.at_row {
            return Ok(false);
        }
        let bytes = self.rows.key().len() + self.rows.value().len();
        if bytes > SHORT
            && let Some(memory) = &mut self.memory
        {
            memory.grow_to(COPIES * bytes as u64)?;
        }
        self.key.clear();
        self.key.extend_from_slice(self.rows.key());
        self.combine.begin(&self.key, self.rows.value())?;
        loop {
            self.at_row = self.rows.advance()?;
            if !self.at_row || self.rows.key() != self.key {
                return Ok(true);
            }
            self.combine.fold(&self.key, self.rows.value())?;
        }
    }

    /// Goes to the next key, and hands out its values as those of rows that are combined again. False after the last.
    ///
    /// # Errors
    /// Those of the rows, the combiner's own, and those of `each`.
    pub fn advance_parts(
        &mut self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), C::Error>,
    ) -> Result<bool, C::Error> {
        if self.keeps_all {
            let any = self.rows.advance()?;
            if any {
                each(self.rows.key(), self.rows.value())?;
            }
            return Ok(any);
        }
        if !self.take()? {
            return Ok(false);
        }
        let (mut handed, key) = (Ok(()), &self.key);
        self.combine.parts(&mut |value| {
            if handed.is_ok() {
                handed = each(key, value);
            }
        });
        handed.map(|()| true)
    }
}

impl<S: RowStream, C: Combiner> RowStream for CombinedRows<S, C>
where
    C::Error: From<S::Error>,
{
    type Error = C::Error;

    #[inline]
    fn advance(&mut self) -> Result<bool, C::Error> {
        if self.keeps_all {
            return Ok(self.rows.advance()?);
        }
        let any = self.take()?;
        if any {
            self.combine.finish(&self.key)?;
        }
        Ok(any)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.keeps_all { self.rows.key() } else { &self.key }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if self.keeps_all { self.rows.value() } else { self.combine.value() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct ListedRows(std::vec::IntoIter<(Vec<u8>, i64)>, (Vec<u8>, [u8; 8]));

    impl RowStream for ListedRows {
        type Error = Error;

        fn advance(&mut self) -> crate::Result<bool> {
            let next = self.0.next();
            let any = next.is_some();
            if let Some((key, value)) = next {
                self.1 = (key, value.to_le_bytes());
            }
            Ok(any)
        }

        fn key(&self) -> &[u8] {
            &self.1.0
        }

        fn value(&self) -> &[u8] {
            &self.1.1
        }
    }

    proptest! {
        /// Keys that differ behind their first eight bytes, or only in zeros at their end.
        #[test]
        fn streams_are_merged_by_whole_keys(
            streams in prop::collection::vec(
                prop::collection::vec(
                    (prop::collection::vec(prop::sample::select(&[0u8, 1, 0xff][..]), 0..11), -9i64..9),
                    0..20,
                ),
                0..6,
            ),
        ) {
            let mut expected = std::collections::BTreeMap::new();
            for (key, value) in streams.iter().flatten() {
                *expected.entry(key.clone()).or_insert(0) += value;
            }
            let sorted = |mut rows: Vec<(Vec<u8>, i64)>| {
                rows.sort();
                ListedRows(rows.into_iter(), Default::default())
            };
            let streams = streams.into_iter().map(sorted).collect();
            let mut merged = CombinedRows::merged(streams, Combine::Sum, Type::I64);
            let mut found = Vec::new();
            while merged.advance().expect("small") {
                let value = i64::from_le_bytes(merged.value().try_into().expect("a number"));
                found.push((merged.key().to_vec(), value));
            }
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
