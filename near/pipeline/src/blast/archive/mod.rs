//! BLAST's archives (`-outfmt 11`, ASN.1 as text), merged.
//!
//! ```text
//!   Blast4-archive ::= {                              one archive per batch of queries, one after the other
//!     request { ... local str "Query_1" ... }         head: the queries and the options
//!     results {
//!       alignments {
//!         { score, e_value ...  ids: the query, and the subject's number in the database: tag id N }
//!         ...                                         by query, then by subject, the best first
//!       },
//!       masks, ka-blocks, search-stats ...            tail
//! ```
//!
//! All partitions have the same batches, because their size is fixed. A batch's head and tail are the same in all
//! partitions, because each counts as the whole database. The alignments of a query are merged in BLAST's own order.
//! Memory holds one subject of each partition, whatever the archives' size.

mod merge;
mod read;

pub use merge::{Merged, PartitionArchives, merge};

use std::io;

/// The errors of a merge.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Bytes that no archive has.
    #[error("archive {part}, line {line}: {detail}")]
    Unknown {
        /// The archive, from 0.
        part: usize,
        /// The line, from 1.
        line: u64,
        /// The fault.
        detail: &'static str,
    },
}
