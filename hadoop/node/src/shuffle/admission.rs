//! How much may be under way at once.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::error::Shortage;
use super::{ShuffleError, ShuffleResult};

/// The resources for all merges of a process.
#[derive(Debug)]
pub(super) struct MergeAdmission {
    merges_max: u32,
    memory_max: u64,
    taken: Mutex<TakenResources>,
}

/// The resources that are taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TakenResources {
    pub(super) merges: u32,
    pub(super) memory_bytes: u64,
}

/// A part of it, given back when dropped.
#[derive(Debug)]
pub(super) struct MergeTicket {
    admission: Arc<MergeAdmission>,
    taken: TakenResources,
}

impl MergeAdmission {
    pub(super) fn new(merges_max: u32, memory_max: u64) -> Arc<Self> {
        Arc::new(MergeAdmission { merges_max, memory_max, taken: Mutex::default() })
    }

    /// Takes a merge's place and up to `memory_bytes`.
    ///
    /// # Errors
    /// [`ShuffleError::Busy`] when there is not so much left now.
    pub(super) fn merge(self: &Arc<Self>, memory_bytes: u64) -> ShuffleResult<MergeTicket> {
        // A merge that asks for more than there is gets all of it, once no other merge has any.
        self.take(TakenResources { merges: 1, memory_bytes: memory_bytes.min(self.memory_max) })
    }

    /// Takes memory for something that is no merge.
    ///
    /// # Errors
    /// As [`MergeAdmission::merge`].
    pub(super) fn memory(self: &Arc<Self>, memory_bytes: u64) -> ShuffleResult<MergeTicket> {
        self.take(TakenResources { merges: 0, memory_bytes })
    }

    pub(super) fn taken(&self) -> TakenResources {
        *self.lock()
    }

    fn take(self: &Arc<Self>, wanted: TakenResources) -> ShuffleResult<MergeTicket> {
        let mut taken = self.lock();
        let then = TakenResources {
            merges: taken.merges + wanted.merges,
            memory_bytes: taken.memory_bytes.saturating_add(wanted.memory_bytes),
        };
        let shortage = if then.merges > self.merges_max {
            Shortage::Merges { max: self.merges_max }
        } else if then.memory_bytes > self.memory_max {
            Shortage::Memory {
                wanted: wanted.memory_bytes,
                taken: taken.memory_bytes,
                max: self.memory_max,
            }
        } else {
            *taken = then;
            return Ok(MergeTicket { admission: Arc::clone(self), taken: wanted });
        };
        Err(ShuffleError::Busy { shortage })
    }

    fn lock(&self) -> MutexGuard<'_, TakenResources> {
        self.taken.lock()
    }
}

impl MergeTicket {
    pub(super) fn memory_bytes(&self) -> u64 {
        self.taken.memory_bytes
    }
}

impl Drop for MergeTicket {
    fn drop(&mut self) {
        let mut taken = self.admission.lock();
        taken.merges -= self.taken.merges;
        taken.memory_bytes -= self.taken.memory_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let admission = MergeAdmission::new(2, 1000);
        let first = admission.merge(600).expect("free");
        assert!(matches!(admission.merge(600), Err(ShuffleError::Busy { .. })), "memory");
        let second = admission.merge(400).expect("just enough");
        assert!(matches!(admission.merge(0), Err(ShuffleError::Busy { .. })), "merges");
        assert!(matches!(admission.memory(1), Err(ShuffleError::Busy { .. })));
        drop(first);
        drop(second);
        let all = admission.merge(u64::MAX).expect("all of it");
        assert_eq!((all.memory_bytes(), admission.taken().merges), (1000, 1));
        drop(all);
        assert_eq!((admission.taken().memory_bytes, admission.taken().merges), (0, 0));
    }
}
