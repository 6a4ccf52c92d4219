//! Two commands at once. A file may have changed since a command looked at it, until that has the lock.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{HIDDEN, Place, SORT, WORK};
use crate::harness::stderr;
use crate::preload::{Event, Step, resume};

/// The process that makes a view has the lock of its folder until it has its name. One that waited for the lock must look
/// again, before it takes anything.
#[test]
fn a_view_that_another_process_has_just_made_stays() {
    let Some(place) = Place::with_steps() else { return };
    place.folder.write("b", b"b\na\n");
    let (first, second) =
        (["sort", "--consume", "b", "--view", "out"], ["sort", "--consume", "in", "--view", "out"]);
    for kept in [&second[..], &["sort", "in", "--view", "out"]] {
        let waits = place.stopped(kept, Step::first("mkdir", WORK));
        place.does(&first);
        let said = Place::fails_after_stop(waits);
        assert!(said.contains("out: exists; move it away or give --view another name"), "{said}");
        place.holds("out", b"a\nb\n", "the first one");
        place.holds("in", &place.content, "the input of the second one");
        assert_eq!(place.folder.names(), ["in", "out"]);
        place.again("in");
        place.folder.write("b", b"b\na\n");
    }
}

/// The same for files. The second one may replace only the file that was there when it began.
#[test]
fn a_file_that_another_process_has_just_made_stays() {
    let Some(place) = Place::with_steps() else { return };
    place.does(&["sort", "in", "--view", "v"]);
    for waiting in [&SORT[..], &["materialize", "v", "-o", "out", "--consume"]] {
        for old in [false, true] {
            place.folder.write("b", b"b\na\n");
            if old {
                place.folder.write("out", b"old\n");
            }
            let waits = place.stopped(waiting, Step::first("mkdir", WORK));
            place.does(&["sort", "--consume", "b", "-o", "out"]);
            let said = Place::fails_after_stop(waits);
            assert!(said.contains("out: another file has taken this name"), "{said}");
            place.holds("out", b"a\nb\n", "the first one");
            place.holds("in", &place.content, "the input of the second one");
            place.holds("v", &place.sorted, "the view of the second one");
            assert_eq!(place.folder.names(), ["in", "out", "v"], "{waiting:?}");
            fs::remove_file(place.folder.at("out")).expect("removed");
        }
    }
}

/// The view has the only copy of the records, so it is not to be removed.
#[test]
fn a_finished_command_is_not_told_to_remove_its_view() {
    let Some(place) = Place::with_steps() else { return };
    let sort = ["sort", "--consume", "in", "--view", "out"];
    let last = Step { of: Some("unlink"), name: Some("sort-journal"), at: 1 };
    for case in ["at once", "killed", "repeated"] {
        place.again("in");
        let said = match case {
            "at once" => {
                let waits = place.stopped(&sort, Step::first("mkdir", WORK));
                place.does(&sort);
                Place::fails_after_stop(waits)
            }
            "killed" => {
                place.interrupted(&sort, last);
                place.does(&sort);
                place.refuses(&sort)
            }
            _ => {
                place.does(&sort);
                place.refuses(&sort)
            }
        };
        assert!(said.contains("in: no such file; out is there"), "{case}: {said}");
        assert!(!said.contains("remove"), "{case}: {said}");
        place.holds("out", &place.sorted, case);
        assert_eq!(place.folder.names(), ["out"], "{case}");
    }
}

/// Until its last step, the process that makes a view has it locked.
#[test]
fn a_view_in_its_last_steps_is_another_processs() {
    let Some(place) = Place::with_steps() else { return };
    let sort = ["sort", "--consume", "in", "--view", "out"];
    let ends = place.stopped(&sort, Step { of: Some("unlink"), name: Some("sort-journal"), at: 1 });
    let said = place.refuses(&sort);
    assert!(said.contains("out: another process is making this now"), "{said}");
    let said = place.refuses(&["materialize", "out", "-o", "copy", "--consume"]);
    assert!(said.contains("is reading or consuming this view now"), "{said}");
    resume(&ends);
    let output = ends.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    place.holds("out", &place.sorted, "the last step");
    assert_eq!(place.folder.names(), ["out"]);
}

