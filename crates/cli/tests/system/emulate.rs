//! Emulated disks: what is written, what ends them, and whether their times are the model's.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::harness::{Folder, fails, merganser, merganser_itself, prints};
use crate::preload::{Event, Step, Steps};

/// Bytes behind the data that say that the file is a disk of `emulate`.
const LABEL_BYTES: usize = 4096;

/// A disk that is shown as `m/disk`, or served at the socket `s`.
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
        Self::started_at(folder, &["--mount", "m"], "m/disk", options)
    }

    fn served(options: &[&str]) -> Self {
        let folder = Folder::new();
        let server = Self::started_at(&folder, &["--nbd", "s"], "s", options);
        Disk { folder, server }
    }

    fn started_at(folder: &Folder, door: &[&str], shown: &str, options: &[&str]) -> Child {
        let mut server = merganser_itself(["emulate"])
            .args(door)
            .args(options)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let start = Instant::now();
        while !folder.at(shown).exists() {
            if server.try_wait().expect("asked").is_some() || start.elapsed().as_secs() > 30 {
                let _ = server.kill();
                panic!("not there: {:?}", server.wait_with_output().expect("it ends"));
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
    assert_eq!(data.len(), (4 << 20) + LABEL_BYTES);
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
fn a_file_that_is_no_disk_is_left_alone() {
    let folder = Folder::new();
    let content = vec![b'x'; 100_000];
    fs::write(folder.at("precious"), &content).expect("written");
    let words = ["emulate", "--device", "null", "--file", "precious", "--nbd", "s"];
    let said = fails(merganser(words).args(["--size", "1M"]).current_dir(folder.path()));
    assert!(said.contains("precious: has 100000 bytes that no emulated disk wrote"), "{said}");
    assert!(fs::read(folder.at("precious")).expect("there") == content);

    let trace = ["--existing", "--trace", "precious"];
    let said = fails(merganser(words).args(trace).current_dir(folder.path()));
    assert!(said.contains("--trace: would overwrite precious"), "{said}");
    assert!(fs::read(folder.at("precious")).expect("there") == content);
}

/// A disk is never cut, so one that grew beyond its device could not be used with it any more.
#[test]
fn a_size_that_the_device_lacks_changes_no_file() {
    let folder = Folder::new();
    let words =
        ["emulate", "--device", "jasmine", "--set", "blocks_per_plane=16", "--file", "data"];
    let run = |more: &[&str]| {
        fails(merganser(words).args(more).args(["--mount", "missing"]).current_dir(folder.path()))
    };
    assert!(run(&["--size", "1T"]).contains("data: 1099511627776 bytes are more than jasmine has"));
    assert!(!folder.at("data").exists(), "nothing was made");
    assert!(run(&["--size", "4M"]).contains("missing: there is no such folder"));
    let before = fs::read(folder.at("data")).expect("made");
    assert!(run(&["--size", "1T"]).contains("are more than jasmine has"));
    assert!(fs::read(folder.at("data")).expect("there") == before, "it did not grow");
}

/// After a power cut, flushed data must not be in a file that has lost its name.
#[test]
fn the_name_of_a_new_disk_is_durable() {
    let Some(steps) = Steps::new() else { return };
    let folder = Folder::new();
    fs::create_dir(folder.at("disks")).expect("made");
    let words = ["emulate", "--device", "null", "--file", "disks/data", "--size", "1M"];
    let mut command = merganser_itself(words);
    command.args(["--mount", "missing"]).current_dir(folder.path());
    steps.arm(&mut command, Step::first("sync", "disks"), Event::Fail(libc::EIO));
    let said = fails(&mut command);
    assert!(said.contains("disks/data: Input/output error"), "{said}");
}

/// A discard gives blocks back, and a flush that was answered is in the file.
#[test]
fn discards_and_flushes_reach_the_backing_file() {
    if skipped() {
        return;
    }
    let disk = Disk::new(&["--device", "null", "--file", "data", "--size", "4M"]);
    let file = disk.open();
    file.write_all_at(&vec![7; 2 << 20], 0).expect("written");
    file.sync_all().expect("synced");
    let blocks = || fs::metadata(disk.folder.at("data")).expect("there").blocks();
    let before = blocks();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, hole, 0, 1 << 20).expect("punched");
    let freed = (1 << 20) / 512;
    assert!(blocks() + freed <= before, "{before} blocks, then {}", blocks());
    let mut seen = vec![1; 2 << 20];
    file.read_exact_at(&mut seen, 0).expect("read");
    assert!(seen[..1 << 20].iter().all(|&byte| byte == 0));
    assert!(seen[1 << 20..].iter().all(|&byte| byte == 7));
    // To the very end of the disk: the label is out of reach.
    fallocate(&file, hole, 3 << 20, 1 << 20).expect("punched");
    drop(file);
    drop(disk);
}

#[test]
fn clients_of_nbd_see_the_disk() {
    if Command::new("qemu-io").arg("--version").output().is_err() {
        eprintln!("skipped: there is no qemu-io");
        return;
    }
    let options = ["--device", "830", "--file", "data", "--size", "64M"];
    let report = ["--trace", "trace", "--report", "report.json"];
    let mut disk = Disk::served(&[&options[..], &report[..]].concat());
    let uri = format!("nbd+unix:///disk?socket={}", disk.folder.at("s").display());
    let commands = [
        "write -P 7 4k 64k",
        "write -f -P 8 1M 4k",
        "read -P 7 4k 64k",
        "discard 4k 4k",
        "read -P 0 4k 4k",
        "write -P 9 2M 3M",
        "read -P 9 2M 3M",
        "flush",
    ];
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    prints(Command::new("qemu-io").args(["-f", "raw", "-t", "none"]).args(commands).arg(&uri));
    let (status, out, err) = disk.end(libc::SIGTERM);
    let data = disk.report();
    assert_eq!(status, Some(if data["valid"] == true { 0 } else { 2 }), "{err}");
    assert!(out.starts_with("device        830: Samsung SSD 830"), "{out}");
    let written = data["results"]["writes"]["bytes"].as_u64().expect("bytes");
    assert_eq!(written, (64 << 10) + (4 << 10) + (3 << 20), "{out}");
    let trace = fs::read_to_string(disk.folder.at("trace")).expect("a trace");
    let of = |kind: &str| trace.lines().filter(|line| line.contains(kind)).count();
    assert!(of(" T ") == 1 && of(" F ") >= 2, "{trace}");
    // Each page has a hash; three contents were written, and a hybrid volume stores three pages.
    let writes = trace.lines().filter(|line| line.contains(" W "));
    let hashes = writes.flat_map(|line| line.split(' ').nth(4).expect("hashes").split(','));
    let hashes: Vec<&str> = hashes.collect();
    assert_eq!(hashes.len() as u64, written / 4096, "{trace}");
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), 3, "{trace}");
    let small = ["--set-ssd", "blocks_per_plane=64", "--buffer-size", "64M", "--json"];
    let played = merganser(["simulate", "array", "--config", "hcdd", "--trace"])
        .arg(disk.folder.at("trace"))
        .args(small)
        .output()
        .expect("it runs");
    let played: Value = serde_json::from_slice(&played.stdout).expect("data");
    let counters = &played["runs"][0]["volume"];
    assert_eq!(counters["pages_stored"], 3, "{played}");
    assert_eq!(counters["pages_written"], written / 4096, "{played}");
    let bytes = fs::read(disk.folder.at("data")).expect("the backing file");
    assert_eq!((bytes[8 << 10], bytes[1 << 20], bytes[(5 << 20) - 1]), (7, 8, 9));
    assert!(!disk.folder.at("s").exists(), "the socket is gone");
}

