//! Emulated disks: what is written, what ends them, and whether their times are the model's.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::harness::{Folder, fails, merganser, merganser_itself, prints};

/// A disk that is shown as `m/disk`.
struct Disk {
    folder: Folder,
    server: Child,
}

fn skipped() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(e) = &opened {
        eprintln!("skipped: /dev/fuse: {e}");
    }
    opened.is_err()
}

impl Disk {
    fn new(options: &[&str]) -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.at("m")).expect("made");
        let server = Self::started(&folder, options);
        Disk { folder, server }
    }

    fn started(folder: &Folder, options: &[&str]) -> Child {
        let mut server = merganser_itself(["emulate", "--mount", "m"])
            .args(options)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let start = Instant::now();
        while !folder.at("m/disk").exists() {
            if server.try_wait().expect("asked").is_some() || start.elapsed().as_secs() > 30 {
                let _ = server.kill();
                panic!("not mounted: {:?}", server.wait_with_output().expect("it ends"));
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        server
    }

    fn path(&self) -> PathBuf {
        self.folder.at("m/disk")
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.path()).expect("opened")
    }

    fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.server.id()).expect("a pid");
        // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
        unsafe { libc::kill(pid, signal) };
    }

    /// Ends it; its status, and what it printed.
    fn end(&mut self, signal: libc::c_int) -> (Option<i32>, String, String) {
        self.signal(signal);
        let status = self.server.wait().expect("it ends");
        let (mut out, mut err) = (String::new(), String::new());
        self.server.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
        self.server.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
        (status.code(), out, err)
    }

    fn report(&self) -> Value {
        let text = fs::read(self.folder.at("report.json")).expect("a report");
        serde_json::from_slice(&text).expect("data")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.folder.at("m"))
            .stderr(Stdio::null())
            .status();
    }
}

#[test]
fn what_was_written_survives_a_kill() {
    if skipped() {
        return;
    }
    let options = ["--device", "null", "--file", "data", "--size", "4M"];
    let mut disk = Disk::new(&options);
    let file = disk.open();
    for at in 0..64 {
        file.write_all_at(&[at as u8 + 1; 5000], at * 6000).expect("written");
    }
    disk.end(libc::SIGKILL);
    drop(file);
    let data = fs::read(disk.folder.at("data")).expect("the backing file");
    assert_eq!(data.len(), 4 << 20);
    for at in 0..64 {
        assert_eq!(data[at * 6000..][..6000], [vec![at as u8 + 1; 5000], vec![0; 1000]].concat());
    }

    let mut again = merganser(["emulate", "--mount", "m"]);
    let said = fails(again.args(options).current_dir(disk.folder.path()));
    assert!(said.contains("m: is a stale mount whose server is gone; clear it with"), "{said}");
    let cleared = Command::new("umount").arg("-l").arg(disk.folder.at("m")).status();
    assert!(cleared.expect("umount").success());
    disk.server = Disk::started(&disk.folder, &["--device", "null", "--file", "data"]);
    let mut seen = [0; 5000];
    disk.open().read_exact_at(&mut seen, 63 * 6000).expect("read");
    assert_eq!(seen, [64; 5000]);
}

#[test]
fn a_signal_unmounts_and_tells_what_happened() {
    if skipped() {
        return;
    }
    let options = ["--device", "barracuda", "--memory-backed", "--size", "64M"];
    let report = ["--trace", "trace", "--report", "report.json"];
    let mut disk = Disk::new(&[&options[..], &report[..]].concat());
    let file = disk.open();
    for at in 0..20 {
        file.write_all_at(&[7; 4096], at * 8192).expect("written");
    }
    file.sync_all().expect("synced");
    let mut seen = [0; 4096];
    file.read_exact_at(&mut seen, 50 << 20).expect("read");
    drop(file);
    let (status, out, err) = disk.end(libc::SIGTERM);
    assert!(!disk.path().exists(), "it is unmounted");
    let data = disk.report();
    // A busy machine makes it invalid, and then it says so.
    assert_eq!(status, Some(if data["valid"] == true { 0 } else { 2 }), "{err}");
    assert_eq!(data["valid"] == false, err.contains("THIS RUN IS NOT VALID"), "{err}");
    assert!(out.starts_with("device        barracuda: Seagate Barracuda 7200.12"), "{out}");
    assert!(out.contains(" of 22 requests late ("), "{out}");
    let results = &data["results"];
    assert_eq!(
        [&results["reads"], &results["writes"], &results["others"]]
            .map(|class| class["requests"].as_u64()),
        [Some(1), Some(20), Some(1)]
    );
    assert_eq!(data["activity"]["points"].as_array().expect("points").len(), 21);

    // In virtual time, the recorded requests take as long as the model took.
    let replayed = prints(
        merganser(["simulate", "run", "--device", "barracuda", "--trace", "trace", "--json"])
            .current_dir(disk.folder.path()),
    );
    let replayed: Value = serde_json::from_slice(&replayed).expect("data");
    for kind in ["reads", "writes", "others"] {
        let latency = |of: &Value| of[kind]["latency_ns"]["mean"].as_f64().expect("a time");
        assert_eq!(latency(&replayed["results"]), latency(results), "{kind}");
    }
}

/// What fio sees is what the model says, within 5 %; the full table is bench/emulate's.
#[test]
fn a_program_waits_as_long_as_the_model_says() {
    if skipped() {
        return;
    }
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("skipped: there is no fio");
        return;
    }
    for (pattern, size, depth) in [("randread", "4k", 4), ("randrw", "64k", 8)] {
        let options = ["--device", "barracuda", "--memory-backed", "--size", "2G"];
        let mut disk = Disk::new(&[&options[..], &["--report", "report.json"]].concat());
        let fio = prints(
            Command::new("fio").arg(format!("--filename={}", disk.path().display())).args([
                "--name=x",
                "--ioengine=libaio",
                "--direct=1",
                "--size=2G",
                "--time_based",
                "--runtime=3",
                "--output-format=json",
                &format!("--rw={pattern}"),
                &format!("--bs={size}"),
                &format!("--iodepth={depth}"),
            ]),
        );
        let (_, out, _) = disk.end(libc::SIGTERM);
        let report = disk.report();
        if report["valid"] == false {
            eprintln!("skipped: this machine is too busy for an emulated disk: {out}");
            return;
        }
        let fio: Value = serde_json::from_slice(&fio).expect("data");
        for (theirs, ours) in [("read", "reads"), ("write", "writes")] {
            let seen = &fio["jobs"][0][theirs]["clat_ns"];
            let model = &report["results"][ours];
            if model["requests"] == 0 {
                continue;
            }
            let (mean, p99) = (&seen["mean"], &seen["percentile"]["99.000000"]);
            let latency = &model["latency_ns"];
            for (seen, model) in [(mean, &latency["mean"]), (p99, &latency["percentiles"]["p99"])] {
                let ratio = seen.as_f64().expect("a time") / model.as_f64().expect("a time");
                assert!((ratio - 1.0).abs() < 0.05, "{pattern} {theirs}: {seen} against {model}");
            }
        }
    }
}
