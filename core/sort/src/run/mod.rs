//! Runs: immutable files of records in order, written once.
//!
//! ```text
//!   format       the bytes of a run file: header, blocks, index, footer   (docs/formats.md)
//!   piece        a piece of a run while it is filled, and its part of the index
//!   writer       writes pieces, then the index and footer, and syncs
//!   write_behind writes in flight, with a buffer each
//!   builder      a run from records that come in order
//!   index        the index in memory, which writer and reader share
//!   reader       an open run: its fences in memory, verified block reads
//!   release      gives the space of runs back behind a merge
//!   input        where records come from
//!   header_lines the lines before the records, by how they begin
//!   magic        what a file is, by its first bytes
//!   packed       inputs that are compressed
//!   unpack_ahead several of them decompressed at once
//!   chunk        memory full of whole records
//!   chunk_reader reads inputs into chunks that begin and end at record boundaries
//!   record_reader the records of inputs, for programs that do not sort them
//!   form         chunk -> sorted tags -> records gathered into pieces
//!   extract      the tags of a chunk's records
//!   chunk_view   the records of a chunk, as their tags point to them
//!   gather       records in the order of their tags
//!   long         the lengths of records that are too long for a tag
//!   tag          a word of a record's key, the record's place and length
//!   word         the bits of a key that go into eight bytes
//!   radix        sorts tags by all their bits
//!   short_sort   the last pass of that sort, within the first-level cache
//!   ties         orders tags whose prefixes are equal
//!   buffer_sort  a buffer of fixed-length records, sorted in place or into a second one
//!   permute      moves the records of a buffer to their places by following cycles
//! ```

#[doc(hidden)]
pub mod buffer_sort;
#[doc(hidden)]
pub mod builder;
pub(crate) mod chunk;
pub(crate) mod chunk_reader;
pub(crate) mod chunk_view;
pub(crate) mod extract;
pub(crate) mod form;
#[doc(hidden)]
pub mod format;
pub(crate) mod gather;
pub(crate) mod header_lines;
pub(crate) mod index;
pub(crate) mod input;
pub(crate) mod long;
pub mod magic;
#[doc(hidden)]
pub mod packed;
#[doc(hidden)]
pub mod permute;
pub(crate) mod piece;
#[doc(hidden)]
pub mod radix;
#[doc(hidden)]
pub mod reader;
mod record_reader;
pub(crate) mod release;
mod short_sort;
#[doc(hidden)]
pub mod tag;
pub(crate) mod ties;
pub(crate) mod unpack_ahead;
pub(crate) mod word;
pub(crate) mod write_behind;
#[doc(hidden)]
pub mod writer;

#[doc(hidden)]
pub use builder::RunBuilder;
pub use format::Compression;
pub use input::SortInput;
#[doc(hidden)]
pub use reader::Run;
#[doc(hidden)]
pub use record_reader::RecordReader;
#[doc(hidden)]
pub use writer::RunWriter;
