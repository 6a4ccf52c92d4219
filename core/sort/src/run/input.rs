//! Where records come from.

use std::io::Read;
use std::sync::Arc;

use merganser_storage::Storage;

use super::magic::ContentKind;
use super::packed::Unpacked;
use crate::{Budget, Result};

/// Where records come from.
pub enum SortInput {
    /// A storage of known size.
    Storage(Arc<dyn Storage>),
    /// A stream: a pipe, standard input.
    Stream {
        /// Its name in error messages.
        name: String,
        /// The bytes.
        reader: Box<dyn Read + Send>,
    },
    /// A storage that is compressed. How much it holds is known when all of it was read.
    Packed(Unpacked),
}

impl SortInput {
    /// The same input, to be decompressed if it is compressed. Memory for that is of `budget`.
    ///
    /// # Errors
    /// When its first bytes can't be read, or are those of a file that is no `content`. Nothing is read of a stream
    /// yet.
    pub fn unpacked(self, content: ContentKind, budget: &Budget) -> Result<Self> {
        Ok(match self {
            SortInput::Storage(storage) => match Unpacked::of_storage(&storage, content, budget)? {
                Some(unpacked) => SortInput::Packed(unpacked),
                None => SortInput::Storage(storage),
            },
            SortInput::Stream { name, reader } => {
                let reader = Box::new(Unpacked::of_stream(name.clone(), reader, content, budget));
                SortInput::Stream { name, reader }
            }
            packed @ SortInput::Packed(_) => packed,
        })
    }

    /// Its name in error messages.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            SortInput::Storage(storage) => storage.name(),
            SortInput::Stream { name, .. } => name,
            SortInput::Packed(unpacked) => unpacked.name(),
        }
    }

    /// Its size in bytes, when known.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            SortInput::Storage(storage) => Some(storage.size()),
            SortInput::Stream { .. } | SortInput::Packed(_) => None,
        }
    }

    /// Memory that it takes of its budget from its first read until it is dropped, in bytes.
    pub(crate) fn unpack_memory_bytes(&self) -> u64 {
        match self {
            SortInput::Packed(unpacked) => unpacked.memory_bytes(),
            SortInput::Storage(_) | SortInput::Stream { .. } => 0,
        }
    }
}
