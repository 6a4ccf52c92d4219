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
//! A sort holds the fences of all its runs, and merges them at once, so its memory says how many bytes it takes. Later
//! bytes go to another sort in the same memory. A result of a sort that is not the last one is a strip,
//! whose reader takes the same little memory however long it is; the shortest strips are merged where there are too
//! many for one merge. So no amount of spills is too much for the least memory.
//!
//! A record is written to a run and, if its sort is not the last one, to a strip. Up to [`FAN_IN_MAX`] sorts that is all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use merganser_sort::budget::Reservation;
use merganser_sort::plan::{RecordSample, RunPlan};
use merganser_sort::reduced::{
    RecordCutter, Reducer, ResultDescription, RowMerge, RowStream, WRITER_BYTES, mark_unreduced,
    order, write_run,
};
use merganser_sort::run::SortInput;
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, SortOptions, SortOutput, Strategy,
};
use merganser_storage::Directory;
use parking_lot::Mutex;

use super::shares::{MapShares, sort_threads};
use super::sorted::{CancelCheck, Combining, FAN_IN_MAX, SortContext, SortOutcome, SortedWriter};
use super::spill::{MeanLengths, SpillReader, SpillSource};
use super::strip::{self, Strip, StripWriter};
use super::{MapOptions, MapOutput, MapReport, RowSink};
use crate::ssdlet::SsdletError;

/// Strips that are kept while others come, before some are merged: each is an open file.
const STRIPS_MAX: usize = 64;

/// Memory for the first spill, held from the beginning.
pub(super) struct FirstSpill {
    sort: Reservation,
    _strip: Reservation,
    records: RecordCutter,
    reducer: Reducer,
}

impl FirstSpill {
    /// That of a map with these shares; `None` if it can't spill.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(
        budget: &Budget,
        shares: &MapShares,
        how: Combining,
    ) -> Result<Option<Self>, Error> {
        if !shares.spills {
            return Ok(None);
        }
        let Combining { combine, value, encoding } = how;
        Ok(Some(FirstSpill {
            sort: budget.reserve(shares.kept_bytes, "sorting spills")?,
            _strip: budget.reserve(strip::WRITER_BYTES, "sorting spills")?,
            records: RecordCutter::new(budget)?,
            reducer: Reducer::new(combine, value, encoding, budget)?,
        }))
    }
}

/// Sorts the spills of one map.
pub(super) struct SpillSorting<'r> {
    pub(super) options: &'r MapOptions,
    pub(super) progress: &'r dyn Progress,
    pub(super) shares: MapShares,
    pub(super) workers: usize,
    pub(super) started: Instant,
    pub(super) how: Combining,
    pub(super) what: ResultDescription,
    pub(super) report: &'r mut MapReport,
}

