//! Changes by other programs to files while they are consumed: new files, other commands, appends, moves.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{HIDDEN, Place, SORT, WORK, states};
use crate::harness::{merganser_itself, names, prints, stderr};
use crate::preload::Step;

/// The earlier work is finished; the new file is neither read nor removed, and the command says so.
#[test]
fn f2_a_new_file_under_the_inputs_name_stays() {
    let Some(place) = Place::with_steps() else { return };
    for (state, step) in states() {
        place.again("in");
        place.interrupted(&SORT, step);
        place.folder.write("in", b"new\n");
        let said = place.refuses(&SORT);
        assert!(said.contains("in is a newer file"), "{state}: {said}");
        place.holds("in", b"new\n", state);
        place.holds("out", &place.sorted, state);
        assert_eq!(place.folder.names(), ["in", "out"], "{state}");
        place.does(&SORT);
        place.holds("out", b"new\n", state);
        assert_eq!(place.folder.names(), ["out"], "{state}");
    }
}

/// Where nothing was taken yet, a new input is just the input.
#[test]
fn f2_a_new_file_before_anything_was_taken_is_the_input() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&SORT, Step::first("sync", "000000.run"));
    place.folder.write("new", b"b\na\n");
    fs::rename(place.folder.at("new"), place.folder.at("in")).expect("renamed");
    place.does(&SORT);
    place.holds("out", b"a\nb\n", "after a new file");
    assert_eq!(place.folder.names(), ["out"]);
}

/// A file that takes the result's name meanwhile is replaced, as `-o` says, when the command is
/// repeated: that name is no input's.
#[test]
fn f2_a_new_file_under_the_outputs_name_is_replaced() {
    let Some(place) = Place::with_steps() else { return };
    for (state, step) in &states()[..5] {
        for old in [None, Some(b"old\n")] {
            place.again("in");
            if let Some(old) = old {
                place.folder.write("out", old);
            }
            place.interrupted(&SORT, *step);
            place.folder.write("new", b"new\n");
            fs::rename(place.folder.at("new"), place.folder.at("out")).expect("renamed");
            place.ends(&SORT, "out", state);
        }
    }
}

#[test]
fn f3_another_command_is_refused() {
    let Some(place) = Place::with_steps() else { return };
    for (state, step) in states() {
        place.again("in");
        place.interrupted(&SORT, step);
        place.folder.write("b", b"b\n");
        let others: [&[&str]; 5] = [
            &["sort", "--consume", "b", "-o", "out"],
            &["sort", "--consume", "b", "--view", "out"],
            &["sort", "--consume", "in", "b", "-o", "out"],
            &["sort", "--consume", "-r", "in", "-o", "out"],
            &["sort", "b", "--view", "out"],
        ];
        for other in others {
            let said = place.refuses(other);
            // With a result in its place, a view is refused for that.
            assert!(said.contains("out: ") || said.contains(WORK), "{state}, {other:?}: {said}");
            place.holds("b", b"b\n", state);
        }
        let said = place.refuses(others[0]);
        let [input, output] = ["in", "out"].map(|name| place.folder.at(name).display().to_string());
        assert!(said.contains(&format!("--consume {input} -o {output}")), "{state}: {said}");
        place.does(&SORT);
        place.holds("out", &place.sorted, state);
        assert_eq!(place.folder.names(), ["b", "out"], "{state}");
        place.does(others[0]);
        place.holds("out", b"b\n", state);
        assert_eq!(place.folder.names(), ["out"], "{state}");
    }
}

#[test]
fn f4_a_view_that_was_not_finished_makes_way() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&["sort", "in", "--view", "out"], Step::first("rename", "out"));
    assert_eq!(place.folder.names(), [WORK, "in"]);
    place.folder.write("b", b"b\na\n");
    place.does(&["sort", "--consume", "b", "-o", "out"]);
    place.holds("out", b"a\nb\n", "b was sorted");
    place.holds("in", &place.content, "an input that stays");
    assert_eq!(place.folder.names(), ["in", "out"]);
}

#[test]
fn f5_a_copy_that_was_not_finished_makes_way() {
    let Some(place) = Place::with_steps() else { return };
    let steps = [Step::first("unlink", "resume"), Step::first("rename", "out")];
    for step in steps {
        place.again("in");
        place.does(&["sort", "in", "--view", "v"]);
        place.interrupted(&["materialize", "v", "-o", "out"], step);
        place.folder.write("precious", b"b\na\n");
        place.does(&["sort", "--consume", "precious", "-o", "out"]);
        place.holds("out", b"a\nb\n", "precious was sorted");
        place.holds("v", &place.sorted, "a view that stays");
        assert_eq!(place.folder.names(), ["in", "out", "v"]);
    }
}

