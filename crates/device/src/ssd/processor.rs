//! The processor inside the device: it does the work of firmware and programs one after another, in
//! the order of submission.

use merganser_storage::Work;

use crate::device::{Component, Use};
use crate::profile::SsdSettings;
use crate::request::SimTime;
use crate::sim::{Resource, Service};
use crate::ssd::nand::timing::carry_ns;

/// A serial processor whose work is counted in cycles.
#[derive(Debug)]
pub(crate) struct Processor {
    resource: Resource,
    settings: SsdSettings,
}

impl Processor {
    pub fn new(settings: &SsdSettings) -> Processor {
        Processor { resource: Resource::new(), settings: settings.clone() }
    }

    /// Queues work of the firmware of `cycles` that is ready at `ready`.
    pub fn firmware(&mut self, ready: SimTime, cycles: u64) -> Service {
        let span = SimTime(carry_ns(cycles, self.settings.processor_hz));
        self.resource.serve(ready, span)
    }

    /// Queues a program's work.
    pub fn work(&mut self, ready: SimTime, work: &[Work]) -> Service {
        let span = work.iter().map(|&work| self.span_ns(work)).sum();
        self.resource.serve(ready, SimTime(span))
    }

    /// The duration of `work`, in nanoseconds. A copy reads and writes the memory, and takes as
    /// long as the slower of processor and memory.
    fn span_ns(&self, work: Work) -> u64 {
        let s = &self.settings;
        let cycles = |cycles: u64| carry_ns(cycles, s.processor_hz);
        match work {
            Work::Compares(count) => cycles(count * s.compare_cycles),
            Work::Records(count) => cycles(count * s.record_cycles),
            Work::CopiedBytes(bytes) => {
                let bytes = bytes.next_multiple_of(s.copy_unit_bytes);
                let by_processor = cycles((bytes * s.copy_cycles_per_kib).div_ceil(1024));
                by_processor.max(carry_ns(2 * bytes, s.dram_bytes_per_second))
            }
        }
    }

    pub fn usage(&self) -> Use {
        Use {
            part: Component::Processor,
            index: 0,
            busy: self.resource.busy(),
            services: self.resource.services(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_whole_units_and_the_slower_of_both() {
        let settings = SsdSettings {
            processor_hz: 100_000_000,
            copy_cycles_per_kib: 1024,
            copy_unit_bytes: 128,
            compare_cycles: 7,
            dram_bytes_per_second: 1_000_000_000,
            ..SsdSettings::default()
        };
        let processor = Processor::new(&settings);
        assert_eq!(processor.span_ns(Work::CopiedBytes(1)), 1280);
        assert_eq!(processor.span_ns(Work::CopiedBytes(129)), 2560);
        assert_eq!(processor.span_ns(Work::Compares(3)), 210);
        let slow = SsdSettings { dram_bytes_per_second: 100_000_000, ..settings };
        assert_eq!(Processor::new(&slow).span_ns(Work::CopiedBytes(1)), 2560);
    }
}
