//! The settings of a sort, and its report.

use std::io::Write;
use std::sync::Arc;

use merganser_storage::{Directory, Storage};

use crate::Budget;
use crate::key::OrderSpec;
use crate::run::Compression;

/// How blocks of runs are to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressionChoice {
    /// As said.
    Fixed(Compression),
    /// LZ4 when a sample of the data shrinks to two thirds, as it is otherwise.
    #[default]
    Auto,
}

/// How a sort works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The strategy that is likely to be faster.
    #[default]
    Auto,
    /// Sorted runs, merged.
    Merge,
    /// Buckets by key range, each sorted when it is wanted.
    Distribute {
        /// Trust that the leading bits of keys are uniform, and take no sample.
        uniform: bool,
    },
}

/// The settings of a sort, in addition to its inputs and its output.
#[derive(Clone)]
pub struct SortOptions {
    /// Format and order of the records; whether duplicates are removed.
    pub order: OrderSpec,
    /// All memory that grows with data.
    pub budget: Budget,
    /// Threads that sort and merge. With 0 the caller's thread is alone: it reads, sorts, merges and
    /// writes, and nothing overlaps, as a modelled clock wants it. (A distribution has threads of its
    /// own all the same.)
    pub threads: usize,
    /// Where temporary runs go, each on all of them. A view's runs go to the view.
    pub temp: Vec<Arc<dyn Directory>>,
    /// The most that all temporary runs together may take, in bytes.
    pub temp_limit_bytes: Option<u64>,
    /// How blocks of runs are stored.
    pub compression: CompressionChoice,
    /// Only this many records, from the front, are wanted.
    pub top: Option<u64>,
    /// Runs and a merge, or buckets.
    pub strategy: Strategy,
}

/// Counts and times of a finished sort.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct SortReport {
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Records written to the output, or held by the view.
    pub records: u64,
    /// Bytes of the output, or of the view as its readers see it.
    pub output_bytes: u64,
    /// Runs that were formed.
    pub runs: u64,
    /// Buckets that records were split into; 0 when runs were merged.
    pub buckets: u64,
    /// Buckets that did not fit into memory and were split again.
    pub buckets_split_again: u64,
    /// Bytes written to runs, by intermediate merges too.
    pub run_bytes: u64,
    /// Merge passes before the last.
    pub extra_passes: u64,
    /// The most of the budget that was reserved at once, in bytes.
    pub memory_peak_bytes: u64,
    /// Bytes of input in one chunk.
    pub chunk_bytes: u64,
    /// Logical bytes per block.
    pub block_bytes: u64,
    /// How blocks were stored.
    pub compression: Compression,
    /// Seconds until all runs were formed.
    pub form_seconds: f64,
    /// Seconds after that.
    pub merge_seconds: f64,
}

/// Where the ordered bytes of [`sort`](super::sort) go.
pub enum SortOutput<'a> {
    /// A new view in an empty folder, to be read under this name.
    View {
        /// The folder; the caller renames it into place.
        folder: Arc<dyn Directory>,
        /// The name that the view bears when it is mounted.
        name: String,
    },
    /// An empty storage.
    Storage(Arc<dyn Storage>),
    /// A stream.
    Writer(&'a mut (dyn Write + Send)),
}
