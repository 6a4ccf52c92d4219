//! The result: who may read it, pipes as results, and what a failed copy leaves.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{HIDDEN, Place, WORK};
use crate::harness::{names, one_sentence, prints, stderr};
use crate::preload::{Event, Step};

fn mode_of(path: &Path) -> u32 {
    path.symlink_metadata().expect("there").mode() & 0o7777
}

/// A user who may not read the input may read neither the result nor its helper files.
#[test]
fn f20_private_data_stays_private() {
    let Some(place) = Place::with_steps() else { return };
    let private = |name: &str, mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(place.folder.at(name), mode).expect("set");
    };
    for output in [["-o", "out"], ["-o", "in"], ["--view", "out"]] {
        place.again("in");
        private("in", 0o600);
        let work = place.folder.at(&format!(".{}.unfinished", output[1]));
        let sort = ["sort", "--consume", "in", output[0], output[1]];
        place.interrupted(&sort, Step::first("sync", "000002.run"));
        assert_eq!(mode_of(&work), 0o700, "{output:?}");
        assert_eq!(mode_of(&place.folder.at(HIDDEN)), 0o600);
        place.does(&sort);
        let result = place.folder.at(output[1]);
        let is_view = output[0] == "--view";
        assert_eq!(mode_of(&result), if is_view { 0o700 } else { 0o600 }, "{output:?}");
        for name in if is_view { names(&result) } else { Vec::new() } {
            assert_eq!(mode_of(&result.join(&name)), 0o600, "{name}");
        }
    }
    // The replaced file decides the mode; a copy is private until it is complete.
    for (old, consume) in [(0o600, false), (0o640, true), (0o600, true)] {
        place.again("in");
        place.does(&["sort", "in", "--view", "v"]);
        place.folder.write("out", b"old");
        private("out", old);
        let mut copy = vec!["materialize", "v", "-o", "out"];
        if consume {
            copy.push("--consume");
        }
        place.interrupted(&copy, Step::first("rename", "resume"));
        assert_eq!(mode_of(&place.folder.at(WORK)), 0o700);
        place.does(&copy);
        assert_eq!(mode_of(&place.folder.at("out")), old);
        place.holds("out", &place.sorted, "a private file replaced");
    }
    // With several inputs, the most private one decides.
    place.again("in");
    place.folder.write("b", b"b\n");
    private("in", 0o640);
    private("b", 0o604);
    place.does(&["sort", "--consume", "in", "b", "-o", "out"]);
    assert_eq!(mode_of(&place.folder.at("out")), 0o600);
}

/// A pipe gets the bytes and stays a pipe.
#[test]
fn f25_a_named_pipe_is_written_through() {
    let place = Place::new();
    place.does(&["sort", "in", "--view", "v"]);
    let fifo = place.folder.at("fifo");
    prints(Command::new("mkfifo").arg(&fifo));
    let reading = fifo.clone();
    let reader = std::thread::spawn(move || fs::read(reading).expect("read"));
    place.does(&["materialize", "v", "-o", "fifo"]);
    assert!(reader.join().expect("read") == place.sorted);
    place.holds("v", &place.sorted, "copied");
    // A result that is made in stages can't go there.
    for refused in [
        &["materialize", "--consume", "v", "-o", "fifo"][..],
        &["sort", "--consume", "in", "-o", "fifo"],
    ] {
        let said = place.refuses(refused);
        assert!(said.contains("named pipe"), "{said}");
    }
    place.holds("in", &place.content, "refused");
    place.holds("v", &place.sorted, "refused");
    assert_eq!(place.folder.names(), ["fifo", "in", "v"]);
    // A link is followed, and stays.
    place.folder.write("target", b"old");
    std::os::unix::fs::symlink("target", place.folder.at("link")).expect("linked");
    place.does(&["materialize", "--consume", "v", "-o", "link"]);
    place.holds("target", &place.sorted, "through a link");
    assert!(place.folder.at("link").is_symlink());
    assert_eq!(place.folder.names(), ["fifo", "in", "link", "target"]);
}

/// A copy that fails at any step leaves the view, and the old output or the new one.
#[test]
fn f19_a_failed_copy_leaves_nothing() {
    let Some(place) = Place::with_steps() else { return };
    place.does(&["sort", "in", "--view", "v"]);
    fs::remove_file(place.folder.at("in")).expect("removed");
    let copy = ["materialize", "v", "-o", "out"];
    let mut failures = 0;
    for old in [None, Some(b"old\n")] {
        for kind in ["sync", "rename", "mkdir"] {
            for at in 1.. {
                if let Some(old) = old {
                    place.folder.write("out", old);
                }
                let step = Step { of: Some(kind), name: None, at };
                let mut command = place.command(&copy);
                let steps = place.steps.as_ref().expect("asked for");
                steps.arm(&mut command, step, Event::Fail(libc::EIO));
                let output = command.output().expect("it starts");
                let when = format!("{kind} {at} fails: {}", stderr(&output));
                let out = place.folder.at("out").exists();
                assert_eq!(
                    place.folder.names(),
                    if out { &["out", "v"][..] } else { &["v"] },
                    "{when}"
                );
                assert!(out || old.is_none(), "{when}");
                if out {
                    let found = place.read("out");
                    assert!(found == place.sorted || old.is_some_and(|old| found == old), "{when}");
                    fs::remove_file(place.folder.at("out")).expect("removed");
                }
                if output.status.success() {
                    break;
                }
                failures += 1;
                let said = one_sentence(&command, &output);
                assert!(said.contains("Input/output error"), "{when}");
            }
        }
    }
    place.does(&copy);
    place.holds("out", &place.sorted, "after failures");
    eprintln!("{failures} failures");
}
