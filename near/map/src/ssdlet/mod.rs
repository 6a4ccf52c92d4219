//! SSDlets: programs that run where the data is (the ISC paper's device programs, section 2.1.2).
//!
//! ```text
//!   open(name, args) ──► Ssdlet ──► Worker (one per thread) ── chunk, chunk, ..., close ──► Emitter
//!                        description                 whole records in             keyed records, or
//!                        of input and output                                      records in input order
//! ```
//!
//! An SSDlet sees whole records and nothing else: no files, no clock, no threads. So the same one runs
//! in the command's own process ([`crate`]), in a server's session, and inside a modelled device.
//!
//! ```text
//!   builtin/   SSDlets that are part of the program     error     why one fails
//!   emitter    what a worker hands out                  keyed     its keyed output, in a table
//! ```
//!
//! The result must not depend on how the input is cut into chunks, or on the number of workers. What
//! a worker hands out for a record may therefore depend on nothing but the record, its place
//! ([`Chunk::input`], [`Chunk::offset`]) and the arguments. State that spans records is allowed only if
//! the combine makes its order unimportant.

pub mod builtin;
mod collected;
mod emitter;
mod error;
mod keyed;
mod lending;
mod module;

use std::sync::Arc;

use merganser_sort::record::Format;
use merganser_sort::reduced::ResultDescription;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use collected::rows;
pub use emitter::RowTaker;
pub use emitter::{CollectedOutput, Emitter};
pub(crate) use emitter::{Ordered, Overflow};
pub use error::SsdletError;
pub(crate) use keyed::{Keyed, SpillSink};
pub use lending::{Alone, FREE_BYTES, Loan, MemoryLender};
pub use merganser_sort::reduced::{f64_of_key, i64_of_key, key_of_f64, key_of_i64};
pub use merganser_sort::rows::{Combine, Type, ValueOverflow};
pub use module::{MapperModule, NotNow, Sha256};

/// Opens the SSDlet of a name with arguments: those that are installed in the device.
pub type Installed =
    Arc<dyn Fn(&str, &Value) -> Result<Box<dyn Ssdlet>, SsdletError> + Send + Sync>;

/// An SSDlet that was opened with its arguments.
pub trait Ssdlet: Send + Sync {
    /// Its formats and options.
    fn description(&self) -> &SsdletDescription;

    /// The state of one thread that runs it.
    ///
    /// # Errors
    /// When there is not enough memory for it, or a guest can't be started.
    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError>;

    /// Called once, before any worker is made, where the input has a header ([`Format::Csv`]): `row` is that
    /// of the first input, with its terminator, and those of all others are the same. Returns the row that
    /// begins an ordered output; empty for none.
    ///
    /// # Errors
    /// A column that the SSDlet needs is not there.
    fn header(&self, _row: &[u8]) -> Result<Vec<u8>, SsdletError> {
        Ok(Vec::new())
    }

    /// The rows of a keyed result that are wanted, from its first key on; `None` for all.
    fn rows_most(&self) -> Option<u64> {
        None
    }

    /// Whether what it hands out for a record depends on the record's place or its input's number.
    fn asks_for_places(&self) -> bool {
        false
    }

    /// Memory that it holds for as long as it is open, without that of workers, in bytes.
    fn held_bytes(&self) -> u64 {
        0
    }
}

/// One thread's part of an SSDlet.
pub trait Worker: Send {
    /// Called once, before the first chunk, where the input has a header: the row that names the columns,
    /// with its terminator. No chunk has it.
    ///
    /// # Errors
    /// A column that the SSDlet needs is not there.
    fn header(&mut self, _row: &[u8]) -> Result<(), SsdletError> {
        Ok(())
    }

    /// Takes the records of one chunk.
    ///
    /// # Errors
    /// A record that makes no sense to it, or a guest that broke a rule.
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError>;

    /// After the last chunk of this worker. Keyed output only: records in input order can't come here.
    ///
    /// # Errors
    /// As [`Worker::chunk`].
    fn close(&mut self, _out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        Ok(())
    }

    /// The work since the last call, in units of the SSDlet's own meter: fuel of a guest; for built-in
    /// ones, bytes that were looked at. It is the same for the same input on every machine.
    fn meter(&mut self) -> u64 {
        0
    }
}

/// Whole records that lie next to each other in an input.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Number of the input, from 0.
    pub input: u32,
    /// Place of the first byte in the input.
    pub offset: u64,
    /// The records, end to end, each with its terminator.
    pub bytes: &'a [u8],
}

/// The input and the output of an SSDlet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsdletDescription {
    /// Its name.
    pub name: String,
    /// How its input is divided into records.
    pub input: Format,
    /// What it hands out.
    pub output: SsdletOutput,
    /// Memory of one worker in addition to its chunk, at most, in bytes.
    pub worker_bytes: u64,
}

/// What an SSDlet hands out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SsdletOutput {
    /// Keys with values. The result is sorted by key, and values of one key are combined.
    Keyed {
        /// The type of keys.
        key: Type,
        /// The type of values.
        value: Type,
        /// How values of one key become one.
        combine: Combine,
    },
    /// Records in the order of the input.
    Ordered {
        /// How they are divided.
        format: Format,
    },
}

impl SsdletDescription {
    /// The meaning of the rows of its keyed output; `None` for an ordered one.
    #[must_use]
    pub fn result(&self) -> Option<ResultDescription> {
        let SsdletOutput::Keyed { key, value, combine } = self.output else { return None };
        let value = combine.result_type(value);
        Some(ResultDescription { ssdlet: self.name.clone(), key, value, combine })
    }
}
