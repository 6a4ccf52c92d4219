//! One map, from its inputs to its result.

use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use merganser_sort::budget::Reservation;
use merganser_sort::pipeline::Turns;
use merganser_sort::reduced::{Encoding, ResultDescription, write_reduced, write_unreduced};
use merganser_sort::rows::{Combine, CombinedRows, RowStream, Type};
use merganser_sort::{Error, Progress};
use merganser_storage::thread::spawn_scoped;

use super::shares::MapShares;
use super::source::MapSources;
use super::spill::{Combining, SpillSorter, Spills};
use super::work::{KeyedSettings, MapJob, Meeting, NO_CHUNK, OrderedOut};
use super::{MapInput, MapOptions, MapOutput, MapReport, RowSink};
use crate::ssdlet::{Ssdlet, SsdletError, SsdletOutput};
use crate::table::SortedRows;

/// Copies of the longest row outside its table, at most: in the merge of tables, and as a record of a view; each
/// with as much room as it had before it grew.
const ROW_COPIES: u64 = 4;
/// Rows between two looks at whether the map was cancelled.
const CHECK_ROWS: u64 = 4096;

/// Runs `ssdlet` over `inputs`.
///
/// # Errors
/// The SSDlet's own, bad input, too little memory, a full disk, the sink's own. Where several chunks
/// fail, it is the error of the first one in the order of the input.
///
/// # Panics
/// When the SSDlet does.
pub fn map(
    ssdlet: &dyn Ssdlet,
    inputs: Vec<MapInput>,
    output: MapOutput<'_>,
    options: &MapOptions,
    progress: &dyn Progress,
) -> Result<MapReport, SsdletError> {
    let started = Instant::now();
    let description = ssdlet.description();
    if let (MapOutput::View { .. }, Some(_)) = (&output, ssdlet.rows_most()) {
        let name = &description.name;
        let detail = "a view holds all rows, but only the first ones are wanted; write the rows";
        return Err(SsdletError::Failed(format!("{name}: {detail}")));
    }
    let to_view = matches!(output, MapOutput::View { .. });
    let shares = MapShares::new(description, &inputs, options, to_view)?;
    let workers = options.threads.max(1);
    let worker_bytes = description.worker_bytes.saturating_mul(workers as u64);
    let own = options.budget.reserve(worker_bytes, "workers")?;
    progress.phase("mapping", total_bytes(&inputs));
    let pieces = (shares.chunk_bytes, shares.feed_bytes);
    let sources = MapSources::new(inputs, description.input, pieces, &options.budget);
    let job = MapJob::new(ssdlet, &sources, options, progress);
    let run = MapRun { job: &job, shares, workers, started, report: MapReport::default() };
    let mut report = match (&description.output, output) {
        (SsdletOutput::Keyed { value, combine, .. }, MapOutput::Rows(rows))
            if let Some(left) = ssdlet.rows_most() =>
        {
            let mut first = FirstRows { rows, left, header: Some((ssdlet, &sources)) };
            let output = MapOutput::Rows(&mut first);
            let report = run.keyed((*combine, *value), own, output)?;
            // Also where there is no row.
            first.begin()?;
            report
        }
        (SsdletOutput::Keyed { value, combine, .. }, output) => {
            run.keyed((*combine, *value), own, output)?
        }
        (SsdletOutput::Ordered { .. }, MapOutput::Rows(rows)) => run.ordered(rows)?,
        (SsdletOutput::Ordered { .. }, MapOutput::View { .. }) => {
            return Err(SsdletError::OrderedView { ssdlet: description.name.clone() });
        }
    };
    (report.input_bytes, report.metered) = job.finish()?;
    report.result_seconds = started.elapsed().as_secs_f64() - report.map_seconds;
    report.chunk_bytes = shares.chunk_bytes as u64;
    report.memory_peak_bytes = options.budget.peak_bytes();
    report.header = sources.into_header();
    Ok(report)
}

