//! Byte strings of many rows, written column by column.
//!
//! ```text
//!   lengths     one for each row, added up by each column
//!   bytes       ├ row 0 ─────┼ row 1 ──┼ row 2 ───────┤
//!   ends                     ▲         ▲              ▲
//!   cursors     └ where the next column of each row is written
//! ```

/// Byte strings, one for each row of a batch. Their memory is used again for the next batch.
#[derive(Default)]
pub(crate) struct Cells {
    pub(crate) bytes: Vec<u8>,
    /// Where the next column of each row goes; after the last column, where each row ends.
    pub(crate) cursors: Vec<usize>,
}

impl Cells {
    /// Begins a batch whose rows will be as long as these say.
    pub(crate) fn begin(&mut self, lengths: &[usize]) {
        self.cursors.clear();
        let mut end = 0;
        self.cursors.extend(lengths.iter().map(|length| {
            let start = end;
            end += length;
            start
        }));
        // Every byte is written by a column. Old bytes are not cleared.
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
    }

    /// The bytes of row `row`, when all columns are written.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.cursors[row - 1] };
        &self.bytes[start..self.cursors[row]]
    }
}
