//! Sorting a table.
//!
//! ```text
//!   part of files ─► batches ─► keys, rows ─► producer ─┐
//!   part of files ─► batches ─► keys, rows ─► producer ─┼─► rows in order ─► Parquet, Arrow, csv, JSON
//!                                                       └─► runs of a view
//! ```
//!
//! A producer reads neighbouring parts, so rows of equal keys keep the order of the input.

use std::io::Write;
use std::sync::Arc;

use merganser_sort::rows::{
    CombineWith, Combiner, KeepAll, RowProducer, RowSorter, RowStream, Rows, RowsBy, write_rows,
};
use merganser_sort::view::{Manifest, unix_ns};
use merganser_sort::{Error, Progress};
use merganser_storage::Directory;
use merganser_storage::file::descriptors;

use crate::TableError;
use crate::codec::{BatchEncoder, TableLayout};
use crate::merge::{FileOrder, merged_rows};
use crate::options::{EqualRows, FolderFiles, TableOptions};
use crate::sink::{
    TableFolder, TableFormat, WantedColumns, write_as, write_parquet, write_parquet_files,
    writer_bytes,
};
use crate::sorted_files::{can_stay, note_sorted};
use crate::source::{TableReader, null_in};
use crate::table::{Table, TableOrder};
use crate::table_rows::{FirstRows, TableRows};
use crate::view::{manifest_of, manifest_of_files};

/// The name of the column that counts rows.
const COUNT_NAME: &str = "count";

/// Files that a reader of a file opens: that of Parquet has one for its row group.
const DESCRIPTORS_PER_FILE: u64 = 2;

/// Where a sorted table goes.
pub enum TableOutput<'a> {
    /// The bytes of a file.
    Bytes {
        /// The file or stream.
        to: &'a mut (dyn Write + Send),
        /// Its format.
        format: TableFormat,
    },
    /// Files of Parquet in an empty folder.
    Folder {
        /// The folder; the caller renames it into place.
        folder: &'a dyn TableFolder,
        /// Which files there are.
        files: FolderFiles,
    },
    /// A view in an empty folder.
    View {
        /// The folder; the caller renames it into place.
        folder: Arc<dyn Directory>,
        /// Its name.
        name: String,
    },
}

/// What a sort of a table did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct TableReport {
    /// Rows that were read.
    pub rows: u64,
    /// Bytes of them, as keys and rows.
    pub row_bytes: u64,
    /// Rows of the result.
    pub result_rows: u64,
    /// Runs that were written because memory was full.
    pub runs: u64,
    /// Whether inputs in order were merged, and nothing was written but the result.
    pub merged: bool,
    /// Whether the rows of a view stay in the inputs.
    pub in_files: bool,
}

