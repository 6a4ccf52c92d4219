//! Temporary files on two real file systems: both are used, and one that runs full or
//! vanishes is one error. Loop devices need root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Chance, Folder, fails, is_root, merganser, names, one_sentence, prints};

/// An ext4 file system on a loop device, mounted until dropped.
struct Disk {
    mounted: PathBuf,
    device: String,
}

impl Disk {
    /// `None` without loop devices.
    fn new(folder: &Folder, name: &str, bytes: u64) -> Option<Disk> {
        let image = folder.write(&format!("{name}.img"), b"");
        fs::OpenOptions::new().write(true).open(&image).ok()?.set_len(bytes).expect("sparse");
        let found = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().ok()?;
        let device = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
        if !found.status.success() || device.is_empty() {
            return None;
        }
        let disk = Disk { mounted: folder.at(name), device };
        fs::create_dir(&disk.mounted).expect("made");
        let run = |words: &[&str]| {
            Command::new(words[0]).args(&words[1..]).status().is_ok_and(|s| s.success())
        };
        let path = disk.mounted.to_str().expect("UTF-8");
        let made = run(&["mkfs.ext4", "-q", &disk.device]);
        (made && run(&["mount", &disk.device, path])).then_some(disk)
    }

    /// Bytes written to the device so far.
    fn written(&self) -> u64 {
        let name = Path::new(&self.device).file_name().expect("a device").to_str().expect("UTF-8");
        let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).expect("counts");
        stat.split_whitespace().nth(6).expect("sectors").parse::<u64>().expect("a number") * 512
    }

    /// No file is left; unnamed ones are gone with their process.
    fn is_clean(&self) -> bool {
        names(&self.mounted).iter().all(|name| name == "lost+found")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let run = |words: &[&str]| Command::new(words[0]).args(&words[1..]).status();
        let _ = run(&["umount", "-l", self.mounted.to_str().expect("UTF-8")]);
        let _ = run(&["losetup", "-d", &self.device]);
    }
}

fn two_disks(folder: &Folder, bytes: [u64; 2]) -> Option<[Disk; 2]> {
    if !is_root("two disks") {
        return None;
    }
    let disks = Disk::new(folder, "one", bytes[0]).zip(Disk::new(folder, "two", bytes[1]));
    if disks.is_none() {
        eprintln!("skipped: two disks need loop devices and mkfs.ext4");
    }
    disks.map(<[Disk; 2]>::from)
}

const MB: u64 = 1 << 20;

fn sort(folder: &Folder, strategy: &str, disks: &[Disk; 2], input: &Path) -> Command {
    let mut command =
        merganser(["sort", "--strategy", strategy, "--memory", "16M", "--threads", "2"]);
    command.args(["--format", "fixed:100", "--key", "0:10", "-o"]).arg(folder.at("sorted"));
    for disk in disks {
        command.arg("--temp-dir").arg(&disk.mounted);
    }
    command.arg(input);
    command
}

fn records(folder: &Folder, bytes: usize) -> PathBuf {
    let mut chance = Chance::new();
    let content: Vec<u8> = (0..bytes / 100 * 100).map(|_| chance.next() as u8).collect();
    folder.write("records", &content)
}

#[test]
fn two_disks_are_both_used() {
    let folder = Folder::new();
    let Some(disks) = two_disks(&folder, [128 * MB; 2]) else { return };
    let input = records(&folder, 40_000_000);
    let mut expected = fs::read(&input).expect("there");
    let mut sorted: Vec<[u8; 100]> = expected.as_chunks::<100>().0.to_vec();
    sorted.sort_by(|a, b| a[..10].cmp(&b[..10]));
    expected.copy_from_slice(sorted.as_flattened());
    for strategy in ["merge", "distribute"] {
        let before = disks.each_ref().map(Disk::written);
        prints(&mut sort(&folder, strategy, &disks, &input));
        assert!(fs::read(folder.at("sorted")).expect("written") == expected, "{strategy}");
        for (disk, before) in disks.iter().zip(before) {
            let written = disk.written() - before;
            assert!(written > 10_000_000, "{strategy}: {written} bytes to {}", disk.device);
            assert!(disk.is_clean());
        }
        fs::remove_file(folder.at("sorted")).expect("there");
    }
}

