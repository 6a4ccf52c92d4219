//! MapReduce on one machine: an SSDlet over inputs of any size, within a memory limit.
//!
//! ```text
//!   inputs ──► chunks of whole records ──► workers ──► combined in memory ──spills──► a view ──► rows
//!              (borders found as McSD's        one per       by key, per worker       of sorted    reduced
//!               integrity check does)          thread                                 runs         when read
//! ```
//!
//! A map's output is a sorted view whose records are reduced when they are read (McSD, section 3.4.4).

use std::sync::Arc;

use merganser_sort::{Budget, Progress};
use merganser_storage::{Directory, Storage};

use crate::ssdlet::{Chunk, Collect, Combine, Emitter, Output, Ssdlet, SsdletError};

/// Where records come from.
pub enum MapInput {
    /// A file, or a range of it: the records whose first byte is in the range.
    Storage {
        /// The file.
        storage: Arc<dyn Storage>,
        /// First byte and the byte after the last; `None` for all of it.
        range: Option<std::ops::Range<u64>>,
    },
    /// A pipe, or what comes out of a decompressor.
    Stream {
        /// For errors.
        name: String,
        /// The bytes.
        reader: Box<dyn std::io::Read + Send>,
    },
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
    /// All memory that grows with data.
    pub budget: Budget,
    /// Workers, at least 1.
    pub threads: usize,
    /// When to spill.
    pub partition: PartitionSize,
    /// Where spills go, unless the result is a view.
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
    /// A key and its combined value (with [`Combine::None`], each value of the key in turn). Returns
    /// whether more is wanted.
    ///
    /// # Errors
    /// Its own.
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError>;

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
    /// Rows of the result; for a view that is reduced when it is read, records before that.
    pub rows: u64,
    /// Units of the SSDlet's meter.
    pub metered: u64,
    /// Times that combined records were spilled.
    pub spills: u64,
    /// The most of the budget that was reserved at once, in bytes.
    pub memory_peak_bytes: u64,
}

/// Runs `ssdlet` over `inputs`.
///
/// # Errors
/// The SSDlet's own, bad input, too little memory, a full disk, the sink's own.
pub fn map(
    ssdlet: &dyn Ssdlet,
    inputs: Vec<MapInput>,
    output: MapOutput<'_>,
    options: &MapOptions,
    progress: &dyn Progress,
) -> Result<MapReport, SsdletError> {
    let _ = (options, progress);
    let mut collect = Collect::default();
    let mut worker = ssdlet.worker()?;
    let mut report = MapReport::default();
    for (input, source) in inputs.into_iter().enumerate() {
        let mut bytes = Vec::new();
        let read = match source {
            MapInput::Storage { storage, .. } => {
                use merganser_storage::StorageExt;
                storage.read_vec(0, storage.size() as usize).map(|read| bytes = read)
            }
            MapInput::Stream { mut reader, .. } => reader.read_to_end(&mut bytes).map(|_| ()),
        };
        read.map_err(merganser_sort::Error::from)?;
        report.input_bytes += bytes.len() as u64;
        let chunk = Chunk { input: input as u32, offset: 0, bytes: &bytes };
        worker.chunk(chunk, &mut Emitter::collecting(&mut collect))?;
    }
    worker.close(&mut Emitter::collecting(&mut collect))?;
    let MapOutput::Rows(rows) = output else {
        return Err(SsdletError::Failed("views are not made yet".to_owned()));
    };
    rows.records(&collect.ordered)?;
    let Output::Keyed { value, combine, .. } = ssdlet.description().output else {
        return Ok(report);
    };
    for (key, values) in collect.keyed {
        let mut values = values.into_iter();
        let mut kept = values.next().unwrap_or_default();
        for other in values {
            if combine == Combine::None {
                rows.keyed(&key, &other)?;
            } else {
                combine
                    .fold(value, &mut kept, &other)
                    .map_err(|e| SsdletError::Failed(e.to_string()))?;
            }
        }
        report.rows += 1;
        rows.keyed(&key, &kept)?;
    }
    Ok(report)
}