/// Sorts a table.
///
/// # Errors
/// Those of the inputs, the output and the temporary folders; too little memory; [`Error::Cancelled`].
pub fn sort_table(
    table: &Table,
    output: TableOutput<'_>,
    options: &TableOptions,
    progress: &dyn Progress,
) -> Result<TableReport, TableError> {
    let partition_by = match &output {
        TableOutput::Folder { files, .. } => {
            files.check_order(options)?;
            &files.partition_by[..]
        }
        _ => &[],
    };
    let mut layout = table.layout(&options.order, partition_by)?;
    if options.equal == EqualRows::Count {
        layout.count = Some(unused_name(&layout));
    }
    let layout = Arc::new(layout);
    if let TableOutput::View { folder, name } = &output
        && options.sorted_inputs
        && options.equal == EqualRows::KeepAll
        && options.top.is_none()
        && can_stay(table)
    {
        let noted = note_sorted(table, &layout, &options.budget, progress)?;
        let rows = noted.1;
        let origin = table.source.origin.as_ref();
        manifest_of_files((name.clone(), unix_ns()), noted, &layout, origin).write(folder)?;
        let in_files = TableReport { in_files: true, merged: true, ..TableReport::default() };
        return Ok(TableReport { rows, result_rows: rows, ..in_files });
    }
    if options.sorted_inputs && options.equal == EqualRows::KeepAll {
        let files = table.source.files.len() as u64;
        let ahead = table.source.ahead_bytes(options.budget.free_bytes() / 4 / files.max(1));
        let readers = (table.reader_bytes() + ahead) * files;
        let fit = readers <= options.budget.free_bytes() / 2;
        if fit && files * DESCRIPTORS_PER_FILE <= descriptors::left() / 2 {
            progress.phase("merging", Some(table.source.bytes()));
            let _memory = options.budget.reserve(readers, "reading tables")?;
            let mut rows = merged_rows(table, &layout, ahead)?;
            let result_rows = write(&mut rows, table, &layout, output, options, progress)?;
            let rows = rows.count();
            return Ok(TableReport { rows, result_rows, merged: true, ..TableReport::default() });
        }
    }
    match options.equal {
        EqualRows::KeepAll => sort_with(table, &layout, KeepAll, output, options, progress),
        EqualRows::KeepFirst => {
            let keep = CombineWith::new(|_: &mut Vec<u8>, _: &[u8]| Ok::<_, Error>(()));
            sort_with(table, &layout, keep, output, options, progress)
        }
        EqualRows::Count => {
            let add = CombineWith::new(|first: &mut Vec<u8>, more: &[u8]| {
                let sum = count_of(first).saturating_add(count_of(more));
                first[..8].copy_from_slice(&sum.to_le_bytes());
                Ok::<_, Error>(())
            });
            sort_with(table, &layout, add, output, options, progress)
        }
    }
}

/// The count at the front of a row.
fn count_of(row: &[u8]) -> u64 {
    row.first_chunk().map_or(0, |count| u64::from_le_bytes(*count))
}

/// A name for the count that no column has.
fn unused_name(layout: &TableLayout) -> String {
    let mut name = COUNT_NAME.to_owned();
    while layout.schema.own.index_of(&name).is_ok() {
        name.push('_');
    }
    name
}

fn sort_with<C: Combiner<Error = Error>>(
    table: &Table,
    layout: &Arc<TableLayout>,
    combine: C,
    output: TableOutput<'_>,
    options: &TableOptions,
    progress: &dyn Progress,
) -> Result<TableReport, TableError> {
    let keeps_all = combine.keeps_all();
    let budget = &options.budget;
    // Each producer holds pages and batches of its own. Where they would take too much of the memory, there is one.
    let threads = options.threads.max(1);
    let ahead = table.source.ahead_bytes(budget.free_bytes() / 6 / threads as u64);
    let reader_bytes = table.reader_bytes() + ahead;
    let most = budget.free_bytes() / 3 / reader_bytes.max(1);
    let producers = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, threads);
    // The order of a file is checked by the thread that reads it.
    let shares = table.shares(producers, options.sorted_inputs);
    let producers = shares.len().max(1);
    let readers = (reader_bytes * producers as u64).min(budget.free_bytes() / 2);
    let readers = budget.reserve(readers, "reading tables")?;
    let mut sorter = RowSorter::new(RowsBy::Key, budget, combine)
        .temp(options.temp.clone())
        .producers(producers)
        .threads(options.threads)
        .leave(match &output {
            TableOutput::Bytes { format: TableFormat::Parquet, .. } => {
                writer_bytes(budget, options.threads, &options.parquet, None)
            }
            TableOutput::Folder { files, .. } => {
                writer_bytes(budget, options.threads, &options.parquet, files.file_bytes)
            }
            _ => 0,
        });
    let of_view = match &output {
        TableOutput::View { folder, name } if keeps_all && options.top.is_none() => {
            sorter = sorter.into_view(Arc::clone(folder), Arc::new(put_record), options.packed);
            Some((Arc::clone(folder), name.clone()))
        }
        _ => None,
    };
    progress.phase("reading", Some(table.source.bytes()));
    read_all((table, ahead), layout, &mut sorter, shares, options, progress)?;
    drop(readers);
    if let Some((folder, name)) = of_view {
        let (segments, sorted) = sorter.finish_view(progress)?;
        let order = merganser_sort::key::OrderSpec::new(merganser_sort::record::Format::Keyed);
        let manifest = Manifest::new(name, order, Vec::new(), unix_ns(), segments);
        manifest_of(manifest, layout, table.source.origin.as_ref()).write(&folder)?;
        return Ok(TableReport {
            rows: sorted.rows,
            row_bytes: sorted.bytes,
            result_rows: sorted.rows,
            runs: sorted.runs,
            ..TableReport::default()
        });
    }
    let mut rows = sorter.finish_with(progress)?;
    let sorted = rows.report();
    progress.phase("writing", keeps_all.then_some(sorted.bytes));
    let result_rows = match output {
        TableOutput::View { folder, name } => {
            let meant = |manifest| manifest_of(manifest, layout, table.source.origin.as_ref());
            let mut stream = FirstOf { rows: &mut rows, left: options.top.unwrap_or(u64::MAX) };
            write_rows(&mut stream, (&folder, name), meant, budget, |bytes| {
                progress.advance(bytes);
                if progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
            })?
        }
        output => write(&mut rows, table, layout, output, options, progress)?,
    };
    Ok(TableReport {
        rows: sorted.rows,
        row_bytes: sorted.bytes,
        result_rows,
        runs: sorted.runs,
        ..TableReport::default()
    })
}

