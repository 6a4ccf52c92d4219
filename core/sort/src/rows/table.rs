//! Sorted rows in a folder. Parts of them are read.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use merganser_storage::{Directory, Storage};

use super::buffer::{frame, has_length, split};
use super::merge::SHORT;
use super::{Combiner, RecordCutter, RowStream, Rows, RowsError};
use crate::budget::Reservation;
use crate::key::OrderSpec;
use crate::record::Format;
use crate::run::{Compression, RunBuilder, RunWriter};
use crate::view::{Manifest, Segment, View, ViewStream, unix_ns};
use crate::{Budget, Error, Result};

/// Bytes of a block of a table's run.
const BLOCK_BYTES: u32 = 32 << 10;
/// What [`RunBuilder`] holds, in bytes: four buffers.
pub const BUILDER_BYTES: u64 = 4 << 20;
/// The least memory in which a table is written, in bytes. Fences take a hundredth of the rows.
pub const TABLE_WRITER_BYTES: u64 = BUILDER_BYTES + (256 << 10);

/// Writes rows that come in order as a view of one run in the empty `folder`, with its name; how many there are. A manifest
/// names them, which `meant` completes.
///
/// # Errors
/// Those of `rows` and of `advance`, which gets the bytes of each row; a full disk; too little memory.
pub fn write_rows<E: From<Error>>(
    rows: &mut dyn RowStream<Error = E>,
    (folder, name): (&Arc<dyn Directory>, String),
    meant: impl FnOnce(Manifest) -> Manifest,
    budget: &Budget,
    mut advance: impl FnMut(u64) -> Result<(), E>,
) -> Result<u64, E> {
    let order = OrderSpec::new(Format::Keyed);
    let spec = serde_json::to_string(&order).expect("plain data");
    let (mut count, mut builder, mut record) = (0, None, Vec::new());
    let mut copy = budget.reserve(0, "writing the result")?;
    while rows.advance()? {
        if builder.is_none() {
            let memory = budget.reserve(BUILDER_BYTES, "writing the result")?;
            let fences = budget.reserve(0, "writing the result")?;
            let storage = folder.create("000000.run").map_err(Error::from)?;
            let writer = RunWriter::new(storage, BLOCK_BYTES, Compression::Off, None, fences)?;
            let order = order.compile(None).map_err(Error::from)?;
            builder = Some((RunBuilder::new(writer, order)?, memory));
        }
        let (builder, _) = builder.as_mut().expect("made above");
        let (key, value) = (rows.key(), rows.value());
        if !has_length(key, value) {
            return Err(Error::from(RowsError::TooLong).into());
        }
        record.clear();
        frame(key, value, &mut record);
        if record.len() > SHORT {
            copy.grow_to(record.capacity() as u64)?;
        }
        builder.append(&record)?;
        count += 1;
        advance(record.len() as u64)?;
    }
    let mut segments = Vec::new();
    if let Some((builder, _memory)) = builder {
        segments.push(Segment::of_run(&builder.finish(&spec, true)?));
    }
    let manifest = Manifest::new(name, order, Vec::new(), unix_ns(), segments);
    meant(manifest).write(folder)?;
    Ok(count)
}

/// Sorted rows, open for reading. They are a view of length-prefixed records, which programs that read views read, too.
pub struct RowTable {
    view: View,
    budget: Budget,
}

impl<C: Combiner> Rows<C> {
    /// Writes the rows that are left as a table called `name` into the empty `folder`, and opens it.
    ///
    /// # Errors
    /// Those of the rows; a full disk; too little memory.
    pub fn into_table(
        mut self,
        folder: &Arc<dyn Directory>,
        name: &str,
        budget: &Budget,
    ) -> Result<RowTable, C::Error> {
        write_rows(&mut self, (folder, name.to_owned()), |as_it_is| as_it_is, budget, |_| Ok(()))?;
        drop(self);
        Ok(RowTable::open(folder, budget)?)
    }
}

