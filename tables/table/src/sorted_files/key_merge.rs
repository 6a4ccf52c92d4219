//! The keys of all files, merged: what order they have, and where each file is at a row of the merge.

use std::sync::Arc;

use merganser_sort::rows::{RowStream, RowTree, RowsBy};

use super::watched::WatchedRows;
use crate::TableError;
use crate::codec::TableLayout;
use crate::source::{OpenedTableFile, SelectedRows};

/// The keys of one file. The value of a row is the number of the file.
struct FileKeys {
    rows: WatchedRows,
    number: [u8; 4],
}

impl RowStream for FileKeys {
    type Error = TableError;

    #[inline]
    fn advance(&mut self) -> Result<bool, TableError> {
        self.rows.advance()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.rows.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        &self.number
    }
}

/// A merge of keys. It is before its first row until it advances.
pub(super) struct KeyMerge {
    keys: RowTree<FileKeys>,
    /// The number of the row that it is at, and the rows of each file before it.
    row: u64,
    places: Vec<u64>,
    at_row: bool,
}

impl KeyMerge {
    /// Merges `files` from the row `row` on, before which each file has as many rows as `places` says. `layout` has the columns
    /// of the key alone, whose numbers are `columns`.
    pub(super) fn new(
        files: &[OpenedTableFile],
        (layout, columns): (&Arc<TableLayout>, &[usize]),
        (row, places): (u64, &[u64]),
        (batch_bytes, batch_rows): (u64, u64),
    ) -> KeyMerge {
        let keys = |((file, number), place): ((&OpenedTableFile, u32), &u64)| {
            let columns = columns.to_vec();
            let selected = SelectedRows { first_row: *place, columns, batch_bytes, batch_rows };
            let rows = WatchedRows::new(file, layout, &selected);
            FileKeys { rows, number: number.to_le_bytes() }
        };
        let keys = RowTree::new(files.iter().zip(0..).zip(places).map(keys).collect(), RowsBy::Key);
        KeyMerge { keys, row, places: places.to_vec(), at_row: false }
    }

    /// Goes to the next row; whether there is one.
    ///
    /// # Errors
    /// Those of the files, and rows that are not in order.
    pub(super) fn advance(&mut self) -> Result<bool, TableError> {
        if self.at_row {
            let number = self.keys.value().try_into().expect("the number of a file");
            self.places[u32::from_le_bytes(number) as usize] += 1;
            self.row += 1;
        }
        self.at_row = self.keys.advance()?;
        Ok(self.at_row)
    }

    /// The key of its row.
    pub(super) fn key(&self) -> &[u8] {
        self.keys.key()
    }

    /// The number of its row; behind the last one, how many rows there are.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// The rows of each file before its row.
    pub(super) fn places(&self) -> &[u64] {
        &self.places
    }
}
