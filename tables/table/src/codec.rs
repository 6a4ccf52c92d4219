//! Batches to rows, and rows to batches.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::TableError;
use crate::column::NullFound;
use crate::key::{KeyColumn, KeyDecoder, KeyEncoder};
use crate::row::{RowDecoder, RowEncoder};
use crate::schema::TableSchema;
use crate::table_rows::Piece;

/// The columns of keys and rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableLayout {
    pub(crate) schema: TableSchema,
    /// The columns of the key.
    pub(crate) keys: Vec<KeyColumn>,
    /// The columns of a row: all that can't be made from the key.
    pub(crate) stored: Vec<usize>,
    /// How many of the first key columns name folders, and are not written to files.
    pub(crate) partitions: usize,
    /// The name of a last column that counts rows; such a row begins with its count.
    pub(crate) count: Option<String>,
}

impl TableLayout {
    pub(crate) fn new(schema: TableSchema, keys: Vec<KeyColumn>) -> TableLayout {
        let made = |index: usize| keys.iter().any(|key| key.index == index && key.is_reversible());
        let stored = (0..schema.own.fields().len()).filter(|index| !made(*index)).collect();
        TableLayout { schema, keys, stored, partitions: 0, count: None }
    }

    /// The layout of rows that have the columns of the key, and of the others those with these numbers; and the numbers of its
    /// columns in this one.
    pub(crate) fn with_columns(
        &self,
        numbers: &[usize],
    ) -> Result<(TableLayout, Vec<usize>), TableError> {
        let keys = self.keys.iter().map(|key| key.index);
        let kept: Vec<_> =
            keys.chain(numbers.iter().copied()).collect::<BTreeSet<_>>().into_iter().collect();
        let own = &self.schema.own;
        let own = own.project(&kept).map_err(TableError::Arrow)?;
        let schema = TableSchema::new(Arc::new(own), Path::new(""))?;
        let here = |index: usize| kept.binary_search(&index).expect("it is kept");
        let keys = self.keys.iter().map(|key| KeyColumn { index: here(key.index), ..key.clone() });
        let layout = TableLayout::new(schema, keys.collect());
        Ok((TableLayout { count: self.count.clone(), ..layout }, kept))
    }

    /// The columns of results.
    pub(crate) fn result_schema(&self) -> SchemaRef {
        self.with_count(&self.schema.own)
    }

    /// The same in plain forms, as [`BatchDecoder`] makes them.
    pub(crate) fn result_offsets(&self) -> SchemaRef {
        self.with_count(&self.schema.offsets)
    }

    fn with_count(&self, schema: &SchemaRef) -> SchemaRef {
        let Some(name) = &self.count else { return Arc::clone(schema) };
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(name, DataType::UInt64, false)));
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }
}

/// Makes keys and rows of batches.
pub(crate) struct BatchEncoder {
    layout: Arc<TableLayout>,
    keys: KeyEncoder,
    rows: RowEncoder,
}

impl BatchEncoder {
    pub(crate) fn new(layout: &Arc<TableLayout>) -> BatchEncoder {
        let (keys, rows) = (KeyEncoder::new(&layout.keys), RowEncoder::default());
        BatchEncoder { layout: Arc::clone(layout), keys, rows }
    }

    /// Makes the keys and rows of a batch in its plain form with views.
    ///
    /// # Errors
    /// A null in a column that must not have one.
    pub(crate) fn encode(&mut self, batch: &RecordBatch) -> Result<(), NullFound> {
        let (count, columns) = (batch.num_rows(), batch.columns());
        let fields = self.layout.schema.views.fields();
        let stored = self.layout.stored.iter().map(|index| (&columns[*index], &*fields[*index]));
        self.keys.encode(count, columns)?;
        self.rows.encode(count, stored)
    }

    /// The key and the row of a row of that batch.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> (&[u8], &[u8]) {
        (self.keys.key(row), self.rows.row(row))
    }
}

/// Rows of a batch that is made of rows, at most.
const BATCH_ROWS: usize = 8192;
/// Bytes of its keys and values, at most, unless one row has more.
const BATCH_BYTES: usize = 4 << 20;

/// Makes batches of keys and rows.
pub(crate) struct BatchDecoder<'a> {
    layout: &'a TableLayout,
    schema: SchemaRef,
    keys: KeyDecoder,
    rows: RowDecoder,
}

impl<'a> BatchDecoder<'a> {
    pub(crate) fn new(layout: &'a TableLayout) -> BatchDecoder<'a> {
        let fields = layout.schema.offsets.fields();
        let stored = layout.stored.iter().map(|index| &fields[*index]);
        let stored = stored.map(|field| (field.data_type().clone(), field.is_nullable()));
        BatchDecoder {
            layout,
            schema: layout.result_offsets(),
            keys: KeyDecoder::new(&layout.keys),
            rows: RowDecoder::new(stored),
        }
    }

    /// Hands out the rows of `piece` as batches in plain forms with offsets.
    ///
    /// # Errors
    /// Rows of other columns; those of `each`.
    pub(crate) fn decode(
        &mut self,
        piece: &Piece,
        mut each: impl FnMut(RecordBatch) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        let (mut keys, mut rows, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (key, row) in piece.keys_and_values() {
            let len = key.len() + row.len();
            let is_full = rows.len() == BATCH_ROWS || bytes + len > BATCH_BYTES;
            if is_full && !rows.is_empty() {
                each(self.batch(&keys, &mut rows)?)?;
                keys.clear();
                rows.clear();
                bytes = 0;
            }
            keys.push(key);
            rows.push(row);
            bytes += len;
        }
        if rows.is_empty() { Ok(()) } else { each(self.batch(&keys, &mut rows)?) }
    }

    fn batch(&mut self, keys: &[&[u8]], rows: &mut [&[u8]]) -> Result<RecordBatch, TableError> {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.schema.fields().len()];
        if self.layout.count.is_some() {
            let mut counts = Vec::with_capacity(rows.len());
            for row in rows.iter_mut() {
                let (count, rest) = row.split_first_chunk().ok_or(TableError::DamagedRow)?;
                counts.push(u64::from_le_bytes(*count));
                *row = rest;
            }
            let last = columns.last_mut().expect("the count");
            *last = Some(Arc::new(UInt64Array::from(counts)));
        }
        for (index, array) in self.keys.decode(keys)? {
            columns[index] = Some(array);
        }
        for (index, array) in self.layout.stored.iter().zip(self.rows.decode(rows)?) {
            columns[*index] = Some(array);
        }
        let columns = columns.into_iter().map(|column| column.expect("in the key or the row"));
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect(),
            &options,
        );
        batch.map_err(|_| TableError::DamagedRow)
    }
}
