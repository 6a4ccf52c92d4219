//! `merganser count`.
//!
//! ```text
//!   records ─► values ─► table ─► sort by value, counts added ─► sort by count ─► text
//!                        often     `sort::rows`                   or the first N
//! ```
//!
//! The memory is split once: the reader and the table have small parts, and each sort has half of the rest, because the
//! second one takes rows while the first one merges.

mod most;
mod table;
mod value;

use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::input::OpenInputs;
use merganser_shell::progress::WorkSummary;
use merganser_shell::signals::Cancel;
use merganser_shell::{failure, output, progress};
use merganser_sort::rows::{Combiner, RowSorter, Rows, RowsBy, RowsError};
use merganser_sort::run::{RecordReader, SortInput};
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Directory;

use crate::config::CountConfig;
use crate::temp_folder::TempFolder;
use most::Most;
use table::{CountTable, Taken};
use value::Values;

/// Rows between two looks at whether the user has ended it.
const CHECK_ROWS: u64 = 4096;
/// Most memory of the table: a larger one is slower than a sort.
const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Least memory of the table.
const TABLE_BYTES_MIN: u64 = 64 << 10;
/// The reader has this part of the memory, and so has the table: an eighth.
const SMALL_SHARE: u64 = 8;
/// Bytes of a count.
const COUNT_BYTES: usize = size_of::<u64>();

/// Counts, and prints.
pub(super) fn run(config: &CountConfig, cancel: &Cancel) -> Result<(), Failure> {
    failure::offer_no_decompress();
    let started = Instant::now();
    let split = MemorySplit::new(config.memory_bytes)?;
    let temp: Vec<_> = config.temp_dirs.iter().map(|path| TempFolder::new(path)).collect();
    let temp = || temp.iter().map(|folder| Arc::clone(folder) as Arc<dyn Directory>).collect();
    let of_count = |error| Failure::from(split.of_whole(error));
    let path = match &config.destination {
        Destination::File(path) => Some(&**path),
        _ => None,
    };
    let mut output = output::open(path, cancel)?;
    let progress = progress::in_form(config.progress, cancel);
    let (reading, counting) = (Budget::new(split.small_bytes * 2), Budget::new(split.sort_bytes));
    let inputs = inputs(config, &reading, cancel)?;
    let bytes = inputs.iter().map(SortInput::size).try_fold(0, |sum, size| Some(sum + size?));
    progress.phase("counting", bytes);
    let mut reader = RecordReader::new(inputs, &config.order, &reading, split.reader_bytes())
        .map_err(of_count)?;
    let mut table = CountTable::new(&reading, split.table_bytes()).map_err(of_count)?;
    let sorter = RowSorter::new(RowsBy::Key, &counting, AddedCounts::default());
    let mut sorter = sorter.temp(temp()).threads(config.threads.max(1));
    let mut values: Option<Values> = None;
    let mut records = 0_u64;
    while reader.advance(&*progress).map_err(of_count)? {
        let values = match &mut values {
            Some(values) => values,
            values => {
                values.insert(Values::new(&config.order, &config.columns, reader.preamble())?)
            }
        };
        for mut rest in reader.stretches() {
            while let Some(len) = config.order.format.first_len(rest) {
                let (record, behind) = rest.split_at(len);
                rest = behind;
                records += 1;
                take(values.of_record(record), &mut table, &mut sorter).map_err(of_count)?;
            }
        }
    }
    let preamble = reader.preamble().unwrap_or_default().to_vec();
    drop(reader);
    let values = match values {
        Some(values) => values,
        None => Values::new(&config.order, &config.columns, None)?,
    };
    if let Some(column) = values.unseen_column().filter(|_| records > 0) {
        return Err(format!("--key '{column}': no row has that many columns").into());
    }
    let mut add = |value: &[u8], count: u64| sorter.push(value, &count.to_le_bytes());
    table.empty(&mut add).map_err(of_count)?;
    drop(table);
    let mut counted = sorter.finish_with(&*progress).map_err(of_count)?;
    progress.phase("ordering counts", None);
    let ordering = Budget::new(split.sort_bytes);
    let mut most = Most::new(&ordering, config.top, temp(), config.threads);
    order_by_count(&mut counted, config.min, &mut most, &*progress).map_err(of_count)?;
    drop(counted);
    progress.phase("writing", None);
    let mut out = BufWriter::with_capacity(64 << 10, &mut output);
    let written = |error: std::io::Error| Failure::named(&error);
    values.write_header(&preamble, &mut out).map_err(written)?;
    let mut rows = most.finish(&*progress).map_err(of_count)?;
    let mut number = 0_u64;
    while let Some((value, count)) = rows.next().map_err(of_count)? {
        values.write(value, count, &mut out).map_err(written)?;
        number += 1;
        if number.is_multiple_of(CHECK_ROWS) && progress.cancelled() {
            return Err(Error::Cancelled.into());
        }
    }
    out.flush().map_err(written)?;
    drop(out);
    output.finish()?;
    drop(progress);
    let done = "counted";
    let summary = WorkSummary { done, records: Some(records), bytes, written_bytes: None };
    summary.tell(config.progress, started.elapsed());
    Ok(())
}

