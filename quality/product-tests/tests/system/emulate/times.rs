//! Whether programs wait as long as the model says: `fio` on emulated disks, against `simulate run`.
//!
//! ```text
//!   fio ─► emulate --slower N --trace ─► what fio saw, divided by N ──┐
//!                                │                                    ├─► within 5 %
//!                                └─► simulate run --trace ────────────┘
//! ```
//!
//! The simulator gets the same requests in the same order, as many in flight as fio had, and times of its own. So
//! chance has no part in the comparison, and some hundred requests are enough. The clocks are so slow that the way
//! through the kernel, and a program that is woken late, are a small part of each request. Both programs have
//! real-time priority. Still, on busy processors answers are some per cent late. So it is no part of the run of
//! all tests: `make test-times` runs it when they have ended.
//!
//! A virtual machine stands still when its host has other work: then neither program can be on time. So the processors
//! are watched ([`Watch`]), and a comparison fails only by tries in which they ran on.

use std::fmt::{self, Display, Formatter};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stalls::{Stalls, Watch};
use super::{Disk, skipped};
use crate::harness::{merganser, prints};

/// How far from 1 the ratio of a time and the model's may be (the bar of the full table).
const BAND: f64 = 0.05;
/// How late answers of a valid run may be, of the time.
const LAG: f64 = 0.01;
/// Tries of a workload. Each has a clock that is twice as slow, and half the requests.
const TRIES: u32 = 4;
/// Requests that a try has at least: the 99th percentile of fewer is the slowest.
const REQUESTS_MIN: u64 = 100;
/// Tries with those in which the machine stood still.
const ALL_TRIES: usize = 8;
/// After this time, such a try is not repeated.
const PATIENCE: Duration = Duration::from_secs(240);

/// A workload on a device.
struct Case {
    device: &'static str,
    /// Parameters that make the device small, so that it is soon filled.
    settings: &'static [&'static str],
    size: &'static str,
    pattern: &'static str,
    block: &'static str,
    depth: u32,
    slower: u32,
    requests: u64,
    door: Door,
    replay: Replay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Fuse,
    Nbd,
}

/// How the simulator gets the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// The next one when one has ended, as fio gives them.
    InFlight,
    /// At their times. A hard disk chooses among those that wait by where its head is, and a microsecond changes
    /// the choice, and all that follows.
    AtTheirTimes,
}

const BARRACUDA: Case = Case {
    device: "barracuda",
    settings: &[],
    size: "1G",
    pattern: "randread",
    block: "4k",
    depth: 1,
    slower: 4,
    requests: 130,
    door: Door::Fuse,
    replay: Replay::InFlight,
};
const CHOOSING: Case = Case { replay: Replay::AtTheirTimes, ..BARRACUDA };
const SAMSUNG: Case = Case {
    device: "830",
    settings: &["blocks_per_plane=16"],
    size: "512M",
    slower: 100,
    requests: 180,
    ..BARRACUDA
};
const JASMINE: Case =
    Case { device: "jasmine", size: "128M", slower: 16, requests: 110, ..SAMSUNG };

const CASES: [Case; 11] = [
    BARRACUDA,
    Case { pattern: "read", block: "128k", depth: 32, slower: 2, requests: 1200, ..CHOOSING },
    Case { depth: 4, slower: 2, requests: 300, ..CHOOSING },
    SAMSUNG,
    Case { depth: 32, slower: 200, requests: 900, ..SAMSUNG },
    Case { pattern: "randrw", block: "64k", depth: 4, slower: 50, requests: 300, ..SAMSUNG },
    Case { pattern: "write", block: "1m", depth: 4, slower: 8, requests: 100, ..SAMSUNG },
    Case { pattern: "read", block: "128k", ..JASMINE },
    Case { depth: 32, requests: 1000, ..JASMINE },
    Case { door: Door::Nbd, ..SAMSUNG },
    Case { pattern: "randrw", block: "64k", depth: 4, requests: 240, door: Door::Nbd, ..JASMINE },
];