/// The first rows of a stream.
struct FirstOf<'a, C: Combiner> {
    rows: &'a mut Rows<C>,
    left: u64,
}

impl<C: Combiner> RowStream for FirstOf<'_, C> {
    type Error = C::Error;

    fn advance(&mut self) -> Result<bool, C::Error> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.rows.advance()
    }

    fn key(&self) -> &[u8] {
        self.rows.key()
    }

    fn value(&self) -> &[u8] {
        self.rows.value()
    }
}

/// Appends the record of a row as a view has it.
fn put_record(key: &[u8], value: &[u8], record: &mut Vec<u8>) {
    for part in [key, value] {
        record.extend_from_slice(&(part.len() as u32).to_le_bytes());
    }
    record.extend_from_slice(key);
    record.extend_from_slice(value);
}

/// Has all rows pushed, by a thread for each share, with memory for pieces that it reads ahead.
fn read_all<C: Combiner<Error = Error>>(
    table: (&Table, u64),
    layout: &Arc<TableLayout>,
    sorter: &mut RowSorter<C>,
    shares: Vec<Vec<(usize, std::ops::Range<usize>)>>,
    options: &TableOptions,
    progress: &dyn Progress,
) -> Result<(), TableError> {
    let mut producers = Vec::with_capacity(shares.len());
    for share in shares {
        producers.push((share, sorter.producer()?));
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = producers
            .into_iter()
            .map(|(share, producer)| {
                let work = || push_share(table, layout, share, producer, options, progress);
                merganser_storage::thread::spawn_scoped(scope, "table", work)
            })
            .collect();
        let mut result = Ok(());
        for thread in threads {
            let done = match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(Error::from(error).into()),
            };
            // The others only say that the sort has failed.
            let is_echo =
                |error: &TableError| matches!(error, TableError::Engine(Error::Cancelled));
            result = match (result, done) {
                (Ok(()), done) => done,
                (Err(first), Err(other)) if is_echo(&first) => Err(other),
                (failed, _) => failed,
            };
        }
        result
    })
}

