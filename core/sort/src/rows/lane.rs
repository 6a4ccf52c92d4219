//! The way of full buffers to runs.
//!
//! ```text
//!   buffer ─► sorted ─► neighbours combined ─► run         a new one, or the last one if all rows are behind its end
//! ```

use super::buffer::{RowBuffer, SortedRowBuffer};
use super::merge::CombinedRows;
use super::row_run::{RowRun, RowRunWriter};
use super::{Combiner, RowStream, RowsBy};
use crate::{Budget, Error};

/// After a longer row a run is ended: its copy would take memory.
const LAST_BYTES_MAX: usize = 4096;

/// Writes runs for one producer.
pub(super) struct RowLane<C> {
    writer: RowRunWriter,
    combine: C,
    by: RowsBy,
    budget: Budget,
    /// The last row of the run that is not ended, because rows may come that are behind it.
    last: Option<(Vec<u8>, Vec<u8>)>,
}

impl<C: Combiner> RowLane<C> {
    pub(super) fn new(writer: RowRunWriter, combine: C, by: RowsBy, budget: &Budget) -> Self {
        RowLane { writer, combine, by, budget: budget.clone(), last: None }
    }

    /// Writes the rows of a buffer, and hands back the buffer. Runs that ended go to `ended`.
    pub(super) fn take(
        &mut self,
        sorted: SortedRowBuffer,
        ended: &mut Vec<RowRun>,
    ) -> Result<RowBuffer, C::Error> {
        let goes_on = match (&self.last, sorted.first_in_order()) {
            (Some((key, value)), Some(first)) => self.by.is_ordered((key, value), first),
            _ => false,
        };
        if !goes_on {
            ended.extend(self.end()?);
        }
        let short = |(key, value): &(&[u8], &[u8])| key.len() + value.len() <= LAST_BYTES_MAX;
        let last = sorted.last_in_order().filter(short);
        let last = last.map(|(key, value)| (key.to_vec(), value.to_vec()));
        let empty = if self.combine.keeps_all() {
            self.write_all(sorted)?
        } else {
            let rows = CombinedRows::new(sorted, self.combine.clone());
            let mut rows = rows.within(&self.budget)?;
            let writer = &mut self.writer;
            while rows.advance_parts(|key, value| Ok(writer.push(key, value)?))? {}
            rows.into_inner().into_empty()
        };
        if last.is_none() {
            // Rows that did not come in order: no later ones would be behind them.
            ended.extend(self.end()?);
        }
        self.last = last;
        Ok(empty)
    }

    fn write_all(&mut self, mut sorted: SortedRowBuffer) -> Result<RowBuffer, Error> {
        match sorted.all_in_order() {
            Some(rows) => self.writer.push_all(rows)?,
            None => {
                while sorted.advance()? {
                    self.writer.push(sorted.key(), sorted.value())?;
                }
            }
        }
        Ok(sorted.into_empty())
    }

    /// Ends the run under way, if there is one.
    pub(super) fn end(&mut self) -> Result<Option<RowRun>, Error> {
        self.last = None;
        self.writer.is_inside_a_run().then(|| self.writer.end_run()).transpose()
    }

    /// The producer that it is for.
    pub(super) fn producer(&self) -> usize {
        self.writer.producer()
    }

    /// The writer, between two runs.
    pub(super) fn writer(&mut self) -> &mut RowRunWriter {
        &mut self.writer
    }
}
