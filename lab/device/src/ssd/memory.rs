//! The memory inside the device: data pass through it, and programs claim space in it.

use std::io;

use crate::device::{Component, Use};
use crate::profile::SsdSettings;
use crate::request::SimTime;
use crate::sim::Resource;
use crate::ssd::nand::timing::carry_ns;

/// DRAM with one bus.
#[derive(Debug)]
pub(crate) struct Memory {
    bus: Resource,
    bytes_per_second: u64,
    bytes: u64,
    claimed: u64,
}

impl Memory {
    pub(super) fn new(settings: &SsdSettings) -> Memory {
        Memory {
            bus: Resource::new(),
            bytes_per_second: settings.dram_bytes_per_second,
            bytes: settings.dram_bytes,
            claimed: settings.map_cache_bytes
                + if settings.cache_policy == 0 { 0 } else { settings.cache_bytes },
        }
    }

    /// Passes `bytes` in and out again, and returns the time at which they are out.
    pub(super) fn pass(&mut self, now: SimTime, bytes: u64) -> SimTime {
        self.bus.serve(now, SimTime(carry_ns(2 * bytes, self.bytes_per_second))).end
    }

    /// Passes `bytes` once, in or out, and returns the time at which they are there.
    pub(super) fn carry(&mut self, now: SimTime, bytes: u64) -> SimTime {
        self.bus.serve(now, SimTime(carry_ns(bytes, self.bytes_per_second))).end
    }

    /// The time at which all bytes so far have passed.
    pub(super) fn free_at(&self) -> SimTime {
        self.bus.free_at()
    }

    /// Claims space for a program.
    pub(super) fn claim(&mut self, bytes: u64) -> io::Result<()> {
        let free = self.bytes - self.claimed;
        if bytes > free {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!(
                    "the device's memory has {free} of {} bytes free, {bytes} were claimed",
                    self.bytes
                ),
            ));
        }
        self.claimed += bytes;
        Ok(())
    }

    /// Releases claimed space.
    pub(super) fn release(&mut self, bytes: u64) {
        self.claimed = self.claimed.checked_sub(bytes).expect("released what was claimed");
    }

    pub(super) fn usage(&self) -> Use {
        Use {
            part: Component::Memory,
            index: 0,
            busy: self.bus.busy(),
            services: self.bus.services(),
        }
    }
}
