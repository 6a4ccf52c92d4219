//! Keys: byte strings whose order is that of the rows. docs/formats.md has the bytes.
//!
//! ```text
//!   key       ├ column 1 ┼ column 2 ┼ ... ┤
//!   column    ├ mark ┼ value ┤     a mark only where a column can be null: 0 null first, 1 a value, 2 null last
//!   number    its bytes, the highest first, with the sign turned; a float so that all have one order
//!   string    its bytes, 00 as 00 FF, then 00 00; the last column, if it ascends, as it is
//!   descending: all bytes of the value turned over
//! ```
//!
//! Arrow has such an encoding, too, whose bytes may change with each release. A view is read by later versions, so this one
//! is our own, and has a version.

mod decode;
mod encode;
mod number;
mod prefix;

use std::path::Path;
use std::str::FromStr;

use arrow_schema::{DataType, Schema};

use crate::TableError;
use crate::types::{Held, plain_type};
use number::NumberKind;

pub(crate) use decode::KeyDecoder;
pub(crate) use encode::{KeyEncoder, marks};
pub(crate) use prefix::prefix_len;

#[cfg(test)]
mod tests;

/// The version of the encoding of keys and rows, which is in the manifest of a view.
pub(crate) const ENCODING_VERSION: u32 = 1;

/// Where rows go whose key is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NullsAt {
    /// Before all others, in descending order, too.
    #[default]
    First,
    /// Behind all others.
    Last,
}

/// A column to sort by, as it is typed: `NAME[:n][:r][:first|:last]`.
///
/// ```
/// use merganser_tables::{NullsAt, TableKey};
///
/// let key: TableKey = "qty:r:last".parse().expect("a key");
/// assert_eq!((&key.column[..], key.descending, key.nulls), ("qty", true, NullsAt::Last));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableKey {
    /// Name of the column.
    pub column: String,
    /// The greatest first.
    pub descending: bool,
    /// Where nulls go.
    pub nulls: NullsAt,
    /// Whether the column has to be one of numbers: `n`.
    pub numeric: bool,
}

impl TableKey {
    /// Ascending, nulls first.
    #[must_use]
    pub fn ascending(column: &str) -> TableKey {
        let (descending, nulls, numeric) = (false, NullsAt::First, false);
        TableKey { column: column.to_owned(), descending, nulls, numeric }
    }
}

impl FromStr for TableKey {
    type Err = String;

    fn from_str(typed: &str) -> Result<TableKey, String> {
        let mut key = TableKey::ascending(typed);
        // A name may have colons; what follows the last ones are the options.
        while let Some((name, option)) = key.column.rsplit_once(':') {
            match option {
                "n" => key.numeric = true,
                "r" => key.descending = true,
                "nr" | "rn" => (key.numeric, key.descending) = (true, true),
                "first" => key.nulls = NullsAt::First,
                "last" => key.nulls = NullsAt::Last,
                _ => break,
            }
            key.column = name.to_owned();
        }
        if key.column.is_empty() {
            return Err(format!("{typed:?} names no column"));
        }
        Ok(key)
    }
}

/// A column of a key, found in a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyColumn {
    /// Its number in the table.
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) descending: bool,
    pub(crate) nulls: NullsAt,
    pub(crate) nullable: bool,
    /// Its plain type, with offsets.
    pub(crate) plain: DataType,
    pub(crate) kind: KeyKind,
    /// Whether a string of it ends where the key ends.
    pub(crate) is_open: bool,
}

/// How the values of a column are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Boolean,
    Number {
        kind: NumberKind,
        width: usize,
    },
    /// Bytes of one length.
    FixedBytes {
        width: usize,
    },
    Bytes,
}

impl KeyKind {
    /// The order of a plain type; `None` if it has none.
    fn of_type(plain: &DataType) -> Option<KeyKind> {
        let number = |kind| {
            let width = plain.primitive_width()?;
            Some(KeyKind::Number { kind, width })
        };
        match plain {
            DataType::Boolean => Some(KeyKind::Boolean),
            DataType::Utf8 | DataType::Binary | DataType::Utf8View | DataType::BinaryView => {
                Some(KeyKind::Bytes)
            }
            DataType::FixedSizeBinary(width) => {
                Some(KeyKind::FixedBytes { width: usize::try_from(*width).ok()? })
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                number(NumberKind::Unsigned)
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => number(NumberKind::Float),
            DataType::Interval(_) => None,
            _ => number(NumberKind::Signed),
        }
    }
}

impl KeyColumn {
    /// Whether the value can be made from the key: a float's sign of zero and kind of NaN can't.
    pub(crate) fn is_reversible(&self) -> bool {
        !matches!(self.kind, KeyKind::Number { kind: NumberKind::Float, .. })
    }
}

/// Finds the columns of a key in the table of `file`.
///
/// # Errors
/// A column that is not there, has no order, or is named twice.
pub(crate) fn find_keys(
    keys: &[TableKey],
    schema: &Schema,
    nullable: impl Fn(usize) -> bool,
    file: &Path,
) -> Result<Vec<KeyColumn>, TableError> {
    let mut found: Vec<KeyColumn> = Vec::with_capacity(keys.len());
    for key in keys {
        let column = key.column.clone();
        let Some((index, field)) = schema.fields().find(&key.column) else {
            let has = schema.fields().iter().map(|field| field.name().clone()).collect();
            return Err(TableError::NoColumn { file: file.to_owned(), column, has });
        };
        let plain = plain_type(field.data_type(), Held::AsOffsets);
        let kind = KeyKind::of_type(&plain);
        let kind = kind.filter(|kind| !key.numeric || !matches!(kind, KeyKind::Bytes));
        let Some(kind) = kind else {
            let data_type = field.data_type().clone();
            let file = file.to_owned();
            return Err(if KeyKind::of_type(&plain).is_some() {
                TableError::NotANumber { file, column, data_type }
            } else {
                TableError::NoOrder { file, column, data_type }
            });
        };
        if found.iter().any(|other| other.index == index) {
            return Err(TableError::TwiceAKey { file: file.to_owned(), column });
        }
        found.push(KeyColumn {
            index,
            name: column,
            descending: key.descending,
            nulls: key.nulls,
            nullable: field.is_nullable() && nullable(index),
            plain,
            kind,
            is_open: false,
        });
    }
    if let Some(last) = found.last_mut() {
        last.is_open = last.kind == KeyKind::Bytes && !last.descending;
    }
    Ok(found)
}
