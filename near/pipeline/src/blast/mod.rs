//! BLAST over a database in partitions, with the result of BLAST over all of it.
//!
//! BLAST is run over each partition with the counts of the whole database ([`alias`]), so that every e-value is that of
//! the whole search. The results are archives, which have fifteen digits where tables have three; they are merged into
//! one archive ([`archive`]), which is byte-equal to that of a search in one piece, and BLAST's own formatter prints it.
//!
//! The parts that archives lack are taken from a search of a database of one sequence, which counts as the whole database
//! ([`frame`]).
//!
//! [`options`] knows which of BLAST's options give equal results over partitions: options that compare hits of different
//! subjects don't.

pub mod alias;
pub mod archive;
pub mod count;
pub mod error;
pub mod format;
pub mod frame;
pub mod limit;
pub mod mark;
pub mod options;
pub mod program;
