//! Where records come from.

use std::io::Read;
use std::sync::Arc;

use merganser_storage::Storage;

/// Where records come from.
pub enum Input {
    /// A storage of known size.
    Storage(Arc<dyn Storage>),
    /// A stream: a pipe, standard input.
    Stream {
        /// Its name in error messages.
        name: String,
        /// The bytes.
        reader: Box<dyn Read + Send>,
    },
}

impl Input {
    /// Its name in error messages.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Input::Storage(storage) => storage.name(),
            Input::Stream { name, .. } => name,
        }
    }

    /// Its size in bytes, when known.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Input::Storage(storage) => Some(storage.size()),
            Input::Stream { .. } => None,
        }
    }
}
