//! The trait of all data sets.

use std::ops::Range;

/// A data set whose records can be made in any order.
pub trait Generator: Sync {
    /// Appends the records with these numbers to `out`.
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>);

    /// The average number of bytes per record, roughly.
    fn record_bytes_mean(&self) -> u64;

    /// The bytes before the first record.
    fn header(&self) -> &'static [u8] {
        b""
    }
}
