//! One memory budget, set by the user, that every large buffer reserves from.
//!
//! Memory that grows with records or fan-in is reserved before it is allocated; the fixed rest (code, stacks,
//! rings, a sample of 1 MiB) is small. The fences of all runs stay in memory, about 60 bytes per block. Each run
//! holds the memory of its own fences, and `plan` leaves room for all of them. If that is too little (a pipe is
//! longer than assumed, keys are longer than in the sample), later runs get larger blocks. It is an error only if
//! the largest blocks don't help.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::Serialize;

use crate::Error;

/// The memory that a sort or the readers of a view may use, shared by clones. All memory whose size
/// grows with data, records or fan-in is reserved here. The rest is documented as the fixed
/// overhead (at most 64 MiB: code, stacks, I/O rings, manifests).
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<BudgetShared>,
}

#[derive(Debug)]
struct BudgetShared {
    limit_bytes: u64,
    state: Mutex<BudgetUsage>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetUsage {
    used_bytes: u64,
    peak_bytes: u64,
    /// Few: one a place in the code that reserves.
    owners: Vec<OwnerUse>,
}

#[derive(Debug)]
struct OwnerUse {
    owner: &'static str,
    used_bytes: u64,
    peak_bytes: u64,
}

impl BudgetUsage {
    fn owner(&mut self, owner: &'static str) -> &mut OwnerUse {
        let at = self.owners.iter().position(|known| known.owner == owner).unwrap_or_else(|| {
            self.owners.push(OwnerUse { owner, used_bytes: 0, peak_bytes: 0 });
            self.owners.len() - 1
        });
        &mut self.owners[at]
    }
}

/// The most that one owner had reserved at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OwnerPeak {
    /// Who: the noun it reserved under.
    pub owner: &'static str,
    /// How much, in bytes. Owners peak at different moments: together these may be more than
    /// [`Budget::peak_bytes`].
    pub peak_bytes: u64,
}

impl BudgetShared {
    fn lock(&self) -> MutexGuard<'_, BudgetUsage> {
        self.state.lock()
    }

    fn give_back(&self, bytes: u64, owner: &'static str) {
        let mut state = self.lock();
        state.used_bytes -= bytes;
        state.owner(owner).used_bytes -= bytes;
        drop(state);
        self.freed.notify_all();
    }
}

/// A part of a memory: one of `share` equal ones, but at least `bytes_min` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShare {
    /// It is 1 / `share`; at least 2.
    pub share: u64,
    /// It has this much at least, in bytes.
    pub bytes_min: u64,
}

impl MemoryShare {
    /// The part of `memory_bytes`, in bytes.
    #[must_use]
    pub fn of_memory(self, memory_bytes: u64) -> u64 {
        (memory_bytes / self.share).max(self.bytes_min)
    }

    /// The least memory in which `bytes` are left in addition to the part: the second number of an error.
    #[must_use]
    pub fn least_beside(self, bytes: u64) -> u64 {
        let with_share = bytes.saturating_add(bytes.saturating_sub(1) / (self.share - 1));
        with_share.max(bytes.saturating_add(self.bytes_min))
    }

    /// The least memory whose part has `bytes`.
    #[must_use]
    pub fn least_with(self, bytes: u64) -> u64 {
        if bytes <= self.bytes_min { self.bytes_min } else { bytes.saturating_mul(self.share) }
    }
}

/// A part of the budget; goes back when dropped.
#[derive(Debug)]
pub struct Reservation {
    shared: Arc<BudgetShared>,
    owner: &'static str,
    bytes: u64,
}

/// The memory of a sort whose caller names none: a quarter of what a small server has today.
pub const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;

impl Default for Budget {
    /// A budget of [`DEFAULT_MEMORY_BYTES`].
    fn default() -> Self {
        Budget::new(DEFAULT_MEMORY_BYTES)
    }
}

