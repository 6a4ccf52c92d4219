//! A sort stays within `--memory` and the documented overhead, because a control group says so.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::harness::{
    Chance, Folder, is_root, merganser, merganser_itself, prints, small_memory, sorted_lines,
    view_of,
};

/// Memory that a process may take beyond `--memory`: its code, stacks, tables, the allocator's slack.
pub(crate) const OVERHEAD_BYTES: u64 = 64 << 20;

/// A version 1 memory control group, as long as this lives.
struct Group(PathBuf);

impl Group {
    fn new(limit_bytes: u64) -> Option<Self> {
        if !is_root("a memory control group") {
            return None;
        }
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("merganser-test-{}-{number}", std::process::id());
        let group = Group(PathBuf::from("/sys/fs/cgroup/memory").join(name));
        let made = fs::create_dir(&group.0).and_then(|()| {
            fs::write(group.0.join("memory.limit_in_bytes"), limit_bytes.to_string())
        });
        match made {
            Ok(()) => Some(group),
            Err(e) => {
                eprintln!("skipped: no memory control group can be made: {e}");
                None
            }
        }
    }

    /// Puts the process that `command` starts into the group before it runs.
    fn holds(&self, command: &mut Command) {
        use std::os::fd::AsRawFd;
        let members = fs::OpenOptions::new().write(true).open(self.0.join("cgroup.procs"));
        let members = members.expect("opened");
        // SAFETY: between fork and exec there is only one `write` of a constant to a file that
        // the closure keeps open; it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                match libc::write(members.as_raw_fd(), c"0".as_ptr().cast(), 1) {
                    1 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Runs `command` in a group of `limit_bytes`, which ends it when it needs more; gives its peak
/// resident set in bytes and its output. `None` if no group can be made.
pub(crate) fn peak_within(limit_bytes: u64, mut command: Command) -> Option<(u64, Vec<u8>)> {
    let group = Group::new(limit_bytes)?;
    group.holds(&mut command);
    let files = Folder::new();
    let file = |name| fs::File::create(files.at(name)).expect("created");
    let mut child =
        command.stdout(file("printed")).stderr(file("said")).spawn().expect("it starts");
    // The kernel's own high-water mark, so that looking now and then misses only the very end.
    // (`wait4` would count what this process held when it forked.)
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        let now = fs::read_to_string(&status_file).unwrap_or_default();
        let mark = now.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = mark.map_or(peak, |kib| kib * 1024);
        if let Some(status) = child.try_wait().expect("asked") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let said = fs::read_to_string(files.at("said")).expect("there");
    assert!(status.success(), "{command:?} within {limit_bytes} bytes: {status} {said}");
    Some((peak, fs::read(files.at("printed")).expect("there")))
}

#[test]
fn a_sort_stays_within_its_memory() {
    let memory = small_memory().max(48 << 20);
    let folder = Folder::new();
    let content = Chance::new().lines((memory * 4) as usize);
    let input = folder.write("input", &content);
    let sorted = sorted_lines(&content);
    for result in ["-o", "--view"] {
        let out = folder.at("out");
        let mut sort = merganser_itself(["sort", "--memory", &memory.to_string()]);
        sort.arg(&input).arg(result).arg(&out);
        let Some((peak, _)) = peak_within(memory + OVERHEAD_BYTES, sort) else { return };
        eprintln!("sort {result}: peak {} MiB of {} MiB", peak >> 20, memory >> 20);
        assert!(peak <= memory + OVERHEAD_BYTES, "{result}: {peak} bytes for {memory}");
        if result == "-o" {
            assert!(fs::read(&out).expect("there") == sorted);
            fs::remove_file(&out).expect("removed");
            continue;
        }
        let mut cat = merganser_itself(["cat", "--memory", &memory.to_string()]);
        cat.arg(&out);
        let Some((peak, printed)) = peak_within(memory + OVERHEAD_BYTES, cat) else { return };
        eprintln!("cat: peak {} MiB of {} MiB", peak >> 20, memory >> 20);
        assert!(peak <= memory + OVERHEAD_BYTES, "cat: {peak} bytes for {memory}");
        assert!(printed == sorted);
    }
}

#[test]
fn records_of_very_different_lengths_stay_within_memory() {
    let memory = small_memory().max(48 << 20);
    let mut chance = Chance::new();
    let mut content = Vec::new();
    while content.len() < (memory * 2) as usize {
        let long = if chance.once_in(200) { memory / 128 } else { 0 };
        let len = chance.below(30) + chance.below(long + 1);
        let first = (chance.next() >> 40) as u8 % 26;
        content.extend((0..len).map(|i| b'a' + (first + (i % 7) as u8) % 26));
        content.push(b'\n');
    }
    let folder = Folder::new();
    let input = folder.write("input", &content);
    let mut sort = merganser_itself(["sort", "--memory", &memory.to_string()]);
    sort.arg(&input).arg("-o").arg(folder.at("out"));
    let Some((peak, _)) = peak_within(memory + OVERHEAD_BYTES, sort) else { return };
    eprintln!("peak {} MiB of {} MiB", peak >> 20, memory >> 20);
    assert!(fs::read(folder.at("out")).expect("there") == sorted_lines(&content));
}

/// Lines with more bytes in common than the index of a run has of each.
#[test]
fn lines_that_begin_alike_stay_within_memory() {
    let memory = small_memory().max(24 << 20);
    let mut chance = Chance::new();
    let mut content = Vec::new();
    let source = "x".repeat(280);
    while content.len() < (memory * 6) as usize {
        let (number, len) = (chance.next(), chance.below(300) as usize);
        let line = format!(r#"{{"source": "{source}", "id": {number}, "{}": 0}}"#, "v".repeat(len));
        content.extend(line.bytes());
        content.push(b'\n');
    }
    let folder = Folder::new();
    let sorted = sorted_lines(&content);
    for consume in [false, true] {
        let input = folder.write("input", &content);
        let mut sort = merganser_itself(["sort", "--memory", &memory.to_string()]);
        sort.args(consume.then_some("--consume")).arg(&input).arg("-o").arg(folder.at("out"));
        let Some((peak, _)) = peak_within(memory + OVERHEAD_BYTES, sort) else { return };
        eprintln!("peak {} MiB of {} MiB", peak >> 20, memory >> 20);
        assert!(fs::read(folder.at("out")).expect("there") == sorted);
    }
}

/// A command that reads part of a view does not hold the whole view in memory.
#[test]
fn the_head_of_a_view_costs_little() {
    let memory = small_memory();
    let folder = Folder::new();
    let content = Chance::new().lines((memory * 2) as usize);
    let input = folder.write("input", &content);
    let view = view_of(&folder, &input, &["--memory", &memory.to_string()]);
    let mut head = merganser_itself(["cat", "--head", "10", "--memory", &memory.to_string()]);
    head.arg(&view);
    let Some((_, printed)) = peak_within(memory + OVERHEAD_BYTES, head) else { return };
    let expected = prints(Command::new("head").args(["-n", "10"]).arg({
        let sorted = folder.at("sorted");
        fs::write(&sorted, sorted_lines(&content)).expect("written");
        sorted
    }));
    assert!(printed == expected);
}

/// Long keys, one to a block: while a run is formed, its fences hold the cut keys only, or they would be
/// as large as the run.
#[test]
fn fences_of_long_keys_stay_within_memory() {
    let memory = 128 << 20;
    let mut chance = Chance::new();
    let mut content = Vec::with_capacity(100 << 20);
    let text: Vec<u8> = (0..33_000u32).map(|i| b'a' + (i * 7 % 26) as u8).collect();
    while content.len() < 99 << 20 {
        let number = chance.next();
        content.extend_from_slice(format!("{number:016x}").as_bytes());
        content.extend_from_slice(&text[(number % 500) as usize..]);
        content.push(b'\n');
    }
    let folder = Folder::new();
    let input = folder.write("input", &content);
    let view = folder.at("x.view");
    let mut sort = merganser_itself(["sort", "--memory", &memory.to_string()]);
    sort.arg(&input).arg("--view").arg(&view);
    let Some((peak, _)) = peak_within(memory + OVERHEAD_BYTES, sort) else { return };
    eprintln!("peak {} MiB of {} MiB", peak >> 20, memory >> 20);
    assert!(peak <= memory + OVERHEAD_BYTES, "{peak} bytes for {memory}");
    assert!(prints(merganser(["cat"]).arg(view)) == sorted_lines(&content));
}
