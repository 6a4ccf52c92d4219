//! Rows in, rows out: a sort of keys with values that are in no file.
//!
//! ```text
//!   push(key, value) ─► buffer ─┬──────────────────────► Rows      all of it fits into memory
//!                               └─► runs ─► merged ────► Rows      else
//! ```
//!
//! A caller pushes rows in any order, from one thread or from several, and pulls them in the order of their keys, which is
//! that of their bytes. A key may be a value of Rust's types, or of your own ([`RowKey`]). Values of one key may become one
//! on the way (a [`Combiner`]).
//!
//! ```
#![doc = include_str!("../../examples/sort_rows.rs")]
//! ```
//!
//! ```text
//!   sorter    producers, full buffers         row_run   rows on a disk, read once
//!   buffer    rows in memory, sorted          merge     streams of rows as one, combined
//!   lane      buffers to runs                 combiner  how values become one; combine: the usual ways
//!   shares    sizes                           table     sorted rows that are read by ranges
//!   view_runs  runs that stay, as a view       types     of keys and values
//!   cutter    rows in bytes that come in pieces; carry: what is kept between two pieces
//! ```

mod buffer;
mod carry;
mod combine;
mod combiner;
mod cutter;
mod error;
mod lane;
mod merge;
mod row_run;
mod shares;
mod sorter;
mod table;
mod types;
mod view_runs;

use std::cmp::Ordering;
use std::sync::Arc;

use merganser_storage::Directory;

#[doc(hidden)]
pub use carry::{CARRY_BYTES, Carry};
pub use combine::{Combine, Combined, ValueOverflow, set};
pub use combiner::{CombineWith, CombinedFor, Combiner, KeepAll};
#[doc(hidden)]
pub use cutter::RecordCutter;
pub use error::RowsError;
#[doc(hidden)]
pub use merge::{CombinedRows, RowTree};
pub use sorter::{RowProducer, RowsReport};
#[doc(hidden)]
pub use table::{BUILDER_BYTES, RowTable, TABLE_WRITER_BYTES, TableRows, write_rows};
pub use types::Type;
pub use view_runs::RecordOfRow;

use buffer::{RowBuffer, SortedRowBuffer};
use lane::RowLane;
use row_run::{RowRun, RowRunReader};
use shares::RunPlace;
use sorter::RowSorting;

use crate::key::{FromRowKey, RowKey, value_of};
use crate::run::Compression;
use crate::view::Segment;
use crate::{Budget, Error, Progress, Silent};

/// Rows in the order of their keys; where values decide between equal keys, of their values then.
pub trait RowStream {
    /// The errors of what the rows are read from, and of rows that can't be combined.
    type Error: From<Error>;

    /// Goes to the next row, the first one at first; false after the last.
    ///
    /// # Errors
    /// Those of what the rows are read from.
    fn advance(&mut self) -> Result<bool, Self::Error>;

    /// The key of the row.
    fn key(&self) -> &[u8];

    /// The value of the row.
    fn value(&self) -> &[u8];
}

impl<S: RowStream + ?Sized> RowStream for Box<S> {
    type Error = S::Error;

    fn advance(&mut self) -> Result<bool, Self::Error> {
        (**self).advance()
    }

    fn key(&self) -> &[u8] {
        (**self).key()
    }

