//! Rows to columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, NullArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Fields};

use super::varint::get_varint;
use crate::TableError;
use crate::column::{bits_of, width_of};

/// Makes columns of rows.
pub(crate) struct RowDecoder {
    columns: Vec<ColumnBuilder>,
    bits: Vec<Option<usize>>,
    bits_bytes: usize,
    cursors: Vec<usize>,
}

/// A row that can't be one of these columns.
pub(crate) fn damaged_row() -> TableError {
    TableError::DamagedRow
}

/// A column that grows row by row.
pub(crate) struct ColumnBuilder {
    plain: DataType,
    nulls: NullBufferBuilder,
    values: ValuesBuilder,
}

enum ValuesBuilder {
    Null,
    Booleans(BooleanBufferBuilder),
    Fixed { bytes: Vec<u8>, width: usize },
    Bytes { offsets: Vec<i32>, bytes: Vec<u8> },
    List { offsets: Vec<i32>, items: Box<ColumnBuilder>, nullable: bool },
    FixedList { count: usize, items: Box<ColumnBuilder>, nullable: bool },
    Struct(GroupBuilder),
}

struct GroupBuilder {
    columns: Vec<ColumnBuilder>,
    bits: Vec<Option<usize>>,
    bits_bytes: usize,
}

impl RowDecoder {
    /// A decoder of rows with these columns, each in its plain form with offsets, and nullable or not.
    pub(crate) fn new(columns: impl IntoIterator<Item = (DataType, bool)>) -> RowDecoder {
        let (types, nullable): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let (bits, bits_bytes) = bits_of(nullable);
        let columns = types.iter().map(ColumnBuilder::new).collect();
        RowDecoder { columns, bits, bits_bytes, cursors: Vec::new() }
    }

    /// The columns of these rows.
    ///
    /// # Errors
    /// Rows that can't have such columns.
    pub(crate) fn decode(&mut self, rows: &[&[u8]]) -> Result<Vec<ArrayRef>, TableError> {
        self.cursors.clear();
        self.cursors.resize(rows.len(), self.bits_bytes);
        if rows.iter().any(|row| row.len() < self.bits_bytes) {
            return Err(damaged_row());
        }
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, bit) in self.columns.iter_mut().zip(&self.bits) {
            column.take_all(rows, *bit, &mut self.cursors)?;
            arrays.push(column.finish()?);
        }
        if rows.iter().zip(&self.cursors).any(|(row, end)| row.len() != *end) {
            return Err(damaged_row());
        }
        Ok(arrays)
    }
}

fn has_bit(bytes: &[u8], bit: usize) -> bool {
    bytes[bit / 8] & 1 << (bit % 8) != 0
}

impl ColumnBuilder {
    pub(crate) fn new(plain: &DataType) -> ColumnBuilder {
        let new = |plain: &DataType| Box::new(ColumnBuilder::new(plain));
        let values = match plain {
            DataType::Null => ValuesBuilder::Null,
            DataType::Boolean => ValuesBuilder::Booleans(BooleanBufferBuilder::new(0)),
            DataType::Utf8 | DataType::Binary => {
                ValuesBuilder::Bytes { offsets: vec![0], bytes: Vec::new() }
            }
            DataType::List(item) => ValuesBuilder::List {
                offsets: vec![0],
                items: new(item.data_type()),
                nullable: item.is_nullable(),
            },
            DataType::Map(entries, _) => ValuesBuilder::List {
                offsets: vec![0],
                items: new(entries.data_type()),
                nullable: false,
            },
            DataType::FixedSizeList(item, count) => ValuesBuilder::FixedList {
                count: usize::try_from(*count).unwrap_or(0),
                items: new(item.data_type()),
                nullable: item.is_nullable(),
            },
            DataType::Struct(fields) => ValuesBuilder::Struct(GroupBuilder::new(fields)),
            other => {
                let width = width_of(other).expect("a plain type that rows can hold");
                ValuesBuilder::Fixed { bytes: Vec::new(), width }
            }
        };
        ColumnBuilder { plain: plain.clone(), nulls: NullBufferBuilder::new(0), values }
    }

