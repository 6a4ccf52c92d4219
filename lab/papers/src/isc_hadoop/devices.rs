//! Figures 12 and 15: one to four DataNodes, each with a disk of its own.

use super::results::{BUSY, ELAPSED, MAPS, PairSettings, StudyResults};
use crate::error::ExperimentError;
use crate::isc::paper::JOB_GAIN;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

const FILES: u64 = 4;
const FILE_BYTES: u64 = 64_000_000;
const DEVICES: [u64; 3] = [1, 2, 4];
const DISKS: [(&str, &str); 2] = [("slow", "disks of 16 MB/s"), ("fast", "disks of any speed")];
/// This share of the ideal counts as near to linear.
const NEAR: f64 = 0.8;

/// Reads the results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&StudyResults::of(lab, "isc-hadoop-devices", "devices")?))
}

fn pair(disk: &str, devices: u64) -> PairSettings {
    PairSettings { devices, disk: disk.into(), ..PairSettings::new("wordcount", FILE_BYTES, FILES) }
}

fn outcome(results: &StudyResults) -> Outcome {
    let mut sections = Vec::new();
    let mut series = Vec::new();
    for (disk, name) in DISKS {
        let mut gains =
            OutcomeSection::new(format!("{name}: stock's seconds over the node's (12a, 15)"));
        let mut scale = OutcomeSection::new(format!("{name}: times as fast as with one"));
        let mut seconds = OutcomeSection::new(format!("{name}: seconds of the maps"));
        let mut busy =
            OutcomeSection::new(format!("{name}: processors busy while the client ran, of 2"));
        let one = results.both(&pair(disk, 1), MAPS);
        let mut points = [Vec::new(), Vec::new()];
        for devices in DEVICES {
            let pair = pair(disk, devices);
            let of = format!("{devices} DataNode{}", if devices > 1 { "s" } else { "" });
            let gain = results.gain(&pair, ELAPSED);
            gains.reach(&format!("job, {of}"), Some(JOB_GAIN), JOB_GAIN, gain);
            let maps = results.both(&pair, MAPS);
            seconds.medians(&of, maps);
            if devices > 1 {
                let times = one.zip(maps).map(|(one, maps)| (one.0 / maps.0, one.1 / maps.1));
                let least = NEAR * devices as f64;
                let ideal = Some(devices as f64);
                scale.reach(&format!("maps, {of}, node"), ideal, least, times.map(|t| t.1));
                scale.told(&format!("maps, {of}, stock"), times.map(|t| t.0));
            }
            busy.medians(&of, results.both(&pair, BUSY));
            if let Some((stock, node)) = maps {
                points[0].push((devices as f64, stock));
                points[1].push((devices as f64, node));
            }
        }
        for (who, points) in ["stock", "node"].into_iter().zip(points) {
            series.push(ChartSeries { name: format!("{name}, {who}"), paper: false, points });
        }
        sections.extend([gains, scale, seconds, busy]);
    }
    let mut differs = results.differs();
    differs.push(
        "All DataNodes are on this machine with two cores, each with a loop device; `16 MB/s` is a throttle of control groups. \
         4 maps of 64 MB are divided evenly among one, two or four DataNodes, and as many maps run at once. One process \
         maps for all of them, as a task knows one socket. The paper's machines have processors of their own: here, two \
         cores bind when the machine's processors are busy all the time."
            .into(),
    );
    Outcome {
        sections,
        differs,
        chart: Chart::Lines {
            title: "Word count of 256 MB by DataNodes".into(),
            axes: ["DataNodes, each with a disk".into(), "seconds of the maps".into()],
            series,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn scaling_is_that_of_each_contender() {
        let rounds = [(pair("slow", 1), 4., 2.), (pair("slow", 2), 4., 1.)];
        let json = crate::report::tests::json(outcome(&results(&rounds)));
        let scale = &json["sections"][1]["rows"];
        assert_eq!(scale[0]["what"], "maps, 2 DataNodes, node; at least 1.6: held");
        assert_eq!(scale[0]["ours"], 2.);
        assert_eq!(scale[1]["ours"], 1.);
        assert!(scale[2]["ours"].is_null());
        // The client starts before the job is submitted and ends after it.
        assert_eq!(json["sections"][3]["rows"][0]["ours"], 0.5);
    }
}
