//! Inputs and views that are consumed: every record is there after a kill at any step. What else the
//! commands promise is in the modules below.

use std::fs;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::harness::{
    Chance, Folder, merganser, merganser_itself, names, prints, small_memory, sorted_lines, stderr,
};
use crate::preload::{Event, Step, Steps, is_stopped, resume, was_killed};

/// Some chunks of a sort, which are a mebibyte, and some resume points of a copy, which are two.
const CONTENT_BYTES: usize = 5 << 20;
/// While it is the name of a file, some of its bytes are given back.
const HIDDEN: &str = ".in.merganser-consumed";
const WORK: &str = ".out.unfinished";
const SORT: [&str; 5] = ["sort", "--consume", "in", "-o", "out"];

mod damage;
mod in_use;
mod last_steps;
mod leftovers;
mod lost_files;
mod others;
mod races;
mod refused;
mod results;
mod room;

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
