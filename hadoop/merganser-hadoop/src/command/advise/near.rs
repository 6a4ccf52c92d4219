//! `merganser hadoop advise --job SIZE --host-cpu NS --node-cpu NS`: whether the maps of a job pay on the node of their
//! blocks, with the arithmetic shown.
//!
//! ```text
//!                 per task      per byte of input, in nanoseconds       bytes that enter a task
//!   in the task   its start  +  the mapper                              1
//!   on the node   its start  +  the SSDlet + R * HANDOVER               R    = bytes of map output per byte of input
//! ```
//! The task starts in both cases: a virtual machine, its classes, its end. Its split's records are then mapped by one thread.
//! The disk reads the input and writes the map output in both cases. Tasks run in waves of as many as may run at the
//! same time. A wave takes its start, and then as long as the slower of the disk and the processors.

use merganser_shell::failure::Failure;
use merganser_shell::standard;
use serde_json::json;

use super::job::disk_of;
use super::modelled::modelled;
use super::passes::DiskRates;
use crate::config::{AdviseMaps, AdviseOn, TaskStart};

/// Nanoseconds for each byte that the node hands to a task: two copies through a socket, a check, a write. Assumed.
const HANDOVER_NS: f64 = 2.0;
/// Gains below this part are not counted: the model is not that exact.
const LEAST_GAIN: f64 = 1.1;
/// With more map output per byte of input, handing it over is no less than reading the input.
const RATIO_MUCH: f64 = 0.9;
/// If the starts of tasks are this part of a map phase, they limit it.
const STARTS_MUCH: f64 = 0.5;

/// Prints the advice.
pub(super) fn run(config: &AdviseMaps) -> Result<(), Failure> {
    let (disk, of) = match &config.on {
        AdviseOn::Dir(dir) => (disk_of(dir)?, format!("the disk of {}", dir.display())),
        AdviseOn::Device(choice) => {
            let bytes = config.input_bytes * (1.0 + config.ratio);
            (modelled(choice, config.cores as u32, bytes as u64)?, choice.name.clone())
        }
    };
    let advice = NearAdvice::of_config(config, &disk);
    standard::print(if config.json { advice.json(&of) } else { advice.text(&of) })
}

/// Where the seconds of a map phase go.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MapPhase {
    /// Processor time for each byte of input without the start of tasks, in nanoseconds.
    cpu_ns: f64,
    /// All processors, one after the other, with the starts of tasks.
    cpu_seconds: f64,
    disk_seconds: f64,
    /// Seconds in which tasks start, of the next field.
    start_seconds: f64,
    seconds: f64,
    /// Bytes that enter the tasks.
    task_bytes: f64,
}

impl MapPhase {
    fn of_config(config: &AdviseMaps, disk: &DiskRates, cpu_ns: f64, task_bytes: f64) -> Self {
        let AdviseMaps { input_bytes, ratio, tasks, start, .. } = *config;
        let maps = config.maps();
        let disk_ns = disk.read_ns + ratio * disk.write_ns;
        let last = maps % tasks;
        let full = (maps - last) / tasks;
        let (mut start_seconds, mut seconds) = (0.0, 0.0);
        for (waves, at_once) in [(full, tasks), (f64::from(last > 0.0), last)] {
            // More tasks than processors take turns.
            let turns = (at_once / config.cores).max(1.0);
            let starts = start.seconds.max(at_once * start.cpu_seconds / config.cores);
            let bytes = input_bytes / maps;
            let work = (at_once * bytes * disk_ns).max(turns * bytes * cpu_ns) / 1e9;
            start_seconds += waves * starts;
            seconds += waves * (starts + work);
        }
        MapPhase {
            cpu_ns,
            cpu_seconds: maps * start.cpu_seconds + input_bytes * cpu_ns / 1e9,
            disk_seconds: input_bytes * disk_ns / 1e9,
            start_seconds,
            seconds,
            task_bytes,
        }
    }
}

/// Both ways to run the maps, and which one to choose.
struct NearAdvice<'a> {
    config: &'a AdviseMaps,
    task: MapPhase,
    node: MapPhase,
}

