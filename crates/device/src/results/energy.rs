//! Energy, from the power that each component is said to take. No measurement of a device is behind
//! these figures, only its makers' data sheets; they tell workloads on one device apart.

use crate::device::{Part, Use};

/// Power of a device's components, in watts; each source is told by [`Power::sources`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Of the whole device when it does nothing.
    pub idle_watts: f64,
    /// More while the link moves bytes.
    pub link_watts: f64,
    /// More while a processor works, each.
    pub processor_watts: f64,
    /// More while the memory moves bytes.
    pub memory_watts: f64,
    /// More while a bus to flash moves bytes, each.
    pub channel_watts: f64,
    /// More while a die reads, programs or erases, each.
    pub die_watts: f64,
    /// More while the arm seeks or heads transfer.
    pub spindle_watts: f64,
    sources: &'static str,
}

impl Power {
    /// Of an SSD with the given idle power.
    #[must_use]
    pub const fn ssd(idle_watts: f64, sources: &'static str) -> Self {
        Power {
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

    /// Of a hard disk: idle with platters turning, and more while it works.
    #[must_use]
    pub const fn hdd(idle_watts: f64, spindle_watts: f64, sources: &'static str) -> Self {
        Power {
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

    /// Where the figures are from.
    #[must_use]
    pub fn sources(&self) -> &'static str {
        self.sources
    }

    fn of(&self, part: Part) -> f64 {
        match part {
            Part::Link => self.link_watts,
            Part::Processor => self.processor_watts,
            Part::Memory => self.memory_watts,
            Part::Channel => self.channel_watts,
            Part::Die => self.die_watts,
            Part::Spindle => self.spindle_watts,
        }
    }

    /// What `uses` took in `elapsed_ns`.
    pub(super) fn consumed(&self, elapsed_ns: u64, uses: &[Use]) -> Vec<Consumption> {
        let mut all = vec![Consumption {
            part: None,
            watts: self.idle_watts,
            busy_seconds: elapsed_ns as f64 / 1e9,
            joules: self.idle_watts * elapsed_ns as f64 / 1e9,
        }];
        for part in
            [Part::Link, Part::Processor, Part::Memory, Part::Channel, Part::Die, Part::Spindle]
        {
            let mine = uses.iter().filter(|used| used.part == part);
            let busy_ns: u128 = mine.map(|used| u128::from(used.busy.0)).sum();
            let watts = self.of(part);
            if watts > 0.0 && busy_ns > 0 {
                let busy_seconds = busy_ns as f64 / 1e9;
                let joules = watts * busy_seconds;
                all.push(Consumption { part: Some(part), watts, busy_seconds, joules });
            }
        }
        all
    }
}

/// What one kind of component took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Consumption {
    /// Which; `None` for the whole device at rest.
    pub part: Option<Part>,
    /// Watts of each while it is busy.
    pub watts: f64,
    /// Seconds in which they were busy, all of a kind together.
    pub busy_seconds: f64,
    /// Their product.
    pub joules: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SimTime;

    #[test]
    fn each_part_takes_its_power_while_it_is_busy() {
        let power = Power::ssd(1.0, "");
        let busy =
            |part, ms: u64| Use { part, index: 0, busy: SimTime(ms * 1_000_000), services: 1 };
        let uses = [busy(Part::Die, 500), busy(Part::Die, 1500), busy(Part::Link, 0)];
        let consumed = power.consumed(4_000_000_000, &uses);
        let joules: Vec<_> = consumed.iter().map(|part| (part.part, part.joules)).collect();
        assert_eq!(joules, [(None, 4.0), (Some(Part::Die), 0.165)]);
    }
}