/// Its file system would be overwritten. Where it is not mounted any more, it may become a member.
#[test]
fn a_mounted_device_is_no_member_of_a_volume() {
    let folder = Folder::new();
    let Some([disk, _]) = two_disks(&folder, [128 * MB; 2]) else { return };
    fs::write(disk.mounted.join("precious"), "kept").expect("written");
    let create = || {
        let mut command =
            merganser(["array", "create", "--size", "1M", "--no-buffer", "--replace"]);
        command.arg(folder.at("vol.json")).arg("--data").arg(&disk.device);
        command
    };
    let said = fails(&mut create());
    assert!(said.contains(": is mounted, or in use by another program"), "{said}");
    assert!(!folder.at("vol.json").exists());
    let run = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).status().is_ok_and(|status| status.success())
    };
    let path = disk.mounted.to_str().expect("UTF-8");
    assert!(run(&["umount", path]) && run(&["e2fsck", "-fn", &disk.device]));
    prints(&mut create());
    assert!(
        prints(merganser(["array", "check"]).arg(folder.at("vol.json"))).starts_with(b"problems")
    );
}

#[test]
fn a_disk_that_is_too_small_is_one_sentence() {
    let folder = Folder::new();
    let Some(disks) = two_disks(&folder, [128 * MB, 12 * MB]) else { return };
    let input = records(&folder, 40_000_000);
    for strategy in ["merge", "distribute"] {
        let said = fails(&mut sort(&folder, strategy, &disks, &input));
        assert!(said.contains("two") && said.contains("No space left"), "{strategy}: {said}");
        assert!(disks.iter().all(Disk::is_clean));
        assert!(!folder.at("sorted").exists());
    }
}

#[test]
fn a_disk_that_vanishes_is_one_sentence_and_no_hang() {
    let folder = Folder::new();
    let Some(disks) = two_disks(&folder, [256 * MB; 2]) else { return };
    let input = records(&folder, 100_000_000);
    for strategy in ["merge", "distribute"] {
        let before = disks[1].written();
        let mut command = sort(&folder, strategy, &disks, &input);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let started = Instant::now();
        while disks[1].written() - before < 8 * MB && started.elapsed() < Duration::from_secs(60) {
            if child.try_wait().expect("known").is_some() {
                break;
            }
            std::thread::yield_now();
        }
        // The sort stands still, or it could end before its disk does.
        let stopped = signal(&mut child, libc::SIGSTOP);
        // This acts like a pulled cable: from now on every request is an error.
        let path = disks[1].mounted.join(".");
        let shut = shut_down(&path);
        let continued = signal(&mut child, libc::SIGCONT);
        let output = child.wait_with_output().expect("ends");
        assert!(shut, "the file system can be shut down");
        assert!(stopped && continued, "{strategy}: the sort ended before");
        let said = one_sentence(&command, &output);
        assert!(said.contains("two") && said.contains("Input/output error"), "{strategy}: {said}");
        assert!(!folder.at("sorted").exists());
        // Plugged in again.
        let run = |words: &[&str]| {
            Command::new(words[0]).args(&words[1..]).status().is_ok_and(|s| s.success())
        };
        let path = disks[1].mounted.to_str().expect("UTF-8");
        assert!(run(&["umount", path]) && run(&["mount", &disks[1].device, path]));
        assert!(disks.iter().all(Disk::is_clean));
    }
}

/// Whether the signal was sent, because the process runs.
fn signal(child: &mut Child, signal: libc::c_int) -> bool {
    if child.try_wait().expect("known").is_some() {
        return false;
    }
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: the child was not waited for, so its number is not another process's. It is `timeout`, which leads a
    // group of its own that the command is in, too.
    unsafe { libc::kill(-pid, signal) == 0 }
}

/// Ends a mounted ext4 at once, its journal and all, as `xfs_io -c shutdown` does.
fn shut_down(path: &Path) -> bool {
    use std::os::fd::AsRawFd;
    /// `_IOR('X', 125, __u32)`.
    const EXT4_IOC_SHUTDOWN: libc::c_ulong = 0x8004_587d;
    /// Nothing is written out before.
    const NO_LOG_FLUSH: u32 = 2;
    let folder = fs::File::open(path).expect("there");
    let how = NO_LOG_FLUSH;
    // SAFETY: an open descriptor, and a number that the call reads.
    unsafe { libc::ioctl(folder.as_raw_fd(), EXT4_IOC_SHUTDOWN, &how) == 0 }
}
