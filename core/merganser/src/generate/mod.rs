//! Writes test data with several threads. The data makers are in the crate `merganser-generate`.
//!
//! ```text
//!   thread 1   make block 0 │ write 0 │ make block 2 │ write 2 │ ...
//!   thread 2   make block 1     wait  │ write 1 │ make block 3 │ ...
//! ```

mod parallel;

pub(crate) use merganser_generate::{
    Csv, Fasta, Generator, Gensort, GensortKind, RandomLines, SequenceAlphabet,
};
pub(crate) use parallel::write;