impl SpillSorting<'_> {
    /// Sorts the records of all spills into the result, in the memory that was kept for it and, if it is
    /// free, all of its share.
    ///
    /// # Errors
    /// Too little memory for a long record, a full disk, a sum that leaves 64 bits, the sink's own.
    pub(super) fn run(
        mut self,
        source: SpillSource,
        held: FirstSpill,
        output: &mut MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let FirstSpill { sort: mut memory, _strip, mut records, mut reducer } = held;
        let budget = &self.options.budget;
        if memory.grow_to(self.shares.sort_bytes).is_err() {
            // A long record has some of it just now.
            let _ = memory.grow_to(memory.bytes() + budget.free_bytes());
        }
        let source = Arc::new(Mutex::new(source));
        let mut strips: Vec<Strip> = Vec::new();
        if let MapOutput::View { folder, name } = output {
            let to = SortOutput::View { folder: Arc::clone(folder), name: name.clone() };
            let sorted = self.sort(&source, memory.bytes(), Some(0), to)?;
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
            let sink: Option<&mut dyn RowSink> = match output {
                MapOutput::Rows(sink) => Some(&mut **sink),
                MapOutput::View { .. } => None,
            };
            let (how, progress) = (self.how, self.progress);
            let shared = SortContext { source: &source, how, budget, progress };
            let strips_bytes = strips.iter().map(|strip| strip.bytes).sum::<u64>();
            let merged_bytes = sink.is_some().then_some(strips_bytes);
            let memory_of_rows = (&mut records, &mut reducer);
            let mut writer = SortedWriter::new(shared, sink, &mut strips, &temp, memory_of_rows);
            let to = SortOutput::Writer(&mut writer);
            let sorted = self.sort(&source, memory.bytes(), merged_bytes, to);
            match writer.ended(sorted)? {
                SortOutcome::Strip(strip) => strips.push(strip),
                SortOutcome::Rows { rows, bytes, began } => {
                    (self.report.rows, self.report.output_bytes) = (rows, bytes);
                    self.mapped(began);
                    return Ok(());
                }
            }
            if !source.lock().has_more() {
                break;
            }
            if strips.len() == STRIPS_MAX {
                let merging = Budget::new(memory.bytes());
                let count = fan_in(&merging, 0);
                self.merge_shortest(count, &mut strips, (&*output, &merging, &mut reducer))?;
            }
        }
        self.mapped(Instant::now());
        self.merge_strips(strips, &Budget::new(memory.bytes()), &mut reducer, output)
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

    /// Sorts the next spills in `memory_bytes`. If they are the last ones, the result of the map is on its way while
    /// that of the sort is written, together with `merged_bytes` of earlier sorts; `None` if it never is.
    fn sort(
        &mut self,
        source: &Arc<Mutex<SpillSource>>,
        memory_bytes: u64,
        merged_bytes: Option<u64>,
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
        let progress = SpillProgress {
            inner: self.progress,
            source,
            merged_bytes,
            merging: AtomicBool::new(false),
        };
        let (to_view, threads) = (matches!(to, SortOutput::View { .. }), options.threads);
        let capacity = move |mean: MeanLengths| {
            let most = RunPlan::stream_bytes_max(memory_bytes, mean.key_bytes);
            if to_view {
                // Bytes that its runs do not take are written twice, as in an extra pass.
                return most;
            }
            let sample = RecordSample {
                record_bytes: mean.record_bytes,
                key_bytes: 0.0,
                fence_key_bytes: mean.key_bytes,
                in_order: false,
            };
            most.min(RunPlan::stream_bytes_at_once(memory_bytes, sample, threads))
        };
        let reader = Box::new(SpillReader::new(source, Box::new(capacity)));
        let input = SortInput::Stream { name: "spills".to_owned(), reader };
        merganser_sort::sort(vec![input], to, &options, &progress)
    }

    /// Merges the `count` shortest strips into one, in memory of the budget. Values are combined, so it may be shorter
    /// than they are together.
    fn merge_shortest(
        &self,
        count: usize,
        strips: &mut Vec<Strip>,
        (output, budget, reducer): (&MapOutput<'_>, &Budget, &mut Reducer),
    ) -> Result<(), SsdletError> {
        strips.sort_by_key(|strip| std::cmp::Reverse(strip.bytes));
        let shortest = strips.split_off(strips.len() - count);
        let temp = self.temp(output, strips.len());
        let mut rows = self.how.uncombined(shortest, budget)?;
        let mut writer = StripWriter::new(temp.create_unnamed().map_err(Error::from)?);
        let (mut check, mut buffer) = (CancelCheck::new(self.progress), Vec::new());
        let mut write = |reducer: &mut Reducer, writer: &mut StripWriter| {
            buffer.clear();
            reducer.push_records(&mut buffer);
            writer.push(&buffer)
        };
        while rows.advance()? {
            if reducer.push_row(rows.key(), rows.value())? {
                write(reducer, &mut writer)?;
            }
            check.row()?;
        }
        if reducer.end() {
            write(reducer, &mut writer)?;
        }
        strips.push(writer.finish()?);
        Ok(())
    }

    /// Merges all strips into the result.
    fn merge_strips(
        &mut self,
        mut strips: Vec<Strip>,
        budget: &Budget,
        reducer: &mut Reducer,
        output: &mut MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let others = if let MapOutput::View { .. } = output { WRITER_BYTES } else { 0 };
        let fan_in = fan_in(budget, others);
        while strips.len() > fan_in {
            // So many that every later merge is a full one.
            let count = 2 + (strips.len() - 2) % (fan_in - 1);
            self.merge_shortest(count, &mut strips, (&*output, budget, reducer))?;
        }
        let bytes = strips.iter().map(|strip| strip.bytes).sum();
        self.progress.phase("reducing", Some(bytes));
        let mut check = CancelCheck::new(self.progress);
        match output {
            MapOutput::View { folder, .. } => {
                let mut rows = self.how.uncombined(strips, budget)?;
                let encoding = self.how.encoding;
                let progress = self.progress;
                let segment = write_run(&mut rows, encoding, folder, bytes, budget, |n| {
                    progress.advance(n);
                    check.row()
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
                let mut rows = RowMerge::new(self.how.open(strips, budget)?, combine, of);
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
                    check.row()?;
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

/// The progress of a sort of spills, as that of a map: while it takes records, the map's own counts.
struct SpillProgress<'a> {
    inner: &'a dyn Progress,
    source: &'a Mutex<SpillSource>,
    /// Bytes of earlier sorts that are merged with its result, if that is the result of the map.
    merged_bytes: Option<u64>,
    merging: AtomicBool,
}

impl Progress for SpillProgress<'_> {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let is_last = || self.source.try_lock().is_some_and(|source| !source.has_more());
        if let Some(merged_bytes) = self.merged_bytes
            && name != "sorting"
            && is_last()
        {
            self.merging.store(true, Ordering::Relaxed);
            self.inner.phase("reducing", total_bytes.map(|bytes| bytes + merged_bytes));
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
