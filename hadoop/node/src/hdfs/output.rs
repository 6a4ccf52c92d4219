//! The keys and values that a mapper hands out: combined in a table, which leaves as a sorted spill when it is
//! full.
//!
//! Numbers are added up in the table, because most jobs have a combiner. Without one, a spill has each key as many
//! times as it came if all numbers are 1, as those of known mappers. Other numbers are kept one by one.

use std::ops::Range;

use merganser_sort::Budget;

use super::ifile::{IFileSpillWriter, IFileValue, Sink, text_bytes};
use super::partition::partition;
use super::request::{CombineKind, Writable};
use super::{HdfsError, HdfsResult};
use merganser_map::table::{Full, SortedRows, Table, TableKind};

/// Memory for a new table before the old one is gone, in bytes.
pub(super) const SPARE_BYTES: u64 = 64 << 10;

/// The types of rows, and how they are combined and divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowShape {
    pub(super) value: Writable,
    /// Whether all numbers are 1.
    pub(super) only_ones: bool,
    pub(super) combine: CombineKind,
    pub(super) partitions: u32,
}

/// Counts of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    /// Rows that were handed out.
    pub(super) records: u64,
    /// Bytes of their keys and values.
    pub(super) bytes: u64,
    /// Rows of spills.
    pub(super) spilled: u64,
    /// Spills.
    pub(super) spills: u32,
    /// Bytes of spills.
    pub(super) spill_bytes: u64,
}

/// Takes rows.
pub(super) struct MappedRows<'a> {
    table: Table,
    shape: RowShape,
    budget: Budget,
    table_bytes_max: u64,
    sink: &'a mut dyn Sink,
    counts: RowCounts,
    failure: Option<HdfsError>,
}

impl<'a> MappedRows<'a> {
    /// A table of up to `table_bytes_max` bytes of `budget`, which has [`SPARE_BYTES`] more.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(
        shape: RowShape,
        budget: &Budget,
        table_bytes_max: u64,
        sink: &'a mut dyn Sink,
    ) -> HdfsResult<Self> {
        let table = Table::new(kind(shape), budget, table_bytes_max)?;
        let (counts, budget) = (RowCounts::default(), budget.clone());
        Ok(MappedRows { table, shape, budget, table_bytes_max, sink, counts, failure: None })
    }

    /// `number` for the key `bytes[span]`; the shape has numbers.
    #[inline]
    pub(super) fn number_within(&mut self, bytes: &[u8], span: Range<usize>, number: i64) {
        let (start, len) = (span.start, span.len());
        self.counted(len);
        if kind(self.shape) == TableKind::All {
            let (key, value) = (&bytes[span], number.to_le_bytes());
            if self.table.put(key, &[&value]).is_err() {
                self.again(len + value.len(), |table| table.put(key, &[&value]));
            }
        } else if self.table.add_within(bytes, start, len, number.cast_unsigned()).is_err() {
            self.again(len, |table| table.add(&bytes[span], number.cast_unsigned()));
        }
    }

    /// A key and a text; the shape has texts.
    pub(super) fn put(&mut self, key: &[u8], text: &[u8]) {
        self.counts.records += 1;
        self.counts.bytes += (text_bytes(key.len()) + text_bytes(text.len())) as u64;
        if self.table.put(key, &[text]).is_err() {
            self.again(key.len() + text.len(), |table| table.put(key, &[text]));
        }
    }

    #[inline]
    fn counted(&mut self, key_bytes: usize) {
        self.counts.records += 1;
        self.counts.bytes += text_bytes(key_bytes) as u64;
    }

    /// The table is full: spills it and tries again.
    #[cold]
    #[inline(never)]
    fn again(&mut self, len: usize, put: impl FnOnce(&mut Table) -> HdfsResult<(), Full>) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.spill() {
            self.failure = Some(error);
        } else if put(&mut self.table).is_err() {
            let detail = format!("a row of {len} bytes, for which there is no memory");
            self.failure = Some(HdfsError::Record { offset: 0, detail });
        }
    }

    /// The mapper is at fault; [`MappedRows::check`] gives the first error.
    #[cold]
    pub(super) fn fail(&mut self, error: HdfsError) {
        self.failure.get_or_insert(error);
    }

    /// The failure since the last call; the records come from `offset` of the file.
    pub(super) fn check(&mut self, offset: u64) -> HdfsResult<()> {
        match self.failure.take() {
            None => Ok(()),
            Some(HdfsError::Record { detail, .. }) => Err(HdfsError::Record { offset, detail }),
            Some(error) => Err(error),
        }
    }

    /// Tells how far the map is.
    pub(super) fn progress(&mut self, split_bytes: u64, records: u64) -> HdfsResult<()> {
        self.sink.progress(split_bytes, records)
    }

    /// Spills the rest. There is a spill in any case: a map without output has one of empty segments.
    pub(super) fn finish(mut self) -> HdfsResult<RowCounts> {
        if !self.table.is_empty() || self.counts.spills == 0 {
            self.spill()?;
        }
        if self.shape.value != Writable::Text {
            let value_bytes = if self.shape.value == Writable::Int { 4 } else { 8 };
            self.counts.bytes += value_bytes * self.counts.records;
        }
        Ok(self.counts)
    }

    fn spill(&mut self) -> HdfsResult<()> {
        let RowShape { value, only_ones, combine, partitions } = self.shape;
        let new = Table::new(kind(self.shape), &self.budget, self.table_bytes_max)?;
        let full = std::mem::replace(&mut self.table, new);
        let mut rows = full.into_partitioned(|key| partition(key, partitions));
        let mut writer = IFileSpillWriter::new(&mut *self.sink, partitions);
        match value {
            Writable::Text => texts(&mut rows, combine, &mut writer)?,
            Writable::Int | Writable::Long => {
                let repeats = only_ones && combine == CombineKind::None;
                numbers(&mut rows, value, repeats, &mut writer)?;
            }
        }
        let (records, bytes) = writer.finish(self.counts.spills)?;
        self.counts.spilled += records;
        self.counts.spill_bytes += bytes;
        self.counts.spills += 1;
        Ok(())
    }
}

