//! Killed at random moments: the input stays whole, nothing half-made looks finished, and the
//! same command run again succeeds.

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{
    Chance, Folder, asked, fails, merganser, merganser_itself, names, prints, small_memory,
    sorted_lines, view_of,
};

const STRATEGIES: [&str; 2] = ["--strategy=merge", "--strategy=distribute"];

fn crashes() -> u64 {
    asked("MERGANSER_CRASHES", 10)
}

struct Fixture {
    folder: Folder,
    content: Vec<u8>,
    sorted: Vec<u8>,
    memory: String,
    chance: Chance,
}

impl Fixture {
    /// Lines that need several runs.
    fn new() -> Self {
        let mut chance = Chance::new();
        let memory = small_memory();
        let content = chance.lines((memory * 3) as usize);
        let folder = Folder::new();
        folder.write("input", &content);
        fs::create_dir(folder.at("temp")).expect("made");
        let sorted = sorted_lines(&content);
        Fixture { folder, content, sorted, memory: format!("--memory={memory}"), chance }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = merganser_itself(arguments);
        command.current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, so that its children die with it.
        command.process_group(0);
        command
    }

    /// How long the command takes without a disturbance.
    fn time_of(&self, arguments: &[&str]) -> Duration {
        let start = Instant::now();
        assert!(self.command(arguments).status().expect("it starts").success(), "{arguments:?}");
        start.elapsed()
    }

    /// Starts the command and sends `signal` at a random moment of `time`.
    fn disturb(&mut self, arguments: &[&str], time: Duration, signal: libc::c_int) -> ExitStatus {
        let child = self.command(arguments).spawn().expect("it starts");
        let moment = time.as_micros() as u64 * 11 / 10;
        // The moment of the kill is random; the test waits for no event.
        std::thread::sleep(Duration::from_micros(self.chance.below(moment + 1)));
        ended_by(child, signal)
    }

    fn input_is_whole(&self) {
        assert!(fs::read(self.folder.at("input")).expect("there") == self.content, "the input");
    }
}

fn ended_by(mut child: Child, signal: libc::c_int) -> ExitStatus {
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: a signal to the group of a child that has not been waited for.
    unsafe { libc::kill(-pid, signal) };
    child.wait().expect("it ends")
}

#[test]
fn a_killed_sort_leaves_no_half_view() {
    STRATEGIES.iter().for_each(|strategy| kill_sorts_to_a_view(strategy));
}

fn kill_sorts_to_a_view(strategy: &str) {
    let mut f = Fixture::new();
    let memory = f.memory.clone();
    let arguments = ["sort", &*memory, strategy, "input", "--view", "x.view"];
    let time = f.time_of(&arguments);
    let complete = names(&f.folder.at("x.view"));
    remove(&f.folder.at("x.view"));
    let mut killed = 0;
    for _ in 0..crashes().div_ceil(2) {
        killed += u64::from(f.disturb(&arguments, time, libc::SIGKILL).signal().is_some());
        f.input_is_whole();
        if f.folder.at("x.view").exists() {
            let read = prints(merganser(["cat"]).arg(f.folder.at("x.view")));
            assert!(read == f.sorted, "a view that is there is whole");
            remove(&f.folder.at("x.view"));
        }
        // Whatever was left behind does not disturb the next one, and that one cleans up.
        prints(merganser(arguments).current_dir(f.folder.path()));
        assert_eq!(names(&f.folder.at("x.view")), complete);
        remove(&f.folder.at("x.view"));
    }
    eprintln!("killed {killed} of {} with {strategy}", crashes().div_ceil(2));
}

#[test]
fn a_killed_sort_leaves_the_output_old_or_new() {
    STRATEGIES.iter().for_each(|strategy| kill_sorts_to_a_file(strategy));
}

