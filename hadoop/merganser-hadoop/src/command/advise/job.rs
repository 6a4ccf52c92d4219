//! `merganser hadoop advise --job`: which settings suit a job, and what others cost.
//!
//! All combinations of a few values are tried with the model of [`passes`](super::passes). Of those whose
//! time is within a percent of the best, the one with the smallest sort buffer, the smallest fan-in, the
//! block that is nearest to Hadoop's default, and without deferring is advised: more is not free, and the
//! model does not see a percent.

use std::path::Path;

use merganser_hadoop_node::shuffle::calibration::calibrate;
use merganser_shell::failure::Failure;
use merganser_shell::standard;
use serde_json::{Value, json};

use super::modelled::modelled;
use super::passes::{AdvisedCost, AdvisedSettings, DiskRates, cost, sort_bytes_max};
use crate::config::{AdviseJob, AdviseOn, HadoopJob};

const MIB: f64 = (1 << 20) as f64;
/// Values of `mapreduce.task.io.sort.mb` that are tried, as far as they fit in a heap.
const SORT_MIB: [f64; 10] = [32.0, 64.0, 100.0, 128.0, 192.0, 256.0, 400.0, 512.0, 1024.0, 2047.0];
/// Values of `mapreduce.task.io.sort.factor`.
const FACTORS: [u32; 5] = [10, 25, 50, 100, 200];
/// Values of `dfs.blocksize`; Hadoop's default is the third.
const BLOCK_MIB: [f64; 6] = [32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// Times that differ by less are the same.
const SAME: f64 = 1.01;

/// Prints the advice.
pub(super) fn run(config: &AdviseJob) -> Result<(), Failure> {
    let (disk, of) = match &config.on {
        AdviseOn::Dir(dir) => (disk_of(dir)?, format!("the disk of {}", dir.display())),
        AdviseOn::Device(choice) => {
            let HadoopJob { input_bytes, ratio, tasks, .. } = config.job;
            // Input, map output, runs of the reducers, and the result.
            let bytes = (input_bytes * (1.0 + 3.0 * ratio)) as u64;
            (modelled(choice, tasks as u32, bytes)?, choice.name.clone())
        }
    };
    let advice = SettingsAdvice::of_job(&config.job, disk)?;
    standard::print(if config.json { advice.json(&of) } else { advice.text(&of) })
}

/// The speed of the disk that `dir` is on, measured.
pub(super) fn disk_of(dir: &Path) -> Result<DiskRates, Failure> {
    let found = calibrate(dir, &[100], &[10]).map_err(|error| error.to_string())?;
    Ok(DiskRates { read_ns: found.read_ns, write_ns: found.write_ns, seek_ns: found.seek_ns })
}

/// The advised settings, and what leads to them.
struct SettingsAdvice {
    job: HadoopJob,
    disk: DiskRates,
    best: AdvisedSettings,
    cost: AdvisedCost,
    /// Every combination that was tried, with its seconds.
    all: Vec<(AdvisedSettings, f64)>,
}

impl SettingsAdvice {
    fn of_job(job: &HadoopJob, disk: DiskRates) -> Result<Self, Failure> {
        let all = combinations(job);
        if all.is_empty() {
            return Err(format!(
                "--memory: a task gets {:.0} MiB of heap, too little for a sort buffer of {} MiB; give \
                 more memory, a larger --heap, or fewer --cores",
                job.heap_bytes / MIB,
                SORT_MIB[0]
            )
            .into());
        }
        let timed: Vec<(AdvisedSettings, AdvisedCost)> =
            all.into_iter().map(|settings| (settings, cost(job, &disk, &settings))).collect();
        let least = timed.iter().map(|(_, cost)| cost.seconds()).fold(f64::INFINITY, f64::min);
        let all = timed.iter().map(|(settings, cost)| (*settings, cost.seconds())).collect();
        let same = timed.into_iter().filter(|(_, cost)| cost.seconds() <= least * SAME);
        let modest = |settings: &AdvisedSettings| {
            let from_default = (settings.block_bytes / MIB / BLOCK_MIB[2]).log2().abs();
            (settings.sort_bytes, settings.factor, from_default, settings.defer)
        };
        let (best, cost) = same
            .min_by(|(a, _), (b, _)| {
                modest(a).partial_cmp(&modest(b)).expect("no setting is not a number")
            })
            .expect("the least is among them");
        Ok(SettingsAdvice { job: *job, disk, best, cost, all })
    }

    /// Each parameter with its values, and the seconds of each with the others as advised.
    fn others(&self) -> Vec<(&'static str, Vec<(String, f64)>)> {
        let seconds = |settings: AdvisedSettings| cost(&self.job, &self.disk, &settings).seconds();
        let mebibytes = |bytes: f64| format!("{:.0}", bytes / MIB);
        let most = sort_bytes_max(&self.job);
        let sorts = SORT_MIB.iter().map(|mib| mib * MIB).filter(|bytes| *bytes <= most);
        let sorts = sorts.map(|sort_bytes| {
            (mebibytes(sort_bytes), seconds(AdvisedSettings { sort_bytes, ..self.best }))
        });
        let factors = FACTORS
            .iter()
            .map(|&factor| (factor.to_string(), seconds(AdvisedSettings { factor, ..self.best })));
        let blocks = BLOCK_MIB.iter().map(|mib| mib * MIB).map(|block_bytes| {
            (mebibytes(block_bytes), seconds(AdvisedSettings { block_bytes, ..self.best }))
        });
        let defers = [false, true].map(|defer| {
            let word = if defer { "on" } else { "off" };
            (word.to_owned(), seconds(AdvisedSettings { defer, ..self.best }))
        });
        vec![
            ("io.sort.mb", sorts.collect()),
            ("io.sort.factor", factors.collect()),
            ("dfs.blocksize, MiB", blocks.collect()),
            ("defer", defers.to_vec()),
        ]
    }

    fn properties(&self) -> [(&'static str, String); 4] {
        let AdvisedSettings { sort_bytes, factor, block_bytes, defer } = self.best;
        [
            ("mapreduce.task.io.sort.mb", format!("{:.0}", sort_bytes / MIB)),
            ("mapreduce.task.io.sort.factor", factor.to_string()),
            ("dfs.blocksize", format!("{block_bytes:.0}")),
            ("merganser.shuffle.defer", defer.to_string()),
        ]
    }

    fn text(&self, of: &str) -> String {
        let SettingsAdvice { job, disk, cost, .. } = self;
        let rate = |ns: f64| 1000.0 / ns;
        let mut lines = vec![
            format!(
                "Disk    {of}: reads {:.0} MB/s, writes {:.0} MB/s, {:.2} ms to another stream",
                rate(disk.read_ns),
                rate(disk.write_ns),
                disk.seek_ns / 1e6
            ),
            format!(
                "Job     {:.2} GB in, {:.2} GB of map output; {} tasks at once on {} processors with {:.0} MiB of heap each, {} reducers",
                job.input_bytes / 1e9,
                job.input_bytes * job.ratio / 1e9,
                job.tasks,
                job.cores,
                job.heap_bytes / MIB,
                job.reducers
            ),
            format!(
                "Maps    {} with {} {} each",
                cost.maps,
                cost.spills,
                if cost.spills == 1 { "spill" } else { "spills" }
            ),
            format!(
                "Time    {:.0} s: maps {:.0} s, reduces {:.0} s; the disk moves {:.1} GB with {:.0} seeks",
                cost.seconds(),
                cost.map_seconds,
                cost.reduce_seconds,
                cost.disk_bytes / 1e9,
                cost.seeks
            ),
            String::new(),
            "Seconds with one setting changed".to_owned(),
        ];
        for (name, values) in self.others() {
            let cells: Vec<_> =
                values.iter().map(|(value, seconds)| format!("{value}: {seconds:.0}")).collect();
            lines.push(format!("  {name:<20}{}", cells.join("  ")));
        }
        lines.push(String::new());
        for (name, value) in self.properties() {
            lines.push("<property>".to_owned());
            lines.push(format!("  <name>{name}</name>"));
            lines.push(format!("  <value>{value}</value>"));
            lines.push("</property>".to_owned());
        }
        lines.push(String::new());
        lines.push(
            "A prediction of a small model. docs/hadoop/advise-job.md compares it with a sort on Hadoop."
                .to_owned(),
        );
        lines.join("\n") + "\n"
    }

    fn json(&self, of: &str) -> String {
        let SettingsAdvice { job, disk, cost, .. } = self;
        let others: serde_json::Map<String, Value> = self
            .others()
            .into_iter()
            .map(|(name, values)| {
                let values: serde_json::Map<String, Value> =
                    values.into_iter().map(|(value, seconds)| (value, json!(seconds))).collect();
                (name.to_owned(), Value::Object(values))
            })
            .collect();
        let combinations: Vec<Value> = self
            .all
            .iter()
            .map(|(settings, seconds)| {
                json!({
                    "sort_mb": settings.sort_bytes / MIB,
                    "factor": settings.factor,
                    "block_mb": settings.block_bytes / MIB,
                    "defer": settings.defer,
                    "seconds": seconds,
                })
            })
            .collect();
        let advice: serde_json::Map<String, Value> = self
            .properties()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let value = json!({
            "disk": {
                "of": of,
                "read_ns_per_byte": disk.read_ns,
                "write_ns_per_byte": disk.write_ns,
                "seek_ns": disk.seek_ns,
            },
            "job": {
                "input_bytes": job.input_bytes,
                "map_output_ratio": job.ratio,
                "record_bytes": job.record_bytes,
                "tasks_at_once": job.tasks,
                "processors": job.cores,
                "processor_speed": job.speed,
                "heap_bytes": job.heap_bytes,
                "reducers": job.reducers,
            },
            "maps": cost.maps,
            "spills": cost.spills,
            "disk_bytes": cost.disk_bytes,
            "seeks": cost.seeks,
            "map_seconds": cost.map_seconds,
            "reduce_seconds": cost.reduce_seconds,
            "seconds_with_one_changed": others,
            "combinations": combinations,
            "advice": advice,
        });
        format!("{value:#}\n")
    }
}

fn combinations(job: &HadoopJob) -> Vec<AdvisedSettings> {
    let most = sort_bytes_max(job);
    let mut all = Vec::new();
    for sort_bytes in SORT_MIB.map(|mib| mib * MIB).into_iter().filter(|bytes| *bytes <= most) {
        for factor in FACTORS {
            for block_bytes in BLOCK_MIB.map(|mib| mib * MIB) {
                for defer in [false, true] {
                    all.push(AdvisedSettings { sort_bytes, factor, block_bytes, defer });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::passes::tests;
    use super::*;

    fn job() -> HadoopJob {
        HadoopJob { memory_bytes: 6.4e9, reducers: 4.0, ..tests::job() }
    }

    #[test]
    fn what_is_advised_is_within_a_percent_of_all_that_was_tried() {
        for (read_ns, write_ns, seek_ns) in [(8.0, 8.0, 12e6), (1.9, 2.5, 0.1e6), (0.3, 0.4, 0.0)] {
            let disk = DiskRates { read_ns, write_ns, seek_ns };
            let advice = SettingsAdvice::of_job(&job(), disk).expect("advice");
            for settings in combinations(&job()) {
                let other = cost(&job(), &disk, &settings).seconds();
                assert!(advice.cost.seconds() <= other * SAME, "{settings:?} takes {other}");
            }
            assert!(advice.best.sort_bytes <= sort_bytes_max(&job()));
            assert!(advice.text("a disk").contains("<name>dfs.blocksize</name>"));
            serde_json::from_str::<Value>(&advice.json("a disk")).expect("data");
        }
    }

    #[test]
    fn too_little_memory_is_said() {
        let disk = DiskRates { read_ns: 8.0, write_ns: 8.0, seek_ns: 12e6 };
        let small = HadoopJob { memory_bytes: 256e6, heap_bytes: 32e6, ..job() };
        let said = SettingsAdvice::of_job(&small, disk).err().expect("refused");
        let said = said.sentence().expect("a sentence");
        assert!(said.starts_with("--memory: a task gets 31 MiB of heap, too little"), "{said}");
    }
}