/// Whatever is in the folder of unfinished work: the input is sorted, or it stays as it is.
#[test]
fn f6_junk_in_the_folder_of_unfinished_work() {
    let place = Place::new();
    let ours = ["manifest", "consumed-into", "resume", "partial", "sort-journal", "000000.run"];
    for name in ours.into_iter().chain(["manifest.new", "sort-journal.new", "thesis.txt"]) {
        for junk in [&b"junk\n"[..], b""] {
            place.again("in");
            let work = place.folder.at(WORK);
            fs::create_dir(&work).expect("made");
            fs::set_permissions(&work, fs::Permissions::from_mode(0o700)).expect("set");
            fs::write(work.join(name), junk).expect("written");
            let output = place.command(&SORT).output().expect("it starts");
            if output.status.success() {
                assert_ne!(name, "thesis.txt");
                place.holds("out", &place.sorted, name);
                assert_eq!(place.folder.names(), ["out"], "{name}");
            } else {
                assert_eq!(output.status.code(), Some(2), "{name}");
                assert!(stderr(&output).contains(WORK), "{name}: {}", stderr(&output));
                place.holds("in", &place.content, name);
                assert_eq!(fs::read(work.join(name)).expect("there"), junk);
            }
        }
    }
    // Where others may write, nothing is believed.
    place.again("in");
    fs::create_dir(place.folder.at(WORK)).expect("made");
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.folder.at(WORK), all).expect("set");
    let said = place.refuses(&SORT);
    assert!(said.contains("other users may write there"), "{said}");
    place.holds("in", &place.content, "a folder that all users may write to");
}

/// Bytes that are appended while the input is sorted are neither sorted nor lost.
#[test]
fn f8_an_input_that_is_appended_to() {
    let Some(place) = Place::with_steps() else { return };
    for (run, by_rest) in [("000000.run", false), ("000002.run", true), ("manifest.new", true)] {
        place.again("in");
        let in_path = place.folder.at("in");
        let mut writer = fs::OpenOptions::new().append(true).open(&in_path).expect("opened");
        let child = place.stopped(&SORT, Step::first("sync", run));
        writer.write_all(b"late\n").expect("written");
        let said = Place::fails_after_stop(child);
        let (name, out) = (if by_rest { HIDDEN } else { "in" }, place.folder.at("out"));
        let rest = place.read(name);
        assert!(rest.ends_with(b"late\n"), "{run}: {said}");
        assert!(!out.exists(), "{run}: {said}");
        if !by_rest {
            assert_eq!(rest.len(), place.content.len() + 5);
            assert_eq!(place.folder.names(), ["in"], "{said}");
            continue;
        }
        let said = place.refuses(&SORT);
        assert!(said.contains("another program changed this input"), "{run}: {said}");
        // The late lines are saved elsewhere, and the file is as before: the same length and time.
        let hidden = fs::OpenOptions::new().write(true).open(place.folder.at(HIDDEN));
        hidden.expect("opened").set_len(place.content.len() as u64).expect("cut");
        let touch = said.split("then: ").nth(1).and_then(|rest| rest.split(';').next());
        let touched = Command::new("sh").args(["-c", touch.expect("a command")]).status();
        assert!(touched.expect("it starts").success(), "{said}");
        place.ends(&SORT, "out", run);
    }
}

/// As a rotation of logs does: the input is renamed and a new one made.
#[test]
fn f8_an_input_that_is_moved_away() {
    let Some(place) = Place::with_steps() else { return };
    let move_away = || {
        fs::rename(place.folder.at("in"), place.folder.at("in.1")).expect("renamed");
        place.folder.write("in", b"new\n");
    };
    // Before anything was given back: it is whole, and the command fails.
    place.again("in");
    let child = place.stopped(&SORT, Step::first("sync", "000000.run"));
    move_away();
    let said = Place::fails_after_stop(child);
    assert!(said.contains("moved away"), "{said}");
    place.holds("in.1", &place.content, "moved away");
    place.holds("in", b"new\n", "moved away");
    assert_eq!(place.folder.names(), ["in", "in.1"]);
    // Later it can't be moved by that name, but a new one can be made.
    place.again("in");
    let child = place.stopped(&SORT, Step::first("sync", "000002.run"));
    assert!(!place.folder.at("in").exists());
    place.folder.write("in", b"new\n");
    let said = Place::fails_after_stop(child);
    assert!(said.contains("newer file"), "{said}");
    place.holds("in", b"new\n", "made anew");
    place.holds("out", &place.sorted, "made anew");
    assert_eq!(place.folder.names(), ["in", "out"]);
}