fn kill_sorts_to_a_file(strategy: &str) {
    let mut f = Fixture::new();
    let memory = f.memory.clone();
    let arguments = ["sort", &*memory, strategy, "input", "-T", "temp", "-o", "out"];
    let time = f.time_of(&arguments);
    for _ in 0..crashes().div_ceil(2) {
        f.folder.write("out", b"precious");
        let status = f.disturb(&arguments, time, libc::SIGKILL);
        f.input_is_whole();
        let out = fs::read(f.folder.at("out")).expect("never missing");
        assert!(out == b"precious" || out == f.sorted, "{status}: {} bytes", out.len());
        assert!(!status.success() || out == f.sorted);
        assert_eq!(names(&f.folder.at("temp")), [""; 0], "temporary files have no names");
    }
    prints(merganser(arguments).current_dir(f.folder.path()));
    assert!(fs::read(f.folder.at("out")).expect("there") == f.sorted);
}

#[test]
fn a_killed_sort_onto_its_input_leaves_it_old_or_new() {
    let mut f = Fixture::new();
    let memory = f.memory.clone();
    let arguments = ["sort", &*memory, "input", "-o", "input"];
    let time = f.time_of(&arguments);
    for _ in 0..crashes() {
        f.folder.write("input", &f.content);
        f.disturb(&arguments, time, libc::SIGKILL);
        let input = fs::read(f.folder.at("input")).expect("never missing");
        assert!(input == f.content || input == f.sorted, "{} bytes", input.len());
    }
}

/// Killed again and again at the same view, until it comes through.
#[test]
fn a_killed_materialize_continues() {
    STRATEGIES.iter().for_each(|strategy| kill_copies(strategy));
}

fn kill_copies(strategy: &str) {
    let is_left =
        |f: &Fixture| f.folder.at("made.view").exists() || f.folder.at(".out.unfinished").exists();
    let mut f = Fixture::new();
    let memory = f.memory.clone();
    let view = view_of(&f.folder, &f.folder.at("input"), &[&memory, strategy]);
    let arguments = ["materialize", "--consume", "made.view", "-o", "out"];
    let time = f.time_of(&arguments);
    for _ in 0..crashes().div_ceil(2) {
        remove(&view);
        let _ = fs::remove_file(f.folder.at("out"));
        view_of(&f.folder, &f.folder.at("input"), &[&memory, strategy]);
        let mut kills = 0;
        // A later try may be given little time, so their number is bounded.
        for share in [2, 2, 3, 4, 8] {
            if f.disturb(&arguments, time / share, libc::SIGKILL).success() {
                break;
            }
            kills += 1;
            // All was done before the kill; once more, the command would only say that there is no such view.
            if !is_left(&f) {
                break;
            }
        }
        // A kill after the view was removed may leave the folder of the work, and the repeated command clears it.
        if is_left(&f) {
            prints(merganser(arguments).current_dir(f.folder.path()));
        }
        let out = fs::read(f.folder.at("out")).expect("there");
        assert!(out == f.sorted, "after {kills} kills: {} bytes", out.len());
        assert_eq!(f.folder.names(), ["input", "out", "temp"], "the view is gone");
    }
    f.input_is_whole();
}

/// A command is killed again and again while it consumes its input. The rest of the input alone is
/// incomplete, but the same command continues. Until it has ended, no other command may take the
/// bytes that it holds.
#[test]
fn a_killed_sort_that_consumes_its_input_continues() {
    let mut f = Fixture::new();
    let memory = f.memory.clone();
    let mut in_between = 0;
    for result in ["--view", "-o"] {
        let arguments = ["sort", &*memory, "--consume", "input", result, "out"];
        let time = f.time_of(&arguments);
        for _ in 0..crashes().div_ceil(2) {
            remove(&f.folder.at("out"));
            f.folder.write("input", &f.content);
            let mut kills = 0;
            // A later try may be given little time, so their number is bounded.
            for share in [1, 2, 2, 3, 4] {
                if f.disturb(&arguments, time / share, libc::SIGKILL).success() {
                    break;
                }
                kills += 1;
                // All was done before the kill.
                if f.folder.names() == ["out", "temp"] {
                    break;
                }
                let input = fs::read(f.folder.at("input")).unwrap_or_default();
                if input != f.content && f.folder.at(".out.unfinished/manifest").exists()
                    || f.folder.at(".out.unfinished/sort-journal").exists()
                {
                    in_between += 1;
                    let other = ["sort", "temp/other", "--view", "out"];
                    f.folder.write("temp/other", b"b\na\n");
                    if f.folder.at("input").exists() && input == f.content {
                        // Nothing was taken yet, so another command may have the folder.
                        merganser(other).current_dir(f.folder.path()).status().expect("runs");
                        f.input_is_whole();
                        remove(&f.folder.at("out"));
                    } else {
                        let sentence = fails(merganser(other).current_dir(f.folder.path()));
                        let refused = ["interrupted sort --consume", "out: exists"];
                        assert!(refused.iter().any(|why| sentence.contains(why)), "{sentence}");
                    }
                    remove(&f.folder.at("temp/other"));
                }
            }
            if f.folder.names() != ["out", "temp"] {
                prints(merganser(arguments).current_dir(f.folder.path()));
            }
            assert_eq!(f.folder.names(), ["out", "temp"], "after {kills} kills");
            let out = f.folder.at("out");
            let read = match result {
                "-o" => fs::read(out).expect("there"),
                _ => prints(merganser(["cat"]).arg(out)),
            };
            assert!(read == f.sorted, "{result}: {} bytes after {kills} kills", read.len());
        }
        remove(&f.folder.at("out"));
        f.folder.write("input", &f.content);
    }
    eprintln!("{in_between} kills left a journal");
}

