//! Inputs and views that are consumed. Every record is there after a kill at any step. Other programs
//! that change the files meanwhile lose nothing. A command that could not finish is refused before it
//! begins.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::{
    Chance, Folder, binary, is_root, merganser, merganser_itself, names, one_sentence, prints,
    small_memory, sorted_lines, stderr,
};
use crate::preload::{Event, Step, Steps, is_stopped, resume, was_killed};

/// Some chunks of a sort, which are a mebibyte, and some resume points of a copy, which are two.
const CONTENT_BYTES: usize = 5 << 20;
/// While it is the name of a file, some of its bytes are given back.
const HIDDEN: &str = ".in.merganser-consumed";
const WORK: &str = ".out.unfinished";

mod damage;
mod last_steps;

/// Where an interrupted `sort --consume in -o out` can be, and the step that shows it.
fn states() -> [(&'static str, Step<'static>); 6] {
    let step = |of, name, at| Step { of: Some(of), name: Some(name), at };
    [
        ("sorting", step("punch", HIDDEN, 3)),
        ("sorted", step("unlink", HIDDEN, 1)),
        ("removed", step("rename", "resume", 1)),
        ("copying", step("rename", "resume", 3)),
        ("copied", step("rename", "out", 1)),
        ("delivered", step("unlink", "sort-journal", 1)),
    ]
}

/// A folder with an input.
struct Place {
    folder: Folder,
    steps: Option<Steps>,
    content: Vec<u8>,
    sorted: Vec<u8>,
    memory: String,
}

impl Place {
    /// With an input `in`.
    fn new() -> Self {
        let content = Chance::new().lines(CONTENT_BYTES);
        let folder = Folder::new();
        folder.write("in", &content);
        let (sorted, memory) = (sorted_lines(&content), format!("--memory={}", small_memory()));
        Place { folder, steps: None, content, sorted, memory }
    }

