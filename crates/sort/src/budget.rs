//! One memory budget, set by the user, that every large buffer reserves from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use storage::Buffer;

use crate::Error;

/// The memory that a sort or the readers of a view may use, shared by clones. Everything whose
/// size grows with data, records or fan-in is reserved here; what is not is documented as the
/// fixed overhead (at most 64 MiB: code, stacks, I/O rings, manifests).
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

/// A part of the budget; goes back when dropped.
#[derive(Debug)]
pub struct Reservation {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Budget {
    /// A budget of `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Budget {
            shared: Arc::new(Shared {
                limit_bytes,
                used_bytes: AtomicU64::new(0),
                peak_bytes: AtomicU64::new(0),
            }),
        }
    }

    /// The limit, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.shared.limit_bytes
    }

    /// What is free now, in bytes.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.shared.limit_bytes.saturating_sub(self.shared.used_bytes.load(Ordering::Relaxed))
    }

    /// The most that was ever reserved at once, in bytes.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.shared.peak_bytes.load(Ordering::Relaxed)
    }

    /// Takes `bytes` for `owner` (a noun for the error message).
    ///
    /// # Errors
    /// [`Error::Memory`] with the least limit that would do.
    pub fn reserve(&self, bytes: u64, owner: &'static str) -> Result<Reservation, Error> {
        let mut used = self.shared.used_bytes.load(Ordering::Relaxed);
        loop {
            let wanted = used + bytes;
            if wanted > self.shared.limit_bytes {
                return Err(Error::Memory {
                    owner,
                    least_bytes: wanted,
                    limit_bytes: self.shared.limit_bytes,
                });
            }
            match self.shared.used_bytes.compare_exchange_weak(
                used,
                wanted,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.shared.peak_bytes.fetch_max(wanted, Ordering::Relaxed);
                    return Ok(Reservation { shared: Arc::clone(&self.shared), bytes });
                }
                Err(now) => used = now,
            }
        }
    }

    /// A zeroed buffer of `len` bytes, reserved for as long as it lives.
    ///
    /// # Errors
    /// As [`Budget::reserve`].
    pub fn buffer(&self, len: usize, owner: &'static str) -> Result<Reserved, Error> {
        let reservation = self.reserve(len as u64, owner)?;
        Ok(Reserved { buffer: Buffer::new(len), _reservation: reservation })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A [`Buffer`] with the reservation that pays for it. Pieces split off the buffer must not
/// outlive it.
#[derive(Debug)]
pub struct Reserved {
    /// The memory.
    pub buffer: Buffer,
    _reservation: Reservation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_come_back_and_the_error_names_what_would_do() {
        let budget = Budget::new(100);
        let a = budget.reserve(60, "a chunk").expect("fits");
        let Err(Error::Memory { least_bytes, limit_bytes, .. }) = budget.reserve(50, "a chunk")
        else {
            panic!("110 of 100 bytes were given")
        };
        assert_eq!((least_bytes, limit_bytes), (110, 100));
        drop(a);
        let _b = budget.reserve(100, "a chunk").expect("all is back");
        assert_eq!((budget.free_bytes(), budget.peak_bytes()), (0, 100));
    }
}
