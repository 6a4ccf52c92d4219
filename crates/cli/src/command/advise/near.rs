//! `merganser advise hadoop --job SIZE --host-cpu NS --node-cpu NS`: whether the maps of a job pay on the node of their
//! blocks, with the arithmetic shown.
//!
//! ```text
//!                 per byte of input, in nanoseconds       bytes that enter a task
//!   in the task   the mapper                              1
//!   on the node   the SSDlet + R * HANDOVER               R    = bytes of map output per byte of input
//! ```
//! The disk reads the input and writes the map output in both cases. A map phase takes as long as the slower of the disk
//! and the processors.

use serde_json::json;

use super::job::{disk_of, modelled};
use super::passes::Disk;
use crate::config::{AdviseMaps, AdviseOn};
use crate::failure::Failure;
use crate::standard;

/// Nanoseconds for each byte that the node hands to a task: two copies through a socket, a check, a write. Assumed.
const HANDOVER_NS: f64 = 2.0;
/// Gains below this part are not counted: the model is not that exact.
const LEAST_GAIN: f64 = 1.1;
/// With more map output per byte of input, handing it over is no less than reading the input.
const RATIO_MUCH: f64 = 0.9;

/// Prints the advice.
pub fn run(config: &AdviseMaps) -> Result<(), Failure> {
    let (disk, of) = match &config.on {
        AdviseOn::Dir(dir) => (disk_of(dir)?, format!("the disk of {}", dir.display())),
        AdviseOn::Device(choice) => {
            let bytes = config.input_bytes * (1.0 + config.ratio);
            (modelled(choice, config.cores as u32, bytes as u64)?, choice.name.clone())
        }
    };
    let advice = Advice::of(config, &disk);
    standard::print(if config.json { advice.json(&of) } else { advice.text(&of) })
}

/// Where the seconds of a map phase go.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Phase {
    /// Processor time for each byte of input, in nanoseconds.
    cpu_ns: f64,
    /// All processors, one after the other.
    cpu_seconds: f64,
    disk_seconds: f64,
    seconds: f64,
    /// Bytes that enter the tasks.
    task_bytes: f64,
}

impl Phase {
    fn of(config: &AdviseMaps, disk: &Disk, cpu_ns: f64, task_bytes: f64) -> Self {
        let AdviseMaps { input_bytes, ratio, cores, .. } = *config;
        let cpu_seconds = input_bytes * cpu_ns / 1e9;
        let disk_seconds = input_bytes * (disk.read_ns + ratio * disk.write_ns) / 1e9;
        let seconds = disk_seconds.max(cpu_seconds / cores);
        Phase { cpu_ns, cpu_seconds, disk_seconds, seconds, task_bytes }
    }
}

/// Both ways to run the maps, and which one to choose.
struct Advice<'a> {
    config: &'a AdviseMaps,
    task: Phase,
    node: Phase,
}

impl<'a> Advice<'a> {
    fn of(config: &'a AdviseMaps, disk: &Disk) -> Self {
        let AdviseMaps { input_bytes, ratio, host_ns, node_ns, .. } = *config;
        let node_ns = node_ns + ratio * HANDOVER_NS;
        let task = Phase::of(config, disk, host_ns, input_bytes);
        let node = Phase::of(config, disk, node_ns, input_bytes * ratio);
        Advice { config, task, node }
    }

    fn faster(&self) -> f64 {
        self.task.seconds / self.node.seconds
    }

    fn cheaper(&self) -> f64 {
        self.task.cpu_ns / self.node.cpu_ns
    }

    fn pays(&self) -> bool {
        self.faster() >= LEAST_GAIN
            || self.faster() * LEAST_GAIN >= 1.0 && self.cheaper() >= LEAST_GAIN
    }

    fn reasons(&self) -> Vec<String> {
        let (ratio, node) = (self.config.ratio, self.node);
        let mut reasons = Vec::new();
        if self.faster() >= LEAST_GAIN {
            reasons.push(format!("the map phase takes 1/{:.2} of the time", self.faster()));
        }
        if self.cheaper() >= LEAST_GAIN {
            reasons.push(format!("processors work 1/{:.2} of the time", self.cheaper()));
        } else {
            reasons.push(format!(
                "computing is no cheaper there: {:.1} ns per byte against {:.1}, of which the SSDlet takes {:.1}",
                node.cpu_ns, self.task.cpu_ns, self.config.node_ns
            ));
        }
        if ratio >= RATIO_MUCH {
            reasons.push(format!(
                "the map hands out {ratio:.2} bytes for each that it reads, so tasks are spared no bytes; only a combiner or a filter would change that"
            ));
        }
        if self.faster() < LEAST_GAIN && node.disk_seconds >= node.seconds {
            reasons.push(format!(
                "the disk takes {:.0} s wherever the maps run, and computing hides behind it",
                node.disk_seconds
            ));
        }
        reasons
    }