#[test]
#[ignore = "measures times, which other tests disturb: make test-times"]
fn a_program_waits_as_long_as_the_model_says() {
    if skipped() {
        return;
    }
    let Ok(engines) = Command::new("fio").arg("--enghelp").output() else {
        eprintln!("skipped: there is no fio");
        return;
    };
    let nbd = String::from_utf8_lossy(&engines.stdout).split_whitespace().any(|name| name == "nbd");
    if !may_be_first() {
        eprintln!("skipped: chrt: no real-time priority; other tests would delay the programs");
        return;
    }
    let begun = Instant::now();
    for case in &CASES {
        if case.door == Door::Nbd && !nbd {
            eprintln!("skipped: this fio has no engine nbd");
            continue;
        }
        case.holds(begun);
    }
}

/// Whether programs may be woken before all others. Then the other tests of this machine don't delay them.
fn may_be_first() -> bool {
    Command::new("chrt").args(["-f", "1", "true"]).output().is_ok_and(|done| done.status.success())
}

/// A try that did not show the model's times.
struct Miss {
    what: String,
    why: Why,
    /// What the machine did meanwhile.
    stalls: Stalls,
}

enum Why {
    /// The emulator says that its answers were late.
    Late { printed: String },
    /// The mean of a time is not the model's.
    Mean { seen_ns: f64, model_ns: f64 },
    /// The 99th percentile is not.
    P99 { seen_ns: f64, model_ns: f64, slower: f64 },
}

impl Display for Miss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Late { printed } => writeln!(f, "{}: {printed}", self.what)?,
            Why::Mean { seen_ns, model_ns } => {
                writeln!(f, "{}: mean {seen_ns:.0} ns, but {model_ns:.0}", self.what)?;
            }
            Why::P99 { seen_ns, model_ns, .. } => {
                writeln!(f, "{}: p99 {seen_ns:.0} ns, but {model_ns:.0}", self.what)?;
            }
        }
        let Stalls { longest, total, watched } = self.stalls;
        write!(f, "the machine stood still for {longest:.1?} at most, {total:.1?} of {watched:.1?}")
    }
}

impl Miss {
    /// Whether the machine stood still for at least half of what would be too much.
    fn is_explained(&self) -> bool {
        let part = self.stalls.total.as_secs_f64() / self.stalls.watched.as_secs_f64();
        match self.why {
            Why::Late { .. } => part >= LAG / 2.0,
            Why::Mean { .. } => part >= BAND / 2.0,
            Why::P99 { model_ns, slower, .. } => {
                self.stalls.longest.as_secs_f64() >= BAND / 2.0 * model_ns * 1e-9 * slower
            }
        }
    }
}

impl Case {
    /// Compares until a try shows the model's times; fails after [`TRIES`] in which the machine did not stand still.
    fn holds(&self, begun: Instant) {
        let mut missed: Vec<Miss> = Vec::new();
        while let Err(miss) = self.tried((missed.len() as u32).min(TRIES - 1)) {
            eprintln!("missed: {miss}");
            missed.push(miss);
            let unexplained = missed.iter().filter(|miss| !miss.is_explained()).count();
            assert!(unexplained < TRIES as usize, "missed {TRIES} times; the tries are above");
            let late = begun.elapsed() > PATIENCE && missed[missed.len() - 1].is_explained();
            if late || missed.len() == ALL_TRIES {
                let explained = missed.len() - unexplained;
                eprintln!(
                    "skipped: the machine stood still in {explained} of {} tries",
                    missed.len()
                );
                return;
            }
        }
    }

    /// One comparison, while the processors are watched.
    fn tried(&self, again: u32) -> Result<(), Miss> {
        let slower = self.slower << again;
        let requests = (self.requests >> again).max(REQUESTS_MIN);
        let what = format!(
            "{} {:?} {} {}, {} in flight, {slower} times as slow, {requests} requests",
            self.device, self.door, self.pattern, self.block, self.depth
        );
        let watch = Watch::begun();
        let compared = self.compared(&what, slower, requests);
        let stalls = watch.end();
        compared.map_err(|why| Miss { what, why, stalls })
    }

