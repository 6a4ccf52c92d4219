//! Energy, computed from the power of each component. The powers come from data sheets, not from
//! measurements. They serve to compare workloads on one device.

use crate::device::{Component, Use};

/// The power of a device's components, in watts; [`DevicePower::sources`] returns the sources.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DevicePower {
    /// Of the idle device.
    pub idle_watts: f64,
    /// In addition while the link moves bytes.
    pub link_watts: f64,
    /// In addition while a processor works, per processor.
    pub processor_watts: f64,
    /// In addition while the memory moves bytes.
    pub memory_watts: f64,
    /// In addition while a bus to flash moves bytes, per bus.
    pub channel_watts: f64,
    /// In addition while a die reads, programs or erases, per die.
    pub die_watts: f64,
    /// In addition while the arm seeks or the heads transfer.
    pub spindle_watts: f64,
    sources: &'static str,
}

impl DevicePower {
    /// The powers of an SSD with this idle power.
    #[must_use]
    pub const fn ssd(idle_watts: f64, sources: &'static str) -> Self {
        DevicePower {
            idle_watts,
            link_watts: 0.3,
            processor_watts: 0.25,
            memory_watts: 0.2,
            channel_watts: 0.06,
            // 25 mA at 3.3 V, the typical current of reading, programming and erasing in data
            // sheets of the time (ICC1, ICC2, ICC3).
            die_watts: 0.0825,
            spindle_watts: 0.0,
            sources,
        }
    }

    /// The powers of a hard disk: idle with turning platters, and the addition while it works.
    #[must_use]
    pub const fn hdd(idle_watts: f64, spindle_watts: f64, sources: &'static str) -> Self {
        DevicePower {
            idle_watts,
            link_watts: 0.0,
            processor_watts: 0.0,
            memory_watts: 0.0,
            channel_watts: 0.0,
            die_watts: 0.0,
            spindle_watts,
            sources,
        }
    }

    /// The sources of the figures.
    #[must_use]
    pub fn sources(&self) -> &'static str {
        self.sources
    }

    fn of_part(&self, part: Component) -> f64 {
        match part {
            Component::Link => self.link_watts,
            Component::Processor => self.processor_watts,
            Component::Memory => self.memory_watts,
            Component::Channel => self.channel_watts,
            Component::Die => self.die_watts,
            Component::Spindle => self.spindle_watts,
        }
    }

    /// The energy of `uses` in `elapsed_ns`.
    pub(super) fn consumed(&self, elapsed_ns: u64, uses: &[Use]) -> Vec<Consumption> {
        let mut all = vec![Consumption {
            part: None,
            watts: self.idle_watts,
            busy_seconds: elapsed_ns as f64 / 1e9,
            joules: self.idle_watts * elapsed_ns as f64 / 1e9,
        }];
        for part in [
            Component::Link,
            Component::Processor,
            Component::Memory,
            Component::Channel,
            Component::Die,
            Component::Spindle,
        ] {
            let mine = uses.iter().filter(|used| used.part == part);
            let busy_ns: u128 = mine.map(|used| u128::from(used.busy.0)).sum();
            let watts = self.of_part(part);
            if watts > 0.0 && busy_ns > 0 {
                let busy_seconds = busy_ns as f64 / 1e9;
                let joules = watts * busy_seconds;
                all.push(Consumption { part: Some(part), watts, busy_seconds, joules });
            }
        }
        all
    }
}

/// The energy of one kind of component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Consumption {
    /// The kind; `None` for the whole device at rest.
    pub part: Option<Component>,
    /// The power of each component while it is busy, in watts.
    pub watts: f64,
    /// The sum of the busy times of all components of the kind, in seconds.
    pub busy_seconds: f64,
    /// The product of both, in joules.
    pub joules: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SimTime;

    #[test]
    fn each_part_takes_its_power_while_it_is_busy() {
        let power = DevicePower::ssd(1.0, "");
        let busy =
            |part, ms: u64| Use { part, index: 0, busy: SimTime(ms * 1_000_000), services: 1 };
        let uses =
            [busy(Component::Die, 500), busy(Component::Die, 1500), busy(Component::Link, 0)];
        let consumed = power.consumed(4_000_000_000, &uses);
        let joules: Vec<_> = consumed.iter().map(|part| (part.part, part.joules)).collect();
        assert_eq!(joules, [(None, 4.0), (Some(Component::Die), 0.165)]);
    }
}
