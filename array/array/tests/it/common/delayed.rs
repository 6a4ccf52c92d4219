//! Members whose writes are under way for a while: each ends when others have begun, in another order, or when the
//! volume waits for it. A power cut finds them not done.

use std::sync::Arc;

use merganser_array::Members;
use merganser_storage::{Clock, Completions, Geometry, Operation, RealClock, Storage, Work};
use merganser_testkit::Random;
use parking_lot::Mutex;

/// Writes under way at most.
const HELD_MAX: usize = 12;

/// `members` with delayed writes.
pub(crate) fn delayed(members: Members, seed: u64) -> Members {
    let waiting = Arc::new(Waiting {
        clock: RealClock::new(),
        state: Mutex::new((Vec::new(), Random::new(seed))),
    });
    let delay = |inner: Arc<dyn Storage>| -> Arc<dyn Storage> {
        Arc::new(Delayed { inner, waiting: Arc::clone(&waiting) })
    };
    let Members { data, buffer } = members;
    Members {
        data: data.into_iter().map(delay).collect(),
        buffer: buffer.into_iter().map(delay).collect(),
    }
}

struct Held {
    inner: Arc<dyn Storage>,
    token: u64,
    operation: Operation,
    completions: Completions,
}

/// The writes under way of all members. Its clock ends one of them when the volume waits.
struct Waiting {
    clock: RealClock,
    state: Mutex<(Vec<Held>, Random)>,
}

impl Waiting {
    /// Does any of the writes. False if all are done.
    fn end_one(&self) -> bool {
        let held = {
            let (held, random) = &mut *self.state.lock();
            if held.is_empty() {
                return false;
            }
            held.swap_remove(random.index(held.len()))
        };
        held.inner.submit(held.token, held.operation, &held.completions);
        true
    }
}

impl Clock for Waiting {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn charge(&self, work: Work) {
        self.clock.charge(work);
    }

    fn advance(&self) -> bool {
        self.end_one()
    }
}

struct Delayed {
    inner: Arc<dyn Storage>,
    waiting: Arc<Waiting>,
}

impl Storage for Delayed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.waiting) as Arc<dyn Clock>
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        if !matches!(operation, Operation::Write { .. }) {
            // A sync does not wait for writes under way, and makes none of them durable.
            self.inner.submit(token, operation, completions);
            return;
        }
        let full = {
            let (held, random) = &mut *self.waiting.state.lock();
            let (inner, completions) = (Arc::clone(&self.inner), completions.clone());
            held.push(Held { inner, token, operation, completions });
            held.len() > HELD_MAX || random.one_in(8)
        };
        if full {
            self.waiting.end_one();
        }
    }
}