impl RowTable {
    /// Opens the table in `folder`.
    ///
    /// # Errors
    /// As [`View::open`]; a view of other records.
    pub fn open(folder: &Arc<dyn Directory>, budget: &Budget) -> Result<Self> {
        let view = View::open(folder, budget, 1)?;
        if view.manifest().order != OrderSpec::new(Format::Keyed) {
            let view = folder.name().to_owned();
            return Err(RowsError::NotRows { view }.into());
        }
        Ok(RowTable { view, budget: budget.clone() })
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows_count(&self) -> u64 {
        self.view.records()
    }

    /// The rows whose keys are in this range, in order.
    ///
    /// ```
    /// # use merganser_sort::Budget;
    /// # use merganser_sort::rows::{KeepAll, RowSorter, RowsBy};
    /// # use merganser_storage::Directory;
    /// # use merganser_storage::memory::MemoryDirectory;
    /// # use std::sync::Arc;
    /// let memory = Budget::new(64 << 20);
    /// let mut sorter = RowSorter::new(RowsBy::Key, &memory, KeepAll);
    /// for key in ["d", "a", "c", "b"] {
    ///     sorter.push(key.as_bytes(), b"")?;
    /// }
    /// let folder: Arc<dyn Directory> = MemoryDirectory::new();
    /// let table = sorter.finish()?.into_table(&folder, "letters", &memory)?;
    /// let mut rows = table.rows::<&[u8]>(&b"b"[..]..&b"d"[..])?;
    /// assert_eq!(rows.next()?, Some((&b"b"[..], &b""[..])));
    /// assert_eq!(rows.next()?, Some((&b"c"[..], &b""[..])));
    /// assert_eq!(rows.next()?, None);
    /// # Ok::<(), merganser_sort::Error>(())
    /// ```
    ///
    /// # Errors
    /// Too little memory, damage found, the storage's own.
    pub fn rows<K: AsRef<[u8]>>(&self, keys: impl RangeBounds<K>) -> Result<TableRows<'_>> {
        // No key is between one and the same with a zero byte behind it.
        let behind = |key: &K| [key.as_ref(), &[0]].concat();
        let start = match keys.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.view.offset_of_key(key.as_ref())?,
            Bound::Excluded(key) => self.view.offset_of_key(&behind(key))?,
        };
        let end = match keys.end_bound() {
            Bound::Unbounded => self.view.size(),
            Bound::Excluded(key) => self.view.offset_of_key(key.as_ref())?,
            Bound::Included(key) => self.view.offset_of_key(&behind(key))?,
        };
        self.between(start..end.max(start))
    }

    /// The rows with these numbers, from 0, in order; fewer where the table ends.
    ///
    /// # Errors
    /// As [`RowTable::rows`].
    pub fn rows_at(&self, rows: Range<u64>) -> Result<TableRows<'_>> {
        let offset = |row: u64| match row {
            row if row >= self.rows_count() => Ok(self.view.size()),
            row => self.view.offset_of_record(row),
        };
        let start = offset(rows.start)?;
        self.between(start..offset(rows.end)?.max(start))
    }

    fn between(&self, bytes: Range<u64>) -> Result<TableRows<'_>> {
        Ok(TableRows {
            records: RecordCutter::new(&self.budget)?,
            stream: self.view.stream(bytes)?,
            used: 0,
            row: (Vec::new(), Vec::new()),
            memory: self.budget.reserve(0, "reading rows")?,
        })
    }
}

/// Rows of a table. Each is lent until the next one is asked for.
pub struct TableRows<'a> {
    stream: ViewStream<'a>,
    /// The bytes that the stream gave last and that are used.
    used: usize,
    records: RecordCutter,
    row: (Vec<u8>, Vec<u8>),
    /// The memory of a row's copy, if it is long.
    memory: Reservation,
}

impl TableRows<'_> {
    /// The next row: key, value.
    ///
    /// # Errors
    /// Damage found, the storage's own, too little memory for a long row.
    #[expect(clippy::should_implement_trait, reason = "a row is lent")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(if self.advance()? { Some((&self.row.0, &self.row.1)) } else { None })
    }
}

impl RowStream for TableRows<'_> {
    type Error = Error;

    fn advance(&mut self) -> Result<bool> {
        loop {
            let last = self.stream.last_bytes();
            let mut rest = &last[self.used..];
            if let Some(record) = self.records.next(&mut rest)? {
                let (key, value) = split(record);
                if record.len() > SHORT {
                    // With the room that it had before it grew.
                    self.memory.grow_to(2 * record.len() as u64)?;
                }
                let (kept_key, kept_value) = &mut self.row;
                kept_key.clear();
                kept_key.extend_from_slice(key);
                kept_value.clear();
                kept_value.extend_from_slice(value);
                self.used = last.len() - rest.len();
                return Ok(true);
            }
            self.used = 0;
            if self.stream.next_bytes()?.is_none() {
                return Ok(false);
            }
        }
    }

    fn key(&self) -> &[u8] {
        &self.row.0
    }

    fn value(&self) -> &[u8] {
        &self.row.1
    }
}
