//! Memory that sessions hold between runs: what an open SSDlet keeps (the automaton of many keys, machine code), and
//! the ranges of the next run.
//!
//! It comes from the memory for runs, at most half of it, so that there is always enough for a run. Small amounts
//! are free: with 64 sessions they are a part of the server's fixed overhead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{SessionError, SessionResult};
use merganser_map::admission::{Admission, Permit};

/// A session holds this much without a reservation, in bytes: once for its SSDlet and once for its ranges.
const FREE_BYTES: u64 = 64 << 10;
/// Ranges are reserved for in steps of this many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// The memory that all sessions hold.
#[derive(Debug)]
pub(super) struct Holdings {
    admission: Arc<Admission>,
    held_bytes: Arc<AtomicU64>,
}

/// A part of it, given back when dropped.
#[derive(Debug)]
pub(super) struct HeldBytes {
    _permit: Permit,
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl HeldBytes {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bytes that have to be reserved, in addition to `held` bytes, to hold `wanted` bytes.
pub(super) fn due(wanted: u64, held: u64) -> u64 {
    match wanted.saturating_sub(held) {
        0..=FREE_BYTES => 0,
        more => more.next_multiple_of(STEP_BYTES),
    }
}

impl Holdings {
    /// Of the memory that `admission` gives to runs.
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Holdings { admission, held_bytes: Arc::default() }
    }

    /// Reserves `bytes` until the result is dropped; nothing of little.
    ///
    /// # Errors
    /// [`SessionError::Busy`] when others hold it, or runs have it; [`SessionError::Invalid`] if it is never there.
    pub(super) fn hold(&self, bytes: u64) -> SessionResult<Option<HeldBytes>> {
        if bytes <= FREE_BYTES {
            return Ok(None);
        }
        let most = self.admission.all().memory_bytes / 2;
        if bytes > most {
            return Err(SessionError::Invalid(format!(
                "the session would hold {bytes} bytes of memory, and all sessions of this server hold at most {most}"
            )));
        }
        let add = |held: u64| Some(held + bytes).filter(|all| *all <= most);
        if self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            let what = format!(
                "the session would hold {bytes} bytes of memory, and the open sessions hold most of the {most} that they may"
            );
            return Err(SessionError::Busy { what });
        }
        match self.admission.take_now(bytes) {
            Some(permit) => {
                Ok(Some(HeldBytes { _permit: permit, bytes, all: Arc::clone(&self.held_bytes) }))
            }
            None => {
                self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
                let what =
                    format!("the session would hold {bytes} bytes of memory, which runs have now");
                Err(SessionError::Busy { what })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_map::admission::{Demand, Shares};

    const MIB: u64 = 1 << 20;

    fn holdings(memory_bytes: u64) -> Holdings {
        Holdings::new(Admission::new(Shares { memory_bytes, threads: 2 }, 4))
    }

    #[test]
    fn sessions_hold_at_most_half_and_give_it_back() {
        let holdings = holdings(16 * MIB);
        assert!(matches!(holdings.hold(9 * MIB), Err(SessionError::Invalid(_))));
        let first = holdings.hold(5 * MIB).expect("free").expect("reserved");
        assert!(matches!(holdings.hold(4 * MIB), Err(SessionError::Busy { .. })));
        assert!(holdings.hold(FREE_BYTES).expect("little").is_none());
        assert_eq!(holdings.admission.free().memory_bytes, 11 * MIB);
        drop(first);
        assert_eq!(holdings.admission.free().memory_bytes, 16 * MIB);
        holdings.hold(8 * MIB).expect("half of it").expect("reserved");
    }

    #[test]
    fn what_runs_have_can_not_be_held() {
        let holdings = holdings(16 * MIB);
        let demand = Demand { memory_bytes: 12 * MIB, memory_least_bytes: MIB, threads: 1 };
        let run = holdings.admission.take(demand, None, &|| false).expect("free");
        assert!(matches!(holdings.hold(5 * MIB), Err(SessionError::Busy { .. })));
        drop(run);
        assert!(holdings.hold(5 * MIB).expect("free").is_some());
    }

    #[test]
    fn what_is_due_comes_in_steps() {
        assert_eq!(due(FREE_BYTES, 0), 0);
        assert_eq!(due(FREE_BYTES + 1, 0), STEP_BYTES);
        assert_eq!(due(MIB + FREE_BYTES, MIB), 0);
        assert_eq!(due(3 * MIB + FREE_BYTES + 1, MIB), 3 * MIB);
    }
}