    /// One whose commands can be interrupted. Without a C compiler, it prints a line and returns `None`.
    fn with_steps() -> Option<Self> {
        let steps = Steps::new()?;
        Some(Place { steps: Some(steps), ..Place::new() })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = merganser_itself([arguments[0], &self.memory]);
        command.args(&arguments[1..]).current_dir(self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that is killed at `step`; says whether it was, or ended before.
    fn killed(&self, arguments: &[&str], step: Step<'_>) -> bool {
        let mut command = self.command(arguments);
        self.steps.as_ref().expect("asked for").arm(&mut command, step, Event::Kill);
        let output = command.output().expect("it starts");
        let killed = was_killed(output.status);
        assert!(killed || output.status.success(), "{arguments:?} {step:?}: {}", stderr(&output));
        killed
    }

    /// Runs a command up to `step`, where it must come by.
    fn interrupted(&self, arguments: &[&str], step: Step<'_>) {
        assert!(self.killed(arguments, step), "{arguments:?} has no step {step:?}");
    }

    /// Runs a command one of whose calls fails, and which must fail with it; gives all that it says.
    fn fails_at(&self, arguments: &[&str], step: Step<'_>) -> String {
        let mut command = self.command(arguments);
        self.steps.as_ref().expect("asked for").arm(&mut command, step, Event::Fail(libc::EIO));
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {step:?}: {}", stderr(&output));
        stderr(&output)
    }

    /// Starts a command that stops at `step`.
    fn stopped(&self, arguments: &[&str], step: Step<'_>) -> Child {
        let mut command = self.command(arguments);
        self.steps.as_ref().expect("asked for").arm(&mut command, step, Event::Stop);
        let child = command.spawn().expect("it starts");
        assert!(is_stopped(&child), "{arguments:?} has no step {step:?}");
        child
    }

    /// Lets a stopped command end, which must fail; gives all that it says.
    fn fails_after_stop(child: Child) -> String {
        resume(&child);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    }

    /// Runs a command that must succeed.
    fn does(&self, arguments: &[&str]) {
        prints(&mut self.command(arguments));
    }

    /// Runs a command that must fail; gives all that it says.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        let path = self.folder.at(name);
        if path.is_dir() {
            prints(merganser(["cat"]).arg(path))
        } else {
            fs::read(path).expect("there")
        }
    }

    fn holds(&self, name: &str, content: &[u8], when: &str) {
        let read = self.read(name);
        assert!(
            read == content,
            "{when}: {name} has {} bytes, {} expected",
            read.len(),
            content.len()
        );
    }

    /// Removes everything and writes the input again.
    fn again(&self, input: &str) {
        for name in self.folder.names() {
            let path = self.folder.at(&name);
            if path.is_dir() {
                fs::remove_dir_all(path).expect("removed");
            } else {
                fs::remove_file(path).expect("removed");
            }
        }
        self.folder.write(input, &self.content);
    }

    /// Whether all has ended: the result alone is there, without a trace of its making.
    fn is_finished(&self, result: &str) -> bool {
        let at = self.folder.at(result);
        let traces = ["sort-journal", "consumed-into", "resume", "partial"];
        self.folder.names() == [result]
            && !(at.is_dir()
                && names(&at).iter().any(|name| traces.iter().any(|t| name.starts_with(t))))
    }

    /// Whether that result is the input, sorted.
    fn is_sorted(&self, result: &str) -> bool {
        self.is_finished(result) && self.read(result) == self.sorted
    }

    /// The same command, repeated after a kill, ends the work: it succeeds or has nothing to do.
    fn ends(&self, arguments: &[&str], result: &str, when: &str) {
        let finished = self.is_sorted(result);
        let output = self.command(arguments).output().expect("it starts");
        let said = stderr(&output);
        assert!(output.status.success() || finished, "{when}: {said}");
        assert!(self.is_finished(result), "{when}: {:?}", self.folder.names());
        self.holds(result, &self.sorted, when);
    }
}

/// Kills a command at each of its steps. Then the same command ends the work. `prepare` makes what
/// the command starts from, out of the input.
fn kill_at_every_step(arguments: &[&str], input: &str, result: &str, prepare: &dyn Fn(&Place)) {
    let Some(place) = Place::with_steps() else { return };
    let mut steps = 0;
    for at in 1.. {
        place.again(input);
        prepare(&place);
        if !place.killed(arguments, Step::number(at)) {
            break;
        }
        steps = at;
        place.ends(arguments, result, &format!("killed at step {at}"));
    }
    assert!(place.is_finished(result), "{:?}", place.folder.names());
    assert!(steps > 20, "{steps} steps are too few");
    // The command that continues is killed, too, a step later each time.
    place.again(input);
    prepare(&place);
    let mut kills = 0;
    for at in 1.. {
        if place.is_sorted(result) || !place.killed(arguments, Step::number(at)) {
            break;
        }
        kills = at;
    }
    assert!(place.is_finished(result), "{:?}", place.folder.names());
    place.holds(result, &place.sorted, &format!("after {kills} kills"));
    eprintln!("{arguments:?}: {steps} steps, {kills} kills in a row");
}

#[test]
fn f1_killed_at_every_step_onto_its_input() {
    kill_at_every_step(&["sort", "--consume", "big", "-o", "big"], "big", "big", &|_| {});
}

#[test]
fn f1_killed_at_every_step_to_a_file() {
    kill_at_every_step(&["sort", "--consume", "in", "-o", "out"], "in", "out", &|_| {});
}

#[test]
fn f1_killed_at_every_step_to_a_view() {
    kill_at_every_step(&["sort", "--consume", "in", "--view", "out"], "in", "out", &|_| {});
}

#[test]
fn f1_killed_at_every_step_of_a_consumed_view() {
    for strategy in ["--strategy=merge", "--strategy=distribute"] {
        let prepare = |place: &Place| {
            place.does(&["sort", strategy, "in", "--view", "v"]);
            fs::remove_file(place.folder.at("in")).expect("removed");
        };
        kill_at_every_step(&["materialize", "--consume", "v", "-o", "out"], "in", "out", &prepare);
    }
}

const SORT: [&str; 5] = ["sort", "--consume", "in", "-o", "out"];

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
        assert!(said.contains("--consume in -o out"), "{state}: {said}");
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

#[test]
fn f7_inputs_that_are_one_file() {
    let place = Place::new();
    let cases: [(&str, &[&str]); 7] = [
        ("", &["sort", "--consume", "in", "in", "-o", "out"]),
        ("", &["sort", "--consume", "in", "./in", "-o", "out"]),
        ("", &["sort", "--consume", "in", "in", "-o", "in"]),
        ("hard", &["sort", "--consume", "in", "link", "-o", "out"]),
        ("hard", &["sort", "--consume", "link", "-o", "out"]),
        ("soft", &["sort", "--consume", "in", "link", "-o", "out"]),
        ("soft", &["sort", "--consume", "link", "-o", "out"]),
    ];
    for (link, case) in cases {
        place.again("in");
        match link {
            "hard" => fs::hard_link(place.folder.at("in"), place.folder.at("link")),
            "soft" => std::os::unix::fs::symlink("in", place.folder.at("link")),
            _ => Ok(()),
        }
        .expect("linked");
        let before = place.folder.names();
        place.refuses(case);
        place.holds("in", &place.content, &format!("{case:?}"));
        assert_eq!(place.folder.names(), before, "{case:?}");
    }
    // An output inside the view would go with it.
    place.again("in");
    place.does(&["sort", "in", "--view", "v"]);
    place.refuses(&["materialize", "--consume", "v", "-o", "v/sorted.txt"]);
    place.holds("v", &place.sorted, "an output inside");
    // Files that are not part of the view stay.
    place.folder.write("v/notes", b"mine\n");
    place.does(&["materialize", "--consume", "v", "-o", "out"]);
    place.holds("out", &place.sorted, "a stranger in the view");
    assert_eq!(names(&place.folder.at("v")), ["notes"]);
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

/// A command that could not finish is refused while its input is complete.
#[test]
fn f11_refused_before_a_byte_is_taken() {
    let place = Place::new();
    fs::create_dir(place.folder.at("d")).expect("made");
    prints(Command::new("mkfifo").arg(place.folder.at("fifo")));
    let before = place.folder.names();
    let long = |bytes: usize| "x".repeat(bytes);
    let (too_long, just_too_long) = (long(300), long(244));
    let outputs: [&[&str]; 6] = [
        &["-o", "d"],
        &["-o", "fifo"],
        &["-o", &too_long],
        &["-o", &just_too_long],
        &["-o", "missing/out"],
        &["--view", "d"],
    ];
    for output in outputs {
        let said = place.refuses(&[&["sort", "--consume", "in"], output].concat());
        assert_eq!(said.lines().count(), 1, "{said}");
        place.holds("in", &place.content, &format!("{output:?}"));
        assert_eq!(place.folder.names(), before, "{output:?}");
    }
    // The longest name for which there is room.
    let longest = long(243);
    place.does(&["sort", "--consume", "in", "-o", &longest]);
    place.holds(&longest, &place.sorted, "243 bytes");
    // So with the hidden names of inputs.
    let (fits, too_long) = (long(235), long(236));
    place.again(&too_long);
    place.refuses(&["sort", "--consume", &too_long, "-o", "out"]);
    place.holds(&too_long, &place.content, "236 bytes");
    assert_eq!(place.folder.names(), [&too_long[..]]);
    place.again(&fits);
    place.does(&["sort", "--consume", &fits, "-o", "out"]);
    place.holds("out", &place.sorted, "235 bytes");
    // Names that are no text.
    let strange = OsStr::from_bytes(b"strange\xff");
    place.again("in");
    fs::rename(place.folder.at("in"), place.folder.path().join(strange)).expect("renamed");
    prints(place.command(&["sort", "--consume"]).arg(strange).arg("-o").arg(strange));
    assert!(fs::read(place.folder.path().join(strange)).expect("there") == place.sorted);
    prints(place.command(&["sort"]).arg(strange).args(["--view", "v"]));
    prints(place.command(&["materialize", "--consume", "v", "-o"]).arg(strange));
    assert!(fs::read(place.folder.path().join(strange)).expect("there") == place.sorted);
    assert_eq!(place.folder.names().len(), 1);
}

/// Another user, whose id owns nothing else.
const OTHER: u32 = 65534;

/// A folder in which the input can't be removed.
#[test]
fn f11_an_input_that_cannot_be_removed() {
    if !is_root("another user") {
        return;
    }
    let place = Place::new();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    open(place.folder.path(), 0o755);
    fs::create_dir(place.folder.at("d")).expect("made");
    fs::rename(place.folder.at("in"), place.folder.at("d/in")).expect("renamed");
    open(&place.folder.at("d/in"), 0o666);
    fs::create_dir(place.folder.at("results")).expect("made");
    open(&place.folder.at("results"), 0o777);
    // The binary itself must be within reach of that user.
    let own = place.folder.at("merganser");
    fs::copy(binary(), &own).expect("copied");
    open(&own, 0o755);
    for mode in [0o755, 0o1777] {
        open(&place.folder.at("d"), mode);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&own);
        command.args(["sort", &place.memory, "--consume", "d/in", "-o", "results/out"]);
        command.current_dir(place.folder.path()).stdin(Stdio::null());
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => return eprintln!("skipped: no setpriv: {error}"),
        };
        let said = one_sentence(&command, &output);
        assert!(said.contains("d/in: --consume: can't be removed"), "{said}");
        place.holds("d/in", &place.content, &format!("{mode:o}"));
        assert_eq!(names(&place.folder.at("d")), ["in"]);
        assert_eq!(names(&place.folder.at("results")), [""; 0]);
    }
    // In a folder that all users may write to, users can consume their own files.
    let path = place.folder.at("d/in");
    std::os::unix::fs::chown(&path, Some(OTHER), Some(OTHER)).expect("given");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&own);
    command.args(["sort", &place.memory, "--consume", "d/in", "-o", "results/out"]);
    prints(command.current_dir(place.folder.path()).stdin(Stdio::null()));
    place.holds("results/out", &place.sorted, "own file");
    assert_eq!(names(&place.folder.at("d")), [""; 0]);
}

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

