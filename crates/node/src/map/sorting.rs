//! The sorts of spills, and what becomes of their results.
//!
//! ```text
//!   spills ──► sort ───────────────────────────────► rows, or a view        all of them in one sort
//!
//!   spills ─┬► sort ──► strip ─┐
//!           ├► sort ──► strip ─┼─► merged ─────────► rows                    more than one can index
//!           └► sort ──► strip ─┘
//!
//!   spills ─┬► sort ───────────────────────────────► runs of a view
//!           ├► sort ──► strip ─┬─► merged ─────────► one more run of it
//!           └► sort ──► strip ─┘
//! ```
//!
//! A sort holds the fences of all its runs, so its memory says how many bytes it takes. Later bytes go to
//! another sort in the same memory. A result of a sort that is not the last one is a strip, whose reader takes the
//! same memory however long it is; strips are merged when there are too many for one merge. So no amount of spills
//! is too much for the least memory.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use merganser_sort::budget::Reservation;
use merganser_sort::plan::RunPlan;
use merganser_sort::run::Input;
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, SortOptions, SortOutput, Strategy,
};
use merganser_storage::{Directory, Storage};
use parking_lot::Mutex;

use super::encoding::Encoding;
use super::records::RecordCutter;
use super::reduce::Reducer;
use super::rows::{Merge, RowStream};
use super::shares::{Shares, sort_threads};
use super::spill::{SpillReader, SpillSource};
use super::strip::{self, Strip, StripRows, StripWriter};
use super::view::{ResultDescription, WRITER_BYTES, mark_unreduced, order, write_run};
use super::{MapOptions, MapOutput, MapReport, RowSink};
use crate::ssdlet::{Combine, SsdletError, Type};

/// Strips that are merged at once, at most: each row costs a comparison with each of them.
const FAN_IN_MAX: u64 = 16;
/// Strips of one level are merged when they are this part of a fan-in, 1 / 3: then few levels fit into one merge.
const LEVEL_SHARE: usize = 3;
/// Rows between two looks at whether the map was cancelled.
const CHECK_ROWS: u64 = 4096;

/// Memory for the first spill, held from the beginning.
pub(super) struct Held {
    sort: Reservation,
    _strip: Reservation,
    records: RecordCutter,
    reducer: Reducer,
}

/// How values are combined, and how records of spills have them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Combining {
    pub(super) combine: Combine,
    pub(super) value: Type,
    pub(super) encoding: Encoding,
}

impl Held {
    /// That of a map with these shares; `None` if it can't spill.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(
        budget: &Budget,
        shares: &Shares,
        how: Combining,
    ) -> Result<Option<Self>, Error> {
        if !shares.spills {
            return Ok(None);
        }
        let Combining { combine, value, encoding } = how;
        Ok(Some(Held {
            sort: budget.reserve(shares.kept_bytes, "sorting spills")?,
            _strip: budget.reserve(strip::WRITER_BYTES, "sorting spills")?,
            records: RecordCutter::new(budget)?,
            reducer: Reducer::new(combine, value, encoding, budget)?,
        }))
    }
}

/// Sorts the spills of one map.
pub(super) struct Sorting<'r> {
    pub(super) options: &'r MapOptions,
    pub(super) progress: &'r dyn Progress,
    pub(super) shares: Shares,
    pub(super) workers: usize,
    pub(super) started: Instant,
    pub(super) how: Combining,
    pub(super) what: ResultDescription,
    pub(super) report: &'r mut MapReport,
}

