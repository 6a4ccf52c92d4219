//! Columns to rows.

use arrow_array::ArrayRef;
use arrow_schema::Field;

use super::varint::{put_varint, varint_len};
use crate::cells::Cells;
use crate::column::{Column, Group, NullFound, Values};

/// Makes rows of batches. Its memory is used again for the next batch.
#[derive(Default)]
pub(crate) struct RowEncoder {
    lengths: Vec<usize>,
    rows: Cells,
}

impl RowEncoder {
    /// Makes the rows of these columns, each in its plain form with views.
    pub(crate) fn encode<'a>(
        &mut self,
        count: usize,
        columns: impl IntoIterator<Item = (&'a ArrayRef, &'a Field)>,
    ) -> Result<(), NullFound> {
        let group = Group::new(columns);
        group.refuse_nulls()?;
        self.lengths.clear();
        self.lengths.resize(count, group.bits_bytes);
        for column in &group.columns {
            add_lengths(column, &mut self.lengths);
        }
        self.rows.begin(&self.lengths);
        let Cells { bytes, cursors } = &mut self.rows;
        for cursor in cursors.iter_mut() {
            let bits = &mut bytes[*cursor..*cursor + group.bits_bytes];
            bits.fill(0);
            *cursor += group.bits_bytes;
        }
        for (column, bit) in group.columns.iter().zip(&group.bits) {
            if let Some(bit) = bit {
                set_bits(column, *bit, group.bits_bytes, (bytes, cursors, &self.lengths));
            }
            write(column, bytes, cursors);
        }
        Ok(())
    }

    /// The bytes of a row of the batch.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        self.rows.row(row)
    }
}

/// Sets the bit of a column in each row in which it has a value. Rows begin behind one another.
fn set_bits(
    column: &Column,
    bit: usize,
    bits_bytes: usize,
    (bytes, cursors, lengths): (&mut [u8], &[usize], &[usize]),
) {
    debug_assert!(bit / 8 < bits_bytes && cursors.len() == lengths.len());
    let mut start = 0;
    for (row, length) in lengths.iter().enumerate() {
        if column.is_valid(row) {
            bytes[start + bit / 8] |= 1 << (bit % 8);
        }
        start += length;
    }
}

fn add_lengths(column: &Column, lengths: &mut [usize]) {
    match (&column.values, &column.nulls) {
        (Values::Fixed { width, .. }, None) => {
            lengths.iter_mut().for_each(|length| *length += width);
        }
        (Values::Bytes(values), None) => {
            for (length, view) in lengths.iter_mut().zip(values.views()) {
                // The low half of a view is the length of its bytes.
                let len = *view as u32 as usize;
                *length += len + varint_len(len);
            }
        }
        _ => {
            for (row, length) in lengths.iter_mut().enumerate() {
                *length += value_len(column, row);
            }
        }
    }
}

/// Writes the values of a column, each where the cursor of its row is.
fn write(column: &Column, bytes: &mut [u8], cursors: &mut [usize]) {
    match (&column.values, &column.nulls) {
        (Values::Fixed { bytes: values, width }, None) => match width {
            4 => write_fixed::<4>(values, bytes, cursors),
            8 => write_fixed::<8>(values, bytes, cursors),
            16 => write_fixed::<16>(values, bytes, cursors),
            _ => write_each(column, bytes, cursors),
        },
        _ => write_each(column, bytes, cursors),
    }
}

fn write_fixed<const WIDTH: usize>(values: &[u8], bytes: &mut [u8], cursors: &mut [usize]) {
    let (values, _) = values.as_chunks::<WIDTH>();
    for (cursor, value) in cursors.iter_mut().zip(values) {
        bytes[*cursor..*cursor + WIDTH].copy_from_slice(value);
        *cursor += WIDTH;
    }
}

fn write_each(column: &Column, bytes: &mut [u8], cursors: &mut [usize]) {
    for (row, cursor) in cursors.iter_mut().enumerate() {
        *cursor = put_value(column, row, bytes, *cursor);
    }
}

/// Bytes of the value in `row`; 0 for a null.
fn value_len(column: &Column, row: usize) -> usize {
    if !column.is_valid(row) {
        return 0;
    }
    match &column.values {
        Values::Null => 0,
        Values::Booleans(_) => 1,
        Values::Fixed { width, .. } => *width,
        Values::Bytes(values) => {
            let len = values.value(row).len();
            len + varint_len(len)
        }
        Values::List { offsets, items, nullable } => {
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            varint_len(end - start) + items_len(items, start..end, *nullable)
        }
        Values::FixedList { count, items, nullable } => {
            items_len(items, row * count..(row + 1) * count, *nullable)
        }
        Values::Struct(group) => {
            let values = group.columns.iter().map(|column| value_len(column, row));
            group.bits_bytes + values.sum::<usize>()
        }
    }
}

fn items_len(items: &Column, range: std::ops::Range<usize>, nullable: bool) -> usize {
    let bits = if nullable { range.len().div_ceil(8) } else { 0 };
    bits + range.map(|item| value_len(items, item)).sum::<usize>()
}

/// Writes the value in `row` at `at`, and returns what is behind it.
#[inline]
fn put_value(column: &Column, row: usize, bytes: &mut [u8], at: usize) -> usize {
    if !column.is_valid(row) {
        return at;
    }
    match &column.values {
        Values::Null => at,
        Values::Booleans(values) => {
            bytes[at] = u8::from(values.value(row));
            at + 1
        }
        Values::Fixed { bytes: values, width } => {
            bytes[at..at + width].copy_from_slice(&values[row * width..(row + 1) * width]);
            at + width
        }
        Values::Bytes(values) => {
            let value = values.value(row);
            let at = put_varint(bytes, at, value.len());
            bytes[at..at + value.len()].copy_from_slice(value);
            at + value.len()
        }
        Values::List { offsets, items, nullable } => {
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            let at = put_varint(bytes, at, end - start);
            put_items(items, start..end, *nullable, bytes, at)
        }
        Values::FixedList { count, items, nullable } => {
            put_items(items, row * count..(row + 1) * count, *nullable, bytes, at)
        }
        Values::Struct(group) => put_group(group, row, bytes, at),
    }
}

fn put_items(
    items: &Column,
    range: std::ops::Range<usize>,
    nullable: bool,
    bytes: &mut [u8],
    at: usize,
) -> usize {
    let bits = if nullable { range.len().div_ceil(8) } else { 0 };
    bytes[at..at + bits].fill(0);
    if nullable {
        for (number, item) in range.clone().enumerate() {
            if items.is_valid(item) {
                bytes[at + number / 8] |= 1 << (number % 8);
            }
        }
    }
    range.fold(at + bits, |at, item| put_value(items, item, bytes, at))
}

fn put_group(group: &Group, row: usize, bytes: &mut [u8], start: usize) -> usize {
    bytes[start..start + group.bits_bytes].fill(0);
    let mut at = start + group.bits_bytes;
    for (column, bit) in group.columns.iter().zip(&group.bits) {
        if let Some(bit) = bit
            && column.is_valid(row)
        {
            bytes[start + bit / 8] |= 1 << (bit % 8);
        }
        at = put_value(column, row, bytes, at);
    }
    at
}
