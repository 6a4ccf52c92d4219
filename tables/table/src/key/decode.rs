//! Keys to columns.

use arrow_array::ArrayRef;

use super::number::from_key;
use super::{KeyColumn, KeyKind, NullsAt};
use crate::TableError;
use crate::row::{ColumnBuilder, damaged_row};

/// Makes the columns of keys that can be made from them.
pub(crate) struct KeyDecoder {
    columns: Vec<(KeyColumn, ColumnBuilder)>,
    cursors: Vec<usize>,
}

impl KeyDecoder {
    pub(crate) fn new(columns: &[KeyColumn]) -> KeyDecoder {
        let builder = |key: &KeyColumn| (key.clone(), ColumnBuilder::new(&key.plain));
        KeyDecoder { columns: columns.iter().map(builder).collect(), cursors: Vec::new() }
    }

    /// The columns of these keys in their plain forms with offsets, and their numbers in the table; without floats, which
    /// are in the rows.
    ///
    /// # Errors
    /// Keys that can't be of such columns.
    pub(crate) fn decode(&mut self, keys: &[&[u8]]) -> Result<Vec<(usize, ArrayRef)>, TableError> {
        self.cursors.clear();
        self.cursors.resize(keys.len(), 0);
        let mut found = Vec::with_capacity(self.columns.len());
        for (column, builder) in &mut self.columns {
            for (key, cursor) in keys.iter().zip(&mut self.cursors) {
                *cursor = take(column, builder, key, *cursor).ok_or_else(damaged_row)?;
            }
            if column.is_reversible() {
                found.push((column.index, builder.finish()?));
            }
        }
        Ok(found)
    }
}

/// Takes the value at `at`, and returns what is behind it; `None` if there is no such value.
#[inline]
fn take(
    column: &KeyColumn,
    builder: &mut ColumnBuilder,
    key: &[u8],
    mut at: usize,
) -> Option<usize> {
    if column.nullable {
        match (key.get(at)?, column.nulls) {
            (1, _) => at += 1,
            (0, NullsAt::First) | (2, NullsAt::Last) => {
                if column.is_reversible() {
                    builder.push_null();
                }
                return Some(at + 1);
            }
            _ => return None,
        }
    }
    match column.kind {
        KeyKind::Boolean => {
            let value = (*key.get(at)? != 0) != column.descending;
            builder.push_fixed(&[u8::from(value)]);
            Some(at + 1)
        }
        KeyKind::Number { kind, width } => {
            let part = key.get(at..at + width)?;
            if column.is_reversible() {
                let mut value = [0; 32];
                from_key(kind, column.descending, part, &mut value[..width]);
                builder.push_fixed(&value[..width]);
            }
            Some(at + width)
        }
        KeyKind::FixedBytes { width } => {
            let part = key.get(at..at + width)?;
            if column.descending {
                let turned: Vec<u8> = part.iter().map(|byte| !byte).collect();
                builder.push_fixed(&turned);
            } else {
                builder.push_fixed(part);
            }
            Some(at + width)
        }
        KeyKind::Bytes if column.is_open => {
            let rest = key.get(at..)?;
            builder.push_bytes(rest.iter().copied()).then_some(key.len())
        }
        KeyKind::Bytes => take_bytes(column, builder, key, at),
    }
}

/// The string that begins at `at`, whose end is marked.
fn take_bytes(
    column: &KeyColumn,
    builder: &mut ColumnBuilder,
    key: &[u8],
    at: usize,
) -> Option<usize> {
    let turned = if column.descending { 0xFF } else { 0 };
    let rest = key.get(at..)?;
    let mut end = 0;
    loop {
        end += memchr(turned, rest.get(end..)?)?;
        match *rest.get(end + 1)? ^ turned {
            0x00 => break,
            0xFF => end += 2,
            _ => return None,
        }
    }
    if turned == 0 && !rest[..end].contains(&0) {
        return builder.push_bytes(rest[..end].iter().copied()).then_some(at + end + 2);
    }
    let mut skips = false;
    let value = rest[..end].iter().filter_map(|byte| {
        let byte = byte ^ turned;
        // The FF behind a zero is no part of the string.
        let skipped = skips;
        skips = byte == 0 && !skipped;
        (!skipped).then_some(byte)
    });
    builder.push_bytes(value).then_some(at + end + 2)
}

fn memchr(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|found| *found == byte)
}