/// A signal that can be handled takes the unfinished work with it.
#[test]
fn an_interrupted_command_cleans_up() {
    let mut f = Fixture::new();
    let memory = f.memory.clone();
    let [merge, distribute] = STRATEGIES;
    let sorts: [&[&str]; 4] = [
        &["sort", &memory, merge, "input", "-T", "temp", "-o", "out"],
        &["sort", &memory, merge, "input", "--view", "out"],
        &["sort", &memory, distribute, "input", "-T", "temp", "-o", "out"],
        &["sort", &memory, distribute, "input", "--view", "out"],
    ];
    for arguments in sorts {
        let time = f.time_of(arguments);
        remove(&f.folder.at("out"));
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGINT, libc::SIGTERM] {
            let status = f.disturb(arguments, time / 2, signal);
            f.input_is_whole();
            assert_eq!(names(&f.folder.at("temp")), [""; 0], "{status}");
            if status.success() {
                remove(&f.folder.at("out"));
            }
            assert_eq!(f.folder.names(), ["input", "temp"], "{status} {arguments:?}");
            // Before its handler is there, the signal itself ends it.
            let told = status.code() == Some(128 + signal) || status.signal() == Some(signal);
            assert!(status.success() || told, "{status}");
        }
    }
}

/// All stages are at work when the signal comes, and none of them would end by itself: the input
/// has no end.
#[test]
fn a_signal_ends_all_stages_at_once() {
    const MEMORY_BYTES: usize = 32 << 20;
    let mut f = Fixture::new();
    let memory = format!("--memory={MEMORY_BYTES}");
    for (strategy, result, signal) in
        STRATEGIES.into_iter().flat_map(|s| [(s, "-o", libc::SIGINT), (s, "--view", libc::SIGTERM)])
    {
        let arguments = ["sort", &memory, strategy, "-T", "temp", "-", result, "out"];
        let mut child = f.command(&arguments).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let content = f.chance.lines(1 << 20);
        // When the signal comes, twice as much data as its memory holds has passed.
        let (passed_to, passed) = std::sync::mpsc::channel();
        let feeder = std::thread::spawn(move || {
            for mebibytes in 0.. {
                if stdin.write_all(&content).is_err() {
                    return;
                }
                if mebibytes << 20 == 2 * MEMORY_BYTES {
                    passed_to.send(()).expect("somebody waits");
                }
            }
        });
        passed.recv().expect("it takes its input");
        let start = Instant::now();
        let status = ended_by(child, signal);
        let took = start.elapsed();
        feeder.join().expect("its pipe is closed");
        let what = format!("{arguments:?}, signal {signal}: {status} after {took:?}");
        assert_eq!(status.code(), Some(128 + signal), "{what}");
        // After ten seconds the process just ends.
        assert!(took < Duration::from_secs(9), "{what}");
        assert_eq!(names(&f.folder.at("temp")), [""; 0], "{what}");
        assert_eq!(f.folder.names(), ["input", "temp"], "{what}");
        eprintln!("{what}");
    }
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).expect("removed");
    } else if path.exists() {
        fs::remove_file(path).expect("removed");
    }
}
