//! The devices, and the time that they share.

use std::collections::BTreeMap;
use std::sync::Arc;

use merganser_storage::{Buffer, Clock, Work};
use parking_lot::{Mutex, MutexGuard};

use crate::device::{CompletedCommand, Device, DeviceStatistics, IoCommand};
use crate::request::{RequestKind, SimTime};

/// The time that the host's processor takes for its work; if all are 0, it takes no time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// Picoseconds per comparison of keys.
    pub compare_ps: u64,
    /// Picoseconds per copied byte.
    pub copied_byte_ps: u64,
    /// Picoseconds per record.
    pub record_ps: u64,
    /// Picoseconds per unit of a program's meter.
    pub metered_ps: u64,
}

impl HostCosts {
    fn picoseconds(self, work: Work) -> u128 {
        let (count, each) = match work {
            Work::Compares(count) => (count, self.compare_ps),
            Work::CopiedBytes(count) => (count, self.copied_byte_ps),
            Work::Records(count) => (count, self.record_ps),
            Work::Metered(count) => (count, self.metered_ps),
            // The work on these bytes is charged in another way.
            Work::ReadBytes(count) => (count, 0),
        };
        u128::from(count) * u128::from(each)
    }
}

/// Called with the end of a command.
pub(super) type CommandCallback = Box<dyn FnOnce(CompletedCommand) + Send>;

struct WorldState {
    devices: Vec<Box<dyn Device>>,
    /// By device and command.
    waiting: BTreeMap<(usize, u64), CommandCallback>,
    next_id: u64,
    now: SimTime,
    /// Charged work that is less than a nanosecond.
    rest_ps: u128,
}

/// Modelled devices under one clock.
pub struct World {
    state: Mutex<WorldState>,
    costs: HostCosts,
}

impl World {
    /// A world of `devices`, used by a host with these costs.
    #[must_use]
    pub fn new(devices: Vec<Box<dyn Device>>, costs: HostCosts) -> Arc<World> {
        let state = WorldState {
            devices,
            waiting: BTreeMap::new(),
            next_id: 0,
            now: SimTime(0),
            rest_ps: 0,
        };
        Arc::new(World { state: Mutex::new(state), costs })
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock()
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> SimTime {
        self.lock().now
    }

    /// Moves time on without work, as if the host were idle.
    pub fn pass(&self, span: SimTime) {
        self.lock().now.0 += span.0;
    }

    /// The counts of a device so far.
    ///
    /// # Panics
    /// When there is no such device.
    #[must_use]
    pub fn statistics(&self, device: usize) -> DeviceStatistics {
        self.lock().devices[device].statistics()
    }

    /// Calls `look` with a device.
    ///
    /// # Panics
    /// When there is no such device.
    pub fn with_device<R>(&self, device: usize, look: impl FnOnce(&dyn Device) -> R) -> R {
        look(&*self.lock().devices[device])
    }

    /// Submits a command to `device` now; `then` is called when it has ended.
    pub(super) fn submit(
        &self,
        device: usize,
        kind: RequestKind,
        offset: u64,
        len: u64,
        buffer: Option<Buffer>,
        then: CommandCallback,
    ) {
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.waiting.insert((device, id), then);
        let at = state.now.max(state.devices[device].now());
        state.devices[device].submit(at, IoCommand { id, kind, offset, len, buffer });
    }
}

impl Clock for World {
    fn now_ns(&self) -> u64 {
        self.now().0
    }

    fn charge(&self, work: Work) {
        let cost = self.costs.picoseconds(work);
        let mut state = self.lock();
        let total = state.rest_ps + cost;
        state.now.0 += (total / 1000) as u64;
        state.rest_ps = total % 1000;
    }

    fn advance(&self) -> bool {
        let mut state = self.lock();
        // The earliest event of all; of several events at one time, the event of the first device.
        let due = state.devices.iter().map(|device| device.next_at()).zip(0_usize..);
        let earliest = due.filter_map(|(at, index)| at.map(|at| (at, index))).min();
        let Some((at, index)) = earliest else { return false };
        state.devices[index].advance();
        state.now = state.now.max(at);
        let mut ended = Vec::new();
        while let Some(done) = state.devices[index].completed() {
            let then = state.waiting.remove(&(index, done.id)).expect("a command ends once");
            ended.push((then, done));
        }
        drop(state);
        for (then, done) in ended {
            then(done);
        }
        true
    }
}
