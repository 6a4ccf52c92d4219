//! The rows of a view that has runs.

use std::ops::Range;

use merganser_sort::Budget;
use merganser_sort::rows::RecordCutter;
use merganser_sort::view::{View, ViewStream};
use merganser_storage::Storage;

use crate::TableError;
use crate::table_rows::{KeyAndValue, TableRows};

/// Rows that are records of runs.
pub(super) struct RunRows {
    pub(super) view: View,
    pub(super) budget: Budget,
}

impl RunRows {
    /// How many rows there are.
    pub(super) fn count(&self) -> u64 {
        self.view.records()
    }

    /// The number of the first row whose key is not before `key`.
    pub(super) fn row_of_key(&self, key: &[u8]) -> Result<u64, TableError> {
        let place = self.view.offset_of_key(key)?;
        // Rows begin at growing offsets.
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.view.offset_of_record(middle)? < place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// These rows, with all columns.
    pub(super) fn read(&self, rows: Range<u64>) -> Result<ViewRows<'_>, TableError> {
        let place = |row: u64| match row {
            0 => Ok(0),
            row if row >= self.count() => Ok(self.view.size()),
            row => self.view.offset_of_record(row),
        };
        let bytes = place(rows.start)?..place(rows.end)?;
        Ok(ViewRows {
            stream: self.view.stream(bytes)?,
            records: RecordCutter::new(&self.budget)?,
            used: 0,
            row: Vec::new(),
        })
    }
}

/// Rows of a view.
pub(super) struct ViewRows<'a> {
    stream: ViewStream<'a>,
    records: RecordCutter,
    /// The bytes that the stream gave last and that are used.
    used: usize,
    row: Vec<u8>,
}

impl TableRows for ViewRows<'_> {
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        loop {
            let all = self.stream.last_bytes();
            let mut rest = &all[self.used..];
            let found = self.records.next(&mut rest)?;
            let used = all.len() - rest.len();
            if let Some(record) = found {
                self.row.clear();
                self.row.extend_from_slice(record);
                self.used = used;
                break;
            }
            self.used = 0;
            if self.stream.next_bytes()?.is_none() {
                return if self.records.is_inside_a_record() {
                    Err(TableError::DamagedRow)
                } else {
                    Ok(None)
                };
            }
        }
        let (lengths, rest) = self.row.split_first_chunk::<8>().ok_or(TableError::DamagedRow)?;
        let key = u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
        rest.split_at_checked(key).map(Some).ok_or(TableError::DamagedRow)
    }
}
