//! One map, from its inputs to its result.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use merganser_sort::budget::Reservation;
use merganser_sort::pipeline::Turns;
use merganser_sort::run::Input;
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, SortOptions, SortOutput, Strategy,
};
use merganser_storage::thread::spawn_scoped;

use super::encoding::Encoding;
use super::records::RecordCutter;
use super::reduce::Reducer;
use super::rows::{Merge, RowStream};
use super::shares::{Shares, sort_threads};
use super::source::Sources;
use super::spill::{self, SpillReader, Spills};
use super::view::{ResultDescription, mark_unreduced, order, write_reduced};
use super::work::{Job, KeyedSettings, Meeting, NO_CHUNK, OrderedOut};
use super::{MapInput, MapOptions, MapOutput, MapReport, RowSink};
use crate::ssdlet::{Combine, Output, PLACE_BYTES, Ssdlet, SsdletError, Type};
use crate::table::SortedRows;

/// Copies of the longest row outside its table, at most: in the merge of tables, and as a record of a view; each
/// with as much room as it had before it grew.
const ROW_COPIES: u64 = 4;

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
    match (output, ssdlet.rows_most()) {
        (MapOutput::Rows(rows), Some(left)) => {
            let mut first = FirstRows { rows, left };
            map_all(ssdlet, inputs, MapOutput::Rows(&mut first), options, progress)
        }
        (MapOutput::View { .. }, Some(_)) => {
            let name = &ssdlet.description().name;
            let detail =
                "a view holds all rows, but only the first ones are wanted; write the rows";
            Err(SsdletError::Failed(format!("{name}: {detail}")))
        }
        (output, None) => map_all(ssdlet, inputs, output, options, progress),
    }
}