impl Budget {
    /// A budget of `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Budget {
            shared: Arc::new(BudgetShared {
                limit_bytes,
                state: Mutex::new(BudgetUsage::default()),
                freed: Condvar::new(),
            }),
        }
    }

    /// The limit, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.shared.limit_bytes
    }

    /// Free memory, in bytes.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.shared.limit_bytes - self.shared.lock().used_bytes
    }

    /// The most that was ever reserved at once, in bytes.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.shared.lock().peak_bytes
    }

    /// The most that each owner had at once, in the order in which they first came.
    #[must_use]
    pub fn owner_peaks(&self) -> Vec<OwnerPeak> {
        let state = self.shared.lock();
        let peak =
            |known: &OwnerUse| OwnerPeak { owner: known.owner, peak_bytes: known.peak_bytes };
        state.owners.iter().map(peak).collect()
    }

    /// Takes `bytes` for `owner` (a noun for the error message).
    ///
    /// # Errors
    /// [`Error::Memory`] with the least limit that would do.
    pub fn reserve(&self, bytes: u64, owner: &'static str) -> Result<Reservation, Error> {
        self.take(&mut self.shared.lock(), bytes, owner)
    }

    /// Reserves each of `parts` (owner, bytes) for `whole`; all or nothing.
    ///
    /// # Errors
    /// As [`Budget::reserve`].
    pub fn reserve_parts(
        &self,
        parts: &[(&'static str, u64)],
        whole: &'static str,
    ) -> Result<Vec<Reservation>, Error> {
        let mut state = self.shared.lock();
        let parts_bytes = parts.iter().map(|(_, bytes)| *bytes);
        let least_bytes = parts_bytes.fold(state.used_bytes, u64::saturating_add);
        let limit_bytes = self.shared.limit_bytes;
        if least_bytes > limit_bytes {
            return Err(Error::Memory { owner: whole, least_bytes, limit_bytes });
        }
        parts.iter().map(|(owner, bytes)| self.take(&mut state, *bytes, owner)).collect()
    }

    /// As [`Budget::reserve`], but waits up to `patience` for others to give back.
    ///
    /// # Errors
    /// [`Error::Memory`] when there still is too little.
    pub fn reserve_within(
        &self,
        patience: Duration,
        bytes: u64,
        owner: &'static str,
    ) -> Result<Reservation, Error> {
        let end = Instant::now() + patience;
        let mut state = self.shared.lock();
        while state.used_bytes.saturating_add(bytes) > self.shared.limit_bytes {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let freed = &self.shared.freed;
            freed.wait_for(&mut state, left);
        }
        self.take(&mut state, bytes, owner)
    }

    fn take(
        &self,
        state: &mut BudgetUsage,
        bytes: u64,
        owner: &'static str,
    ) -> Result<Reservation, Error> {
        let limit_bytes = self.shared.limit_bytes;
        let wanted = state.used_bytes.checked_add(bytes);
        let Some(wanted) = wanted.filter(|wanted| *wanted <= limit_bytes) else {
            let least_bytes = wanted.unwrap_or(u64::MAX);
            return Err(Error::Memory { owner, least_bytes, limit_bytes });
        };
        state.used_bytes = wanted;
        state.peak_bytes = state.peak_bytes.max(wanted);
        let of_owner = state.owner(owner);
        of_owner.used_bytes += bytes;
        of_owner.peak_bytes = of_owner.peak_bytes.max(of_owner.used_bytes);
        Ok(Reservation { shared: Arc::clone(&self.shared), owner, bytes })
    }
}

impl Reservation {
    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it hold at least `bytes`.
    ///
    /// # Errors
    /// [`Error::Memory`]; the reservation then stays as it was.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), Error> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            let budget = Budget { shared: Arc::clone(&self.shared) };
            // The two parts become one.
            let mut part = budget.reserve(more, self.owner)?;
            self.bytes += std::mem::take(&mut part.bytes);
        }
        Ok(())
    }

    /// Gives back everything above `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.shared.give_back(less, self.owner);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.give_back(self.bytes, self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_its_own_peak() {
        let budget = Budget::new(100);
        let tags = budget.reserve(30, "tags").expect("fits");
        let more = budget.reserve(10, "tags").expect("fits");
        drop(tags);
        let _keys = budget.reserve(60, "keys").expect("fits");
        drop(more);
        let _less = budget.reserve(20, "tags").expect("fits");
        let peaks = budget.owner_peaks();
        let peaks: Vec<_> = peaks.iter().map(|peak| (peak.owner, peak.peak_bytes)).collect();
        assert_eq!((peaks, budget.peak_bytes()), (vec![("tags", 40), ("keys", 60)], 80));
    }

    /// The least is enough and one byte less is not, for every share and every rounding.
    #[test]
    fn the_least_memory_beside_a_part_is_exact() {
        for share in [2, 3, 8, 100] {
            for bytes_min in [0, 1, 7, 64] {
                let part = MemoryShare { share, bytes_min };
                for bytes in (0..700).chain([(1 << 40) + 7]) {
                    let fits = |memory: u64| {
                        memory.checked_sub(part.of_memory(memory)).is_some_and(|left| left >= bytes)
                    };
                    let least = part.least_beside(bytes);
                    assert!(fits(least), "{part:?} {bytes} {least}");
                    assert!(least == 0 || !fits(least - 1), "{part:?} {bytes} {least}");
                    assert!(part.of_memory(part.least_with(bytes)) >= bytes);
                }
            }
        }
    }

    #[test]
    fn parts_are_reserved_together_or_not_at_all() {
        let budget = Budget::new(100);
        let parts = budget.reserve_parts(&[("tags", 30), ("keys", 60)], "sorting").expect("fits");
        assert_eq!((parts.len(), budget.free_bytes()), (2, 10));
        let refused = budget.reserve_parts(&[("tags", 5), ("keys", 6)], "sorting");
        assert!(matches!(refused, Err(Error::Memory { owner: "sorting", least_bytes: 101, .. })));
        assert_eq!(budget.free_bytes(), 10);
    }

    #[test]
    fn reservations_come_back_and_errors_name_the_least_memory() {
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

    #[test]
    fn a_reservation_grows_and_shrinks_within_the_limit() {
        let budget = Budget::new(100);
        let mut a = budget.reserve(10, "fences").expect("fits");
        a.grow_to(90).expect("fits");
        assert!(matches!(
            a.grow_to(101),
            Err(Error::Memory { least_bytes: 101, limit_bytes: 100, .. })
        ));
        assert_eq!((a.bytes(), budget.free_bytes()), (90, 10));
        a.grow_to(20).expect("holds more");
        a.shrink_to(30);
        a.shrink_to(40);
        assert_eq!((a.bytes(), budget.free_bytes()), (30, 70));
        drop(a);
        assert_eq!((budget.free_bytes(), budget.peak_bytes()), (100, 90));
    }
}
