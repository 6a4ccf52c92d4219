//! Rows and records as batches of columns.

use std::sync::Arc;

use arrow_array::types::GenericBinaryType;
use arrow_array::{
    ArrayRef, BinaryArray, Float64Array, GenericByteArray, Int64Array, RecordBatch, StringArray,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, SchemaRef};
use merganser_map::ssdlet::{SsdletDescription, SsdletOutput, Type, f64_of_key, i64_of_key};
use merganser_serve::session::{SessionError, key_and_value};
use merganser_sort::key::decimal::OwnedDecimal;

/// A column that grows row by row.
pub(crate) enum ColumnBuffer {
    /// Text or bytes: ends of the rows, and their bytes.
    Bytes {
        text: bool,
        ends: Vec<i32>,
        values: Vec<u8>,
    },
    Int64(Vec<i64>),
    Float64(Vec<f64>),
}

impl ColumnBuffer {
    pub(crate) fn new(of: &DataType) -> Self {
        match of {
            DataType::Int64 => ColumnBuffer::Int64(Vec::new()),
            DataType::Float64 => ColumnBuffer::Float64(Vec::new()),
            of => ColumnBuffer::Bytes {
                text: *of == DataType::Utf8,
                ends: vec![0],
                values: Vec::new(),
            },
        }
    }

    fn push(&mut self, value: &[u8]) -> Result<(), SessionError> {
        let number = || {
            value.try_into().map_err(|_| {
                let n = value.len();
                let told = format!("the SSDlet gave a number of {n} bytes; numbers have 8");
                SessionError::Failed(told)
            })
        };
        match self {
            ColumnBuffer::Bytes { text, ends, values } => {
                if *text && std::str::from_utf8(value).is_err() {
                    let told =
                        "a text of the result is not UTF-8; ask for it with \"text\": \"binary\"";
                    return Err(SessionError::Failed(told.to_owned()));
                }
                values.extend_from_slice(value);
                ends.push(i32::try_from(values.len()).expect("batches are small"));
            }
            ColumnBuffer::Int64(values) => values.push(i64::from_le_bytes(number()?)),
            ColumnBuffer::Float64(values) => values.push(f64::from_le_bytes(number()?)),
        }
        Ok(())
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            ColumnBuffer::Bytes { text, ends, values } => {
                let ends = std::mem::replace(ends, vec![0]);
                let values = std::mem::take(values);
                if !*text {
                    return binary(ends, values);
                }
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(StringArray::new(offsets, Buffer::from_vec(values), None))
            }
            ColumnBuffer::Int64(values) => Arc::new(Int64Array::from(std::mem::take(values))),
            ColumnBuffer::Float64(values) => Arc::new(Float64Array::from(std::mem::take(values))),
        }
    }
}

/// The array of `values`, cut at `ends`, which begins with 0. Nothing is copied.
fn binary(ends: Vec<i32>, values: Vec<u8>) -> ArrayRef {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let array: BinaryArray =
        GenericByteArray::<GenericBinaryType<i32>>::new(offsets, Buffer::from_vec(values), None);
    Arc::new(array)
}

/// A batch of one column: `values`, cut at `ends`, which begins with 0.
pub(crate) fn records(schema: &SchemaRef, ends: Vec<i32>, values: Vec<u8>) -> RecordBatch {
    RecordBatch::try_new(Arc::clone(schema), vec![binary(ends, values)]).expect("one column")
}

/// How a key, whose bytes are in the order of keys, becomes the value of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyForm {
    AsKept,
    Whole,
    Float,
    Digits,
}

impl KeyForm {
    fn new(description: &SsdletDescription, column: &DataType) -> Self {
        match (&description.output, column) {
            (SsdletOutput::Keyed { key: Type::I64, .. }, _) => KeyForm::Whole,
            (SsdletOutput::Keyed { key: Type::F64, .. }, _) => KeyForm::Float,
            (SsdletOutput::Keyed { key: Type::Decimal, .. }, DataType::Utf8) => KeyForm::Digits,
            _ => KeyForm::AsKept,
        }
    }

    fn push(self, key: &[u8], column: &mut ColumnBuffer) -> Result<(), SessionError> {
        let odd = || {
            let told = format!("the SSDlet gave a key of {} bytes that is no number", key.len());
            SessionError::Failed(told)
        };
        match self {
            KeyForm::AsKept => column.push(key),
            KeyForm::Whole => column.push(&i64_of_key(key).ok_or_else(odd)?.to_le_bytes()),
            KeyForm::Float => column.push(&f64_of_key(key).ok_or_else(odd)?.to_le_bytes()),
            KeyForm::Digits => {
                let number = OwnedDecimal::of_key(key).ok_or_else(odd)?;
                column.push(number.get().to_string().as_bytes())
            }
        }
    }
}

/// Collects rows of a run.
pub(crate) struct RowBatch {
    schema: SchemaRef,
    keys: KeyForm,
    columns: Vec<ColumnBuffer>,
    bytes: usize,
    rows: usize,
}

impl RowBatch {
    /// For rows of the SSDlet of `description`.
    pub(crate) fn new(schema: SchemaRef, description: &SsdletDescription) -> Self {
        let columns =
            schema.fields().iter().map(|field| ColumnBuffer::new(field.data_type())).collect();
        let keys = KeyForm::new(description, schema.field(0).data_type());
        RowBatch { schema, keys, columns, bytes: 0, rows: 0 }
    }

    /// Bytes of the rows, and of what Arrow adds to each.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a row as the session keeps it.
    pub(crate) fn push(&mut self, row: &[u8]) -> Result<(), SessionError> {
        match &mut self.columns[..] {
            [record] => record.push(row)?,
            [keys, values] => {
                let (key, value) = key_and_value(row);
                self.keys.push(&row[key], keys)?;
                values.push(&row[value])?;
            }
            _ => unreachable!("a schema of one or two columns"),
        }
        self.bytes += row.len() + 8;
        self.rows += 1;
        Ok(())
    }

    /// The batch; the next one begins empty.
    pub(crate) fn take(&mut self) -> RecordBatch {
        (self.bytes, self.rows) = (0, 0);
        let columns = self.columns.iter_mut().map(ColumnBuffer::take).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("columns of the schema")
    }
}
