//! Merging files whose rows are in order already.

use std::sync::Arc;

use merganser_sort::rows::{RowStream, RowTree, RowsBy};

use crate::TableError;
use crate::codec::{BatchEncoder, TableLayout};
use crate::source::{TableFile, TableReader, null_in};
use crate::table::Table;
use crate::table_rows::{KeyAndValue, TableRows};

/// The rows of one file, which must be in order.
pub(crate) struct FileRows {
    file: TableFile,
    reader: TableReader,
    encoder: BatchEncoder,
    /// The row of the batch, and how many rows the batch has.
    at: usize,
    count: usize,
    order: FileOrder,
}

impl FileRows {
    /// The rows that `reader` hands out; the first of them has the number `first_row` in the file.
    pub(crate) fn new(
        file: &TableFile,
        reader: TableReader,
        layout: &Arc<TableLayout>,
        first_row: u64,
    ) -> FileRows {
        let encoder = BatchEncoder::new(layout);
        let order = FileOrder { rows: first_row, ..FileOrder::default() };
        FileRows { file: file.clone(), reader, encoder, at: 0, count: 0, order }
    }

    /// Whether it is at the first row of a batch.
    #[inline]
    pub(crate) fn is_first_of_batch(&self) -> bool {
        self.at == 0
    }
}

impl RowStream for FileRows {
    type Error = TableError;

    fn advance(&mut self) -> Result<bool, TableError> {
        if self.at + 1 < self.count {
            self.at += 1;
            return Ok(true);
        }
        (self.at, self.count) = (0, 0);
        while let Some((_, batch)) = self.reader.next()? {
            let count = batch.num_rows();
            self.encoder.encode(&batch).map_err(|_| null_in(&self.file))?;
            self.order.next(&self.encoder, count, &self.file)?;
            if count > 0 {
                self.count = count;
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.encoder.row(self.at).0
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.encoder.row(self.at).1
    }
}

/// The rows of all files, merged. Nothing is written on the way.
pub(crate) struct MergedRows {
    rows: RowTree<FileRows>,
    count: u64,
}

impl MergedRows {
    /// Rows that were handed out.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

impl TableRows for MergedRows {
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        if !self.rows.advance()? {
            return Ok(None);
        }
        self.count += 1;
        Ok(Some((self.rows.key(), self.rows.value())))
    }
}

/// Checks the order of a file, batch by batch.
#[derive(Default)]
pub(crate) struct FileOrder {
    /// The last key, and the rows that there are up to it.
    last: Option<Vec<u8>>,
    rows: u64,
}

impl FileOrder {
    /// Checks the rows of the next batch of `file`, which has `count` rows.
    pub(crate) fn next(
        &mut self,
        encoder: &BatchEncoder,
        count: usize,
        file: &TableFile,
    ) -> Result<(), TableError> {
        for row in 0..count {
            let before = match row {
                0 => self.last.as_deref(),
                _ => Some(encoder.row(row - 1).0),
            };
            if before.is_some_and(|before| before > encoder.row(row).0) {
                let row = self.rows + row as u64 + 1;
                return Err(TableError::Disorder { file: file.path.to_path_buf(), row });
            }
        }
        if count > 0 {
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(encoder.row(count - 1).0);
            self.rows += count as u64;
        }
        Ok(())
    }
}

/// Opens all files of a table. Each is in the order of the layout, and has `ahead_bytes` for pieces that it reads ahead.
pub(crate) fn merged_rows(
    table: &Table,
    layout: &Arc<TableLayout>,
    ahead_bytes: u64,
) -> Result<MergedRows, TableError> {
    let open = |file: &TableFile| {
        let reader = TableReader::open(file, 0..file.parts.len(), ahead_bytes)?;
        Ok(FileRows::new(file, reader, layout, 0))
    };
    let files = table.source.files.iter().map(open).collect::<Result<Vec<_>, TableError>>()?;
    Ok(MergedRows { rows: RowTree::new(files, RowsBy::Key), count: 0 })
}
