//! Columns to keys.

use arrow_array::ArrayRef;

use super::number::to_key;
use super::{KeyColumn, KeyKind, NullsAt};
use crate::cells::Cells;
use crate::column::{Column, NullFound, Values};

/// Makes keys of batches. Its memory is used again for the next batch.
pub(crate) struct KeyEncoder {
    columns: Vec<KeyColumn>,
    lengths: Vec<usize>,
    keys: Cells,
}

impl KeyEncoder {
    pub(crate) fn new(columns: &[KeyColumn]) -> KeyEncoder {
        KeyEncoder { columns: columns.to_vec(), lengths: Vec::new(), keys: Cells::default() }
    }

    /// Makes the keys of a batch of all columns of the table, in their plain forms with views.
    pub(crate) fn encode(&mut self, count: usize, table: &[ArrayRef]) -> Result<(), NullFound> {
        let column = |key: &KeyColumn| {
            let array = &table[key.index];
            let column = Column::new(array, array.data_type());
            if key.nullable || column.nulls.is_none() { Ok(column) } else { Err(NullFound) }
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        self.lengths.clear();
        self.lengths.resize(count, 0);
        for (key, column) in self.columns.iter().zip(&columns) {
            add_lengths(key, column, &mut self.lengths);
        }
        self.keys.begin(&self.lengths);
        let Cells { bytes, cursors } = &mut self.keys;
        for (key, column) in self.columns.iter().zip(&columns) {
            write(key, column, bytes, cursors);
        }
        Ok(())
    }

    /// The key of a row of the batch.
    #[inline]
    pub(crate) fn key(&self, row: usize) -> &[u8] {
        self.keys.row(row)
    }
}

fn zeros(value: &[u8]) -> usize {
    value.iter().filter(|byte| **byte == 0).count()
}

fn add_lengths(key: &KeyColumn, column: &Column, lengths: &mut [usize]) {
    let mark = usize::from(key.nullable);
    let fixed = match key.kind {
        KeyKind::Boolean => 1,
        KeyKind::Number { width, .. } | KeyKind::FixedBytes { width } => width,
        KeyKind::Bytes => {
            let Values::Bytes(values) = &column.values else { unreachable!("bytes") };
            for (row, length) in lengths.iter_mut().enumerate() {
                *length += mark;
                if column.is_valid(row) {
                    let value = values.value(row);
                    *length += value.len();
                    *length += if key.is_open { 0 } else { zeros(value) + 2 };
                }
            }
            return;
        }
    };
    for (row, length) in lengths.iter_mut().enumerate() {
        *length += mark + if column.is_valid(row) { fixed } else { 0 };
    }
}

/// The mark of a null, and that of a value.
pub(crate) fn marks(nulls: NullsAt) -> (u8, u8) {
    match nulls {
        NullsAt::First => (0, 1),
        NullsAt::Last => (2, 1),
    }
}

fn write(key: &KeyColumn, column: &Column, bytes: &mut [u8], cursors: &mut [usize]) {
    if key.nullable {
        let (null, value) = marks(key.nulls);
        for (row, cursor) in cursors.iter_mut().enumerate() {
            bytes[*cursor] = if column.is_valid(row) { value } else { null };
            *cursor += 1;
        }
    }
    match (key.kind, &column.values) {
        (KeyKind::Boolean, Values::Booleans(values)) => {
            for (row, cursor) in cursors.iter_mut().enumerate() {
                if column.is_valid(row) {
                    bytes[*cursor] = u8::from(values.value(row) != key.descending);
                    *cursor += 1;
                }
            }
        }
        (KeyKind::Number { width, .. }, Values::Fixed { bytes: values, .. }) => match width {
            1 => write_numbers::<1>(key, column, values, (bytes, cursors)),
            2 => write_numbers::<2>(key, column, values, (bytes, cursors)),
            4 => write_numbers::<4>(key, column, values, (bytes, cursors)),
            8 => write_numbers::<8>(key, column, values, (bytes, cursors)),
            16 => write_numbers::<16>(key, column, values, (bytes, cursors)),
            32 => write_numbers::<32>(key, column, values, (bytes, cursors)),
            _ => unreachable!("no number has {width} bytes"),
        },
        (KeyKind::FixedBytes { width }, Values::Fixed { bytes: values, .. }) => {
            for (row, cursor) in cursors.iter_mut().enumerate() {
                if column.is_valid(row) {
                    let to = &mut bytes[*cursor..*cursor + width];
                    to.copy_from_slice(&values[row * width..(row + 1) * width]);
                    turn_over(key, to);
                    *cursor += width;
                }
            }
        }
        (KeyKind::Bytes, Values::Bytes(values)) => {
            for (row, cursor) in cursors.iter_mut().enumerate() {
                if column.is_valid(row) {
                    *cursor = put_bytes(key, values.value(row), bytes, *cursor);
                }
            }
        }
        _ => unreachable!("the type of a column does not change"),
    }
}

fn write_numbers<const WIDTH: usize>(
    key: &KeyColumn,
    column: &Column,
    values: &[u8],
    (bytes, cursors): (&mut [u8], &mut [usize]),
) {
    let KeyKind::Number { kind, .. } = key.kind else { unreachable!("a number") };
    let (values, _) = values.as_chunks::<WIDTH>();
    for ((row, cursor), value) in cursors.iter_mut().enumerate().zip(values) {
        if column.is_valid(row) {
            let part = to_key(kind, key.descending, *value);
            bytes[*cursor..*cursor + WIDTH].copy_from_slice(&part);
            *cursor += WIDTH;
        }
    }
}

fn turn_over(key: &KeyColumn, bytes: &mut [u8]) {
    if key.descending {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn put_bytes(key: &KeyColumn, value: &[u8], bytes: &mut [u8], start: usize) -> usize {
    if key.is_open {
        bytes[start..start + value.len()].copy_from_slice(value);
        return start + value.len();
    }
    let mut at = start;
    for (number, part) in value.split(|byte| *byte == 0).enumerate() {
        if number > 0 {
            bytes[at..at + 2].copy_from_slice(&[0x00, 0xFF]);
            at += 2;
        }
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    bytes[at..at + 2].copy_from_slice(&[0, 0]);
    at += 2;
    turn_over(key, &mut bytes[start..at]);
    at
}