impl Sorting<'_> {
    /// Sorts the records of all spills into the result, in the memory that was kept for it and, if it is
    /// free, all of its share.
    ///
    /// # Errors
    /// Too little memory for a long record, a full disk, a sum that leaves 64 bits, the sink's own.
    pub(super) fn run(
        mut self,
        source: SpillSource,
        held: Held,
        output: &mut MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let Held { sort: mut memory, _strip, mut records, mut reducer } = held;
        let budget = &self.options.budget;
        if memory.grow_to(self.shares.sort_bytes).is_err() {
            // A long record has some of it just now.
            let _ = memory.grow_to(memory.bytes() + budget.free_bytes());
        }
        let source = Arc::new(Mutex::new(source));
        let mut strips = Vec::new();
        if let MapOutput::View { folder, name } = output {
            let to = SortOutput::View { folder: Arc::clone(folder), name: name.clone() };
            let sorted = self.sort(&source, memory.bytes(), false, to)?;
            self.report.rows = sorted.records;
            self.report.output_bytes = sorted.output_bytes;
            self.mapped(Instant::now());
            if !source.lock().has_more() {
                mark_unreduced(folder, &self.what, None)?;
                return Ok(());
            }
        }
        loop {
            let temp = self.temp(output, strips.len());
            let mut writer = ReduceWriter {
                source: &source,
                to: To::Unknown,
                sink: match output {
                    MapOutput::Rows(sink) if strips.is_empty() => Some(&mut **sink),
                    _ => None,
                },
                temp: &temp,
                records: &mut records,
                reducer: &mut reducer,
                buffer: Vec::new(),
                rows: 0,
                bytes: 0,
                began: None,
                error: None,
            };
            let only = writer.sink.is_some();
            let sorted = self.sort(&source, memory.bytes(), only, SortOutput::Writer(&mut writer));
            if let Some(error) = writer.error.take() {
                return Err(error);
            }
            let stopped = matches!(writer.to, To::Stopped);
            if !stopped {
                sorted?;
                writer.end()?;
            }
            let (rows, bytes, began) = (writer.rows, writer.bytes, writer.began);
            match writer.to {
                To::Strip(strip) => strips.push(strip.finish(0)?),
                To::Unknown | To::Rows | To::Stopped => {
                    (self.report.rows, self.report.output_bytes) = (rows, bytes);
                    self.mapped(began.unwrap_or_else(Instant::now));
                    return Ok(());
                }
            }
            if !source.lock().has_more() {
                break;
            }
            let merging = Budget::new(memory.bytes());
            let level = fan_in(&merging, 0).div_ceil(LEVEL_SHARE).max(2);
            while let Some(last) = strips.last().map(|strip: &Strip| strip.level)
                && strips.iter().rev().take_while(|strip| strip.level == last).count() >= level
            {
                let some = strips.split_off(strips.len() - level);
                let temp = self.temp(output, strips.len());
                strips.push(self.merge_to_strip(some, &temp, &merging)?);
            }
        }
        self.mapped(Instant::now());
        self.merge_strips(strips, &Budget::new(memory.bytes()), output)
    }

    /// All input is mapped since `then`.
    fn mapped(&mut self, then: Instant) {
        self.report.map_seconds = then.duration_since(self.started).as_secs_f64();
    }

    /// The disk for the next strip.
    fn temp(&self, output: &MapOutput<'_>, number: usize) -> Arc<dyn Directory> {
        match (&self.options.temp[..], output) {
            ([], MapOutput::View { folder, .. }) => Arc::clone(folder),
            (temp, _) => Arc::clone(&temp[number % temp.len()]),
        }
    }

    /// Sorts the next spills in `memory_bytes`. If they are `only` ones so far, and the last, the result is on
    /// its way while it is written.
    fn sort(
        &mut self,
        source: &Arc<Mutex<SpillSource>>,
        memory_bytes: u64,
        only: bool,
        to: SortOutput<'_>,
    ) -> Result<merganser_sort::SortReport, Error> {
        self.report.spill_sorts += 1;
        let options = SortOptions {
            order: order(),
            budget: Budget::new(memory_bytes),
            threads: sort_threads(memory_bytes, self.workers),
            temp: self.options.temp.clone(),
            temp_limit_bytes: None,
            compression: CompressionChoice::Auto,
            top: None,
            strategy: Strategy::Merge,
        };
        let to_view = matches!(to, SortOutput::View { .. });
        let progress = SpillProgress {
            inner: self.progress,
            source,
            shows: only || to_view,
            merging: AtomicBool::new(false),
        };
        let capacity = move |mean| RunPlan::stream_bytes_max(memory_bytes, mean);
        let reader = Box::new(SpillReader::new(source, Box::new(capacity)));
        let input = Input::Stream { name: "spills".to_owned(), reader };
        merganser_sort::sort(vec![input], to, &options, &progress)
    }

    /// Merges strips into one, in memory of `budget`.
    fn merge_to_strip(
        &self,
        strips: Vec<Strip>,
        temp: &Arc<dyn Directory>,
        budget: &Budget,
    ) -> Result<Strip, SsdletError> {
        let level = strips.iter().map(|strip| strip.level).max().unwrap_or(0) + 1;
        let mut rows = self.uncombined(strips, budget)?;
        let mut writer = StripWriter::new(temp.create_unnamed().map_err(Error::from)?);
        let (mut record, mut count) = (Vec::new(), 0);
        while rows.advance()? {
            record.clear();
            self.how.encoding.push(rows.key(), rows.value(), &mut record);
            writer.push(&record)?;
            self.check(&mut count)?;
        }
        Ok(writer.finish(level)?)
    }

    /// The rows of strips in order, as they are: a sum may leave 64 bits on the way.
    fn uncombined(
        &self,
        strips: Vec<Strip>,
        budget: &Budget,
    ) -> Result<Merge<StripRows>, SsdletError> {
        Ok(Merge::new(self.open(strips, budget)?, Combine::None, Type::Bytes))
    }

    fn open(&self, strips: Vec<Strip>, budget: &Budget) -> Result<Vec<StripRows>, Error> {
        let open = |strip| StripRows::new(strip, self.how.encoding, budget);
        strips.into_iter().map(open).collect()
    }

    fn check(&self, count: &mut u64) -> Result<(), SsdletError> {
        *count += 1;
        if count.is_multiple_of(CHECK_ROWS) && self.progress.cancelled() {
            return Err(Error::Cancelled.into());
        }
        Ok(())
    }

    /// Merges all strips into the result.
    fn merge_strips(
        &mut self,
        mut strips: Vec<Strip>,
        budget: &Budget,
        output: &mut MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let others = if let MapOutput::View { .. } = output { WRITER_BYTES } else { 0 };
        let fan_in = fan_in(budget, others);
        while strips.len() > fan_in {
            let rest = strips.split_off(fan_in);
            let temp = self.temp(output, rest.len());
            let merged = self.merge_to_strip(strips, &temp, budget)?;
            strips = rest;
            strips.push(merged);
        }
        let bytes = strips.iter().map(|strip| strip.bytes).sum();
        self.progress.phase("reducing", Some(bytes));
        let mut count = 0;
        match output {
            MapOutput::View { folder, .. } => {
                let mut rows = self.uncombined(strips, budget)?;
                let encoding = self.how.encoding;
                let progress = self.progress;
                let segment = write_run(&mut rows, encoding, folder, bytes, budget, |n| {
                    progress.advance(n);
                    self.check(&mut count)
                })?;
                drop(rows);
                let manifest = mark_unreduced(folder, &self.what, Some(segment))?;
                self.report.rows = manifest.records;
                self.report.output_bytes = manifest.size_bytes;
            }
            MapOutput::Rows(sink) => {
                let Combining { combine, value, encoding } = self.how;
                let (combine, of) = encoding.combined_as(combine, value);
                let skip = encoding.place_bytes();
                let mut rows = Merge::new(self.open(strips, budget)?, combine, of);
                let (mut given, mut output_bytes) = (0, 0);
                while rows.advance()? {
                    let (key, value) = (rows.key(), &rows.value()[skip..]);
                    let bytes = (key.len() + value.len()) as u64;
                    given += 1;
                    output_bytes += bytes;
                    self.progress.advance(bytes);
                    if !sink.keyed(key, value)? {
                        break;
                    }
                    self.check(&mut count)?;
                }
                (self.report.rows, self.report.output_bytes) = (given, output_bytes);
            }
        }
        Ok(())
    }
}

