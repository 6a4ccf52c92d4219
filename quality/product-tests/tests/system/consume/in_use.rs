//! A view that is read is not consumed.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use super::Place;

/// `cat` of the view, which has begun and waits for the reader of its output.
fn reading(place: &Place) -> Child {
    let mut command = place.command(&["cat", "v"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut byte = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("it reads");
    child
}

/// USERS finding E3.
#[test]
fn e3_a_view_that_is_read_is_not_consumed() {
    let place = Place::new();
    place.does(&["sort", "in", "--view", "v"]);
    // Nothing has to be writable for a reader.
    fs::set_permissions(place.folder.at("v"), fs::Permissions::from_mode(0o555)).expect("set");
    let mut readers = [reading(&place), reading(&place)];
    let said = place.refuses(&["materialize", "v", "-o", "out", "--consume"]);
    assert!(said.contains("v: --consume: process "), "{said}");
    assert!(
        readers.iter().any(|child| said.contains(&format!("process {} ", child.id()))),
        "{said}"
    );
    assert!(said.contains("(merganser cat)"), "{said}");
    // Other readers are not in the way of one another, and a copy is a reader.
    place.does(&["materialize", "v", "-o", "copy"]);
    place.holds("copy", &place.sorted, "a copy while others read");
    for child in &mut readers {
        child.kill().expect("killed");
        child.wait().expect("it ends");
    }
    fs::set_permissions(place.folder.at("v"), fs::Permissions::from_mode(0o755)).expect("set");
    place.does(&["materialize", "v", "-o", "out", "--consume"]);
    place.holds("out", &place.sorted, "when no reader is left");
    assert!(!place.folder.at("v").exists());
}

/// A view that is exported stays locked as long as it is offered, whether or not anybody reads.
#[test]
fn e3_a_view_that_is_exported_is_not_consumed() {
    let place = Place::new();
    place.does(&["sort", "in", "--view", "v"]);
    let mut command = place.command(&["export", "v", "--nbd", "socket"]);
    let mut child = command.spawn().expect("it starts");
    for _ in 0..500 {
        if place.folder.at("socket").exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let said = place.refuses(&["materialize", "v", "-o", "out", "--consume"]);
    assert!(said.contains("(merganser export)"), "{said}");
    place.holds("v", &place.sorted, "while it is exported");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    place.does(&["materialize", "v", "-o", "out", "--consume"]);
    place.holds("out", &place.sorted, "after the export");
}