#[test]
fn what_a_client_of_nbd_wrote_survives_a_kill() {
    if Command::new("qemu-io").arg("--version").output().is_err() {
        eprintln!("skipped: there is no qemu-io");
        return;
    }
    let options = ["--device", "null", "--file", "data", "--size", "4M"];
    let mut disk = Disk::served(&options);
    let uri = format!("nbd+unix:///disk?socket={}", disk.folder.at("s").display());
    let write = ["-f", "raw", "-t", "none", "-c", "write -P 7 1M 2M"];
    prints(Command::new("qemu-io").args(write).arg(&uri));
    disk.end(libc::SIGKILL);
    // The socket that a kill left behind does not stop the next server.
    disk.server = Disk::started_at(&disk.folder, &["--nbd", "s"], "s", &options[..4]);
    let read = ["-f", "raw", "-c", "read -P 7 1M 2M", "-c", "read -P 0 3M 1M"];
    let mut tries = 0;
    while !Command::new("qemu-io").args(read).arg(&uri).output().expect("run").status.success() {
        tries += 1;
        assert!(tries < 600, "what was written is not there");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (status, ..) = disk.end(libc::SIGTERM);
    assert_eq!(status, Some(0));
}

/// A backing file that another program cut fails requests, and the trace's disk is full: what was measured
/// is there all the same.
#[test]
fn results_are_there_although_requests_failed() {
    if skipped() {
        return;
    }
    let options = ["--device", "null", "--file", "data", "--size", "4M"];
    let report = ["--trace", "/dev/full", "--report", "report.json"];
    let mut disk = Disk::new(&[&options[..], &report[..]].concat());
    let file = disk.open();
    file.write_all_at(&[7; 4096], 0).expect("written");
    let backing = OpenOptions::new().write(true).open(disk.folder.at("data")).expect("opened");
    backing.set_len(1 << 20).expect("cut");
    let mut seen = [0; 4096];
    file.read_exact_at(&mut seen, 0).expect("still there");
    assert_eq!(seen, [7; 4096]);
    let error = file.read_at(&mut seen, 2 << 20).expect_err("cut");
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    drop(file);
    let (status, out, err) = disk.end(libc::SIGTERM);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("/dev/full: ") && err.contains("; the trace ends here"), "{err}");
    assert!(err.contains("reading of 4096 bytes at offset 2097152 failed"), "{err}");
    assert!(out.starts_with("device        null: takes no time"), "{out}");
    assert_eq!(disk.report()["results"]["writes"]["requests"], 1);
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

/// An earlier run's results must not go because the next start was mistyped.
#[test]
fn a_refused_start_leaves_files_as_they_were() {
    let folder = Folder::new();
    let names = ["trace", "report.json"];
    for name in names {
        fs::write(folder.at(name), "older").expect("written");
    }
    let words = ["emulate", "--device", "null", "--memory-backed", "--size", "1M"];
    let run = |more: &[&str]| {
        fails(merganser(words).args(["--mount", "missing"]).args(more).current_dir(folder.path()))
    };
    let said = run(&["--trace", "trace", "--report", "report.json"]);
    assert!(said.contains("missing: there is no such folder"), "{said}");
    assert!(names.iter().all(|name| fs::read(folder.at(name)).expect("there") == b"older"));
    run(&["--trace", "t", "--report", "r.json"]);
    assert!(!folder.at("t").exists() && !folder.at("r.json").exists(), "no empty files");
    let said = run(&["--report", "no/such/r.json"]);
    assert!(said.starts_with("no/such/r.json: "), "told before anything else: {said}");
}

#[test]
fn a_closed_terminal_unmounts_too() {
    if skipped() {
        return;
    }
    let mut disk = Disk::new(&["--device", "null", "--memory-backed", "--size", "1M"]);
    disk.open().write_all_at(&[7; 4096], 0).expect("written");
    let (status, out, err) = disk.end(libc::SIGHUP);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.starts_with("device        null: takes no time"), "{out}");
    let left = fs::read_dir(disk.folder.at("m")).expect("no stale mount").count();
    assert_eq!(left, 0);
}