impl<'a> NearAdvice<'a> {
    fn of_config(config: &'a AdviseMaps, disk: &DiskRates) -> Self {
        let AdviseMaps { input_bytes, ratio, node_ns, .. } = *config;
        let node_ns = node_ns + ratio * HANDOVER_NS;
        let task = MapPhase::of_config(config, disk, config.mapper_ns(), input_bytes);
        let node = MapPhase::of_config(config, disk, node_ns, input_bytes * ratio);
        NearAdvice { config, task, node }
    }

    fn faster(&self) -> f64 {
        self.task.seconds / self.node.seconds
    }

    fn cheaper(&self) -> f64 {
        self.task.cpu_seconds / self.node.cpu_seconds
    }

    /// The same as [`NearAdvice::faster`] for the whole job, whose other phases take as long in both cases.
    fn job_faster(&self) -> f64 {
        let rest = self.config.rest_seconds;
        (self.task.seconds + rest) / (self.node.seconds + rest)
    }

    fn pays(&self) -> bool {
        self.faster() >= LEAST_GAIN
            || self.faster() * LEAST_GAIN >= 1.0 && self.cheaper() >= LEAST_GAIN
    }

    fn reasons(&self) -> Vec<String> {
        let (ratio, node) = (self.config.ratio, self.node);
        let mut reasons = Vec::new();
        if self.faster() >= LEAST_GAIN {
            reasons.push(format!(
                "the map phase takes 1/{:.2} of the time, and the job 1/{:.2}",
                self.faster(),
                self.job_faster()
            ));
        }
        if self.cheaper() >= LEAST_GAIN {
            reasons.push(format!("processors work 1/{:.2} of the time", self.cheaper()));
        } else if self.task.cpu_ns < node.cpu_ns * LEAST_GAIN {
            reasons.push(format!(
                "computing is no cheaper there: {:.1} ns per byte against {:.1}, of which the SSDlet takes {:.1}",
                node.cpu_ns, self.task.cpu_ns, self.config.node_ns
            ));
        }
        if node.start_seconds >= node.seconds * STARTS_MUCH {
            reasons.push(format!(
                "tasks take {:.0} of the {:.0} s on the node to start; larger splits would make it less",
                node.start_seconds, node.seconds
            ));
        }
        if ratio >= RATIO_MUCH {
            reasons.push(format!(
                "the map hands out {ratio:.2} bytes for each that it reads, so tasks are spared no bytes; only a combiner or a filter would change that"
            ));
        }
        let after = node.seconds - node.start_seconds;
        if self.faster() < LEAST_GAIN
            && node.disk_seconds >= after * 0.999
            && after > node.start_seconds
        {
            reasons.push(format!(
                "the disk takes {:.0} s wherever the maps run, and computing hides behind it",
                node.disk_seconds
            ));
        }
        reasons
    }

    fn text(&self, of: &str) -> String {
        let NearAdvice { config, task, node } = self;
        let mb = |bytes: f64| bytes / 1e6;
        let maps = config.maps();
        let each = config.input_bytes / maps;
        let row = |name: &str, phase: &MapPhase| {
            format!(
                "  {name:<13}{:>12.1}{:>14.0}{:>10.0}{:>11.0}{:>10.0}{:>18.0}",
                phase.cpu_ns,
                phase.cpu_seconds,
                phase.disk_seconds,
                phase.start_seconds,
                phase.seconds,
                mb(phase.task_bytes)
            )
        };
        let mut lines = vec![
            format!(
                "Maps of {:.2} GB on the node of their blocks: {}",
                config.input_bytes / 1e9,
                if self.pays() { "they pay" } else { "no" }
            ),
            String::new(),
            "                ns per byte  processor, s   disk, s  starts, s  phase, s  MB that tasks get"
                .to_owned(),
            row("in the tasks", task),
            row("on the node", node),
            String::new(),
            format!(
                "  start: {maps} maps of {:.1} MB, {} at once on {} processors; each takes {} s and {} s of processor besides mapping",
                mb(each), config.tasks, config.cores, config.start.seconds, config.start.cpu_seconds
            ),
            format!(
                "  tasks: {:.1} ns - {} s of the start of each that are counted with them = {:.1}",
                config.host_ns, config.start.counted_seconds, task.cpu_ns
            ),
            format!(
                "  node: {:.1} ns of the SSDlet + {:.2} bytes of map output x {HANDOVER_NS:.1} ns to hand one over (assumed) = {:.1}",
                config.node_ns, config.ratio, node.cpu_ns
            ),
            format!(
                "  phase: starts, then the slower of {of} and the processors; times {:.2}",
                self.faster()
            ),
            format!(
                "  job: {} s in addition to its maps; times {:.2}",
                config.rest_seconds,
                self.job_faster()
            ),
            String::new(),
        ];
        lines.extend(self.reasons().into_iter().map(|reason| format!("- {reason}")));
        lines.join("\n") + "\n"
    }

