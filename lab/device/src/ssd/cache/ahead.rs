//! Pages read ahead of sequential readers.
//!
//! Read-ahead changes only times: a read gets its bytes from the map when it starts, so a page that
//! was read ahead is never stale.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use crate::ssd::nand::LogicalUnit;

/// The number of readers that are followed at the same time.
const STREAMS: usize = 8;

#[derive(Debug)]
enum AheadUnit {
    /// In flight, with the readers that wait for it.
    Coming(Vec<(u32, u32)>),
    Here,
}

/// The state of a unit in the read-ahead buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AheadState {
    No,
    /// The unit is in flight, and the reader waits for it.
    Coming,
    Here,
}

/// Sequential readers, and the units read ahead of them.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    units: u64,
    /// The ends of recent reads.
    ends: VecDeque<u64>,
    pages: HashMap<u32, AheadUnit, FixedState>,
    /// The units in the buffer, oldest first.
    order: VecDeque<u32>,
}

impl ReadAhead {
    /// Read-ahead of `units`.
    pub(crate) fn new(units: u64) -> ReadAhead {
        ReadAhead {
            units,
            ends: VecDeque::new(),
            pages: HashMap::default(),
            order: VecDeque::new(),
        }
    }

    /// A read of bytes `offset..end` has arrived. Returns whether it continues an earlier read, so
    /// that read-ahead is useful.
    pub(crate) fn follows(&mut self, offset: u64, end: u64) -> bool {
        if self.units == 0 {
            return false;
        }
        let known = self.ends.iter().position(|&e| e == offset);
        if let Some(at) = known {
            self.ends.remove(at);
        } else if self.ends.len() == STREAMS {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
        known.is_some()
    }

    /// The number of units that are read ahead.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    /// Whether `unit` was asked for.
    pub(crate) fn has(&self, unit: LogicalUnit) -> bool {
        self.pages.contains_key(&unit.0)
    }

    /// `unit` was asked for.
    pub(crate) fn expect(&mut self, unit: LogicalUnit) {
        // Readers that wait for it continue to wait.
        self.pages.entry(unit.0).or_insert(AheadUnit::Coming(Vec::new()));
    }

    /// A reader wants `unit`. If the unit is in flight, `waiter` is notified when it arrives. If it
    /// is in the buffer, it is used up.
    pub(crate) fn want(&mut self, unit: LogicalUnit, waiter: (u32, u32)) -> AheadState {
        match self.pages.get_mut(&unit.0) {
            None => AheadState::No,
            Some(AheadUnit::Coming(waiters)) => {
                waiters.push(waiter);
                AheadState::Coming
            }
            Some(AheadUnit::Here) => {
                self.pages.remove(&unit.0);
                AheadState::Here
            }
        }
    }

    /// `unit` has arrived. Returns the readers that waited for it.
    pub(crate) fn came(&mut self, unit: LogicalUnit) -> Vec<(u32, u32)> {
        let Some(AheadUnit::Coming(waiters)) = self.pages.remove(&unit.0) else {
            return Vec::new();
        };
        if waiters.is_empty() {
            self.pages.insert(unit.0, AheadUnit::Here);
            self.order.push_back(unit.0);
            if self.order.len() as u64 > self.units * STREAMS as u64 {
                let oldest = self.order.pop_front().expect("more than none");
                if matches!(self.pages.get(&oldest), Some(AheadUnit::Here)) {
                    self.pages.remove(&oldest);
                }
            }
        }
        waiters
    }

    /// Drops `unit`: it was used, or written.
    pub(crate) fn used(&mut self, unit: LogicalUnit) {
        if matches!(self.pages.get(&unit.0), Some(AheadUnit::Here)) {
            self.pages.remove(&unit.0);
        }
    }
}
