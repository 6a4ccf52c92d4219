//! One dictionary for each column of a file of Arrow.
//!
//! ```text
//!   batch     red green        blue red          no rows
//!   has       0   1            2    0            red green blue      columns of indices, then the dictionary
//! ```
//!
//! Batches have dictionaries of their own, and a file has one for all of its batches. Arrow's format ("IPC File Format") lets
//! it stand behind the batches whose indices it explains, since readers find it by the end of the file.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::Buffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_data::ArrayDataBuilder;
use arrow_data::transform::MutableArrayData;
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::TableError;

/// Bytes of all dictionaries of a file, at most: they are in memory.
const DICTIONARY_BYTES: usize = 16 << 20;

/// The dictionaries of a file.
pub(super) struct FileDictionaries {
    schema: SchemaRef,
    /// The same with indices in place of dictionaries.
    indices: SchemaRef,
    columns: Vec<ColumnDictionary>,
    bytes: usize,
}

/// The dictionary of a column.
struct ColumnDictionary {
    /// The number of the column, its name, and the type of its indices.
    number: usize,
    name: String,
    index_type: DataType,
    converter: RowConverter,
    /// The index of each value.
    known: HashMap<OwnedRow, i64>,
    /// The values, as they came.
    values: Vec<ArrayRef>,
}

impl FileDictionaries {
    /// For a file with this schema; `None` if it has no dictionaries.
    ///
    /// # Errors
    /// When there are dictionaries in lists and structs.
    pub(super) fn new(schema: &SchemaRef) -> Result<Option<FileDictionaries>, TableError> {
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (number, field) in schema.fields().iter().enumerate() {
            let mut index_field = Arc::clone(field);
            if let DataType::Dictionary(index_type, values) = field.data_type() {
                let sort = SortField::new((**values).clone());
                columns.push(ColumnDictionary {
                    number,
                    name: field.name().clone(),
                    index_type: (**index_type).clone(),
                    converter: RowConverter::new(vec![sort]).map_err(TableError::Arrow)?,
                    known: HashMap::new(),
                    values: Vec::new(),
                });
                let plain = Field::new(field.name(), (**index_type).clone(), field.is_nullable());
                index_field = Arc::new(plain);
            } else if has_dictionaries(field.data_type()) {
                return Err(TableError::InnerDictionary { column: field.name().clone() });
            }
            fields.push(index_field);
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let indices = Arc::new(Schema::new(fields));
        Ok(Some(FileDictionaries { schema: Arc::clone(schema), indices, columns, bytes: 0 }))
    }

    /// The batch with indices of the file's dictionaries, which get its new values.
    ///
    /// # Errors
    /// When there are too many values for memory, or for indices of their type.
    pub(super) fn replace(&mut self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let mut columns = batch.columns().to_vec();
        for column in &mut self.columns {
            let (indices, bytes) = column.replace(&columns[column.number])?;
            self.bytes += bytes;
            if self.bytes > DICTIONARY_BYTES {
                return Err(TableError::LongDictionary { column: column.name.clone() });
            }
            columns[column.number] = indices;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.indices), columns, &options)
            .map_err(TableError::Arrow)
    }

    /// A batch without rows that has the dictionaries.
    ///
    /// # Errors
    /// Arrow's own.
    pub(super) fn last_batch(&self) -> Result<RecordBatch, TableError> {
        let empty = RecordBatch::new_empty(Arc::clone(&self.schema));
        let mut columns = empty.columns().to_vec();
        for column in &self.columns {
            let data_type = self.schema.field(column.number).data_type();
            columns[column.number] = column.without_rows(data_type)?;
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(TableError::Arrow)
    }
}

impl ColumnDictionary {
    /// The indices of a column, and the bytes of new values.
    fn replace(&mut self, column: &ArrayRef) -> Result<(ArrayRef, usize), TableError> {
        let own = column.as_any_dictionary();
        let values = own.values();
        let rows = self.converter.convert_columns(&[Arc::clone(values)]);
        let rows = rows.map_err(TableError::Arrow)?;
        let data = values.to_data();
        let mut new_values = MutableArrayData::new(vec![&data], false, 0);
        let (mut index_of, mut bytes) = (Vec::with_capacity(values.len()), 0);
        for (at, row) in rows.iter().enumerate() {
            let next = self.known.len() as i64;
            let index = *self.known.entry(row.owned()).or_insert(next);
            if index == next {
                new_values.try_extend(0, at, at + 1).map_err(TableError::Arrow)?;
                // In the list and in the map, which has some words for each.
                bytes += 2 * row.data().len() + 48;
            }
            index_of.push(index);
        }
        if !new_values.is_empty() {
            self.values.push(make_array(new_values.freeze()));
        }
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        let keys = cast_with_options(own.keys(), &DataType::Int64, &exact);
        let keys = keys.map_err(TableError::Arrow)?;
        let indices: Int64Array =
            keys.as_primitive::<arrow_array::types::Int64Type>().unary(|key| {
                usize::try_from(key)
                    .ok()
                    .and_then(|key| index_of.get(key))
                    .map_or(0, |index| *index)
            });
        let indices = cast_with_options(&indices, &self.index_type, &exact);
        let indices = indices.map_err(|_| TableError::ShortIndices {
            column: self.name.clone(),
            index_type: self.index_type.clone(),
        });
        Ok((indices?, bytes))
    }

    /// An array of no rows, with the dictionary.
    fn without_rows(&self, data_type: &DataType) -> Result<ArrayRef, TableError> {
        let parts: Vec<_> = self.values.iter().map(|part| part.to_data()).collect();
        let values = if parts.is_empty() {
            let DataType::Dictionary(_, values) = data_type else { unreachable!("as in new") };
            arrow_array::new_empty_array(values).to_data()
        } else {
            let mut all = MutableArrayData::new(parts.iter().collect(), false, self.known.len());
            for (at, part) in parts.iter().enumerate() {
                all.try_extend(at, 0, part.len()).map_err(TableError::Arrow)?;
            }
            all.freeze()
        };
        let array = ArrayDataBuilder::new(data_type.clone())
            .add_buffer(Buffer::from_vec(Vec::<i64>::new()))
            .add_child_data(values);
        Ok(make_array(array.build().map_err(TableError::Arrow)?))
    }
}

fn has_dictionaries(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_dictionaries(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionaries(field.data_type())),
        _ => false,
    }
}
