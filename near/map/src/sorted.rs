//! The sorted records of one sort, on their way out.
//!
//! ```text
//!   sort ──► reducer ─┬─────────────────────────► sink       it was the only one
//!                     ├─► merged with strips ───► sink       it was the last one
//!                     └─────────────────────────► strip      another one follows
//! ```
//!
//! Which way it is, is known when the sort has taken all its records, before it hands out the first.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use merganser_sort::reduced::{
    Combine, Encoding, REDUCER_BYTES, RecordCutter, Reducer, RowMerge, RowStream, Type,
};
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::{Directory, Storage};
use parking_lot::Mutex;

use super::RowSink;
use super::spill::SpillSource;
use super::strip::{self, Strip, StripRows, StripWriter};
use crate::ssdlet::SsdletError;

/// Strips that are merged at once, at most: each row costs a comparison with each of them.
pub(super) const FAN_IN_MAX: u64 = 16;
/// Rows between two looks at whether the map was cancelled.
const CHECK_ROWS: u64 = 4096;

/// How values are combined, and how records of spills have them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Combining {
    pub(super) combine: Combine,
    pub(super) value: Type,
    pub(super) encoding: Encoding,
}

impl Combining {
    /// The rows of strips in order, as they are: a sum may leave 64 bits on the way.
    pub(super) fn uncombined(
        self,
        strips: Vec<Strip>,
        budget: &Budget,
    ) -> Result<RowMerge<StripRows>, SsdletError> {
        Ok(RowMerge::new(self.open(strips, budget)?, Combine::None, Type::Bytes))
    }

    /// The rows of each strip.
    pub(super) fn open(self, strips: Vec<Strip>, budget: &Budget) -> Result<Vec<StripRows>, Error> {
        let open = |strip| StripRows::new(strip, self.encoding, budget);
        strips.into_iter().map(open).collect()
    }
}

/// Looks from time to time whether the map was cancelled.
pub(super) struct CancelCheck<'a> {
    progress: &'a dyn Progress,
    rows: u64,
}

impl<'a> CancelCheck<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        CancelCheck { progress, rows: 0 }
    }

    /// One more row.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(super) fn row(&mut self) -> Result<(), SsdletError> {
        self.rows += 1;
        if self.rows.is_multiple_of(CHECK_ROWS) && self.progress.cancelled() {
            return Err(Error::Cancelled.into());
        }
        Ok(())
    }
}

/// The sink for the rows of a result, and how many it took.
struct CountedRows<'a> {
    sink: &'a mut dyn RowSink,
    rows: u64,
    bytes: u64,
}

impl CountedRows<'_> {
    fn push(&mut self, (key, value): (&[u8], &[u8])) -> Result<bool, SsdletError> {
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.sink.keyed(key, value)
    }
}

/// Where the records of a sort go.
enum SortTarget<'a> {
    Unknown,
    /// To the sink: these are all.
    Rows,
    /// To the sink, with those of earlier sorts.
    Merged(Box<StripMerge<'a>>),
    /// To a strip.
    Strip(StripWriter),
    /// The sink wants no more.
    Stopped,
}

/// What became of them.
pub(super) enum SortOutcome {
    /// They are the result.
    Rows {
        rows: u64,
        bytes: u64,
        /// When the first record came: all input was mapped by then.
        began: Instant,
    },
    /// They are a part of it.
    Strip(Strip),
}

/// What the records of all sorts share.
pub(super) struct SortContext<'a> {
    pub(super) source: &'a Mutex<SpillSource>,
    pub(super) how: Combining,
    /// For readers of strips while the last sort has its own memory.
    pub(super) budget: &'a Budget,
    pub(super) progress: &'a dyn Progress,
}

/// Takes the sorted records of one sort.
pub(super) struct SortedWriter<'a> {
    shared: SortContext<'a>,
    /// Unless the result is a view.
    rows: Option<CountedRows<'a>>,
    /// Those of earlier sorts.
    strips: &'a mut Vec<Strip>,
    temp: &'a Arc<dyn Directory>,
    records: &'a mut RecordCutter,
    reducer: &'a mut Reducer,
    to: SortTarget<'a>,
    began: Option<Instant>,
    /// Records for a strip.
    buffer: Vec<u8>,
    error: Option<SsdletError>,
}

impl<'a> SortedWriter<'a> {
    /// For the sort after those that have left `strips`. Its own strip would be in `temp`, for which the caller holds
    /// [`strip::WRITER_BYTES`].
    pub(super) fn new(
        shared: SortContext<'a>,
        sink: Option<&'a mut dyn RowSink>,
        strips: &'a mut Vec<Strip>,
        temp: &'a Arc<dyn Directory>,
        (records, reducer): (&'a mut RecordCutter, &'a mut Reducer),
    ) -> Self {
        SortedWriter {
            shared,
            rows: sink.map(|sink| CountedRows { sink, rows: 0, bytes: 0 }),
            strips,
            temp,
            records,
            reducer,
            to: SortTarget::Unknown,
            began: None,
            buffer: Vec::new(),
            error: None,
        }
    }

