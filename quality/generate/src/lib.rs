//! Test data: a function of its options and of nothing else.
//!
//! A [`Generator`] makes any range of its records without making the records before them. The
//! command `generate` uses this to let each thread make blocks of its own; an experiment makes the
//! records that it needs in memory.
//!
//! ```
//! use merganser_generate::{Generator, Gensort, GensortKind};
//!
//! let data = Gensort::new(GensortKind::Binary, Gensort::RECORD_BYTES, false, 0);
//! let mut records = Vec::new();
//! data.records(5..8, &mut records);
//! assert_eq!(records.len(), 300);
//! ```

mod csv;
mod fasta;
mod generator;
mod gensort;
mod lcg;
mod lines;
mod words;

pub use csv::Csv;
pub use fasta::{Fasta, FastaTruth, SequenceAlphabet, SequenceOrigin};
pub use generator::Generator;
pub use gensort::{Gensort, GensortKind};
pub use lines::RandomLines;