    fn value(&self) -> &[u8] {
        (**self).value()
    }
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsBy {
    /// By the bytes of their keys. Where these are equal, the rows of the producer that was made first come first, and those
    /// of one producer in the order in which it pushed them.
    Key,
    /// By the bytes of their keys, and where these are equal, of their values.
    KeyAndValue,
}

impl RowsBy {
    /// Compares two rows, each a key and its value.
    #[inline]
    #[must_use]
    pub fn compare(self, a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> Ordering {
        match self {
            RowsBy::Key => a.0.cmp(b.0),
            RowsBy::KeyAndValue => a.cmp(&b),
        }
    }

    /// Whether `b` may follow `a`.
    #[inline]
    fn is_ordered(self, a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> bool {
        self.compare(a, b).is_le()
    }
}

/// Sorts rows; see the [module](self).
///
/// All memory that grows with rows is reserved from the budget. It may use everything that is free at the first row. Temporary files have no names: nothing is left of them after the sort, however it ends.
pub struct RowSorter<C: Combiner> {
    by: RowsBy,
    budget: Budget,
    combine: C,
    temp: Vec<Arc<dyn Directory>>,
    view: Option<(Arc<dyn Directory>, RecordOfRow, Compression)>,
    producers: usize,
    threads: usize,
    left_bytes: u64,
    sorting: Option<Arc<RowSorting<C>>>,
    own: Option<RowProducer<C>>,
    /// The encoding of the last typed key.
    typed: Vec<u8>,
}

impl<C: Combiner> RowSorter<C> {
    /// A sort within the free memory of `budget`, in which `combine` combines the values of one key. Without
    /// [`RowSorter::temp`], all rows have to fit.
    #[must_use]
    pub fn new(by: RowsBy, budget: &Budget, combine: C) -> Self {
        RowSorter {
            by,
            budget: budget.clone(),
            combine,
            temp: Vec::new(),
            view: None,
            producers: 1,
            threads: 2,
            left_bytes: 0,
            sorting: None,
            own: None,
            typed: Vec::new(),
        }
    }

    /// The folders for runs, which are used in turn.
    #[must_use]
    pub fn temp(mut self, folders: Vec<Arc<dyn Directory>>) -> Self {
        self.temp = folders;
        self
    }

    /// Has runs stay in `folder`, for [`RowSorter::finish_view`]: a view of length-prefixed records, which `record` makes
    /// of rows, packed like this. There are temporary runs, too, where the fences of all runs would take too much memory.
    #[must_use]
    pub fn into_view(
        mut self,
        folder: Arc<dyn Directory>,
        record: RecordOfRow,
        packed: Compression,
    ) -> Self {
        self.view = Some((folder, record, packed));
        self
    }

    /// How many producers there will be, with [`RowSorter::push`] as one: each has a part of the memory. 1 without it.
    /// Rows of equal keys stay in the order in which producers were made, whatever the threads do.
    #[must_use]
    pub fn producers(mut self, count: usize) -> Self {
        self.producers = count.max(1);
        self
    }

    /// Threads that it may use in all, the caller's included. 2 without it: one that pushes, and one that sorts and
    /// writes what was pushed.
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count.max(1);
        self
    }

    /// Leaves this much memory free when rows are pulled, for what the caller makes of them: the last rows are then
    /// written to runs, too, where they would take it.
    #[must_use]
    pub fn leave(mut self, bytes: u64) -> Self {
        self.left_bytes = bytes;
        self
    }

    /// The least memory of a sort with runs, in bytes, where rows are short.
    #[must_use]
    pub fn least_bytes(producers: usize) -> u64 {
        shares::least_bytes(producers.max(1), RunPlace::Temp)
    }

    /// The least memory of a sort whose runs stay in a view, in bytes, where rows are short.
    #[must_use]
    pub fn least_view_bytes(producers: usize) -> u64 {
        shares::least_bytes(producers.max(1), RunPlace::View)
    }

    fn sorting(&mut self) -> Result<&Arc<RowSorting<C>>, Error> {
        if self.sorting.is_none() {
            let how = (self.by, self.combine.clone());
            let count = (self.producers, self.threads);
            let temp = self.temp.clone();
            let sorting = RowSorting::new(how, &self.budget, temp, self.view.clone(), count)?;
            self.sorting = Some(Arc::new(sorting));
        }
        Ok(self.sorting.as_ref().expect("made above"))
    }

    /// One more producer, for another thread.
    ///
    /// # Errors
    /// Too little memory for all producers; [`RowsError::TooManyProducers`] if there are as many as
    /// [`RowSorter::producers`] said.
    pub fn producer(&mut self) -> Result<RowProducer<C>, C::Error> {
        let sorting = self.sorting()?;
        Ok(RowProducer::new(sorting)?)
    }

    /// Takes one more row.
    ///
    /// # Errors
    /// As [`RowProducer::push`].
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), C::Error> {
        if self.own.is_none() {
            self.own = Some(self.producer()?);
        }
        self.own.as_mut().expect("made above").push(key, value)
    }

    /// As [`RowSorter::push`], with a value of Rust as the key. [`Rows::next_as`] gives it back.
    ///
    /// # Errors
    /// As [`RowProducer::push`].
    #[inline]
    pub fn push_key<K: RowKey + ?Sized>(&mut self, key: &K, value: &[u8]) -> Result<(), C::Error> {
        let mut typed = std::mem::take(&mut self.typed);
        typed.clear();
        key.push_to(&mut typed);
        let pushed = self.push(&typed, value);
        self.typed = typed;
        pushed
    }

    fn end_pushing(&mut self) -> Result<Pushed<C>, C::Error> {
        if let Some(own) = self.own.take() {
            own.finish()?;
        }
        let sorting = Arc::clone(self.sorting()?);
        sorting.check()?;
        let mut state = sorting.state.lock();
        if state.missing > 0 {
            return Err(Error::Cancelled.into());
        }
        let lane = std::mem::take(&mut state.lanes).into_iter().next();
        let (runs, mut rest) = (std::mem::take(&mut state.runs), std::mem::take(&mut state.rest));
        drop(state);
        rest.sort_by_key(|(producer, _)| *producer);
        Ok(Pushed { sorting, runs, rest, lane })
    }

