//! MapReduce on one machine: an SSDlet over inputs of any size, within a memory limit.
//!
//! ```text
//!   inputs ──► chunks of whole records ──► workers ──► combined in memory ──spills──► a view ──► rows
//!              (borders found as McSD's        one per       by key, per worker       of sorted    reduced
//!               integrity check does)          thread                                 runs         when read
//! ```
//!
//! A map's output is a sorted view whose records are reduced when they are read (McSD, section 3.4.4).
//!
//! ```text
//!   source        chunks of whole records            spill     rows of full tables, to a sort
//!   chunk_buffer  the memory of one chunk            work      the workers
//!   shares        how the memory is divided          run       all of it
//!   table         rows of one worker, by key         rows      rows of several streams, merged
//! ```
//!
//! Without a spill, the rows of the workers' tables are merged straight into the result. With one, all
//! rows go through a sort of rows ([`merganser_sort::rows`]), which knows runs, passes and disks, and combines values; its
//! rows go to the sink, or its runs stay a view that is reduced when it is read.
//!
//! The rows and their order do not depend on threads, chunks, partitions and memory. With
//! [`Combine::First`](crate::ssdlet::Combine::First), what a worker hands out when it is closed has no
//! place in the input and comes last.

pub mod admission;
mod chunk_buffer;
pub mod frame;
pub mod matrix;
mod rows;
mod run;
mod shares;
mod source;
mod spill;
pub mod ssdlet;
pub mod table;
mod work;

use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::run::magic::ContentKind;
use merganser_sort::run::packed::Unpacked;
use merganser_storage::{Directory, Storage};

pub use rows::merge;
pub use run::map;
pub use shares::least_memory_bytes;

use crate::ssdlet::SsdletError;

/// Where records come from.
pub enum MapInput {
    /// A file, or a range of it: the records whose first byte is in the range. So ranges that adjoin have
    /// every record once.
    Storage {
        /// The file. It is read in pieces of a chunk, by several threads at once.
        storage: Arc<dyn Storage>,
        /// First byte and the byte after the last; `None` for all of it. Records of CSV and keyed records
        /// have borders that only all bytes before them tell, so a range of these begins at 0.
        range: Option<std::ops::Range<u64>>,
    },
    /// A pipe, or what comes out of a decompressor.
    Stream {
        /// For errors.
        name: String,
        /// The bytes.
        reader: Box<dyn std::io::Read + Send>,
        /// Memory that the reader takes of the map's budget from its first read until it is dropped, in
        /// bytes. One stream is read at a time.
        memory_bytes: u64,
    },
}

impl MapInput {
    /// All of `storage`, decompressed if it is compressed. The decompressor's memory is of `budget`, from
    /// its first read on.
    ///
    /// # Errors
    /// The storage's own; a file that is no `content`.
    pub fn detect(
        storage: Arc<dyn Storage>,
        content: ContentKind,
        budget: &Budget,
    ) -> merganser_sort::Result<MapInput> {
        Ok(match Unpacked::of_storage(&storage, content, budget)? {
            Some(unpacked) => MapInput::of_unpacked(unpacked),
            None => MapInput::Storage { storage, range: None },
        })
    }

    /// The bytes of a pipe, decompressed if they are compressed; see [`Unpacked::of_stream`].
    #[must_use]
    pub fn detect_stream(
        name: String,
        reader: Box<dyn std::io::Read + Send>,
        content: ContentKind,
        budget: &Budget,
    ) -> MapInput {
        MapInput::of_unpacked(Unpacked::of_stream(name, reader, content, budget))
    }

    /// What a compressed file holds.
    #[must_use]
    pub fn of_unpacked(unpacked: Unpacked) -> MapInput {
        let (name, memory_bytes) = (unpacked.name().to_owned(), unpacked.memory_bytes());
        MapInput::Stream { name, reader: Box::new(unpacked), memory_bytes }
    }

    fn name(&self) -> &str {
        match self {
            MapInput::Storage { storage, .. } => storage.name(),
            MapInput::Stream { name, .. } => name,
        }
    }

    /// Memory that it takes while it is read, in bytes.
    fn memory_bytes(&self) -> u64 {
        match self {
            MapInput::Storage { .. } => 0,
            MapInput::Stream { memory_bytes, .. } => *memory_bytes,
        }
    }
}

/// How much input is mapped before the intermediate result is spilled (McSD's partition size).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionSize {
    /// As much as fits into memory.
    #[default]
    Auto,
    /// All of it; too little memory is an error.
    Whole,
    /// This many bytes of input, or less if memory is full before.
    Bytes(u64),
}

/// The settings of a map.
pub struct MapOptions {
    /// All memory that grows with data. The part that is free when the map begins is divided then, so
    /// others should not take from it meanwhile.
    pub budget: Budget,
    /// Workers, at least 1.
    pub threads: usize,
    /// When to spill.
    pub partition: PartitionSize,
    /// Where spills go, unless the result is a view. Without any, too little memory is an error.
    pub temp: Vec<Arc<dyn Directory>>,
}

/// Where the result goes.
pub enum MapOutput<'a> {
    /// A view in an empty folder, to be read under this name; keyed output only.
    View {
        /// The folder; the caller renames it into place.
        folder: Arc<dyn Directory>,
        /// The name that the view bears.
        name: String,
    },
    /// Row by row, reduced, in the order of the result.
    Rows(&'a mut dyn RowSink),
}

/// Takes the rows of a result in order.
pub trait RowSink: Send {
    /// A key and its combined value (with [`Combine::None`](crate::ssdlet::Combine::None), each value of the key in turn). Returns
    /// whether more is wanted.
    ///
    /// # Errors
    /// Its own.
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError>;

    /// The header row of records that come as the values of rows ([`Ssdlet::rows_most`](crate::ssdlet::Ssdlet::rows_most)),
    /// before the first of them.
    ///
    /// # Errors
    /// Its own.
    fn header(&mut self, _row: &[u8]) -> Result<(), SsdletError> {
        Ok(())
    }

    /// Whole records of an ordered output. Returns whether more is wanted.
    ///
    /// # Errors
    /// Its own.
    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError>;
}

/// Counts of a finished map.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct MapReport {
    /// Bytes of the inputs that were mapped.
    pub input_bytes: u64,
    /// Rows of the result; for a view that is reduced when it is read, records before that. 0 for an
    /// ordered output, whose records are not counted.
    pub rows: u64,
    /// Bytes of the keys and values of these rows, or of the ordered output.
    pub output_bytes: u64,
    /// Units of the SSDlet's meter.
    pub metered: u64,
    /// Times that combined records were spilled.
    pub spills: u64,
    /// Records of these spills.
    pub spilled_records: u64,
    /// Sorted runs of spilled records that were written because the memory of their sort was full, or for a view.
    pub spill_runs: u64,
    /// The most of the budget that was reserved at once, in bytes.
    pub memory_peak_bytes: u64,
    /// Bytes of one chunk of input.
    pub chunk_bytes: u64,
    /// Seconds until all input was mapped.
    pub map_seconds: f64,
    /// Seconds after that, for merging, reducing and writing.
    pub result_seconds: f64,
    /// The header row of the inputs, where their format has one.
    #[serde(skip)]
    pub header: Option<Vec<u8>>,
}
