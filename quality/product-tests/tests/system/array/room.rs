//! File systems that are full: before a volume is made, while it is made, and after.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Client, FLUSH, PAGE, PAGES, WRITE, create, end, is_sound, page, serve};
use crate::harness::{Folder, fails, is_root, merganser, merganser_itself, names, prints};
use crate::preload::{Event, Step, Steps};

/// A file system in memory, unmounted with the test.
struct Small(PathBuf);

impl Small {
    fn new(folder: &Folder, mib: u32) -> Option<Small> {
        if !is_root("a small file system") {
            return None;
        }
        let at = folder.at("small");
        fs::create_dir(&at).expect("made");
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "test"]).arg(&at);
        let done = mount.status().is_ok_and(|status| status.success());
        if !done {
            eprintln!("skipped: no tmpfs can be mounted");
        }
        done.then_some(Small(at))
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }

    /// Fills it to its last byte.
    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).expect("made");
        while file.write_all(&[1; 1 << 16]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn create_in(folder: &Folder, small: &Small, size: &str, more: &[&str]) -> Command {
    let mut command = merganser(["array", "create", "--quiet"]);
    command.arg(folder.at("vol.json")).args(["--size", size, "--buffer-size", "8M"]).args(more);
    command.arg("--data").arg(format!("{},{}", small.at("ssd0"), small.at("ssd1")));
    command.arg("--buffer").arg(small.at("hdd0"));
    command
}

#[test]
fn a_volume_without_room_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    let Some(small) = Small::new(&folder, 48) else { return };
    let said = fails(&mut create_in(&folder, &small, "64M", &[]));
    let begins = format!("{}: the members need ", small.at("ssd0"));
    assert!(said.starts_with(&begins), "{said}");
    assert!(said.ends_with(" are free; make room, or leave holes with --sparse"), "{said}");
    assert_eq!((names(&small.0), folder.names()), (vec![], vec!["small".to_owned()]));
    // With holes, it is made: the user said so.
    prints(&mut create_in(&folder, &small, "64M", &["--sparse"]));
    fs::remove_file(folder.at("vol.json")).expect("there");
    // Members that are there would need blocks for their holes.
    let said = fails(&mut create_in(&folder, &small, "64M", &["--replace"]));
    assert!(said.starts_with(&begins), "{said}");
    assert!(Path::new(&small.at("ssd0")).exists(), "it was there before");
}

/// A file system that other files fill up after the volume was made: everything is written all the same, and the volume
/// opens again.
#[test]
fn a_file_system_that_becomes_full_fails_no_write() {
    let folder = Folder::new();
    let Some(small) = Small::new(&folder, 48) else { return };
    prints(&mut create_in(&folder, &small, "16M", &[]));
    small.fill();
    for round in 0..2 {
        let server = serve(&folder, &[]);
        let mut client = Client::new(&folder).expect("it talks");
        for at in 0..PAGES {
            let seed = 1 + at + round * PAGES;
            client.ask(WRITE, at * PAGE as u64, PAGE as u32, &page(seed)).expect("written");
        }
        client.ask(FLUSH, 0, 0, &[]).expect("flushed");
        end(server);
    }
    is_sound(&folder);
}

/// Between the look at the file system and the reservation, another program takes the space.
#[test]
fn space_that_goes_meanwhile_is_an_error_that_leaves_nothing() {
    let Some(steps) = Steps::new() else { return };
    for name in ["ssd0", "ssd1", "hdd0"] {
        let folder = Folder::new();
        let at = |name: &str| folder.at(name).to_str().expect("text").to_owned();
        let mut command = merganser_itself(["array", "create", "--size", "1M", "--quiet"]);
        command.arg(at("vol.json")).arg("--data").arg(format!("{},{}", at("ssd0"), at("ssd1")));
        command.arg("--buffer").arg(at("hdd0"));
        let step = Step { of: Some("allocate"), name: Some(name), at: 1 };
        steps.arm(&mut command, step, Event::Fail(libc::ENOSPC));
        let said = fails(&mut command);
        assert!(said.starts_with(&format!("{}: No space left", at(name))), "{said}");
        assert!(said.ends_with("make room, or leave holes with --sparse"), "{said}");
        assert!(folder.names().is_empty(), "{:?}", folder.names());
    }
}

#[test]
fn a_file_system_that_reserves_nothing_is_said_and_used() {
    let Some(steps) = Steps::new() else { return };
    let folder = Folder::new();
    let mut command = merganser_itself(["array", "create", "vol.json", "--size", "1M", "--quiet"]);
    command.args(["--data", "ssd", "--no-buffer"]).current_dir(folder.path());
    steps.arm(&mut command, Step::first("allocate", "ssd"), Event::Fail(libc::EOPNOTSUPP));
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("ssd: its file system can't reserve space"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    is_sound(&folder);
    // Nothing is said where space was not to be reserved.
    let folder = Folder::new();
    create(&folder, &["--sparse"]);
}