    /// Writes what is left as runs of the view ([`RowSorter::into_view`]). Its segments are for the manifest, which the
    /// caller writes; their rows are in order, but combined in each run alone.
    ///
    /// # Errors
    /// As [`RowSorter::finish_with`]; [`RowsError::NoViewFolder`] without [`RowSorter::into_view`].
    pub fn finish_view(
        mut self,
        progress: &dyn Progress,
    ) -> Result<(Vec<Segment>, RowsReport), C::Error> {
        if self.view.is_none() {
            return Err(Error::Rows(RowsError::NoViewFolder).into());
        }
        let Pushed { sorting, runs, rest, lane } = self.end_pushing()?;
        let segments = sorting.finish_view((runs, rest), lane, progress)?;
        let report = sorting.state.lock().report;
        Ok((segments, report))
    }

    /// The rows in order. All producers have finished.
    ///
    /// # Errors
    /// Those of rows that were pushed before; [`Error::Cancelled`] if a producer has not finished; those of merges.
    pub fn finish(self) -> Result<Rows<C>, C::Error> {
        self.finish_with(&Silent)
    }

    /// As [`RowSorter::finish`]. Merges before the last one are ended by `progress`.
    ///
    /// # Errors
    /// As [`RowSorter::finish`]; [`Error::Cancelled`].
    pub fn finish_with(mut self, progress: &dyn Progress) -> Result<Rows<C>, C::Error> {
        let left_bytes = self.left_bytes;
        let Pushed { sorting, mut runs, rest, mut lane } = self.end_pushing()?;
        let sorted = |(producer, buffer): (_, RowBuffer)| (producer, buffer.sort(sorting.threads));
        let mut last: Vec<_> = rest.into_iter().map(sorted).collect();
        let spills = !runs.is_empty() || !sorting.temp.is_empty() && left_bytes > 0;
        if spills && !sorting.has_room_for(&runs, left_bytes) {
            sorting.write_last(std::mem::take(&mut last), &mut runs, &mut lane)?;
        }
        if !runs.is_empty() {
            runs = sorting.merge_to_few(runs, &mut lane, progress)?;
        }
        drop(lane);
        let runs = runs.into_iter().map(|run| Ok((run.producer, sorting.open(run)?)));
        let mut sources = runs.collect::<Result<Vec<_>, Error>>()?;
        sources.extend(last.into_iter().map(|(of, rows)| (of, RowSource::Memory(rows))));
        // The last buffer of a producer is behind its runs.
        sources.sort_by_key(|(producer, _)| *producer);
        let rows = sorting.combined(sources.into_iter().map(|(_, rows)| rows).collect())?;
        let report = sorting.state.lock().report;
        Ok(Rows { rows, report })
    }
}

/// All that was pushed, when all producers have finished.
struct Pushed<C: Combiner> {
    sorting: Arc<RowSorting<C>>,
    runs: Vec<RowRun>,
    rest: Vec<(usize, RowBuffer)>,
    lane: Option<RowLane<C>>,
}

/// Where rows in order are.
enum RowSource {
    Run(RowRunReader),
    Memory(SortedRowBuffer),
}

impl RowStream for RowSource {
    type Error = Error;

    #[inline]
    fn advance(&mut self) -> Result<bool, Error> {
        match self {
            RowSource::Run(run) => run.advance(),
            RowSource::Memory(buffer) => buffer.advance(),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            RowSource::Run(run) => run.key(),
            RowSource::Memory(buffer) => buffer.key(),
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self {
            RowSource::Run(run) => run.value(),
            RowSource::Memory(buffer) => buffer.value(),
        }
    }
}

/// Rows in order. Each is lent until the next one is asked for.
pub struct Rows<C: Combiner> {
    rows: CombinedRows<RowTree<RowSource>, C>,
    report: RowsReport,
}

impl<C: Combiner> Rows<C> {
    /// The next row: key, value.
    ///
    /// # Errors
    /// Damage found, the storage's own, the combiner's own.
    #[expect(clippy::should_implement_trait, reason = "a row is lent")]
    #[expect(clippy::type_complexity, reason = "a key and its value")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, C::Error> {
        Ok(if self.rows.advance()? { Some((self.rows.key(), self.rows.value())) } else { None })
    }

    /// The next row, whose key was pushed by [`RowSorter::push_key`]: key, value.
    ///
    /// # Errors
    /// As [`Rows::next`]; [`RowsError::OtherKey`].
    #[inline]
    pub fn next_as<K: FromRowKey>(&mut self) -> Result<Option<(K, &[u8])>, C::Error> {
        if !self.rows.advance()? {
            return Ok(None);
        }
        let key = value_of(self.rows.key()).ok_or(Error::Rows(RowsError::OtherKey))?;
        Ok(Some((key, self.rows.value())))
    }

    /// What the sort did until now.
    #[must_use]
    pub fn report(&self) -> RowsReport {
        self.report
    }
}

impl<C: Combiner> RowStream for Rows<C> {
    type Error = C::Error;

    #[inline]
    fn advance(&mut self) -> Result<bool, C::Error> {
        self.rows.advance()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.rows.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.rows.value()
    }
}
