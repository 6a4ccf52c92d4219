//! SSDlets in modules that jobs and clients bring: what a compiler of them gives, and why it may refuse for now.

use std::io;

use super::{Ssdlet, SsdletDescription, SsdletError};

/// SHA-256 of the bytes of a module.
pub type Sha256 = [u8; 32];

/// A compiled module.
pub trait MapperModule: Send + Sync {
    /// SHA-256 of its bytes.
    fn sha256(&self) -> Sha256;

    /// What it says about itself.
    fn description(&self) -> &SsdletDescription;

    /// Whether it can ask for the place of a record in its input.
    fn asks_for_places(&self) -> bool;

    /// Bytes of its machine code.
    fn code_bytes(&self) -> usize;

    /// Opens it with `arguments`.
    ///
    /// # Errors
    /// When it refuses them, or fails.
    fn open(&self, arguments: &str) -> Result<Box<dyn Ssdlet>, SsdletError>;
}

/// Why a module that may be an SSDlet can't be compiled now. It travels within the [`io::Error`] of an
/// [`SsdletError::Engine`], whose text is this one's.
#[derive(Debug, thiserror::Error)]
pub enum NotNow {
    /// Others have their turn.
    #[error("other SSDlets are being compiled; come again later")]
    Turn,
    /// Others have the memory that it takes to open it.
    #[error("to open it takes {bytes} bytes of memory, which others have now; come again later")]
    Memory {
        /// How much it takes, in bytes.
        bytes: u64,
    },
    /// There is no room for its machine code.
    #[error(
        "{ssdlet}: the SSDlets in use have too much code: {most_bytes} bytes is the most of all together; \
         come again later"
    )]
    Code {
        /// Its name.
        ssdlet: String,
        /// The most code of all SSDlets, in bytes.
        most_bytes: usize,
    },
}

impl NotNow {
    /// The one that `error` carries.
    #[must_use]
    pub fn of_error(error: &SsdletError) -> Option<&Self> {
        let SsdletError::Engine(merganser_sort::Error::Io(error)) = error else { return None };
        error.get_ref()?.downcast_ref()
    }
}

impl From<NotNow> for SsdletError {
    fn from(why: NotNow) -> Self {
        SsdletError::Engine(io::Error::other(why).into())
    }
}
