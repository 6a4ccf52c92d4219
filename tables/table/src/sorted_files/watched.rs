//! The rows of a file that must not change while they are read.

use std::sync::Arc;

use merganser_sort::rows::RowStream;

use crate::TableError;
use crate::codec::TableLayout;
use crate::merge::FileRows;
use crate::source::{OpenedFile, OpenedTableFile, SelectedRows};

/// The rows of a file, in order. After each batch, and after an error, the file is looked at: rows of a changed file are not
/// handed out.
pub(super) struct WatchedRows {
    rows: FileRows,
    opened: OpenedFile,
}

impl WatchedRows {
    /// Rows of `file` with the columns of `layout`.
    pub(super) fn new(
        file: &OpenedTableFile,
        layout: &Arc<TableLayout>,
        selected: &SelectedRows,
    ) -> WatchedRows {
        let rows = FileRows::new(&file.file, file.reader(selected), layout, selected.first_row);
        WatchedRows { rows, opened: file.parquet.file.clone() }
    }
}

impl RowStream for WatchedRows {
    type Error = TableError;

    #[inline]
    fn advance(&mut self) -> Result<bool, TableError> {
        let advanced = self.rows.advance();
        match advanced {
            Ok(true) if !self.rows.is_first_of_batch() => Ok(true),
            // What a change makes of the bytes may look like damage or disorder.
            advanced if self.opened.is_as_opened()? => advanced,
            _ => Err(TableError::ChangedWhileRead { file: self.opened.path().to_owned() }),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.rows.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.rows.value()
    }
}