fn map_all(
    ssdlet: &dyn Ssdlet,
    inputs: Vec<MapInput>,
    output: MapOutput<'_>,
    options: &MapOptions,
    progress: &dyn Progress,
) -> Result<MapReport, SsdletError> {
    let started = Instant::now();
    let description = ssdlet.description();
    let to_view = matches!(output, MapOutput::View { .. });
    let shares = Shares::new(description, &inputs, options, to_view)?;
    let workers = options.threads.max(1);
    let worker_bytes = description.worker_bytes.saturating_mul(workers as u64);
    let own = options.budget.reserve(worker_bytes, "workers")?;
    progress.phase("mapping", total_bytes(&inputs));
    let sources = Sources::new(inputs, description.input, shares.chunk_bytes, &options.budget);
    let job = Job::new(ssdlet, &sources, options, progress);
    let run = Run { job: &job, shares, workers, started, report: MapReport::default() };
    let mut report = match (&description.output, output) {
        (Output::Keyed { value, combine, .. }, output) => {
            run.keyed((*combine, *value), own, output)?
        }
        (Output::Ordered { .. }, MapOutput::Rows(rows)) => run.ordered(rows)?,
        (Output::Ordered { .. }, MapOutput::View { .. }) => {
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

/// Takes the first rows of a keyed result.
struct FirstRows<'a> {
    rows: &'a mut dyn RowSink,
    left: u64,
}

impl RowSink for FirstRows<'_> {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.left -= 1;
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

struct Run<'r, 'a> {
    job: &'r Job<'a>,
    shares: Shares,
    workers: usize,
    started: Instant,
    report: MapReport,
}

impl Run<'_, '_> {
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
        mut output: MapOutput<'_>,
    ) -> Result<MapReport, SsdletError> {
        let options = self.job.options;
        let state = Arc::new(Spills::default());
        let encoding = Encoding::of_unreduced(combine);
        let shares = self.shares;
        let held = options.budget.reserve(shares.batch_bytes, "spilling")?;
        let of_batches = (shares.batch_bytes, &options.budget);
        let (writer, batches) = spill::channel(&state, encoding, of_batches);
        let kept = options.budget.reserve(shares.kept_bytes, "sorting spills")?;
        let reducing = match &output {
            MapOutput::Rows(_) if shares.spills => {
                let records = RecordCutter::new(&options.budget)?;
                Some((records, Reducer::new(combine, value, encoding, &options.budget)?))
            }
            _ => None,
        };
        let meeting = Meeting::of(self.workers);
        let settings = KeyedSettings {
            combine,
            value,
            table_bytes: shares.table_bytes,
            spills: shares.spills,
            meeting: &meeting,
            state: &state,
        };
        // All that they need, before the first of them reads an input, which may take memory, too.
        let begun = (0..self.workers).map(|_| self.job.begin_keyed(settings, &writer));
        let begun = begun.collect::<Result<Vec<_>, _>>()?;
        let mut for_spills = Some((kept, reducing));
        let tables = std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(self.workers);
            for begun in begun {
                let job = self.job;
                match spawn_scoped(scope, "map", move || job.keyed(settings, begun)) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        self.job.fail(NO_CHUNK, Error::from(error).into());
                        state.break_off();
                        meeting.come_without(self.workers - threads.len());
                        break;
                    }
                }
            }
            drop(writer);
            // Until the first spill, or until all workers have ended.
            if let Ok(first) = batches.recv()
                && let Some((kept, reducing)) = for_spills.take()
            {
                let reader = SpillReader::new(&state, first, batches);
                let sorted = self.sort_spills(reader, kept, reducing, &mut output);
                if let (Err(error), false) = (sorted, state.ended_sort()) {
                    self.job.fail(NO_CHUNK, error);
                }
            }
            join(threads)
        });
        drop((own, held, for_spills));
        self.report.spills = state.count.load(Ordering::Relaxed);
        self.report.spilled_records = state.records.load(Ordering::Relaxed);
        if self.job.has_failed() || state.any() {
            return Ok(self.report);
        }
        self.report.map_seconds = self.started.elapsed().as_secs_f64();
        let tables = tables.into_iter().flatten().collect();
        self.merge_tables(tables, (combine, value), output)?;
        Ok(self.report)
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
        // Values that bear their places are merged as bytes: the least place is the first one.
        let (merged_as, of, skip) = match combine {
            Combine::First => (Combine::Min, Type::Bytes, PLACE_BYTES),
            _ => (combine, combine.result_type(value), 0),
        };
        let tables = tables.into_iter().map(TableRows).collect();
        let mut rows = Unplaced { rows: Merge::new(tables, merged_as, of), skip };
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
                    if self.report.rows.is_multiple_of(4096) {
                        check()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn what(&self) -> ResultDescription {
        ResultDescription::of(self.job.ssdlet.description()).expect("its output is keyed")
    }

    /// Sorts the records of all spills into the result, in the memory that was kept for it and, if it is
    /// free, all of its share.
    fn sort_spills(
        &mut self,
        reader: SpillReader,
        mut kept: Reservation,
        reducing: Option<(RecordCutter, Reducer)>,
        output: &mut MapOutput<'_>,
    ) -> Result<(), SsdletError> {
        let options = self.job.options;
        if kept.grow_to(self.shares.sort_bytes).is_err() {
            // A long record has some of it just now.
            let _ = kept.grow_to(kept.bytes() + options.budget.free_bytes());
        }
        let sort_options = SortOptions {
            order: order(),
            budget: Budget::new(kept.bytes()),
            threads: sort_threads(kept.bytes(), self.workers),
            temp: options.temp.clone(),
            temp_limit_bytes: None,
            compression: CompressionChoice::Auto,
            top: None,
            strategy: Strategy::Merge,
        };
        let progress = SpillProgress { inner: self.job.progress, merging: AtomicBool::new(false) };
        let input = Input::Stream { name: "spills".to_owned(), reader: Box::new(reader) };
        match output {
            MapOutput::View { folder, name } => {
                let to = SortOutput::View { folder: Arc::clone(folder), name: name.clone() };
                let sorted = merganser_sort::sort(vec![input], to, &sort_options, &progress)?;
                self.report.map_seconds = self.started.elapsed().as_secs_f64();
                mark_unreduced(folder, &self.what())?;
                self.report.rows = sorted.records;
                self.report.output_bytes = sorted.output_bytes;
            }
            MapOutput::Rows(sink) => {
                let (records, reducer) = reducing.expect("it was made for rows");
                let mut writer = ReduceWriter {
                    rows: &mut **sink,
                    records,
                    reducer,
                    count: 0,
                    bytes: 0,
                    began: None,
                    stopped: false,
                    error: None,
                };
                let to = SortOutput::Writer(&mut writer);
                let sorted = merganser_sort::sort(vec![input], to, &sort_options, &progress);
                if let Some(error) = writer.error.take() {
                    return Err(error);
                }
                if !writer.stopped {
                    sorted?;
                    writer.end()?;
                }
                (self.report.rows, self.report.output_bytes) = (writer.count, writer.bytes);
                let began = writer.began.unwrap_or_else(Instant::now);
                self.report.map_seconds = began.duration_since(self.started).as_secs_f64();
            }
        }
        Ok(())
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
    fn advance(&mut self) -> Result<bool, SsdletError> {
        self.rows.advance()
    }

    fn key(&self) -> &[u8] {
        self.rows.key()
    }

    fn value(&self) -> &[u8] {
        &self.rows.value()[self.skip..]
    }
}

/// Takes sorted records and hands their rows to a sink.
struct ReduceWriter<'a> {
    rows: &'a mut dyn RowSink,
    records: RecordCutter,
    reducer: Reducer,
    count: u64,
    bytes: u64,
    /// When the first record came: all input was mapped by then.
    began: Option<Instant>,
    /// The sink wants no more.
    stopped: bool,
    error: Option<SsdletError>,
}

/// What a row came to.
fn hand_over(
    reducer: &Reducer,
    rows: &mut dyn RowSink,
    (count, bytes): (&mut u64, &mut u64),
) -> Result<bool, SsdletError> {
    let (key, value) = reducer.row();
    *count += 1;
    *bytes += (key.len() + value.len()) as u64;
    rows.keyed(key, value)
}

impl ReduceWriter<'_> {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), SsdletError> {
        while !self.stopped
            && let Some(record) = self.records.next(&mut bytes)?
        {
            if self.reducer.push(record)? {
                let counts = (&mut self.count, &mut self.bytes);
                self.stopped = !hand_over(&self.reducer, self.rows, counts)?;
            }
        }
        Ok(())
    }

    /// After the last record.
    fn end(&mut self) -> Result<(), SsdletError> {
        if !self.stopped && self.reducer.end()? {
            let counts = (&mut self.count, &mut self.bytes);
            self.stopped = !hand_over(&self.reducer, self.rows, counts)?;
        }
        Ok(())
    }
}

impl Write for ReduceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.began.get_or_insert_with(Instant::now);
        if let Err(error) = self.take(bytes) {
            self.error = Some(error);
        }
        if self.stopped || self.error.is_some() {
            // Ends the sort.
            return Err(io::Error::other("no more rows are wanted"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The progress of the sort of spills, as that of a map: while it takes records, the map's own counts.
struct SpillProgress<'a> {
    inner: &'a dyn Progress,
    merging: AtomicBool,
}

impl Progress for SpillProgress<'_> {
    fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        if name != "sorting" {
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