/// `recover` describes each state, and the command that it names ends the work.
#[test]
fn recover_lists_the_leftovers_of_each_state() {
    let Some(place) = Place::with_steps() else { return };
    let asked = |json: bool| -> String {
        let mut recover = merganser_itself(["recover", "."]);
        recover.args(json.then_some("--json")).current_dir(place.folder.path());
        String::from_utf8(prints(&mut recover)).expect("text")
    };
    let told = || -> Vec<serde_json::Value> {
        let json: serde_json::Value = serde_json::from_str(&asked(true)).expect("JSON");
        json["leftovers"].as_array().expect("an array").clone()
    };
    // A command of `recover` is for a shell that finds this binary.
    let (own, usual) = (binary(), std::env::var("PATH").expect("a path"));
    let bin = Path::new(&own).parent().expect("a folder").display();
    let path = format!("{bin}:{usual}");
    let typed = |command: &serde_json::Value| {
        let command = command.as_str().expect("a command");
        let mut shell = Command::new("sh");
        shell.args(["-ec", command]).env("LC_ALL", "C").env("PATH", &path);
        prints(shell.current_dir(place.folder.path()));
    };
    let total = place.content.len();
    let whole = format!("all {total} bytes are");
    let words = |state: &str| match state {
        "sorting" => format!("of {total} bytes are sorted and here, the rest is in the inputs"),
        "removed" => format!("{whole} sorted and here, the inputs are removed"),
        "copying" | "copied" => "of them in the output that is being written".to_owned(),
        "delivered" => "the result is there; only leftovers are here".to_owned(),
        _ => format!("{whole} sorted and here"),
    };
    for (state, step) in states() {
        place.again("in");
        place.interrupted(&SORT, step);
        let left = told();
        let sort = left.iter().find(|l| l["kind"] == "sort").expect("a sort");
        let what = sort["what"].as_str().expect("text");
        assert!(what.contains(&words(state)), "{state}: {what}");
        assert_eq!(sort["only_copy"], state != "delivered", "{state}");
        assert_eq!(sort["in_use"], false, "{state}");
        let is_input = left.iter().any(|l| l["kind"] == "input" && l["only_copy"] == true);
        assert_eq!(is_input, ["sorting", "sorted"].contains(&state), "{state}: {left:?}");
        let text = asked(false);
        assert!(text.contains(what), "{state}: {text}");
        assert_eq!(text.contains("keep:  it has records"), state != "delivered", "{state}: {text}");
        typed(&sort["command"]);
        place.holds("out", &place.sorted, state);
        assert_eq!(told(), [serde_json::Value::Null; 0], "{state}");
        assert!(asked(false).contains("no interrupted work"), "{state}");
    }
    // While a process works there, there is nothing to do.
    place.again("in");
    let mut child = place.stopped(&SORT, states()[0].1);
    let left = told();
    let sort = left.iter().find(|l| l["kind"] == "sort").expect("a sort");
    assert_eq!(sort["in_use"], true);
    assert!(asked(false).contains("a process works on it now"));
    resume(&child);
    assert!(child.wait().expect("it ends").success());
    // Copies.
    for consume in [false, true] {
        place.again("in");
        place.does(&["sort", "in", "--view", "v"]);
        fs::remove_file(place.folder.at("in")).expect("removed");
        let mut copy = vec!["materialize", "v", "-o", "out"];
        if consume {
            copy.push("--consume");
        }
        place.interrupted(&copy, Step::first("rename", "out"));
        let left = told();
        let found = left.iter().find(|l| l["kind"] == "copy").expect("a copy");
        assert_eq!(found["only_copy"], consume, "{found}");
        let what = found["what"].as_str().expect("text");
        assert!(
            what.contains(&format!("complete: {total} of {total} bytes are written")),
            "{what}"
        );
        assert_eq!(left.iter().any(|l| l["kind"] == "view"), consume, "{left:?}");
        typed(&found["command"]);
        place.holds("out", &place.sorted, "a copy");
        assert_eq!(told(), [serde_json::Value::Null; 0]);
    }
    // A view that was not finished goes; its inputs are whole.
    place.again("in");
    place.interrupted(&["sort", "in", "--view", "out"], Step::first("rename", "out"));
    let left = told();
    assert_eq!((left.len(), &left[0]["only_copy"]), (1, &false.into()), "{left:?}");
    typed(&left[0]["command"]);
    place.holds("in", &place.content, "a view that was not finished");
    assert_eq!(place.folder.names(), ["in"]);
}
