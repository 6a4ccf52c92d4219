//! Test data: a function of its options and of nothing else.
//!
//! A [`Generator`] makes any range of its records without making the records before them. The
//! command `generate` uses this to let each thread make blocks of its own; an experiment makes the
//! records that it needs in memory.
//!
//! ```
//! use merganser_generate::{Generator, Gensort, Kind};
//!
//! let data = Gensort::new(Kind::Binary, Gensort::RECORD_BYTES, false, 0);
//! let mut records = Vec::new();
//! data.records(5..8, &mut records);
//! assert_eq!(records.len(), 300);
//! ```

mod csv;
mod gensort;
mod lines;
pub mod random;
mod words;

use std::ops::Range;

pub use csv::Csv;
pub use gensort::{Gensort, Kind};
pub use lines::Lines;

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
