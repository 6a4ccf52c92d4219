//! A file system on an emulated disk, through a loop device. Needs root.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Disk, skipped};
use crate::harness::{is_root, prints};

/// A loop device on a disk, and a folder to mount it at. Both go with it.
struct Loop {
    device: String,
    mounted: PathBuf,
}

impl Loop {
    /// `None`, with a line that says why, where there are no loop devices.
    fn new(disk: &Disk) -> Option<Loop> {
        let made = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(disk.path())
            .output()
            .expect("losetup is a part of util-linux");
        if !made.status.success() {
            eprintln!("skipped: losetup: {}", String::from_utf8_lossy(&made.stderr));
            return None;
        }
        let device = String::from_utf8(made.stdout).expect("a name").trim().to_owned();
        let mounted = disk.folder.at("mounted");
        fs::create_dir_all(&mounted).expect("made");
        Some(Loop { device, mounted })
    }

    fn mount(&self) {
        prints(Command::new("mount").arg(&self.device).arg(&self.mounted));
    }

    fn unmount(&self) {
        prints(Command::new("umount").arg(&self.mounted));
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.mounted).output();
        let _ = Command::new("losetup").args(["--detach", &self.device]).output();
    }
}

fn is_missing(program: &str) -> bool {
    let missing = Command::new(program).arg("-V").output().is_err();
    if missing {
        eprintln!("skipped: there is no {program}");
    }
    missing
}

/// A file that was synced is there after the emulation was killed under a mounted file system, as after a power
/// cut: the journal is replayed, and nothing else is wrong.
#[test]
fn a_file_system_survives_a_kill_of_its_disk() {
    if !is_root("a loop device") || skipped() || is_missing("mkfs.ext4") || is_missing("e2fsck") {
        return;
    }
    let options = ["--device", "null", "--file", "data"];
    let mut disk = Disk::new(&[&options[..], &["--size", "64M"]].concat());
    let Some(on) = Loop::new(&disk) else { return };
    prints(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&on.device));
    on.mount();
    let content: Vec<u8> =
        (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(on.mounted.join("synced"), &content).expect("written");
    prints(Command::new("sync").arg("--file-system").arg(&on.mounted));
    // Its name and its bytes may be lost.
    fs::write(on.mounted.join("not-synced"), &content).expect("written");
    disk.end(libc::SIGKILL);
    drop(on);
    let cleared = Command::new("umount").arg("-l").arg(disk.folder.at("m")).status();
    assert!(cleared.expect("umount").success());

    disk.server = Disk::started(&disk.folder, &options);
    let on = Loop::new(&disk).expect("there was one before");
    // 0: clean; 1: the journal was replayed.
    let check = |options: &[&str]| {
        let checked = Command::new("e2fsck").args(options).arg(&on.device).output().expect("runs");
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(matches!(checked.status.code(), Some(0 | 1)), "{said}");
    };
    check(&["-p"]);
    check(&["-f", "-n"]);
    on.mount();
    assert!(fs::read(on.mounted.join("synced")).expect("there") == content, "it has other bytes");
    fs::write(on.mounted.join("again"), b"it can be written").expect("written");
    on.unmount();
    check(&["-f", "-n"]);
    drop(on);
    let (status, _, err) = disk.end(libc::SIGTERM);
    assert_eq!(status, Some(0), "{err}");
}
