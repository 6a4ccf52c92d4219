//! The settings of a sort, and its report.

use std::io::Write;
use std::num::NonZero;
use std::sync::Arc;

use merganser_storage::{Directory, Storage};

use crate::Budget;
use crate::key::OrderSpec;
use crate::run::Compression;
use crate::temp::system_temp;

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
///
/// [`SortOptions::new`] takes the order, and all else has a default. Each field has a method of its name that sets it.
///
/// ```
/// use merganser_sort::key::OrderSpec;
/// use merganser_sort::record::Format;
/// use merganser_sort::{SortOptions, Strategy};
///
/// let order = OrderSpec::new(Format::Fixed { bytes: 100 }).key("0:10");
/// let options = SortOptions::new(order).memory(256 << 20).threads(2).strategy(Strategy::Merge);
/// assert_eq!(options.budget.limit_bytes(), 256 << 20);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SortOptions {
    /// Format and order of the records; whether duplicates are removed.
    pub order: OrderSpec,
    /// All memory that grows with data. By default [`DEFAULT_MEMORY_BYTES`](crate::budget::DEFAULT_MEMORY_BYTES).
    pub budget: Budget,
    /// Threads that sort and merge; by default as many as the machine runs at once. With 0 the caller's thread is alone:
    /// it reads, sorts, merges and writes, and nothing overlaps, as a modelled clock wants it. (A distribution has
    /// threads of its own all the same.)
    pub threads: usize,
    /// Where temporary runs go, each on all of them; by default the system's folder for temporary files
    /// ([`system_temp`]). A view's runs go to the view. Without a folder, a sort that doesn't fit into the memory
    /// fails with [`Error::NoTemp`](crate::Error::NoTemp).
    pub temp: Vec<Arc<dyn Directory>>,
    /// The most that all temporary runs together may take, in bytes. By default there is no limit.
    pub temp_limit_bytes: Option<u64>,
    /// How blocks of runs are stored.
    pub compression: CompressionChoice,
    /// Only this many records, from the front, are wanted. By default all are.
    pub top: Option<u64>,
    /// Runs and a merge, or buckets.
    pub strategy: Strategy,
}

impl SortOptions {
    /// A sort into this order, with the defaults of all other fields.
    #[must_use]
    pub fn new(order: OrderSpec) -> Self {
        SortOptions {
            order,
            budget: Budget::default(),
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            temp: vec![system_temp()],
            temp_limit_bytes: None,
            compression: CompressionChoice::Auto,
            top: None,
            strategy: Strategy::Auto,
        }
    }

    /// Sets [`SortOptions::budget`] to a new one of `bytes`, which no other work shares. A memory that is too small is
    /// an [`Error::Memory`](crate::Error::Memory) of the sort, which names the least that works.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        self.budget(&Budget::new(bytes))
    }

    /// Sets [`SortOptions::budget`], which other sorts and open views may share.
    #[must_use]
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budget = budget.clone();
        self
    }

    /// Sets [`SortOptions::threads`].
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count;
        self
    }

    /// Sets [`SortOptions::temp`].
    #[must_use]
    pub fn temp(mut self, folders: Vec<Arc<dyn Directory>>) -> Self {
        self.temp = folders;
        self
    }

    /// Sets [`SortOptions::temp_limit_bytes`]; `None` is no limit.
    #[must_use]
    pub fn temp_limit_bytes(mut self, bytes: Option<u64>) -> Self {
        self.temp_limit_bytes = bytes;
        self
    }

    /// Sets [`SortOptions::compression`].
    #[must_use]
    pub fn compression(mut self, choice: CompressionChoice) -> Self {
        self.compression = choice;
        self
    }

    /// Sets [`SortOptions::top`]; `None` is all records.
    #[must_use]
    pub fn top(mut self, records: Option<u64>) -> Self {
        self.top = records;
        self
    }

    /// Sets [`SortOptions::strategy`].
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }
}

impl Default for SortOptions {
    /// Lines, in the order of their bytes.
    fn default() -> Self {
        SortOptions::new(OrderSpec::default())
    }
}

/// Counts and times of a finished sort.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
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
