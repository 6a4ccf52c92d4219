//! Rows of a table as they come from a sort, a view or a merge.

use merganser_sort::rows::{Combiner, Rows};

use crate::TableError;

/// The key and the value of a row.
pub(crate) type KeyAndValue<'a> = (&'a [u8], &'a [u8]);

/// Rows in order: keys and values, as [`crate::key`] and [`crate::row`] make them.
pub(crate) trait TableRows {
    /// The next row, which is lent until the next one is asked for.
    ///
    /// # Errors
    /// Those of what the rows are read from.
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError>;
}

impl<C: Combiner> TableRows for Rows<C>
where
    TableError: From<C::Error>,
{
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        Ok(Rows::next(self)?)
    }
}

impl<R: TableRows + ?Sized> TableRows for &mut R {
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        (**self).next()
    }
}

/// The first rows of others.
pub(crate) struct FirstRows<R> {
    pub(crate) rows: R,
    pub(crate) left: u64,
}

impl<R: TableRows> TableRows for FirstRows<R> {
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.rows.next()
    }
}

/// Rows one behind the other in memory.
#[derive(Default)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Piece {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(crate) fn rows(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(usize, usize)>()
    }

    /// Keys and values of rows in turn.
    pub(crate) fn keys_and_values(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(key, value)| {
            let row = (&self.bytes[start..*key], &self.bytes[*key..*value]);
            start = *value;
            row
        })
    }
}