/// How many strips are merged at once in `budget`, in addition to `others`: at least two, for which there is memory in any
/// case.
fn fan_in(budget: &Budget, others: u64) -> usize {
    let room = budget.limit_bytes().saturating_sub(others);
    (room / strip::READER_BYTES).clamp(2, FAN_IN_MAX) as usize
}

/// Where the rows of a sort go: known when it has taken all its records.
enum To {
    Unknown,
    /// To the sink: these are all.
    Rows,
    /// To a strip.
    Strip(StripWriter),
    /// The sink wants no more.
    Stopped,
}

/// Takes the sorted records of one sort.
struct ReduceWriter<'a> {
    source: &'a Mutex<SpillSource>,
    to: To,
    /// Unless earlier sorts have left strips.
    sink: Option<&'a mut dyn RowSink>,
    temp: &'a Arc<dyn Directory>,
    records: &'a mut RecordCutter,
    reducer: &'a mut Reducer,
    /// Records for a strip.
    buffer: Vec<u8>,
    rows: u64,
    bytes: u64,
    /// When the first record came: all input was mapped by then, if these are all.
    began: Option<Instant>,
    error: Option<SsdletError>,
}

impl ReduceWriter<'_> {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), SsdletError> {
        if let To::Unknown = self.to {
            self.began = Some(Instant::now());
            self.to = if self.sink.is_some() && !self.source.lock().has_more() {
                To::Rows
            } else {
                let storage: Arc<dyn Storage> = self.temp.create_unnamed().map_err(Error::from)?;
                To::Strip(StripWriter::new(storage))
            };
        }
        while !matches!(self.to, To::Stopped)
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
        if !matches!(self.to, To::Stopped) && self.reducer.end() {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Hands the row over that is complete.
    fn hand_over(&mut self) -> Result<(), SsdletError> {
        if let To::Strip(strip) = &mut self.to {
            self.buffer.clear();
            self.reducer.push_records(&mut self.buffer);
            return Ok(strip.push(&self.buffer)?);
        }
        self.reducer.reduce()?;
        let (key, value) = self.reducer.row();
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        if let Some(sink) = &mut self.sink
            && !sink.keyed(key, value)?
        {
            self.to = To::Stopped;
        }
        Ok(())
    }
}

impl Write for ReduceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.take(bytes) {
            self.error = Some(error);
        }
        if matches!(self.to, To::Stopped) || self.error.is_some() {
            // Ends the sort.
            return Err(io::Error::other("no more rows are wanted"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The progress of a sort of spills, as that of a map: while it takes records, the map's own counts.
struct SpillProgress<'a> {
    inner: &'a dyn Progress,
    source: &'a Mutex<SpillSource>,
    /// Whether its result is that of the map if nothing comes after it.
    shows: bool,
    merging: AtomicBool,
}

impl Progress for SpillProgress<'_> {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let is_last = || self.source.try_lock().is_some_and(|source| !source.has_more());
        if name != "sorting" && self.shows && is_last() {
            self.merging.store(true, Ordering::Relaxed);
            self.inner.phase("reducing", total_bytes);
        }
    }

    fn advance(&self, bytes: u64) {
        if self.merging.load(Ordering::Relaxed) {
            self.inner.advance(bytes);
        }
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}