/// The copy of another view into the same output waits for the first.
#[test]
fn n1_an_interrupted_copy_is_not_taken_over() {
    let Some(place) = Place::with_steps() else { return };
    let copy = ["materialize", "--consume", "v", "-o", "out"];
    let steps = [
        Step { of: Some("rename"), name: Some("resume"), at: 3 },
        Step::first("rename", "out"),
        Step::first("unlink", "resume"),
    ];
    for step in steps {
        place.again("in");
        place.does(&["sort", "in", "--view", "v"]);
        place.folder.write("in", b"b\n");
        place.does(&["sort", "in", "--view", "other"]);
        place.interrupted(&copy, step);
        if !place.folder.at("out").exists() {
            for other in [
                &["materialize", "other", "-o", "out"][..],
                &["sort", "--consume", "in", "-o", "out"],
            ] {
                let said = place.refuses(other);
                assert!(said.contains(WORK) || said.contains("materialize"), "{step:?}: {said}");
            }
        }
        place.holds("in", b"b\n", "refused");
        place.holds("other", b"b\n", "refused");
        place.does(&copy);
        place.holds("out", &place.sorted, "continued");
        assert_eq!(place.folder.names(), ["in", "other", "out"]);
    }
}

/// Other commands do not accept the remains of an input.
#[test]
fn n2_a_half_consumed_input_has_a_hidden_name() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&SORT, states()[0].1);
    for other in
        [&["sort", "--consume", "in", "-o", "elsewhere"][..], &["sort", "in", "-o", "elsewhere"]]
    {
        let said = place.refuses(other);
        assert!(said.contains("in: "), "{said}");
    }
    // A new file of that name waits, since its hidden name is taken.
    place.folder.write("in", b"new\n");
    let said = place.refuses(&["sort", "--consume", "in", "-o", "elsewhere"]);
    assert!(said.contains("still being consumed"), "{said}");
    place.holds("in", b"new\n", "refused");
    assert_eq!(place.folder.names(), [HIDDEN, WORK, "in"]);
    fs::remove_file(place.folder.at("in")).expect("removed");
    place.ends(&SORT, "out", "after refusals");
}

/// Whether the input has its hidden name, and a part of it is given back.
fn has_lost_bytes(place: &Place) -> bool {
    place.folder.names().iter().any(|name| name == HIDDEN)
        && fs::read(place.folder.at(HIDDEN)).expect("there") != place.content
}

/// Another name of an input would lose its content, too, whenever it is made.
#[test]
fn a_hard_link_that_is_made_meanwhile_keeps_its_content() {
    let Some(place) = Place::with_steps() else { return };
    let refused = |said: &str| {
        assert!(said.contains("another hard link"), "{said}");
        place.holds("bak", &place.content, "the other name");
        place.holds("in", &place.content, "its own name");
    };
    // While the first run is written.
    let stopped = place.stopped(&SORT, Step::first("sync", "000000.run"));
    fs::hard_link(place.folder.at("in"), place.folder.at("bak")).expect("linked");
    refused(&Place::fails_after_stop(stopped));
    assert_eq!(place.folder.names(), ["bak", "in"]);
    fs::remove_file(place.folder.at("bak")).expect("removed");
    // Between a kill and the command that continues.
    place.interrupted(&SORT, Step::first("sync", "000000.run"));
    fs::hard_link(place.folder.at("in"), place.folder.at("bak")).expect("linked");
    refused(&place.refuses(&SORT));
    fs::remove_file(place.folder.at("bak")).expect("removed");
    // When a part of it is given back, no more of it is.
    let stopped = place.stopped(&SORT, Step { of: Some("punch"), name: Some(HIDDEN), at: 3 });
    fs::hard_link(place.folder.at(HIDDEN), place.folder.at("bak")).expect("linked");
    let said = Place::fails_after_stop(stopped);
    assert!(said.contains("another hard link"), "{said}");
    let left = fs::read(place.folder.at("bak")).expect("there");
    assert!(place.refuses(&SORT).contains("another hard link"));
    assert!(fs::read(place.folder.at("bak")).expect("there") == left, "more was given back");
    fs::remove_file(place.folder.at("bak")).expect("removed");
    place.ends(&SORT, "out", "the other name is gone");
}

/// The files of a copy of a view that is made of links are the view's own.
#[test]
fn a_view_with_hard_links_is_not_consumed() {
    for strategy in ["--strategy=merge", "--strategy=distribute"] {
        let place = Place::new();
        place.does(&["sort", strategy, "in", "--view", "v"]);
        fs::create_dir(place.folder.at("copy")).expect("made");
        for name in names(&place.folder.at("v")) {
            let at = |view: &str| place.folder.at(view).join(&name);
            fs::hard_link(at("v"), at("copy")).expect("linked");
        }
        let copy = ["materialize", "--consume", "v", "-o", "out"];
        let said = place.refuses(&copy);
        assert!(said.contains("has other hard links"), "{said}");
        place.holds("v", &place.sorted, strategy);
        place.holds("copy", &place.sorted, strategy);
        assert_eq!(place.folder.names(), ["copy", "in", "v"]);
        fs::remove_dir_all(place.folder.at("copy")).expect("removed");
        place.does(&copy);
        place.holds("out", &place.sorted, strategy);
    }
}