/// Counts a value, in the table if that has room.
fn take(
    value: &[u8],
    table: &mut CountTable,
    sorter: &mut RowSorter<AddedCounts>,
) -> Result<(), Error> {
    loop {
        match table.take(value) {
            Taken::Counted => return Ok(()),
            Taken::Past => return sorter.push(value, &1_u64.to_le_bytes()),
            Taken::Full => table.empty(|value, count| sorter.push(value, &count.to_le_bytes()))?,
        }
    }
}

/// Hands the values that occur often enough to `most`.
fn order_by_count(
    counted: &mut Rows<AddedCounts>,
    min: u64,
    most: &mut Most,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut number = 0_u64;
    while let Some((value, count)) = counted.next()? {
        let count = u64::from_le_bytes(count.try_into().expect("pushed as eight bytes"));
        if count >= min {
            most.take(value, count)?;
        }
        number += 1;
        if number.is_multiple_of(CHECK_ROWS) && progress.cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(())
}

fn inputs(
    config: &CountConfig,
    budget: &Budget,
    cancel: &Cancel,
) -> Result<Vec<SortInput>, Failure> {
    let open = OpenInputs::of_sort();
    let opened = config
        .inputs
        .iter()
        .map(|input| Ok(input.open_for_sort(&open, cancel)?.unpacked(config.content, budget)?));
    opened.collect()
}

/// The memory of all parts.
struct MemorySplit {
    whole_bytes: u64,
    /// The share of the reader and the decompressors together, and that of the table.
    small_bytes: u64,
    /// The share of each of the two sorts.
    sort_bytes: u64,
}

impl MemorySplit {
    /// The split of `whole_bytes`.
    ///
    /// # Errors
    /// When that is too little.
    fn new(whole_bytes: u64) -> Result<Self, Error> {
        let small_bytes = whole_bytes / SMALL_SHARE;
        let sort_bytes = (whole_bytes - 2 * small_bytes) / 2;
        let least_small = (2 * RecordReader::least_bytes()).max(TABLE_BYTES_MIN) * SMALL_SHARE;
        let least_sorts = RowSorter::<AddedCounts>::least_bytes(1) * 2 * 4 / 3;
        let least_bytes = least_small.max(least_sorts).next_multiple_of(1 << 20);
        if whole_bytes < least_bytes {
            let (owner, limit_bytes) = ("counting", whole_bytes);
            return Err(Error::Memory { owner, least_bytes, limit_bytes });
        }
        Ok(MemorySplit { whole_bytes, small_bytes, sort_bytes })
    }

    /// Decompressors have the other half.
    fn reader_bytes(&self) -> u64 {
        self.small_bytes / 2
    }

    fn table_bytes(&self) -> u64 {
        self.small_bytes.min(TABLE_BYTES_MAX)
    }

    /// An error of a part, with the memory that was given for all.
    fn of_whole(&self, error: Error) -> Error {
        match error {
            Error::Memory { owner, least_bytes, limit_bytes } => Error::Memory {
                owner,
                least_bytes: least_bytes
                    .saturating_mul(self.whole_bytes.div_ceil(limit_bytes.max(1))),
                limit_bytes: self.whole_bytes,
            },
            other => other,
        }
    }
}

/// Adds the counts of one value.
#[derive(Debug, Clone, Default)]
struct AddedCounts {
    sum: [u8; COUNT_BYTES],
}

impl AddedCounts {
    fn number(value: &[u8]) -> u64 {
        u64::from_le_bytes(value.try_into().expect("pushed as eight bytes"))
    }
}

impl Combiner for AddedCounts {
    type Error = Error;

    fn begin(&mut self, _: &[u8], value: &[u8]) -> Result<(), Error> {
        self.sum = Self::number(value).to_le_bytes();
        Ok(())
    }

    fn fold(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let sum = u64::from_le_bytes(self.sum).checked_add(Self::number(value));
        self.sum = sum.ok_or_else(|| Error::from(RowsError::count_overflow(key)))?.to_le_bytes();
        Ok(())
    }

    fn value(&self) -> &[u8] {
        &self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_beyond_64_bits_is_an_error() {
        let budget = Budget::new(8 << 20);
        let mut sorter = RowSorter::new(RowsBy::Key, &budget, AddedCounts::default());
        for count in [u64::MAX - 1, 1, 1] {
            sorter.push(b"x", &count.to_le_bytes()).expect("memory");
        }
        let counted = sorter.finish().and_then(|mut rows| rows.next().map(|_| ()));
        let error = counted.expect_err("too many").to_string();
        assert!(error.contains("64 bits"), "{error}");
    }
}
