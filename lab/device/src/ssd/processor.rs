//! The processor inside the device: it does the work of firmware and programs one after another, in
//! the order of submission.

use merganser_storage::Work;

use crate::device::{Component, Use};
use crate::profile::SsdSettings;
use crate::request::SimTime;
use crate::sim::{Resource, ServiceTime};
use crate::ssd::memory::Memory;
use crate::ssd::nand::timing::carry_ns;

/// A serial processor whose work is counted in cycles.
#[derive(Debug)]
pub(crate) struct CycleProcessor {
    resource: Resource,
    settings: SsdSettings,
}

impl CycleProcessor {
    pub(super) fn new(settings: &SsdSettings) -> CycleProcessor {
        CycleProcessor { resource: Resource::new(), settings: settings.clone() }
    }

    /// Queues work of the firmware of `cycles` that is ready at `ready`.
    pub(super) fn firmware(&mut self, ready: SimTime, cycles: u64) -> ServiceTime {
        let span = SimTime(carry_ns(cycles, self.settings.processor_hz));
        self.resource.serve(ready, span)
    }

    /// Queues a program's work, which is ready now. If programs use the bus of the memory, the work
    /// takes as long as the slower of the processor and the bus. The bus serves its bytes in the
    /// order of the calls, also while the processor still does earlier work: a bus that was
    /// reserved for later would be idle until then.
    pub(super) fn work(&mut self, now: SimTime, work: &[Work], memory: &mut Memory) -> ServiceTime {
        let span: u64 = work.iter().map(|&work| self.span_ns(work)).sum();
        let crossing: u64 = work.iter().map(|&work| self.crossing_bytes(work)).sum();
        if self.settings.programs_use_memory == 0 || crossing == 0 {
            return self.resource.serve(now, SimTime(span));
        }
        let carried = memory.carry(now, crossing);
        let start = now.max(self.resource.free_at());
        self.resource.serve(now, SimTime(span.max(carried.0.saturating_sub(start.0))))
    }

    /// The bytes that `work` moves over the bus of the memory.
    fn crossing_bytes(&self, work: Work) -> u64 {
        match work {
            Work::CopiedBytes(bytes) => 2 * bytes.next_multiple_of(self.settings.copy_unit_bytes),
            Work::ReadBytes(bytes) => bytes,
            Work::Compares(_) | Work::Records(_) | Work::Metered(_) => 0,
        }
    }

    /// The duration of `work`, in nanoseconds. A copy reads and writes the memory, and takes as
    /// long as the slower of processor and memory.
    fn span_ns(&self, work: Work) -> u64 {
        let s = &self.settings;
        let cycles = |cycles: u64| carry_ns(cycles, s.processor_hz);
        match work {
            Work::Compares(count) => cycles(count * s.compare_cycles),
            Work::Records(count) => cycles(count * s.record_cycles),
            Work::Metered(count) => cycles((count * s.meter_cycles_per_1024).div_ceil(1024)),
            Work::ReadBytes(_) => 0,
            Work::CopiedBytes(bytes) => {
                let bytes = bytes.next_multiple_of(s.copy_unit_bytes);
                let by_processor = cycles((bytes * s.copy_cycles_per_kib).div_ceil(1024));
                by_processor.max(carry_ns(2 * bytes, s.dram_bytes_per_second))
            }
        }
    }

    pub(super) fn usage(&self) -> Use {
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
            meter_cycles_per_1024: 2048,
            dram_bytes_per_second: 1_000_000_000,
            ..SsdSettings::default()
        };
        let processor = CycleProcessor::new(&settings);
        assert_eq!(processor.span_ns(Work::CopiedBytes(1)), 1280);
        assert_eq!(processor.span_ns(Work::CopiedBytes(129)), 2560);
        assert_eq!(processor.span_ns(Work::Compares(3)), 210);
        assert_eq!(processor.span_ns(Work::Metered(2048)), 40_960);
        let slow = SsdSettings { dram_bytes_per_second: 100_000_000, ..settings };
        assert_eq!(CycleProcessor::new(&slow).span_ns(Work::CopiedBytes(1)), 2560);
    }
}