/// Takes the first rows of a keyed result, after the header row of the inputs.
struct FirstRows<'a> {
    rows: &'a mut dyn RowSink,
    left: u64,
    /// `None` when it was handed out.
    header: Option<(&'a dyn Ssdlet, &'a MapSources)>,
}

impl FirstRows<'_> {
    fn begin(&mut self) -> Result<(), SsdletError> {
        if let Some((ssdlet, sources)) = self.header.take()
            && let Some(row) = sources.header()
        {
            self.rows.header(&ssdlet.header(&row)?)?;
        }
        Ok(())
    }
}

impl RowSink for FirstRows<'_> {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.begin()?;
        self.left = self.left.saturating_sub(1);
        Ok(self.rows.keyed(key, value)? && self.left > 0)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        self.rows.records(records)
    }
}

/// Bytes of all inputs, where they are known.
fn total_bytes(inputs: &[MapInput]) -> Option<u64> {
    let bytes = inputs.iter().map(|input| match input {
        MapInput::Storage { storage, range: None } => Some(storage.size()),
        MapInput::Storage { storage, range: Some(range) } => {
            Some(range.end.min(storage.size()).saturating_sub(range.start))
        }
        MapInput::Stream { .. } => None,
    });
    bytes.sum()
}

struct MapRun<'r, 'a> {
    job: &'r MapJob<'a>,
    shares: MapShares,
    workers: usize,
    started: Instant,
    report: MapReport,
}

