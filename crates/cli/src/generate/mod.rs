//! Test data: a function of its options and nothing else.
//!
//! A [`Generator`] makes any stretch of its records without making those before, so [`write()`]
//! lets every thread make blocks of its own and hands them on in order.
//!
//! ```text
//!   thread 1   make block 0 │ write 0 │ make block 2 │ write 2 │ ...
//!   thread 2   make block 1     wait  │ write 1 │ make block 3 │ ...
//! ```

mod csv;
mod gensort;
mod lines;
mod parallel;
pub mod random;
mod words;

use std::ops::Range;

pub use csv::Csv;
pub use gensort::{Gensort, Kind};
pub use lines::Lines;
pub use parallel::write;

/// A data set whose records can be made in any order.
pub trait Generator: Sync {
    /// Appends the records of these numbers to `out`.
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>);

    /// Bytes of a record, on average and roughly.
    fn record_bytes_mean(&self) -> u64;

    /// What stands before the first record.
    fn header(&self) -> &'static [u8] {
        b""
    }
}