    fn text(&self, of: &str) -> String {
        let Advice { config, task, node } = self;
        let mb = |bytes: f64| bytes / 1e6;
        let row = |name: &str, phase: &Phase| {
            format!(
                "  {name:<13}{:>12.1}{:>14.0}{:>10.0}{:>10.0}{:>18.0}",
                phase.cpu_ns,
                phase.cpu_seconds,
                phase.disk_seconds,
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
            "                ns per byte  processor, s   disk, s  phase, s  MB that tasks get"
                .to_owned(),
            row("in the tasks", task),
            row("on the node", node),
            String::new(),
            format!(
                "  node: {:.1} ns of the SSDlet + {:.2} bytes of map output x {HANDOVER_NS:.1} ns to hand one over (assumed) = {:.1}",
                config.node_ns, config.ratio, node.cpu_ns
            ),
            format!(
                "  phase: the slower of {of} and {} processors; times {:.2}",
                config.cores,
                self.faster()
            ),
            String::new(),
        ];
        lines.extend(self.reasons().into_iter().map(|reason| format!("- {reason}")));
        lines.join("\n") + "\n"
    }

    fn json(&self, of: &str) -> String {
        let phase = |phase: &Phase| {
            json!({
                "cpu_ns_per_byte": phase.cpu_ns,
                "cpu_seconds": phase.cpu_seconds,
                "disk_seconds": phase.disk_seconds,
                "seconds": phase.seconds,
                "task_bytes": phase.task_bytes,
            })
        };
        let value = json!({
            "disk": of,
            "input_bytes": self.config.input_bytes,
            "map_output_ratio": self.config.ratio,
            "handover_ns_per_byte": HANDOVER_NS,
            "in_tasks": phase(&self.task),
            "on_node": phase(&self.node),
            "pays": self.pays(),
            "reasons": self.reasons(),
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Disk = Disk { read_ns: 2.0, write_ns: 2.5, seek_ns: 0.0 };

    fn job(ratio: f64, host_ns: f64, node_ns: f64) -> AdviseMaps {
        let on = AdviseOn::Dir(".".into());
        AdviseMaps { input_bytes: 10e9, ratio, cores: 2.0, host_ns, node_ns, on, json: false }
    }

    /// Whether it pays, and all reasons.
    fn advice(ratio: f64, host_ns: f64, node_ns: f64) -> (bool, String) {
        let config = job(ratio, host_ns, node_ns);
        let advice = Advice::of(&config, &DISK);
        let text = advice.text("a disk");
        let data: serde_json::Value = serde_json::from_str(&advice.json("a disk")).expect("data");
        assert_eq!(data["pays"], advice.pays());
        assert!(text.contains(if advice.pays() { "they pay" } else { "blocks: no" }), "{text}");
        (advice.pays(), advice.reasons().join("; "))
    }

    /// The sum by hand: 10 GB, two processors, 2 ns to hand a byte over.
    #[test]
    fn a_count_of_words_pays() {
        let config = job(0.01, 100.0, 20.0);
        let Advice { task, node, .. } = Advice::of(&config, &DISK);
        assert_eq!((task.cpu_seconds, task.seconds), (1000.0, 500.0));
        assert!((node.cpu_ns - 20.02).abs() < 1e-9 && (node.seconds - 100.1).abs() < 1e-6);
        assert!((node.disk_seconds - 20.25).abs() < 1e-9);
        assert_eq!((task.task_bytes, node.task_bytes), (10e9, 0.1e9));
        let (pays, reasons) = advice(0.01, 100.0, 20.0);
        assert!(pays && reasons.starts_with("the map phase takes 1/5.00"), "{reasons}");
    }

    /// TeraSort's map hands out what it reads, and no combiner makes it less.
    #[test]
    fn a_sort_is_refused() {
        let (pays, reasons) = advice(1.0, 20.0, 18.0);
        assert!(!pays);
        assert!(reasons.contains("hands out 1.00 bytes for each that it reads"), "{reasons}");
        assert!(reasons.contains("20.0 ns per byte against 20.0"), "{reasons}");
    }

    /// The map of k-means reads little and computes much: where it computes does not matter, or it matters for the
    /// worse.
    #[test]
    fn k_means_is_refused() {
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
}
