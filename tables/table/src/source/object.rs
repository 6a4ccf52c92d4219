//! Files of a table that are on no disk of this machine: objects, whose bytes are read by ranges.
//!
//! This is all that tables know of a store. `tables/objects` knows the stores.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

/// An object, as it was when it was found.
pub trait StoredObject: fmt::Debug + Send + Sync {
    /// Its name in sentences, such as `s3://bucket/in/country=FR/x.parquet`, whose folders may name columns. It has no secrets.
    fn name(&self) -> &Path;

    /// How many bytes it has.
    fn bytes(&self) -> u64;

    /// Begins to read a range, which is not empty and in the object, and does not wait for it.
    fn begin(&self, range: Range<u64>) -> Box<dyn RangeRead>;
}

/// A read that has begun. If it is dropped, it ends.
pub trait RangeRead: Send {
    /// Waits for all bytes of the range. They are those of the object as it was when it was found.
    ///
    /// # Errors
    /// Those of the store; the object has changed.
    fn wait(self: Box<Self>) -> Result<Bytes, ObjectError>;
}

/// An object that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The end was asked for.
    #[error("cancelled")]
    Cancelled,
    /// A range can't be read.
    #[error("at offset {offset}: {why}")]
    Read {
        /// Where it begins.
        offset: u64,
        /// The reason, and what can be done.
        why: String,
    },
}
