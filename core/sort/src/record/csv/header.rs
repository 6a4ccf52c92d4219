//! Columns by name or number, in the header row of csv.

use thiserror::Error;

use super::{BYTE_ORDER_MARK, CsvFields, CsvFraming};
use crate::record::Format;

/// The names of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvHeader {
    names: Vec<Vec<u8>>,
}

/// Why no column is meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// Columns are counted from 1.
    #[error("columns are counted from 1")]
    Zero,
    /// A column has a name, but there is no header.
    #[error("a column is a number from 1 where there is no header")]
    NoHeader,
    /// No column has this name.
    #[error("there is no column '{name}'; {columns}")]
    Unknown {
        /// The name.
        name: String,
        /// The columns that there are, as part of a sentence.
        columns: String,
    },
    /// There should be a header, but there are no rows.
    #[error("there is no column '{name}', because the input is empty and has no header row")]
    NoRows {
        /// The name.
        name: String,
    },
    /// Several columns have this name.
    #[error("{count} columns are called '{name}'; {}", instead_of(name))]
    Ambiguous {
        /// The name.
        name: String,
        /// How many.
        count: usize,
    },
    /// There are fewer columns.
    #[error("there is no column {number}; {columns}")]
    Beyond {
        /// The number, from 1.
        number: usize,
        /// The columns that there are, as part of a sentence.
        columns: String,
    },
}

/// The first difference between two headers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderDifference {
    /// The numbers of columns differ.
    #[error("its header has {}, and that of the first input has {expected}", columns(*.found))]
    Count {
        /// Columns of the first input.
        expected: usize,
        /// Columns of this one.
        found: usize,
    },
    /// A column has another name.
    #[error("its column {number} is called '{found}', and '{expected}' in the first input")]
    Name {
        /// Number of the column, from 1.
        number: usize,
        /// Its name in the first input.
        expected: String,
        /// Its name in this one.
        found: String,
    },
}

/// Names are listed up to about this many bytes: a list of thousands helps no reader.
const LIST_BYTES_MOST: usize = 400;
/// A longer name is cut in a list.
const NAME_BYTES_MOST: usize = 100;

impl CsvHeader {
    /// The names in a header row, whatever their quotes, the line end, and a byte order mark before them.
    #[must_use]
    pub fn of_row(row: &[u8], framing: CsvFraming) -> Self {
        let row = row.strip_prefix(BYTE_ORDER_MARK).unwrap_or(row);
        let names = CsvFields::of_row(row, framing).map(|field| field.value().into_owned());
        CsvHeader { names: names.collect() }
    }

    /// How many columns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no columns: never, because an empty row has one empty name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Number, from 0, of the only column with this name.
    ///
    /// # Errors
    /// When no column has it, or several have.
    fn find(&self, name: &str) -> Result<usize, ColumnError> {
        let mut found = (0..self.len()).filter(|at| self.names[*at] == name.as_bytes());
        let Some(first) = found.next() else {
            return Err(ColumnError::Unknown { name: name.to_owned(), columns: self.list() });
        };
        match found.count() {
            0 => Ok(first),
            others => Err(ColumnError::Ambiguous { name: name.to_owned(), count: others + 1 }),
        }
    }

    /// Number, from 0, of the column with this name; if none has it, of the column with this number from 1.
    ///
    /// # Errors
    /// When there is no such column, or several have the name.
    pub fn column(&self, name_or_number: &str) -> Result<usize, ColumnError> {
        match (self.find(name_or_number), name_or_number.parse()) {
            (Err(ColumnError::Unknown { .. }), Ok(number)) => self.number(number),
            (found, _) => found,
        }
    }

    /// Number, from 0, of the first column with this name.
    pub(crate) fn first(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name.as_bytes())
    }

    /// Number, from 0, of the column with this number from 1.
    ///
    /// # Errors
    /// When there is no such column.
    fn number(&self, number: usize) -> Result<usize, ColumnError> {
        match number {
            0 => Err(ColumnError::Zero),
            number if number > self.len() => {
                Err(ColumnError::Beyond { number, columns: self.list() })
            }
            number => Ok(number - 1),
        }
    }

    /// Where the header in `preamble` differs from that in `first`, which come before the rows of two inputs.
    /// Quotes, the line end and a byte order mark make no difference.
    #[must_use]
    pub fn difference_of(
        format: Format,
        first: &[u8],
        preamble: &[u8],
    ) -> Option<HeaderDifference> {
        let framing = format.csv().filter(|_| format.has_header() && first != preamble)?;
        CsvHeader::of_row(preamble, framing).difference(&CsvHeader::of_row(first, framing))
    }

    fn difference(&self, first: &CsvHeader) -> Option<HeaderDifference> {
        if self.len() != first.len() {
            return Some(HeaderDifference::Count { expected: first.len(), found: self.len() });
        }
        let at = self.names.iter().zip(&first.names).position(|(own, other)| own != other)?;
        Some(HeaderDifference::Name {
            number: at + 1,
            expected: shown(&first.names[at]),
            found: shown(&self.names[at]),
        })
    }

    /// The columns as part of a sentence.
    fn list(&self) -> String {
        let mut list = match self.len() {
            1 => "the only one is ".to_owned(),
            count => format!("there are {count}: "),
        };
        for (at, name) in self.names.iter().enumerate() {
            if list.len() > LIST_BYTES_MOST {
                return list + ", ...";
            }
            list += if at > 0 { ", " } else { "" };
            list += &shown(name);
        }
        list
    }
}

/// The advice where several columns are called `name`.
fn instead_of(name: &str) -> &'static str {
    match name.parse::<usize>() {
        Ok(_) => "rename them, because a name counts before a number",
        Err(_) => "give a number",
    }
}

fn shown(name: &[u8]) -> String {
    match name.len() {
        0 => "''".to_owned(),
        1..=NAME_BYTES_MOST => String::from_utf8_lossy(name).into_owned(),
        _ => String::from_utf8_lossy(&name[..NAME_BYTES_MOST]).into_owned() + "...",
    }
}

fn columns(count: usize) -> String {
    if count == 1 { "1 column".to_owned() } else { format!("{count} columns") }
}