fn push_share<C: Combiner<Error = Error>>(
    (table, ahead_bytes): (&Table, u64),
    layout: &Arc<TableLayout>,
    share: Vec<(usize, std::ops::Range<usize>)>,
    mut producer: RowProducer<C>,
    options: &TableOptions,
    progress: &dyn Progress,
) -> Result<(), TableError> {
    let mut encoder = BatchEncoder::new(layout);
    let (mut counted, mut mixed) = (Vec::new(), Vec::new());
    for (file_number, parts) in share {
        let file = &table.source.files[file_number];
        let mut reader = TableReader::open(file, parts, ahead_bytes)?;
        // Rows are numbered in their part, so that the numbers do not depend on how many threads share the file.
        let (mut last_part, mut number) = (None, 0_u64);
        let mut check = options.sorted_inputs.then(FileOrder::default);
        while let Some((part, batch)) = reader.next()? {
            if last_part.replace(part) != Some(part) {
                number = 0;
            }
            encoder.encode(&batch).map_err(|_| null_in(file))?;
            if let Some(check) = &mut check {
                check.next(&encoder, batch.num_rows(), file)?;
            }
            let mut bytes = 0;
            for row in 0..batch.num_rows() {
                let (key, mut value) = encoder.row(row);
                bytes += (key.len() + value.len()) as u64;
                if layout.count.is_some() {
                    counted.clear();
                    counted.extend_from_slice(&1_u64.to_le_bytes());
                    counted.extend_from_slice(value);
                    value = &counted;
                }
                match &options.order {
                    TableOrder::Keys(_) => producer.push(key, value)?,
                    TableOrder::Shuffled { seed } => {
                        let place = [*seed, file_number as u64, part as u64, number];
                        // Behind the columns that name its folder, if there are such.
                        mixed.clear();
                        mixed.extend_from_slice(key);
                        mixed.extend_from_slice(&shuffled(place).to_be_bytes());
                        producer.push(&mixed, value)?;
                    }
                }
                number += 1;
            }
            progress.advance(bytes);
            if progress.cancelled() {
                return Err(Error::Cancelled.into());
            }
        }
    }
    Ok(producer.finish()?)
}

/// A number that looks as if it were drawn for this place: SplitMix64's mixer (Steele, Lea, Flood, 2014), once for each of
/// its parts.
fn shuffled(place: [u64; 4]) -> u64 {
    place.into_iter().fold(0, |mixed: u64, part| {
        let mut mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ part;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    })
}

/// Writes rows to a file or stream.
fn write(
    rows: &mut dyn TableRows,
    table: &Table,
    layout: &TableLayout,
    output: TableOutput<'_>,
    options: &TableOptions,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let mut rows = FirstRows { rows, left: options.top.unwrap_or(u64::MAX) };
    let origin = table.source.origin.as_ref();
    let left_out: Vec<_> = layout.keys[..layout.partitions].iter().map(|key| key.index).collect();
    let wanted = WantedColumns::without(layout, &left_out);
    let how = (&options.budget, options.threads);
    match output {
        TableOutput::Bytes { to, format: TableFormat::Parquet } => {
            let what = (layout, &wanted, origin);
            write_parquet(&mut rows, what, to, &options.parquet, how, progress)
        }
        TableOutput::Bytes { to, format } => {
            write_as(&mut rows, (layout, &wanted), to, format, progress)
        }
        TableOutput::Folder { folder, files } => {
            let (what, to) = ((layout, &wanted, origin), (folder, files.file_bytes));
            write_parquet_files(&mut rows, what, to, &options.parquet, how, progress)
        }
        TableOutput::View { folder, name } => {
            let mut stream = Streamed { rows: &mut rows, row: (Vec::new(), Vec::new()) };
            let meant = |manifest| manifest_of(manifest, layout, origin);
            write_rows(&mut stream, (&folder, name), meant, &options.budget, |bytes| {
                progress.advance(bytes);
                if progress.cancelled() { Err(Error::Cancelled.into()) } else { Ok(()) }
            })
        }
    }
}

/// Rows of a table as the engine takes them.
struct Streamed<'a> {
    rows: &'a mut dyn TableRows,
    row: (Vec<u8>, Vec<u8>),
}

impl RowStream for Streamed<'_> {
    type Error = TableError;

    fn advance(&mut self) -> Result<bool, TableError> {
        let Some((key, value)) = self.rows.next()? else { return Ok(false) };
        self.row.0.clear();
        self.row.0.extend_from_slice(key);
        self.row.1.clear();
        self.row.1.extend_from_slice(value);
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.row.0
    }

    fn value(&self) -> &[u8] {
        &self.row.1
    }
}