/// The second of two commands that would consume one file is refused while the first runs. After the first was killed, it
/// gives a file that has lost bytes no visible name.
#[test]
fn two_commands_do_not_consume_one_file() {
    let Some(place) = Place::with_steps() else { return };
    let other = ["sort", "--consume", "in", "-o", "other"];
    let stopped = place.stopped(&SORT, Step::first("sync", "000000.run"));
    let said = place.refuses(&other);
    assert!(said.contains("in: another process is reading or consuming this input now"), "{said}");
    assert!(!place.folder.names().iter().any(|name| name.contains("other")), "{said}");
    crate::preload::resume(&stopped);
    let output = stopped.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(place.folder.names(), ["out"]);
    place.holds("out", &place.sorted, "the first one");

    let both = ["sort", "--consume", "b", "in", "-o", "both"];
    for (second, replaced) in [(&other[..], false), (&both[..], true)] {
        place.again("in");
        place.folder.write("b", b"b\n");
        place.interrupted(second, Step::first("sync", "000000.run"));
        place.interrupted(&SORT, Step { of: Some("punch"), name: Some(HIDDEN), at: 3 });
        if replaced {
            place.folder.write("new", b"c\n");
            fs::rename(place.folder.at("new"), place.folder.at("b")).expect("renamed");
        }
        assert!(has_lost_bytes(&place));
        place.refuses(second);
        assert!(has_lost_bytes(&place) && !place.folder.at("in").exists(), "{second:?}");
        place.does(&SORT);
        place.holds("out", &place.sorted, "the first one");
        place.holds("b", if replaced { b"c\n" } else { b"b\n" }, "an input of the second one");
    }
}

/// Bytes that another program appends in the last moment are not given back with the rest.
#[test]
fn bytes_behind_the_end_stay() {
    let Some(mut place) = Place::with_steps() else { return };
    place.content.truncate(300_000);
    place.content.push(b'\n');
    place.again("in");
    let stopped = place.stopped(&SORT, Step::first("punch", HIDDEN));
    let mut hidden = fs::File::options().append(true).open(place.folder.at(HIDDEN)).expect("there");
    hidden.write_all(b"late\n").expect("appended");
    let said = Place::fails_after_stop(stopped);
    assert!(said.contains("in: "), "{said}");
    let left = fs::read(place.folder.at(HIDDEN)).expect("there");
    assert!(left.ends_with(b"late\n"), "{:?}", &left[left.len() - 10..]);
}

/// A view whose sort was killed when only the journal was left is consumed as any other.
#[test]
fn a_view_with_the_journal_of_its_sort_is_consumed_whole() {
    let Some(place) = Place::with_steps() else { return };
    let sort = ["sort", "--consume", "in", "--view", "v"];
    place.interrupted(&sort, Step::first("unlink", "sort-journal"));
    place.does(&["materialize", "--consume", "v", "-o", "out"]);
    assert_eq!(place.folder.names(), ["out"]);
    place.holds("out", &place.sorted, "the view");
}

/// Another program makes a file with the view's name, when the input has given back records already.
#[test]
fn a_views_name_that_is_taken_meanwhile_loses_nothing() {
    let Some(place) = Place::with_steps() else { return };
    let sort = ["sort", "--consume", "in", "--view", "out"];
    for step in [
        Step { of: Some("punch"), name: Some(HIDDEN), at: 3 },
        Step::first("unlink", HIDDEN),
        Step::first("rename", "out"),
    ] {
        for folder in [false, true] {
            place.again("in");
            let stopped = place.stopped(&sort, step);
            if folder {
                fs::create_dir(place.folder.at("out")).expect("made");
            } else {
                place.folder.write("out", b"precious\n");
            }
            let told = |said: &str| {
                let taken = said.contains("out: another file has taken this name");
                assert!(taken && said.contains("move it away"), "{step:?}: {said}");
                assert!(said.contains(".out.unfinished: repeat the command"), "{step:?}: {said}");
            };
            told(&Place::fails_after_stop(stopped));
            told(&place.refuses(&sort));
            let mut recover = merganser_itself(["recover", "out"]);
            let left = prints(recover.current_dir(place.folder.path()));
            let left = String::from_utf8(left).expect("text");
            assert!(left.contains("move that away first"), "{step:?}: {left}");
            fs::rename(place.folder.at("out"), place.folder.at("elsewhere")).expect("renamed");
            place.does(&sort);
            place.holds("out", &place.sorted, "the name is free");
            assert_eq!(place.folder.names(), ["elsewhere", "out"], "{step:?}");
        }
    }
}