/// It has given its folder away: the next one of this name is another process's.
#[test]
fn a_signal_after_the_last_step_removes_no_other_folder() {
    let Some(place) = Place::with_steps() else { return };
    place.folder.write("b", b"b\na\n");
    let own = place.folder.path().file_name().expect("a name").to_owned();
    let mut first = place.command(&["sort", "b", "--view", "out"]);
    // Of the folder with the view's name: before the work begins, and after its end.
    let sync = Step { of: Some("sync"), name: own.to_str(), at: 2 };
    place.steps.as_ref().expect("asked for").arm(&mut first, sync, Event::Hang);
    let first = first.spawn().expect("it starts");
    let until = Instant::now() + Duration::from_secs(60);
    while !place.folder.at("out").exists() {
        assert!(Instant::now() < until, "it makes no view");
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::rename(place.folder.at("out"), place.folder.at("elsewhere")).expect("renamed");
    let sort = ["sort", "--consume", "in", "--view", "out"];
    let second = place.stopped(&sort, Step { of: Some("punch"), name: Some(HIDDEN), at: 3 });
    let process = rustix::process::Pid::from_child(&first);
    // It hangs, so the first signal does not end it; two that wait at once are one.
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        rustix::process::kill_process(process, signal).expect("it runs");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!first.wait_with_output().expect("it ends").status.success());
    resume(&second);
    let output = second.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    place.holds("out", &place.sorted, "the second one");
}

/// An empty folder of unfinished work is also what is there before any work has begun.
#[test]
fn work_that_was_never_done_was_not_finished_before() {
    let place = Place::new();
    place.folder.write("out", b"old\n");
    let mut builder = fs::DirBuilder::new();
    for command in [
        &["sort", "--consume", "missing", "-o", "out"][..],
        &["materialize", "--consume", "missing", "-o", "out"],
    ] {
        builder.mode(0o700).create(place.folder.at(WORK)).expect("made");
        let said = place.refuses(command);
        assert!(said.contains("missing: "), "{said}");
        place.holds("out", b"old\n", "an older file");
        assert_eq!(place.folder.names(), ["in", "out"], "{command:?}");
    }
}

/// A command that reads an input would read zeros where another one has taken its records.
#[test]
fn an_input_that_is_read_is_not_consumed() {
    let place = Place::new();
    place.folder.write("in", &place.sorted);
    let mut reads = place.command(&["sort", "-m", "in"]);
    let mut reads = reads.stdout(Stdio::piped()).spawn().expect("it starts");
    // The pipe takes less than the file, so it is open until all is taken.
    let mut pipe = reads.stdout.take().expect("piped");
    let mut read = vec![0; 1];
    pipe.read_exact(&mut read).expect("its first byte");
    let said = place.refuses(&SORT);
    assert!(said.contains("in: another process is reading or consuming this input"), "{said}");
    pipe.read_to_end(&mut read).expect("the rest");
    assert!(read == place.sorted && reads.wait().expect("it ends").success());
    place.does(&SORT);
    place.holds("out", &place.sorted, "no other command reads it");
}

/// The view has another name, and the link stays.
#[test]
fn a_view_that_is_named_by_a_link_is_consumed() {
    let place = Place::new();
    place.does(&["sort", "--consume", "in", "--view", "v"]);
    symlink("v", place.folder.at("link")).expect("linked");
    place.does(&["materialize", "--consume", "link", "-o", "out"]);
    place.holds("out", &place.sorted, "the view");
    assert!(File::open(place.folder.at("link")).is_err() && !place.folder.at("v").exists());
    assert!(!place.folder.at(WORK).exists());
}