    /// Runs fio, and says which of its times is not the simulator's, or that the run was not valid.
    fn compared(&self, what: &str, slower: u32, requests: u64) -> Result<(), Why> {
        let mut disk = self.started(&slower.to_string());
        let seen = self.fio(&disk, requests);
        let (_, out, err) = disk.end(libc::SIGTERM);
        if disk.report()["valid"] == false {
            return Err(Why::Late { printed: out + &err });
        }
        let model = self.simulated(&disk);
        let mut compared = 0;
        for (theirs, ours) in [("read", "reads"), ("write", "writes")] {
            let (seen, model) = (&seen["jobs"][0][theirs], &model["results"][ours]);
            assert_eq!(seen["total_ios"], model["requests"], "{what}: {theirs}");
            if model["requests"] == 0 {
                continue;
            }
            compared += seen["total_ios"].as_u64().expect("a number");
            let (seen, model) = (&seen["lat_ns"], &model["latency_ns"]);
            let slower = f64::from(slower);
            let time = |of: &Value| of.as_f64().expect("a time");
            let differ = |(seen, model): (f64, f64)| (seen / model - 1.0).abs() > BAND;
            let mean = (time(&seen["mean"]) / slower, time(&model["mean"]));
            if differ(mean) {
                return Err(Why::Mean { seen_ns: mean.0, model_ns: mean.1 });
            }
            let seen = &seen["percentile"]["99.000000"];
            let p99 = (time(seen) / slower, time(&model["percentiles"]["p99"]));
            if differ(p99) {
                return Err(Why::P99 { seen_ns: p99.0, model_ns: p99.1, slower });
            }
        }
        assert!(compared >= requests - u64::from(self.depth), "{what}: {compared}");
        Ok(())
    }

    fn device(&self) -> Vec<&'static str> {
        let settings = self.settings.iter().flat_map(|setting| ["--set", setting]);
        ["--device", self.device].into_iter().chain(settings).collect()
    }

    fn started(&self, slower: &str) -> Disk {
        let mut options = self.device();
        options.extend(["--memory-backed", "--filled", "--size", self.size, "--slower", slower]);
        options.extend(["--report", "report.json", "--trace", "trace"]);
        Disk::started_by(&["chrt", "-f", "20"], self.door == Door::Nbd, &options)
    }

    fn fio(&self, disk: &Disk, requests: u64) -> Value {
        let mut fio = Command::new("chrt");
        // Not for longer than a minute, if it hangs.
        fio.args([
            "-f",
            "10",
            "timeout",
            "60",
            "fio",
            "--name=x",
            "--direct=1",
            "--output-format=json",
        ]);
        fio.args(["--lat_percentiles=1", "--rwmixread=70"]);
        fio.arg(format!("--rw={}", self.pattern)).arg(format!("--bs={}", self.block));
        fio.arg(format!("--size={}", self.size));
        // One thread or process for each request in flight. With libaio, fio waits for the last requests together, and
        // counts each until the last has ended: with 32 in flight, their 99th percentile is half as long again.
        match self.door {
            Door::Fuse => fio
                .args(["--ioengine=psync", "--io_submit_mode=offload"])
                .arg(format!("--iodepth={}", self.depth))
                .arg(format!("--number_ios={requests}"))
                .arg(format!("--filename={}", disk.path().display())),
            Door::Nbd => fio
                .args(["--ioengine=nbd", "--iodepth=1", "--group_reporting"])
                .arg(format!("--numjobs={}", self.depth))
                .arg(format!("--number_ios={}", requests / u64::from(self.depth)))
                .arg(format!("--uri=nbd+unix:///disk?socket={}", disk.folder.at("s").display())),
        };
        let printed = prints(fio.current_dir(disk.folder.path()));
        // The engine nbd says first that it is connected.
        let data = printed.iter().position(|&byte| byte == b'{').expect("an object");
        serde_json::from_slice(&printed[data..]).expect("data")
    }

    /// The same requests in virtual time.
    fn simulated(&self, disk: &Disk) -> Value {
        let depth = self.depth.to_string();
        let mut words = vec!["simulate", "run", "--filled", "--trace", "trace", "--json"];
        words.extend(self.device());
        if self.replay == Replay::InFlight {
            words.extend(["--depth", &depth]);
        }
        let printed = prints(merganser(words).current_dir(disk.folder.path()));
        serde_json::from_slice(&printed).expect("data")
    }
}
