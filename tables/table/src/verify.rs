//! Checks of a table: order, count, duplicates, and a checksum of its values.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use merganser_sort::{Error, Progress};

use crate::TableError;
use crate::codec::{BatchEncoder, TableLayout};
use crate::column::NullFound;
use crate::schema::TableSchema;
use crate::source::{TableReader, null_in};
use crate::table::{Table, TableOrder};

/// Memory for pieces of an object that are read ahead, in bytes.
const AHEAD_BYTES: u64 = 48 << 20;

/// The findings of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct TableSummary {
    /// How many rows there are.
    pub rows: u64,
    /// How many rows have the key of the row before them.
    pub duplicates: u64,
    /// The sum of the CRC32 of all rows. It is the same for the same values, whatever their order, their packing and the
    /// way in which types hold strings, lists and dictionaries.
    pub checksum: u64,
    /// How many rows should be before the row before them.
    pub disorders: u64,
    /// The first of them: its file, and its number in it, from 1.
    pub first_disorder: Option<(std::path::PathBuf, u64)>,
}

/// Reads all rows of a table, file by file, and compares the keys of neighbours.
///
/// # Errors
/// Those of the files; columns that have no order; [`Error::Cancelled`].
pub fn verify_table(
    table: &Table,
    order: &TableOrder,
    progress: &dyn Progress,
) -> Result<TableSummary, TableError> {
    let layout = Arc::new(table.layout(order, &[])?);
    let mut keys = BatchEncoder::new(&layout);
    let mut rows = RowsChecksum::new(&table.source.schema)?;
    let mut found = TableSummary::default();
    let mut last: Option<Vec<u8>> = None;
    let ahead_bytes = table.source.ahead_bytes(AHEAD_BYTES);
    progress.phase("checking", Some(table.source.bytes()));
    for file in &table.source.files {
        let mut reader = TableReader::open(file, 0..file.parts.len(), ahead_bytes)?;
        let mut number = 0;
        while let Some((_, batch)) = reader.next()? {
            keys.encode(&batch).map_err(|_| null_in(file))?;
            let bytes = rows.add(&batch).map_err(|_| null_in(file))?;
            for row in 0..batch.num_rows() {
                number += 1;
                let key = keys.row(row).0;
                if let Some(last) = &last {
                    found.duplicates += u64::from(last[..] == *key);
                    if last[..] > *key {
                        found.disorders += 1;
                        found.first_disorder.get_or_insert((file.path.to_path_buf(), number));
                    }
                }
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            found.rows += batch.num_rows() as u64;
            progress.advance(bytes);
            if progress.cancelled() {
                return Err(Error::Cancelled.into());
            }
        }
    }
    found.checksum = rows.sum;
    if layout.keys.is_empty() {
        found.duplicates = 0;
    }
    Ok(found)
}

/// The sum of the CRC32 of rows.
pub(crate) struct RowsChecksum {
    rows: BatchEncoder,
    pub(crate) sum: u64,
}

impl RowsChecksum {
    /// No rows yet, of these columns.
    ///
    /// # Errors
    /// A type that rows can't hold.
    pub(crate) fn new(schema: &TableSchema) -> Result<RowsChecksum, TableError> {
        // Whether a column may have nulls is no value of it.
        let fields: Vec<_> = schema.own.fields().iter().map(nullable).collect();
        let whole = TableSchema::new(Arc::new(Schema::new(fields)), Path::new(""))?;
        let rows = BatchEncoder::new(&Arc::new(TableLayout::new(whole, Vec::new())));
        Ok(RowsChecksum { rows, sum: 0 })
    }

    /// Adds the rows of a batch; how many bytes they have.
    ///
    /// # Errors
    /// A null where none can be, in a list or a struct.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<u64, NullFound> {
        self.rows.encode(batch)?;
        let mut bytes = 0;
        for row in 0..batch.num_rows() {
            let row = self.rows.row(row).1;
            bytes += row.len() as u64;
            self.sum = self.sum.wrapping_add(u64::from(crc32fast::hash(row)));
        }
        Ok(bytes)
    }
}

/// The field, and all in it, nullable.
fn nullable(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(nullable(item)),
        DataType::LargeList(item) => DataType::LargeList(nullable(item)),
        DataType::ListView(item) => DataType::ListView(nullable(item)),
        DataType::LargeListView(item) => DataType::LargeListView(nullable(item)),
        DataType::FixedSizeList(item, count) => DataType::FixedSizeList(nullable(item), *count),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nullable).collect()),
        other => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type).with_nullable(true))
}