/// `nohup` has SIGHUP ignored, and it must stay so.
#[test]
fn under_nohup_a_closed_terminal_ends_nothing() {
    if skipped() {
        return;
    }
    let folder = Folder::new();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    command.arg(merganser_itself(["emulate"]).get_program());
    command.args(["emulate", "--device", "null", "--memory-backed", "--size", "1M", "--nbd", "s"]);
    let server = command.current_dir(folder.path()).stdout(Stdio::null()).spawn();
    let mut disk = Disk { folder, server: server.expect("it starts") };
    let start = Instant::now();
    while !disk.folder.at("s").exists() {
        assert!(start.elapsed().as_secs() < 30, "no socket");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    disk.signal(libc::SIGHUP);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(disk.server.try_wait().expect("asked").is_none(), "it has ended");
    disk.signal(libc::SIGTERM);
    assert_eq!(disk.server.wait().expect("it ends").code(), Some(0));
}

/// Times that are compared: shorter ones are longer by the way through FUSE, some 50 us.
const COMPARED_FROM_NS: f64 = 2e6;

/// fio sees the times of the model, within 5 %; the full table is bench/emulate's.
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
        // If fio itself is woken late, the lag of the disk does not show it. So one good run of three is enough.
        let mut tries = 0;
        loop {
            let Some(compared) = times_of_fio(pattern, size, depth) else { return };
            let Err(why) = compared else { break };
            tries += 1;
            assert!(tries < 3, "{why}");
            eprintln!("again: {why}");
        }
    }
}

/// Runs fio at an emulated disk, and says which of its times is not the model's. `None` if this machine is too busy.
fn times_of_fio(pattern: &str, size: &str, depth: u32) -> Option<Result<(), String>> {
    let options = ["--device", "barracuda", "--memory-backed", "--size", "2G"];
    let mut disk = Disk::new(&[&options[..], &["--report", "report.json"]].concat());
    let fio =
        prints(Command::new("fio").arg(format!("--filename={}", disk.path().display())).args([
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
        ]));
    let (_, out, _) = disk.end(libc::SIGTERM);
    let report = disk.report();
    if report["valid"] == false {
        eprintln!("skipped: this machine is too busy for an emulated disk: {out}");
        return None;
    }
    let fio: Value = serde_json::from_slice(&fio).expect("data");
    let mut compared = 0;
    for (theirs, ours) in [("read", "reads"), ("write", "writes")] {
        let seen = &fio["jobs"][0][theirs]["clat_ns"];
        let model = &report["results"][ours];
        if model["requests"] == 0 {
            continue;
        }
        let (mean, p99) = (&seen["mean"], &seen["percentile"]["99.000000"]);
        let latency = &model["latency_ns"];
        for (seen, model) in [(mean, &latency["mean"]), (p99, &latency["percentiles"]["p99"])] {
            let (seen, model) = (seen.as_f64().expect("a time"), model.as_f64().expect("a time"));
            if model < COMPARED_FROM_NS {
                continue;
            }
            compared += 1;
            let ratio = seen / model;
            if (ratio - 1.0).abs() >= 0.05 {
                return Some(Err(format!("{pattern} {theirs}: {seen} against {model}")));
            }
        }
    }
    assert!(compared >= 2, "a disk takes milliseconds to read at random places: {report}");
    Some(Ok(()))
}
