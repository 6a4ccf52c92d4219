//! Runs: immutable files of records in order, written once.
//!
//! ```text
//!   format  the bytes of a run file: header, blocks, index, footer   (docs/formats.md)
//!   writer  places finished blocks, then the index and footer, and syncs
//!   reader  an open run: its fences in memory, verified block reads
//!   release  gives the space of runs back behind a merge
//!   word    what of a key goes into eight bytes
//!   tag     (key word, place, length) of a record, and the sort that moves only these
//!   short_sort   the last pass of that sort, within the first-level cache
//!   input   reads inputs into chunks that begin and end at record boundaries
//!   form    chunk -> sorted tags -> records gathered into blocks
//!   buffer_sort  a buffer of fixed-length records, sorted where it lies or into a second one
//!   permute      moves the records of a buffer to their places by following cycles
//! ```

pub mod buffer_sort;
pub(crate) mod form;
pub mod format;
pub(crate) mod input;
pub mod permute;
pub mod reader;
pub(crate) mod release;
mod short_sort;
pub mod tag;
pub(crate) mod word;
pub mod writer;

pub use format::Compression;
pub use input::Input;
pub use reader::Run;
pub use writer::RunWriter;