    /// After the sort, which has `sorted`.
    ///
    /// # Errors
    /// Those of the sort, of the sink and of strips; a sum that leaves 64 bits.
    pub(super) fn ended<T>(mut self, sorted: Result<T, Error>) -> Result<SortOutcome, SsdletError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !matches!(self.to, SortTarget::Stopped) {
            sorted?;
            self.begin()?;
            self.end()?;
        }
        let began = self.began.unwrap_or_else(Instant::now);
        match (self.to, self.rows) {
            (SortTarget::Strip(strip), _) => Ok(SortOutcome::Strip(strip.finish()?)),
            (_, Some(CountedRows { rows, bytes, .. })) => {
                Ok(SortOutcome::Rows { rows, bytes, began })
            }
            (_, None) => unreachable!("without a sink, it is a strip"),
        }
    }

    /// Finds out where the records go, once it can be known.
    fn begin(&mut self) -> Result<(), SsdletError> {
        if !matches!(self.to, SortTarget::Unknown) {
            return Ok(());
        }
        self.began = Some(Instant::now());
        let is_last = self.rows.is_some() && !self.shared.source.lock().has_more();
        self.to = if is_last && self.strips.is_empty() {
            SortTarget::Rows
        } else if is_last && self.can_merge() {
            let strips = std::mem::take(self.strips);
            SortTarget::Merged(Box::new(StripMerge::new(strips, &self.shared)?))
        } else {
            let storage: Arc<dyn Storage> = self.temp.create_unnamed().map_err(Error::from)?;
            SortTarget::Strip(StripWriter::new(storage))
        };
        Ok(())
    }

    /// Whether there is memory to merge all strips while the sort has its own. Tables have given theirs back when all
    /// input is mapped. Twice as much is for long rows.
    fn can_merge(&self) -> bool {
        let strips = self.strips.len() as u64;
        strips < FAN_IN_MAX
            && 2 * (strips * strip::READER_BYTES + REDUCER_BYTES) <= self.shared.budget.free_bytes()
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), SsdletError> {
        self.begin()?;
        while !matches!(self.to, SortTarget::Stopped)
            && let Some(record) = self.records.next(&mut bytes)?
        {
            if self.reducer.push(record)? {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// After the last record.
    fn end(&mut self) -> Result<(), SsdletError> {
        if self.reducer.end() {
            self.hand_over()?;
        }
        if let (SortTarget::Merged(merging), Some(rows)) = (&mut self.to, &mut self.rows) {
            merging.end(rows)?;
        }
        Ok(())
    }

    /// Hands the row over that is complete.
    fn hand_over(&mut self) -> Result<(), SsdletError> {
        let wanted = match (&mut self.to, &mut self.rows) {
            (SortTarget::Strip(strip), _) => {
                self.buffer.clear();
                self.reducer.push_records(&mut self.buffer);
                return Ok(strip.push(&self.buffer)?);
            }
            (SortTarget::Merged(merging), Some(rows)) => {
                let mut wanted = Ok(true);
                self.reducer.parts(|key, value| {
                    if let Ok(true) = wanted {
                        wanted = merging.push((key, value), rows);
                    }
                });
                wanted?
            }
            (_, Some(rows)) => {
                self.reducer.reduce()?;
                rows.push(self.reducer.row())?
            }
            (_, None) => unreachable!("without a sink, it is a strip"),
        };
        if !wanted {
            self.to = SortTarget::Stopped;
        }
        Ok(())
    }
}

impl Write for SortedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.take(bytes) {
            self.error = Some(error);
        }
        if matches!(self.to, SortTarget::Stopped) || self.error.is_some() {
            // Ends the sort.
            return Err(io::Error::other("no more rows are wanted"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Merges rows that come in order with those of strips.
struct StripMerge<'a> {
    strips: RowMerge<StripRows>,
    /// Whether the strips are at a row.
    at_row: bool,
    reducer: Reducer,
    check: CancelCheck<'a>,
}

impl<'a> StripMerge<'a> {
    fn new(strips: Vec<Strip>, shared: &SortContext<'a>) -> Result<Self, SsdletError> {
        let Combining { combine, value, encoding } = shared.how;
        let mut strips = shared.how.uncombined(strips, shared.budget)?;
        let at_row = strips.advance()?;
        let reducer = Reducer::new(combine, value, encoding, shared.budget)?;
        Ok(StripMerge { strips, at_row, reducer, check: CancelCheck::new(shared.progress) })
    }

    /// One more row. Those that are complete go to `out`; whether it wants more.
    fn push(
        &mut self,
        (key, value): (&[u8], &[u8]),
        out: &mut CountedRows<'_>,
    ) -> Result<bool, SsdletError> {
        while self.at_row && (self.strips.key(), self.strips.value()) <= (key, value) {
            if !self.next_of_strips(out)? {
                return Ok(false);
            }
        }
        if self.reducer.push_row(key, value)? { self.give(out) } else { Ok(true) }
    }

    /// After the last row.
    fn end(&mut self, out: &mut CountedRows<'_>) -> Result<(), SsdletError> {
        while self.at_row {
            if !self.next_of_strips(out)? {
                return Ok(());
            }
        }
        if self.reducer.end() {
            self.give(out)?;
        }
        Ok(())
    }

    /// Takes the row at which the strips are.
    fn next_of_strips(&mut self, out: &mut CountedRows<'_>) -> Result<bool, SsdletError> {
        self.check.row()?;
        let (key, value) = (self.strips.key(), self.strips.value());
        self.check.progress.advance((key.len() + value.len()) as u64);
        let complete = self.reducer.push_row(key, value)?;
        let wanted = !complete || self.give(out)?;
        self.at_row = self.strips.advance()?;
        Ok(wanted)
    }

    /// Hands out the row that is complete.
    fn give(&mut self, out: &mut CountedRows<'_>) -> Result<bool, SsdletError> {
        self.reducer.reduce()?;
        out.push(self.reducer.row())
    }
}