fn kind(RowShape { value, only_ones, combine, .. }: RowShape) -> TableKind {
    match value {
        Writable::Text => TableKind::All,
        _ if combine == CombineKind::None && !only_ones => TableKind::All,
        _ => TableKind::Sum,
    }
}

/// Writes numbers; a sum that `repeats` stands for as many rows with 1.
fn numbers(
    rows: &mut SortedRows,
    value: Writable,
    repeats: bool,
    writer: &mut IFileSpillWriter<'_>,
) -> HdfsResult<()> {
    let of = |number: i64| match value {
        // The sum of an `int` wraps, and so does a longer sum whose upper half is dropped.
        Writable::Int => IFileValue::Int(number as i32),
        _ => IFileValue::Long(number),
    };
    while rows.advance() {
        let sum = i64::from_le_bytes(rows.value().try_into().expect("a number of 8 bytes"));
        let (number, times) = if repeats { (1, sum) } else { (sum, 1) };
        for _ in 0..times {
            writer.push(rows.partition(), rows.key(), of(number))?;
        }
    }
    Ok(())
}

fn texts(
    rows: &mut SortedRows,
    combine: CombineKind,
    writer: &mut IFileSpillWriter<'_>,
) -> HdfsResult<()> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut is_first = true;
    while rows.advance() {
        if combine == CombineKind::Distinct {
            if !is_first && key == rows.key() && value == rows.value() {
                continue;
            }
            is_first = false;
            for (kept, found) in [(&mut key, rows.key()), (&mut value, rows.value())] {
                kept.clear();
                kept.extend_from_slice(found);
            }
        }
        writer.push(rows.partition(), rows.key(), IFileValue::Text(rows.value()))?;
    }
    Ok(())
}
