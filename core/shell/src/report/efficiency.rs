//! Throughput per core, disk, dollar and joule: the measures of E. Anderson and J. Tucek, "Efficiency
//! matters!" (HotStorage 2009), as the TritonSort thesis uses them (section 4.4.2), with penny
//! sort's dollar and JouleSort's records per joule.

use serde::Serialize;

/// The machine that did the work.
pub(super) struct ReportedMachine {
    /// Physical cores.
    pub cores: usize,
    /// Number of disks that hold the files of the work; 0 if unknown.
    pub disks: usize,
    /// Its price.
    pub price_dollars: Option<f64>,
    /// Its power.
    pub power_watts: Option<f64>,
    /// The energy that the processors counted.
    pub processor_joules: Option<f64>,
}

/// Bytes sorted per second, and the same per unit of each resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Efficiency {
    /// For the one node.
    pub bytes_per_second: f64,
    /// For each physical core.
    pub bytes_per_second_per_core: f64,
    /// For each disk, where they are known.
    pub bytes_per_second_per_disk: Option<f64>,
    /// For each dollar of the machine's price.
    pub bytes_per_second_per_dollar: Option<f64>,
    /// Energy taken.
    pub joules: Option<f64>,
    /// The source of `joules`: `power` (the whole machine, from the user's figure) or `processors`
    /// (the processors alone, from their own counters).
    pub joules_of: Option<&'static str>,
    /// Records sorted per joule.
    pub records_per_joule: Option<f64>,
    /// Bytes sorted for each of them.
    pub bytes_per_joule: Option<f64>,
}

impl Efficiency {
    /// Of `bytes` and `records` sorted in `seconds`.
    pub(super) fn of_work(
        bytes: u64,
        records: Option<u64>,
        seconds: f64,
        machine: &ReportedMachine,
    ) -> Self {
        let rate = bytes as f64 / seconds;
        let joules = match (machine.power_watts, machine.processor_joules) {
            (Some(watts), _) => Some((watts * seconds, "power")),
            (None, Some(joules)) if joules > 0.0 => Some((joules, "processors")),
            _ => None,
        };
        let per_joule = |count: u64| joules.map(|(joules, _)| count as f64 / joules);
        Efficiency {
            bytes_per_second: rate,
            bytes_per_second_per_core: rate / machine.cores.max(1) as f64,
            bytes_per_second_per_disk: (machine.disks > 0).then(|| rate / machine.disks as f64),
            bytes_per_second_per_dollar: machine.price_dollars.map(|dollars| rate / dollars),
            joules: joules.map(|(joules, _)| joules),
            joules_of: joules.map(|(_, of)| of),
            records_per_joule: records.and_then(per_joule),
            bytes_per_joule: per_joule(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_shared_between_what_it_took() {
        let machine = ReportedMachine {
            cores: 4,
            disks: 2,
            price_dollars: Some(500.0),
            power_watts: Some(50.0),
            processor_joules: Some(7.0),
        };
        let found = Efficiency::of_work(1_000_000_000, Some(10_000_000), 2.0, &machine);
        assert_eq!(
            found,
            Efficiency {
                bytes_per_second: 5e8,
                bytes_per_second_per_core: 1.25e8,
                bytes_per_second_per_disk: Some(2.5e8),
                bytes_per_second_per_dollar: Some(1e6),
                joules: Some(100.0),
                joules_of: Some("power"),
                records_per_joule: Some(1e5),
                bytes_per_joule: Some(1e7),
            }
        );
        let machine = ReportedMachine {
            cores: 1,
            disks: 0,
            price_dollars: None,
            power_watts: None,
            ..machine
        };
        let found = Efficiency::of_work(14, None, 2.0, &machine);
        assert_eq!((found.joules_of, found.bytes_per_joule), (Some("processors"), Some(2.0)));
        assert_eq!((found.bytes_per_second_per_disk, found.records_per_joule), (None, None));
    }
}