    /// Takes the next value of each row.
    fn take_all(
        &mut self,
        rows: &[&[u8]],
        bit: Option<usize>,
        cursors: &mut [usize],
    ) -> Result<(), TableError> {
        for (row, cursor) in rows.iter().zip(cursors) {
            let valid = bit.is_none_or(|bit| has_bit(row, bit));
            *cursor = self.take(row, *cursor, valid).ok_or_else(damaged_row)?;
        }
        Ok(())
    }

    /// Takes the value at `at`, and returns what is behind it; `None` if there is no such value.
    #[inline]
    fn take(&mut self, row: &[u8], at: usize, valid: bool) -> Option<usize> {
        if !valid {
            self.push_null();
            return Some(at);
        }
        if !matches!(self.values, ValuesBuilder::Null) {
            self.nulls.append_non_null();
        }
        match &mut self.values {
            ValuesBuilder::Null => {
                self.nulls.append_null();
                Some(at)
            }
            ValuesBuilder::Booleans(values) => {
                values.append(*row.get(at)? != 0);
                Some(at + 1)
            }
            ValuesBuilder::Fixed { bytes, width } => {
                bytes.extend_from_slice(row.get(at..at + *width)?);
                Some(at + *width)
            }
            ValuesBuilder::Bytes { offsets, bytes } => {
                let (len, at) = get_varint(row, at)?;
                bytes.extend_from_slice(row.get(at..at.checked_add(len)?)?);
                offsets.push(i32::try_from(bytes.len()).ok()?);
                Some(at + len)
            }
            ValuesBuilder::List { offsets, items, nullable } => {
                let (count, at) = get_varint(row, at)?;
                let last = *offsets.last().expect("there is a first");
                offsets.push(i32::try_from(count).ok()?.checked_add(last)?);
                items.take_items(row, at, count, *nullable)
            }
            ValuesBuilder::FixedList { count, items, nullable } => {
                items.take_items(row, at, *count, *nullable)
            }
            ValuesBuilder::Struct(group) => group.take(row, at),
        }
    }

    fn take_items(&mut self, row: &[u8], at: usize, count: usize, nullable: bool) -> Option<usize> {
        let bits_bytes = if nullable { count.div_ceil(8) } else { 0 };
        let bits = row.get(at..at.checked_add(bits_bytes)?)?;
        let mut next = at + bits_bytes;
        // Items of no bytes at all could be any number.
        if !nullable && count > row.len() - at && !self.takes_no_bytes() {
            return None;
        }
        for number in 0..count {
            let valid = !nullable || has_bit(bits, number);
            next = self.take(row, next, valid)?;
        }
        Some(next)
    }

    fn takes_no_bytes(&self) -> bool {
        match &self.values {
            ValuesBuilder::Null => true,
            ValuesBuilder::Fixed { width, .. } => *width == 0,
            ValuesBuilder::FixedList { count, items, .. } => *count == 0 || items.takes_no_bytes(),
            ValuesBuilder::Struct(group) => {
                group.bits_bytes == 0 && group.columns.iter().all(ColumnBuilder::takes_no_bytes)
            }
            _ => false,
        }
    }

    pub(crate) fn push_null(&mut self) {
        self.nulls.append_null();
        self.push_empty();
    }

    /// The bytes that arrays have in the place of a null.
    fn push_empty(&mut self) {
        match &mut self.values {
            ValuesBuilder::Null => {}
            ValuesBuilder::Booleans(values) => values.append(false),
            ValuesBuilder::Fixed { bytes, width } => bytes.resize(bytes.len() + *width, 0),
            ValuesBuilder::Bytes { offsets, .. } | ValuesBuilder::List { offsets, .. } => {
                offsets.push(*offsets.last().expect("there is a first"));
            }
            ValuesBuilder::FixedList { count, items, .. } => {
                (0..*count).for_each(|_| items.push_placeholder());
            }
            ValuesBuilder::Struct(group) => {
                group.columns.iter_mut().for_each(ColumnBuilder::push_placeholder);
            }
        }
    }

