//! The space that a consuming command needs.

use std::fs;
use std::process::Command;

use crate::harness::{Folder, is_root, merganser, prints};

/// A file system that is this large, until dropped.
struct Room(Folder);

impl Room {
    fn new(bytes: u64) -> Option<Self> {
        if !is_root("a small file system") {
            return None;
        }
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Room(folder)),
            other => {
                eprintln!("skipped: no small file system: {other:?}");
                None
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// In a file system of 1.15 times the input there is room for both ways to a sorted file.
#[test]
fn there_is_room_within_1_15_times_the_input() {
    const RECORDS: u64 = 1_000_000;
    const BYTES: u64 = RECORDS * 100;
    let fixed = ["--format=fixed:100", "--key=0:10"];
    let outside = Folder::new();
    let (input, sorted) = (outside.at("input"), outside.at("sorted"));
    if !is_root("a small file system") {
        return;
    }
    prints(merganser(["generate", "--records", &RECORDS.to_string(), "-o"]).arg(&input));
    prints(merganser(["sort"]).args(fixed).arg(&input).arg("-o").arg(&sorted));
    let sorted = fs::read(sorted).expect("there");
    let Some(room) = Room::new(BYTES * 115 / 100) else { return };
    let place = |name: &str| room.0.at(name);
    let memory = "--memory=32M";
    fs::copy(&input, place("in")).expect("there is room for one");
    let mut sort = merganser(["sort", memory, "--consume"]);
    prints(sort.args(fixed).arg(place("in")).arg("-o").arg(place("out")));
    assert!(fs::read(place("out")).expect("there") == sorted);
    assert_eq!(room.0.names(), ["out"]);
    fs::remove_file(place("out")).expect("removed");
    for strategy in ["merge", "distribute"] {
        let mut sort = merganser(["sort", memory, "--strategy", strategy]);
        prints(sort.args(fixed).arg(&input).arg("--view").arg(place("v")));
        let mut copy = merganser(["materialize", memory, "--consume"]);
        prints(copy.arg(place("v")).arg("-o").arg(place("out")));
        assert!(fs::read(place("out")).expect("there") == sorted, "{strategy}");
        assert_eq!(room.0.names(), ["out"], "{strategy}");
        fs::remove_file(place("out")).expect("removed");
    }
}
