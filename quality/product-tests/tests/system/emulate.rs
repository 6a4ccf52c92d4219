//! Emulated disks: what is written, what ends them, and whether their times are the model's.

mod file_system;
mod stalls;
mod times;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::harness::{Folder, binary, fails, merganser, merganser_itself, prints};
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

    /// A disk whose process is started by other words, which end in that process.
    fn started_by(words: &[&str], nbd: bool, options: &[&str]) -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.at("m")).expect("made");
        let (door, shown) = if nbd { (["--nbd", "s"], "s") } else { (["--mount", "m"], "m/disk") };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(binary()).arg("emulate").stdin(Stdio::null());
        let server = Self::shown(command, &folder, &door, shown, options);
        Disk { folder, server }
    }

    fn started_at(folder: &Folder, door: &[&str], shown: &str, options: &[&str]) -> Child {
        Self::shown(merganser_itself(["emulate"]), folder, door, shown, options)
    }

    /// Starts it, and waits until the disk is there.
    fn shown(
        mut command: Command,
        folder: &Folder,
        door: &[&str],
        shown: &str,
        options: &[&str],
    ) -> Child {
        let mut server = command
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
    // The tests may run under nohup themselves.
    let words = ["env", "--default-signal=HUP"];
    let options = ["--device", "null", "--memory-backed", "--size", "1M"];
    let mut disk = Disk::started_by(&words, false, &options);
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

/// Without a size, a disk in memory is as large as its device. Only what is written takes memory.
#[test]
fn a_disk_in_memory_has_the_size_of_its_device() {
    if skipped() {
        return;
    }
    let options = ["--device", "830", "--memory-backed", "--set", "channels=4"];
    let report = ["--trace", "run.trace", "--report", "run.html"];
    let mut disk = Disk::new(&[&options[..], &report[..]].concat());
    let size = fs::metadata(disk.path()).expect("there").len();
    assert!(size > 100 << 30, "{size}");
    let file = disk.open();
    file.write_all_at(&[7; 8192], size - 8192).expect("written");
    let mut seen = [0; 8192];
    file.read_exact_at(&mut seen, size - 8192).expect("read");
    assert_eq!(seen, [7; 8192]);
    file.read_exact_at(&mut seen, 4096).expect("read");
    drop(file);
    let (_, out, _) = disk.end(libc::SIGTERM);
    assert!(out.starts_with("device        830: Samsung SSD 830"), "{out}");
    let trace = fs::read_to_string(disk.folder.at("run.trace")).expect("a trace");
    assert!(trace.contains(&format!("W {} 8192 ", size - 8192)), "{trace}");

    // The page: addresses, throughput and depth over time (Figures 3 and 4 of the paper).
    let page = fs::read_to_string(disk.folder.at("run.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script") && !page.contains("NaN"), "{page}");
    for part in ["Addresses over time", "Throughput over time", "Requests in flight over time"] {
        assert_eq!(page.matches(&format!("<h2>{part}</h2>")).count(), 1, "{part}");
    }
    for tag in ["section", "svg", "details", "pre"] {
        let opened = page.matches(&format!("<{tag}")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    // A mark for each request: the reads near the top and at the bottom, and the write near the top.
    let (_, points) =
        page.split_once("aria-label=\"First bytes of requests over time\"").expect("a plot");
    let marks = |class: &str| -> Vec<u64> {
        let (_, path) = points.split_once(&format!("<path class=\"{class}\" d=\"")).expect(class);
        let (path, _) = path.split_once('"').expect("an end");
        let marks = path.split('M').skip(1).map(|mark| {
            let (_, y) = mark.split_once(' ').expect("two numbers");
            y.split_once('h').expect("a line").0.parse().expect("a number")
        });
        marks.collect()
    };
    assert_eq!((marks("reading"), marks("writing")), (vec![1, 398], vec![1]));
}

/// The processors that the threads of an emulation may run on, and whether one of them has the lowest priority. The
/// thread that waits for signals is left out: it is there before.
fn threads_of(pid: u32) -> (Vec<String>, bool) {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let (mut processors, mut lowest) = (Vec::new(), false);
    for task in tasks.map(|task| task.expect("a thread").path()) {
        let read = |name: &str| fs::read_to_string(task.join(name)).expect("it runs");
        let status = read("status");
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        if read("comm") != "signals\n" {
            processors.push(allowed.expect("a list").trim().to_owned());
        }
        let stat = read("stat");
        // The 41st field is the policy. The second is the name, which may have spaces.
        let policy = stat.rsplit(") ").next().expect("fields").split(' ').nth(41 - 3);
        lowest |=
            policy == Some(libc::SCHED_IDLE.to_string().as_str()) && read("comm") == "awake\n";
    }
    (processors, lowest)
}

/// `--slower 3 --cpu N`: three seconds of the wall are one of the disk, and the emulation stays on its processor.
#[test]
fn a_slower_disk_on_a_processor_of_its_own() {
    if skipped() {
        return;
    }
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let digits = |c: char| !c.is_ascii_digit();
    let cpu = allowed.and_then(|list| list.trim().split(digits).next()).expect("a number");
    let options = ["--device", "barracuda", "--memory-backed", "--size", "1G"];
    let clock = ["--slower", "3", "--cpu", cpu, "--spin-us", "5", "--path-us", "30"];
    let report = ["--trace", "trace", "--report", "report.json"];
    let started = Instant::now();
    let mut disk = Disk::new(&[&options[..], &clock[..], &report[..]].concat());
    let file = disk.open();
    let mut page = [0; 4096];
    let mut waited_ns = 0;
    for at in 0..12 {
        let asked = Instant::now();
        // From one end of the disk to the other.
        file.read_exact_at(&mut page, (at % 2 * 250_000 + at * 1000) * 4096).expect("read");
        waited_ns += asked.elapsed().as_nanos() as u64;
    }
    let (processors, lowest) = threads_of(disk.server.id());
    assert!(processors.len() > 3 && processors.iter().all(|list| list == cpu), "{processors:?}");
    assert!(lowest, "no thread keeps the processor awake");
    drop(file);
    let took_ns = started.elapsed().as_nanos() as u64;
    let (_, out, err) = disk.end(libc::SIGTERM);
    assert!(out.contains(" of the disk, which was 3 times as slow\n"), "{out}{err}");
    let report = disk.report();
    assert_eq!(report["slower"], 3);
    let reads = &report["results"]["reads"];
    let number = |of: &Value| of.as_f64().expect("a number");
    let modelled_ns = number(&reads["latency_ns"]["mean"]) * number(&reads["requests"]);
    // The way to the disk counts as a part of the time of each request: 30 us of the wall.
    let path_ns = 12.0 * 30_000.0;
    assert!(3.0 * modelled_ns <= waited_ns as f64 + path_ns, "{modelled_ns} in {waited_ns}: {out}");
    // A rotation takes 8.3 ms. If times were those of the wall, they would be three times as long.
    assert!((12.0 * 2e6..12.0 * 20e6).contains(&modelled_ns), "{modelled_ns}: {out}");
    let lag = &report["lag"];
    assert!(
        3.0 * number(&lag["late_ns"]) <= waited_ns as f64 + path_ns - 3.0 * modelled_ns,
        "{lag}"
    );
    let trace = fs::read_to_string(disk.folder.at("trace")).expect("a trace");
    let last = trace.lines().last().and_then(|line| line.split(' ').next()).expect("a request");
    let last_ns: u64 = last.parse().expect("its arrival");
    assert!(3 * last_ns <= took_ns, "{last_ns} in {took_ns}");
    assert!(2 * last_ns >= number(&lag["busy_ns"]) as u64, "{last_ns}: {lag}");

    // The trace in virtual time has the times of the model, whatever the clock was.
    let words = ["simulate", "run", "--device", "barracuda", "--trace", "trace", "--json"];
    let replayed = prints(merganser(words).current_dir(disk.folder.path()));
    let replayed: Value = serde_json::from_slice(&replayed).expect("data");
    assert_eq!(replayed["results"]["digest"], report["results"]["digest"]);

    let words = ["emulate", "--device", "null", "--memory-backed", "--size", "1M", "--nbd", "s"];
    let said = |cpu| fails(merganser(words).args(["--cpu", cpu]).current_dir(disk.folder.path()));
    assert_eq!(said("1000000"), "--cpu 1000000: no machine has so many processors");
    assert_eq!(said("1023"), "--cpu 1023: Invalid argument (os error 22)");
    let zero = merganser(words).args(["--slower", "0"]).current_dir(disk.folder.path()).output();
    assert_eq!(zero.expect("it starts").status.code(), Some(2));
}
