//! Rows as batches with the types that the table had.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use merganser_sort::Progress;

use crate::TableError;
use crate::codec::{BatchDecoder, TableLayout};
use crate::table_rows::{Piece, TableRows};

/// How large batches are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSize {
    /// Rows of a batch, at most.
    pub rows: usize,
    /// Bytes of its keys and rows, but for the last row.
    pub bytes: usize,
    /// Bytes of the key and the row of one row, at most.
    pub row_bytes: usize,
}

impl Default for BatchSize {
    /// 8,192 rows or 4 MiB, and rows of any length.
    fn default() -> Self {
        BatchSize { rows: 8192, bytes: 4 << 20, row_bytes: usize::MAX }
    }
}

/// The columns of a table that are wanted, by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct WantedColumns {
    pub(crate) numbers: Vec<usize>,
    pub(crate) schema: SchemaRef,
}

impl WantedColumns {
    /// All columns, or those with these names, in this order.
    ///
    /// # Errors
    /// The name of one that is not there.
    pub(crate) fn new(layout: &TableLayout, names: Option<&[String]>) -> Result<Self, String> {
        let own = layout.result_schema();
        let number = |name: &String| own.index_of(name).map_err(|_| name.clone());
        let numbers: Vec<usize> = match names {
            None => (0..own.fields().len()).collect(),
            Some(names) => names.iter().map(number).collect::<Result<_, _>>()?,
        };
        Ok(WantedColumns::of_numbers(&own, numbers))
    }

    /// All columns but those with these numbers.
    pub(crate) fn without(layout: &TableLayout, left_out: &[usize]) -> Self {
        let own = layout.result_schema();
        let numbers = (0..own.fields().len()).filter(|number| !left_out.contains(number));
        WantedColumns::of_numbers(&own, numbers.collect())
    }

    /// The same columns of a layout that has only those with the numbers `kept` of this one.
    pub(crate) fn among(&self, kept: &[usize]) -> Self {
        let here = |number: &usize| kept.binary_search(number).expect("a wanted column is kept");
        let numbers = self.numbers.iter().map(here).collect();
        WantedColumns { numbers, schema: Arc::clone(&self.schema) }
    }

    fn of_numbers(own: &Schema, numbers: Vec<usize>) -> Self {
        let fields: Vec<_> =
            numbers.iter().map(|number| Arc::clone(&own.fields()[*number])).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
        WantedColumns { numbers, schema }
    }

    /// The wanted columns of a batch in plain forms, with their own types.
    fn of_batch(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let columns = self.numbers.iter().zip(self.schema.fields());
        let columns = columns.map(|(number, field)| {
            let array = batch.column(*number);
            if array.data_type() == field.data_type() {
                return Ok(Arc::clone(array));
            }
            cast(array, field.data_type()).map_err(|error| match (&error, field.data_type()) {
                (ArrowError::DictionaryKeyOverflowError, DataType::Dictionary(index_type, _)) => {
                    let (column, index_type) = (field.name().clone(), (**index_type).clone());
                    TableError::ShortIndices { column, index_type }
                }
                _ => TableError::Arrow(error),
            })
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(TableError::Arrow)
    }
}

/// Hands out all rows as batches of the wanted columns; how many rows.
///
/// # Errors
/// Those of the rows and of `each`; a row that is too long; [`merganser_sort::Error::Cancelled`].
pub(crate) fn each_batch(
    rows: &mut dyn TableRows,
    layout: &TableLayout,
    (wanted, size): (&WantedColumns, BatchSize),
    progress: &dyn Progress,
    mut each: impl FnMut(RecordBatch) -> Result<(), TableError>,
) -> Result<u64, TableError> {
    let mut decoder = BatchDecoder::new(layout);
    let (mut piece, mut count) = (Piece::default(), 0);
    loop {
        piece.clear();
        let is_last = loop {
            let Some((key, value)) = rows.next()? else { break true };
            let bytes = key.len() + value.len();
            if bytes > size.row_bytes {
                return Err(TableError::LongRow { bytes, most: size.row_bytes });
            }
            piece.push(key, value);
            if piece.rows() == size.rows || piece.bytes() >= size.bytes {
                break false;
            }
        };
        count += piece.rows() as u64;
        decoder.decode(&piece, |batch| each(wanted.of_batch(&batch)?))?;
        progress.advance(piece.bytes() as u64);
        if progress.cancelled() {
            return Err(merganser_sort::Error::Cancelled.into());
        }
        if is_last {
            return Ok(count);
        }
    }
}