impl MapRun<'_, '_> {
    fn ordered(mut self, rows: &mut dyn RowSink) -> Result<MapReport, SsdletError> {
        let turns = Turns::new(OrderedOut { rows, bytes: 0 });
        let waiting_bytes = self.shares.waiting_bytes;
        // All that they need, before the first of them reads an input, which may take memory, too.
        let begun = (0..self.workers).map(|_| self.job.begin_ordered(waiting_bytes));
        let begun = begun.collect::<Result<Vec<_>, _>>()?;
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(self.workers);
            for begun in begun {
                let work = || self.job.ordered(&turns, begun);
                match spawn_scoped(scope, "map", work) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        self.job.fail(NO_CHUNK, Error::from(error).into());
                        turns.stop();
                        break;
                    }
                }
            }
            join(threads);
        });
        self.report.output_bytes = turns.into_inner().bytes;
        self.report.map_seconds = self.started.elapsed().as_secs_f64();
        Ok(self.report)
    }

    fn keyed(
        mut self,
        (combine, value): (Combine, Type),
        own: Reservation,
        output: MapOutput<'_>,
    ) -> Result<MapReport, SsdletError> {
        let options = self.job.options;
        let shares = self.shares;
        let how = Combining { combine, value, encoding: Encoding::of_unreduced(combine) };
        // Without spills, its memory is for the writer of a view.
        let state = Spills::new(options, &shares, how, &output)?;
        let meeting = Meeting::of_workers(self.workers);
        let settings = KeyedSettings {
            combine,
            value,
            table_bytes: shares.table_bytes,
            spills: shares.spills,
            meeting: &meeting,
            state: &state,
        };
        // All that they need, before the first of them reads an input, which may take memory, too.
        let begun = (0..self.workers).map(|_| self.job.begin_keyed(settings));
        let begun = begun.collect::<Result<Vec<_>, _>>()?;
        let tables = std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(self.workers);
            for begun in begun {
                let job = self.job;
                match spawn_scoped(scope, "map", move || job.keyed(settings, begun)) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        self.job.fail(NO_CHUNK, Error::from(error).into());
                        meeting.come_without(self.workers - threads.len());
                        break;
                    }
                }
            }
            join(threads)
        });
        drop(own);
        self.report.spills = state.count.load(Ordering::Relaxed);
        self.report.spilled_records = state.records.load(Ordering::Relaxed);
        if self.job.has_failed() {
            return Ok(self.report);
        }
        self.report.map_seconds = self.started.elapsed().as_secs_f64();
        if let Some((sorter, memory)) = state.into_sorter() {
            let finished = self.finish_spills(sorter, how.encoding, output);
            drop(memory);
            finished?;
        } else {
            let tables = tables.into_iter().flatten().collect();
            self.merge_tables(tables, (combine, value), output)?;
        }
        Ok(self.report)
    }

    /// The sorted rows of all spills are the result.
    fn finish_spills(
        &mut self,
        sorter: SpillSorter,
        encoding: Encoding,
        output: MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let progress = self.job.progress;
        match output {
            MapOutput::View { folder, name } => {
                let (segments, report) = sorter.finish_view(progress)?;
                self.report.spill_runs = report.runs;
                let manifest = write_unreduced(&folder, name, &self.what(), segments)?;
                self.report.rows = manifest.records;
                self.report.output_bytes = manifest.size_bytes;
            }
            MapOutput::Rows(sink) => {
                let mut rows = sorter.finish_with(progress)?;
                self.report.spill_runs = rows.report().runs;
                progress.phase("reducing", Some(rows.report().bytes));
                let skip = encoding.place_bytes();
                while let Some((key, value)) = rows.next()? {
                    let bytes = (key.len() + value.len()) as u64;
                    self.report.rows += 1;
                    self.report.output_bytes += bytes - skip as u64;
                    progress.advance(bytes);
                    if !sink.keyed(key, &value[skip..])? {
                        break;
                    }
                    if self.report.rows.is_multiple_of(CHECK_ROWS) && progress.cancelled() {
                        return Err(Error::Cancelled.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Nothing was spilled: the rows of all tables are the result.
    fn merge_tables(
        &mut self,
        tables: Vec<SortedRows>,
        (combine, value): (Combine, Type),
        output: MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let progress = self.job.progress;
        progress.phase("reducing", None);
        let encoding = Encoding::of_unreduced(combine);
        let (merged_as, of) = encoding.combined_as(combine, value);
        let skip = encoding.place_bytes();
        let tables = tables.into_iter().map(TableRows).collect();
        let mut rows = Unplaced { rows: CombinedRows::merged(tables, merged_as, of), skip };
        let check = || if progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) };
        let budget = &self.job.options.budget;
        let mut copies = budget.reserve(0, "reducing")?;
        match output {
            MapOutput::View { folder, name } => {
                let what = self.what();
                let bytes = &mut self.report.output_bytes;
                self.report.rows = write_reduced(&mut rows, &folder, name, &what, budget, |n| {
                    copies.grow_to(ROW_COPIES * n)?;
                    *bytes += n;
                    progress.advance(n);
                    Ok(check()?)
                })?;
            }
            MapOutput::Rows(sink) => {
                while rows.advance()? {
                    self.report.rows += 1;
                    let bytes = (rows.key().len() + rows.value().len()) as u64;
                    copies.grow_to(ROW_COPIES * bytes)?;
                    self.report.output_bytes += bytes;
                    progress.advance(bytes);
                    if !sink.keyed(rows.key(), rows.value())? {
                        break;
                    }
                    if self.report.rows.is_multiple_of(CHECK_ROWS) {
                        check()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn what(&self) -> ResultDescription {
        self.job.ssdlet.description().result().expect("its output is keyed")
    }
}

/// Waits for all; panics if one has.
fn join<T>(threads: Vec<ScopedJoinHandle<'_, T>>) -> Vec<T> {
    let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    ended
        .into_iter()
        .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

/// The rows of one table.
struct TableRows(SortedRows);

impl RowStream for TableRows {
    type Error = SsdletError;

    fn advance(&mut self) -> Result<bool, SsdletError> {
        Ok(self.0.advance())
    }

    fn key(&self) -> &[u8] {
        self.0.key()
    }

    fn value(&self) -> &[u8] {
        self.0.value()
    }
}

/// Rows without the places in front of their values.
struct Unplaced<S> {
    rows: S,
    skip: usize,
}

impl<S: RowStream> RowStream for Unplaced<S> {
    type Error = S::Error;

    fn advance(&mut self) -> Result<bool, S::Error> {
        self.rows.advance()
    }

    fn key(&self) -> &[u8] {
        self.rows.key()
    }

    fn value(&self) -> &[u8] {
        &self.rows.value()[self.skip..]
    }
}
