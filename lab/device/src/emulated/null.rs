//! A device that takes no time: it measures the path to an emulated device.

use std::collections::VecDeque;

use merganser_storage::Geometry;

use crate::device::{CompletedCommand, Device, DeviceStatistics, IoCommand};
use crate::request::{RequestKind, SimTime};

/// A device whose requests end when they arrive. It stores no data.
#[derive(Debug)]
pub struct Null {
    capacity_bytes: u64,
    now: SimTime,
    completed: VecDeque<CompletedCommand>,
    counts: DeviceStatistics,
}

impl Null {
    /// A device of this many bytes.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let (now, completed, counts) = Default::default();
        Null { capacity_bytes, now, completed, counts }
    }
}

impl Device for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn geometry(&self) -> Geometry {
        Geometry::default()
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn submit(&mut self, at: SimTime, command: IoCommand) {
        let IoCommand { id, kind, len, buffer, .. } = command;
        self.now = at;
        let bytes = match kind {
            RequestKind::Read => {
                self.counts.reads += 1;
                self.counts.read_bytes += len;
                len
            }
            RequestKind::Write => {
                self.counts.writes += 1;
                self.counts.written_bytes += len;
                len
            }
            RequestKind::Trim | RequestKind::Flush => {
                self.counts.others += 1;
                0
            }
        };
        self.completed.push_back(CompletedCommand {
            id,
            submitted: at,
            at,
            buffer,
            result: Ok(bytes),
        });
    }

    fn next_at(&self) -> Option<SimTime> {
        None
    }

    fn advance(&mut self) -> bool {
        false
    }

    fn completed(&mut self) -> Option<CompletedCommand> {
        self.completed.pop_front()
    }

    fn statistics(&self) -> DeviceStatistics {
        self.counts.clone()
    }
}
