//! All rows by value, the largest first: a second sort, behind the map.
//!
//! ```text
//!   map ──rows by key──► rank, value ──► sort of rows (ranks are the keys) ──► rows
//! ```
//!
//! Map and sort work at the same time, so each has half of the memory.

use std::io::Write;
use std::sync::Arc;

use merganser_map::RowSink;
use merganser_map::ssdlet::{SsdletError, Type};
use merganser_shell::failure::Failure;
use merganser_shell::rows::RowWriter;
use merganser_sort::rows::{KeepAll, RowSorter, RowsBy};
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Directory;

use super::rank;
use super::split::MemorySplit;

/// Rows between two looks at whether the user has ended it.
const CHECK_ROWS: u64 = 4096;

/// How the rows are sorted.
pub(super) struct ByValue {
    /// The type of values.
    pub of: Type,
    /// The memory of the sort.
    pub budget: Budget,
    /// The split of all memory that gave it.
    pub split: MemorySplit,
    /// Its threads, at most.
    pub threads: usize,
    /// Its temporary folders.
    pub temp: Vec<Arc<dyn Directory>>,
}

impl ByValue {
    /// Runs `map`, whose rows it sorts and writes.
    ///
    /// # Errors
    /// Those of `map`; those of the sort and of `rows`.
    pub(super) fn run<W: Write + Send, T>(
        self,
        rows: &mut RowWriter<W>,
        progress: &dyn Progress,
        map: impl FnOnce(&mut dyn RowSink) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let split = self.split;
        let of_chosen = |error| Failure::from(split.of_chosen(error));
        let sorter = RowSorter::new(RowsBy::Key, &self.budget, KeepAll);
        let sorter = sorter.temp(self.temp).threads(self.threads);
        let mut ranked = RankedRows { of: self.of, rank: Vec::new(), sorter, split };
        let mapped = map(&mut ranked)?;
        let sorted = ranked.sorter.finish_with(&QuietProgress(progress));
        let mut sorted = sorted.map_err(of_chosen)?;
        let mut count = 0_u64;
        while let Some((rank, value)) = sorted.next().map_err(of_chosen)? {
            let written = rows.row(rank::key_of_rank(self.of, rank), value);
            written.map_err(|error| Failure::named(&error))?;
            count += 1;
            if count.is_multiple_of(CHECK_ROWS) && progress.cancelled() {
                return Err(of_chosen(Error::Cancelled));
            }
        }
        rows.flush().map_err(|error| Failure::named(&error))?;
        Ok(mapped)
    }
}

/// The map has the bar; both end with a cancel.
struct QuietProgress<'a>(&'a dyn Progress);

impl Progress for QuietProgress<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// Takes the rows of the map.
struct RankedRows {
    of: Type,
    rank: Vec<u8>,
    sorter: RowSorter<KeepAll>,
    split: MemorySplit,
}

impl RowSink for RankedRows {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.rank.clear();
        rank::rank(self.of, key, value, &mut self.rank);
        match self.sorter.push(&self.rank, value) {
            Ok(()) => Ok(true),
            Err(Error::Memory { least_bytes, .. }) => {
                let bytes = self.rank.len() + value.len();
                let least = self.split.least_with_chosen(least_bytes);
                Err(SsdletError::Failed(format!(
                    "--order value: a row takes {bytes} bytes; with --memory {least} or more there is room for it"
                )))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        debug_assert!(records.is_empty(), "an SSDlet has one kind of output");
        Ok(true)
    }
}
