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

use std::process::Command;

use serde_json::Value;

use super::{Disk, skipped};
use crate::harness::{merganser, prints};

/// How far from 1 the ratio of a time and the model's may be (the bar of the full table).
const BAND: f64 = 0.05;
/// Tries of a workload. Each has a clock that is twice as slow, and half the requests.
const TRIES: u32 = 4;
/// Requests that a try has at least.
const REQUESTS_MIN: u64 = 24;

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
    Case { pattern: "read", block: "128k", depth: 32, slower: 2, requests: 1200, ..BARRACUDA },
    Case { depth: 4, slower: 2, requests: 300, replay: Replay::AtTheirTimes, ..BARRACUDA },
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
    for case in &CASES {
        if case.door == Door::Nbd && !nbd {
            eprintln!("skipped: this fio has no engine nbd");
            continue;
        }
        let mut tried = Vec::new();
        for again in 0..TRIES {
            match case.compared(again) {
                Ok(()) => break,
                Err(why) => tried.push(why),
            }
            assert!((tried.len() as u32) < TRIES, "{} times: {tried:#?}", TRIES);
            eprintln!("again: {}", tried[tried.len() - 1]);
        }
    }
}

/// Whether programs may be woken before all others. Then the other tests of this machine don't delay them.
fn may_be_first() -> bool {
    Command::new("chrt").args(["-f", "1", "true"]).output().is_ok_and(|done| done.status.success())
}

impl Case {
    /// Runs fio, and says which of its times is not the simulator's, or that the run was not valid.
    fn compared(&self, again: u32) -> Result<(), String> {
        let slower = self.slower << again;
        let requests = (self.requests >> again).max(REQUESTS_MIN);
        let what = format!(
            "{} {:?} {} {}, {} in flight, {slower} times as slow, {requests} requests",
            self.device, self.door, self.pattern, self.block, self.depth
        );
        let mut disk = self.started(&slower.to_string());
        let seen = self.fio(&disk, requests);
        let (_, out, err) = disk.end(libc::SIGTERM);
        if disk.report()["valid"] == false {
            return Err(format!("{what}: {out}{err}"));
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
            let pairs = [
                ("mean", &seen["mean"], &model["mean"]),
                ("p99", &seen["percentile"]["99.000000"], &model["percentiles"]["p99"]),
            ];
            for (name, seen, model) in pairs {
                let time = |of: &Value| of.as_f64().expect("a time");
                let (seen, model) = (time(seen) / f64::from(slower), time(model));
                if (seen / model - 1.0).abs() > BAND {
                    return Err(format!("{what}: {theirs} {name}: {seen:.0} ns, but {model:.0}"));
                }
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