    fn json(&self, of: &str) -> String {
        let phase = |phase: &MapPhase| {
            json!({
                "cpu_ns_per_byte": phase.cpu_ns,
                "cpu_seconds": phase.cpu_seconds,
                "disk_seconds": phase.disk_seconds,
                "start_seconds": phase.start_seconds,
                "seconds": phase.seconds,
                "task_bytes": phase.task_bytes,
            })
        };
        let TaskStart { seconds, cpu_seconds, counted_seconds } = self.config.start;
        let value = json!({
            "disk": of,
            "input_bytes": self.config.input_bytes,
            "split_bytes": self.config.split_bytes,
            "maps": self.config.maps(),
            "processors": self.config.cores,
            "tasks_at_once": self.config.tasks,
            "task_start_seconds": seconds,
            "task_start_cpu_seconds": cpu_seconds,
            "task_start_counted_seconds": counted_seconds,
            "job_rest_seconds": self.config.rest_seconds,
            "map_output_ratio": self.config.ratio,
            "handover_ns_per_byte": HANDOVER_NS,
            "in_tasks": phase(&self.task),
            "on_node": phase(&self.node),
            "phase_times": self.faster(),
            "job_times": self.job_faster(),
            "pays": self.pays(),
            "reasons": self.reasons(),
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DiskRates = DiskRates { read_ns: 2.0, write_ns: 2.5, seek_ns: 0.0 };
    const NO_START: TaskStart = TaskStart { seconds: 0.0, cpu_seconds: 0.0, counted_seconds: 0.0 };

    /// Tasks that start in no time.
    fn job(ratio: f64, host_ns: f64, node_ns: f64) -> AdviseMaps {
        AdviseMaps {
            input_bytes: 10e9,
            ratio,
            split_bytes: 125e6,
            cores: 2.0,
            tasks: 2.0,
            start: NO_START,
            rest_seconds: 0.0,
            host_ns,
            node_ns,
            on: AdviseOn::Dir(".".into()),
            json: false,
        }
    }

    /// Whether it pays, and all reasons.
    fn advice_on(config: &AdviseMaps) -> (bool, String) {
        let advice = NearAdvice::of_config(config, &DISK);
        let text = advice.text("a disk");
        let data: serde_json::Value = serde_json::from_str(&advice.json("a disk")).expect("data");
        assert_eq!(data["pays"], advice.pays());
        assert!(text.contains(if advice.pays() { "they pay" } else { "blocks: no" }), "{text}");
        (advice.pays(), advice.reasons().join("; "))
    }

    fn advice(ratio: f64, host_ns: f64, node_ns: f64) -> (bool, String) {
        advice_on(&job(ratio, host_ns, node_ns))
    }

    fn near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-9
    }

    /// The sum by hand: 10 GB, two processors, 2 ns to hand a byte over.
    #[test]
    fn a_count_of_words_pays() {
        let config = job(0.01, 100.0, 20.0);
        let NearAdvice { task, node, .. } = NearAdvice::of_config(&config, &DISK);
        assert!(near(task.cpu_seconds, 1000.0) && near(task.seconds, 500.0), "{task:?}");
        assert!(near(node.cpu_ns, 20.02) && near(node.seconds, 100.1), "{node:?}");
        assert!(near(node.disk_seconds, 20.25));
        assert_eq!((task.task_bytes, node.task_bytes), (10e9, 0.1e9));
        let (pays, reasons) = advice(0.01, 100.0, 20.0);
        assert!(pays && reasons.starts_with("the map phase takes 1/5.00"), "{reasons}");
    }

    /// The same with tasks that start: 80 maps, two at once.
    #[test]
    fn each_task_starts_in_both_cases() {
        let start = TaskStart { seconds: 1.0, cpu_seconds: 3.0, counted_seconds: 0.5 };
        let config = AdviseMaps { start, rest_seconds: 10.0, ..job(0.01, 104.0, 20.0) };
        // 0.5 s in 125 MB are 4 ns for each byte.
        assert!(near(config.mapper_ns(), 100.0));
        let advice = NearAdvice::of_config(&config, &DISK);
        let (task, node) = (advice.task, advice.node);
        // Two starts take 3 s on two processors, 40 times.
        assert!(near(task.start_seconds, 120.0) && near(node.start_seconds, 120.0), "{task:?}");
        assert!(near(task.seconds, 620.0) && near(node.seconds, 220.1), "{task:?} {node:?}");
        assert!(near(task.cpu_seconds, 1240.0) && near(node.cpu_seconds, 440.2));
        assert!(near(advice.job_faster(), 630.0 / 230.1));
        // One at a time, with a processor to spare.
        let config = AdviseMaps { tasks: 1.0, ..config };
        let NearAdvice { task, .. } = NearAdvice::of_config(&config, &DISK);
        assert!(near(task.start_seconds, 120.0) && near(task.seconds, 1120.0), "{task:?}");
        // 80 in waves of three: the last one has two.
        let config = AdviseMaps { tasks: 3.0, ..config };
        let NearAdvice { task, .. } = NearAdvice::of_config(&config, &DISK);
        assert!(near(task.start_seconds, 26.0 * 4.5 + 3.0), "{task:?}");
        assert!(near(task.seconds, 26.0 * (4.5 + 18.75) + 3.0 + 12.5), "{task:?}");
    }

    #[test]
    fn small_splits_leave_little_to_gain() {
        let start = TaskStart { seconds: 1.8, cpu_seconds: 2.7, counted_seconds: 0.4 };
        let config = |split_bytes| AdviseMaps { start, split_bytes, ..job(0.0, 10.0, 1.0) };
        let (small, large) = (config(50e6), config(1e9));
        let (pays, reasons) = advice_on(&small);
        assert!(!pays && reasons.starts_with("tasks take 270 of the 290 s"), "{reasons}");
        let (pays, reasons) = advice_on(&large);
        assert!(pays && reasons.starts_with("the map phase takes 1/1.84"), "{reasons}");
    }

    /// A map that hands out what it reads, as a sort's does, and that costs about the same in both places. The numbers are
    /// an example.
    #[test]
    fn a_sort_is_refused() {
        let (pays, reasons) = advice(1.0, 20.0, 18.0);
        assert!(!pays);
        assert!(reasons.contains("hands out 1.00 bytes for each that it reads"), "{reasons}");
        assert!(reasons.contains("20.0 ns per byte against 20.0"), "{reasons}");
    }

    /// A map that reads little and computes much, as that of k-means with many centers: where it computes does not matter, or
    /// it matters for the worse. The numbers are an example.
    #[test]
    fn much_computing_is_refused() {
        for node_ns in [380.0, 400.0, 1600.0] {
            let (pays, reasons) = advice(0.0001, 400.0, node_ns);
            assert!(!pays && reasons.starts_with("computing is no cheaper there"), "{reasons}");
        }
    }

    #[test]
    fn a_disk_that_binds_leaves_only_the_processors_to_be_spared() {
        let (pays, reasons) = advice(0.0, 3.0, 2.9);
        assert!(!pays && reasons.contains("the disk takes 20 s wherever"), "{reasons}");
        let (pays, reasons) = advice(0.0, 3.0, 1.0);
        assert!(pays && reasons.starts_with("processors work 1/3.00"), "{reasons}");
    }

    /// Against the jobs that were measured on Hadoop: docs/hadoop/advise-job.md has these rows.
    mod measured {
        use serde_json::Value;

        use super::*;

        const RESULTS: &str = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../lab/bench/results/2026-11-23-epyc-2-cores-24-gib-isc/isc.json"
        );
        const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hadoop/advise-job.md");
        /// Seconds of a map task: predicted over measured.
        const SECONDS: std::ops::RangeInclusive<f64> = 0.7..=1.3;
        /// Gains of a map task and of the job: predicted over measured.
        const GAINS: std::ops::RangeInclusive<f64> = 0.75..=1.33;
        const START: TaskStart = TaskStart { seconds: 1.8, cpu_seconds: 2.7, counted_seconds: 0.4 };
        /// The disk of that machine was not the limit: the files are read at some hundred MB/s.
        const DISK: DiskRates = DiskRates { read_ns: 2.0, write_ns: 2.0, seek_ns: 0.0 };

        fn median(mut all: Vec<f64>) -> f64 {
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        }

        /// Medians over the rounds of a job's pairs.
        struct Rounds(Vec<Value>);

        impl Rounds {
            fn of_job(job: &str, file_bytes: u64, files: u64) -> Self {
                let all = std::fs::read_to_string(RESULTS).expect("the results");
                let all: Value = serde_json::from_str(&all).expect("JSON");
                let pairs = all["pairs"].as_array().expect("pairs").iter().filter(|pair| {
                    let cell = &pair["cell"];
                    cell["job"] == job
                        && cell["file_bytes"] == file_bytes
                        && cell["files"] == files
                        && cell["disk"] == "own"
                        && cell["only"] == ""
                });
                let pairs: Vec<Value> = pairs.cloned().collect();
                assert_eq!(pairs.len(), 3, "three rounds of {job}");
                Rounds(pairs)
            }

            fn median(&self, figure: impl Fn(&Value) -> f64) -> f64 {
                median(self.0.iter().map(figure).collect())
            }

            fn at(&self, path: &str) -> f64 {
                self.median(|pair| pair.pointer(path).and_then(Value::as_f64).expect("a number"))
            }

            fn gain(&self, figure: &str) -> f64 {
                let of = |pair: &Value, who| {
                    let path = format!("/{who}/{figure}");
                    pair.pointer(&path).and_then(Value::as_f64).expect("a number")
                };
                self.median(|pair| of(pair, "stock") / of(pair, "node"))
            }

            /// The job as an operator would describe it: by counters, and by the processor time of its tasks.
            fn config(&self, job: &str, files: u64) -> AdviseMaps {
                let input_bytes = self.at("/stock/counters/HDFS_BYTES_READ");
                // The processor time of map tasks was read from /proc, so all of their start is in it. Grep is two
                // jobs, and the figure has the maps of both. So its figure is CPU_MILLISECONDS of the first one, without the
                // two reducers, which have nothing to do but to start.
                let (cpu_seconds, counted_seconds) = if job == "grep" {
                    let all = self.at("/stock/counters/CPU_MILLISECONDS") / 1e3;
                    (all - 2.0 * START.counted_seconds, START.counted_seconds)
                } else {
                    (self.at("/stock/cpu_s/maps"), START.cpu_seconds)
                };
                AdviseMaps {
                    input_bytes,
                    ratio: self.at("/node/counters/NODE_BYTES_SENT") / input_bytes,
                    split_bytes: (input_bytes / files as f64).ceil(),
                    cores: 2.0,
                    tasks: 1.0,
                    start: TaskStart { counted_seconds, ..START },
                    rest_seconds: 7.8,
                    host_ns: cpu_seconds * 1e9 / input_bytes,
                    node_ns: self.at("/node/counters/NODE_CPU_MILLISECONDS") * 1e6
                        / self.at("/node/counters/NODE_BYTES_READ"),
                    on: AdviseOn::Dir(".".into()),
                    json: false,
                }
            }
        }

        fn page() -> String {
            std::fs::read_to_string(PAGE).expect("the page")
        }

        /// The constants that are defaults are those of a job of one line.
        #[test]
        fn the_start_of_a_task_is_that_of_a_job_of_one_line() {
            let line = Rounds::of_job("wordcount", 850, 1);
            let rest = line.median(|pair| {
                let of = |figure: &str| pair["stock"][figure].as_f64().expect("a number");
                of("elapsed_s") - of("maps_s")
            });
            assert!((line.at("/stock/maps_s") - START.seconds).abs() < 0.05);
            assert!((line.at("/stock/cpu_s/maps") - START.cpu_seconds).abs() < 0.05);
            assert!((rest - 7.8).abs() < 0.05, "{rest}");
            // One map and two reducers.
            let counted = line.at("/stock/counters/CPU_MILLISECONDS") / 1e3 / 3.0;
            assert!((counted - START.counted_seconds).abs() < 0.05, "{counted}");
            // The same from jobs of eight and of two maps, whose tasks map nothing.
            let of = |files| {
                let rounds = Rounds::of_job("wordcount", 128_000_000, files);
                rounds.at("/node/counters/CPU_MILLISECONDS") / 1e3
            };
            let counted = (of(8) - of(2)) / 6.0;
            assert!((counted - START.counted_seconds).abs() < 0.05, "{counted}");
        }

        #[test]
        fn eight_jobs_are_predicted_within_the_bands() {
            let (page, mut wrong) = (page(), Vec::new());
            for job in [
                "wordcount",
                "inverted-index",
                "sequence-count",
                "histogram-ratings",
                "term-vector",
                "ranked-inverted-index",
                "histogram-movies",
                "grep",
            ] {
                let rounds = Rounds::of_job(job, 64_000_000, 1);
                let config = rounds.config(job, 1);
                let advice = NearAdvice::of_config(&config, &DISK);
                let seconds = [
                    (advice.task.seconds, rounds.at("/stock/task_s/0")),
                    (advice.node.seconds, rounds.at("/node/task_s/0")),
                ];
                let gains = [
                    (advice.faster(), rounds.gain("task_s/0")),
                    (advice.job_faster(), rounds.gain("elapsed_s")),
                ];
                let row = format!(
                    "| {job} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                    config.mapper_ns(),
                    config.node_ns,
                    seconds[0].0,
                    seconds[0].1,
                    seconds[1].0,
                    seconds[1].1,
                    gains[0].0,
                    gains[0].1,
                    gains[1].0,
                    gains[1].1
                );
                let within = |pairs: [(f64, f64); 2], band: &std::ops::RangeInclusive<f64>| {
                    pairs.iter().all(|(predicted, found)| band.contains(&(predicted / found)))
                };
                if !within(seconds, &SECONDS) || !within(gains, &GAINS) {
                    wrong.push(format!("outside of the bands: {row}"));
                }
                if advice.pays() != (gains[0].1 >= LEAST_GAIN) {
                    wrong.push(format!("another verdict: {row}"));
                }
                if !page.contains(&row) {
                    wrong.push(format!("not in docs/hadoop/advise-job.md: {row}"));
                }
            }
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }

        /// Larger jobs are shown, without a band: reducers start while later maps run, which the model leaves out.
        #[test]
        fn larger_jobs_are_shown_as_they_are() {
            let (page, mut wrong) = (page(), Vec::new());
            for (files, name) in [(1, "128 MB"), (2, "256 MB"), (4, "512 MB"), (8, "1 GB")] {
                let rounds = Rounds::of_job("wordcount", 128_000_000, files);
                let config = rounds.config("wordcount", files);
                let advice = NearAdvice::of_config(&config, &DISK);
                let row = format!(
                    "| {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} |",
                    advice.task.seconds,
                    rounds.at("/stock/maps_s"),
                    advice.node.seconds,
                    rounds.at("/node/maps_s"),
                    advice.faster(),
                    rounds.gain("maps_s"),
                    advice.job_faster(),
                    rounds.gain("elapsed_s"),
                );
                if !page.contains(&row) {
                    wrong.push(row);
                }
            }
            assert!(wrong.is_empty(), "not in docs/hadoop/advise-job.md:\n{}", wrong.join("\n"));
        }
    }
}
