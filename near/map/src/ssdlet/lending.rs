//! Memory for the opening of an SSDlet: a guest is compiled, an automaton is made of many keys. It is given back once
//! the SSDlet is open.

use std::any::Any;
use std::fmt;

use super::SsdletError;

/// Openings up to this many bytes take nothing from a [`MemoryLender`]: they are a part of the fixed overhead.
pub const FREE_BYTES: u64 = 1 << 20;

/// Lends the memory of a budget for a moment.
pub trait MemoryLender: Send + Sync {
    /// The most that it lends at once, in bytes.
    fn most_bytes(&self) -> u64;

    /// Lends `bytes`, at most [`MemoryLender::most_bytes`]. It may wait for them.
    ///
    /// # Errors
    /// When others have the memory for too long.
    fn lend(&self, bytes: u64) -> Result<Loan, SsdletError>;
}

/// Memory that was lent, given back when this is dropped.
pub struct Loan(Option<Box<dyn Any + Send>>);

impl Loan {
    /// Gives `permit` back when it is dropped.
    #[must_use]
    pub fn of_permit(permit: impl Any + Send) -> Self {
        Loan(Some(Box::new(permit)))
    }

    /// Of nothing.
    #[must_use]
    pub fn free() -> Self {
        Loan(None)
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("is_free", &self.0.is_none()).finish()
    }
}

/// The lender of a program that opens one SSDlet at a time, before anything else takes of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alone {
    /// All memory of the program, in bytes.
    pub memory_bytes: u64,
}

impl MemoryLender for Alone {
    fn most_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn lend(&self, _: u64) -> Result<Loan, SsdletError> {
        Ok(Loan::free())
    }
}