    /// A value that no reader sees, since what it is a part of is null. It is no null, which not all fields may be.
    fn push_placeholder(&mut self) {
        if matches!(self.values, ValuesBuilder::Null) {
            return self.nulls.append_null();
        }
        self.nulls.append_non_null();
        self.push_empty();
    }

    /// A value of as many bytes as all, the lowest first.
    pub(crate) fn push_fixed(&mut self, value: &[u8]) {
        self.nulls.append_non_null();
        match &mut self.values {
            ValuesBuilder::Fixed { bytes, .. } => bytes.extend_from_slice(value),
            ValuesBuilder::Booleans(values) => values.append(value[0] != 0),
            _ => unreachable!("a column of numbers"),
        }
    }

    /// A value of any length; false if the column would be too long.
    pub(crate) fn push_bytes(&mut self, value: impl IntoIterator<Item = u8>) -> bool {
        self.nulls.append_non_null();
        let ValuesBuilder::Bytes { offsets, bytes } = &mut self.values else {
            unreachable!("a column of bytes")
        };
        bytes.extend(value);
        let end = i32::try_from(bytes.len());
        offsets.push(end.unwrap_or(i32::MAX));
        end.is_ok()
    }

    /// The array, and the builder is empty again.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, TableError> {
        let count = self.nulls.len();
        let nulls = self.nulls.finish();
        if matches!(self.values, ValuesBuilder::Null) {
            return Ok(Arc::new(NullArray::new(count)));
        }
        let builder = ArrayData::builder(self.plain.clone()).len(count).nulls(nulls);
        let restarted = |offsets: &mut Vec<i32>| Buffer::from(std::mem::replace(offsets, vec![0]));
        let builder = match &mut self.values {
            ValuesBuilder::Null => unreachable!("finished above"),
            ValuesBuilder::Booleans(values) => builder.add_buffer(values.finish().into_inner()),
            ValuesBuilder::Fixed { bytes, .. } => {
                let next = Vec::with_capacity(bytes.len());
                builder.add_buffer(Buffer::from(std::mem::replace(bytes, next)))
            }
            ValuesBuilder::Bytes { offsets, bytes } => {
                let next = Vec::with_capacity(bytes.len());
                let bytes = Buffer::from(std::mem::replace(bytes, next));
                builder.add_buffer(restarted(offsets)).add_buffer(bytes)
            }
            ValuesBuilder::List { offsets, items, .. } => {
                builder.add_buffer(restarted(offsets)).add_child_data(items.finish()?.to_data())
            }
            ValuesBuilder::FixedList { items, .. } => {
                builder.add_child_data(items.finish()?.to_data())
            }
            ValuesBuilder::Struct(group) => {
                let fields = group.columns.iter_mut().map(ColumnBuilder::finish);
                let fields = fields.collect::<Result<Vec<_>, _>>()?;
                builder.child_data(fields.iter().map(|field| field.to_data()).collect())
            }
        };
        // It looks at all offsets and strings: the rows of a view may be anybody's. Buffers of bytes may be anywhere in
        // memory, and numbers are read where they are aligned.
        let data = builder.align_buffers(true).build();
        Ok(make_array(data.map_err(|_| damaged_row())?))
    }
}

impl GroupBuilder {
    fn new(fields: &Fields) -> GroupBuilder {
        let columns = fields.iter().map(|field| ColumnBuilder::new(field.data_type())).collect();
        let (bits, bits_bytes) = bits_of(fields.iter().map(|field| field.is_nullable()));
        GroupBuilder { columns, bits, bits_bytes }
    }

    fn take(&mut self, row: &[u8], at: usize) -> Option<usize> {
        let bits = row.get(at..at + self.bits_bytes)?;
        let mut next = at + self.bits_bytes;
        for (column, bit) in self.columns.iter_mut().zip(&self.bits) {
            next = column.take(row, next, bit.is_none_or(|bit| has_bit(bits, bit)))?;
        }
        Some(next)
    }
}
