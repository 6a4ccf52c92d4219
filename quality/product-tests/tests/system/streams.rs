//! Standard output whose reader reads all of it, stops early, or never reads.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{
    Chance, Folder, binary, merganser_itself, names, prints, sorted_lines, view_of,
};

const MEMORY: &str = "--memory=32M";

/// Lines that do not fit into [`MEMORY`], a folder for temporary files, and views.
struct Fixture {
    folder: Folder,
    content: Vec<u8>,
    input: PathBuf,
    views: [PathBuf; 2],
}

impl Fixture {
    fn new() -> Self {
        let content = Chance::new().lines(40 << 20);
        let folder = Folder::new();
        let input = folder.write("input", &content);
        fs::create_dir(folder.at("temp")).expect("made");
        let views = [("--strategy=merge", "runs.view"), ("--strategy=distribute", "buckets.view")];
        let views = views.map(|(strategy, name)| {
            let view = folder.at(name);
            fs::rename(view_of(&folder, &input, &[MEMORY, strategy]), &view).expect("renamed");
            view
        });
        Fixture { folder, content, input, views }
    }

    /// Every way to make a stream that is much longer than a pipe.
    fn commands(&self) -> Vec<Command> {
        let sort = |options: &[&str]| {
            let mut sort = merganser_itself(["sort"]);
            sort.args(options).arg("-T").arg(self.folder.at("temp")).arg(&self.input);
            sort
        };
        let cat = |view: &PathBuf| {
            let mut cat = merganser_itself(["cat", MEMORY]);
            cat.arg(view);
            cat
        };
        vec![
            sort(&[MEMORY, "--strategy=merge"]),
            sort(&[MEMORY, "--strategy=distribute"]),
            sort(&["--memory=1G"]),
            sort(&[MEMORY, "-m"]),
            cat(&self.views[0]),
            cat(&self.views[1]),
            merganser_itself(["generate", "--records", "1M"]),
        ]
    }

    fn is_clean(&self, what: &str) {
        assert_eq!(names(&self.folder.at("temp")), [""; 0], "{what}");
        let left = ["buckets.view", "input", "runs.view", "temp"];
        assert_eq!(self.folder.names(), left, "{what}");
    }
}

/// Waits until nothing more is written to `file`, which has no reader.
fn wait_until_full(file: &impl AsRawFd) {
    let (mut held, mut since) = (0, Instant::now());
    while held == 0 || since.elapsed() < Duration::from_millis(400) {
        let mut now: libc::c_int = 0;
        // SAFETY: writes one int.
        assert_eq!(unsafe { libc::ioctl(file.as_raw_fd(), libc::FIONREAD, &raw mut now) }, 0);
        if now != held {
            (held, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends SIGTERM; the end must come soon, and say so.
fn terminate(mut child: Child, what: &str) {
    let start = Instant::now();
    // SAFETY: a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0, "{what}");
    let status = child.wait().expect("it ends");
    let took = start.elapsed();
    assert_eq!(status.code(), Some(128 + libc::SIGTERM), "{what}: {status}");
    // A loaded machine may take its time, but after ten seconds the process just ends.
    assert!(took < Duration::from_secs(9), "{what}: {took:?}");
}

#[test]
fn a_signal_ends_a_write_without_a_reader() {
    let f = Fixture::new();
    for mut command in f.commands() {
        let what = format!("{command:?}");
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let unread = child.stdout.take().expect("piped");
        wait_until_full(&unread);
        terminate(child, &what);
        f.is_clean(&what);
    }
}

#[test]
fn a_signal_ends_a_write_to_a_socket_without_a_reader() {
    let f = Fixture::new();
    for view in &f.views {
        let (unread, written) = UnixStream::pair().expect("a pair");
        let mut cat = merganser_itself(["cat", MEMORY]);
        cat.arg(view).stdout(OwnedFd::from(written));
        let child = cat.spawn().expect("it starts");
        wait_until_full(&unread);
        terminate(child, &format!("{cat:?}"));
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_reader_of_a_named_pipe() {
    let folder = Folder::new();
    let input = folder.write("input", b"b\na\n");
    let pipe = folder.at("pipe");
    prints(Command::new("mkfifo").arg(&pipe));
    let mut sort = merganser_itself(["sort"]);
    sort.arg(&input).arg("-o").arg(&pipe);
    // Somebody opens it late, and gets all.
    let child = sort.spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(fs::read(&pipe).expect("read"), b"a\nb\n");
    assert!(child.wait_with_output().expect("it ends").status.success());
    // Nobody does.
    terminate(listening(sort), "a named pipe");
    assert_eq!(folder.names(), ["input", "pipe"]);
}

#[test]
fn a_signal_ends_the_wait_for_a_writer_of_a_named_pipe() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    prints(Command::new("mkfifo").arg(&pipe));
    let out = folder.at("out");
    let of_pipe = |words: &[&str]| {
        let mut command = merganser_itself(words);
        command.arg(&pipe);
        listening(command)
    };
    let pipeline = ["pipeline", "--stage", "copy:cat", "-o", out.to_str().expect("UTF-8")];
    for words in [&["sort"][..], &["verify"], &["map", "wordcount"], &pipeline] {
        terminate(of_pipe(words), words[0]);
    }
    // A writer that comes late, and writes nothing at first, is waited for.
    let sort = of_pipe(&["sort"]);
    std::thread::sleep(Duration::from_millis(200));
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("opened");
    std::thread::sleep(Duration::from_millis(200));
    writer.write_all(b"b\na\n").expect("written");
    drop(writer);
    let sorted = sort.wait_with_output().expect("it ends");
    assert_eq!((sorted.status.success(), &sorted.stdout[..]), (true, &b"a\nb\n"[..]));
    // The pipe of a shell has a name, too, and its writer may have ended before it is opened by that.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf 'b\na\n' | (sleep 0.2; exec "$0" sort /dev/fd/0)"#]).arg(binary());
    assert_eq!(prints(&mut shell), b"a\nb\n");
}

/// Starts `command`, and waits until signals are handled.
fn listening(mut command: Command) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    let name = |task: io::Result<fs::DirEntry>| {
        fs::read_to_string(task.expect("listed").path().join("comm")).unwrap_or_default()
    };
    // The handler is in place once the signals thread exists.
    while !fs::read_dir(&tasks).expect("running").any(|task| name(task) == "signals\n") {
        std::thread::yield_now();
    }
    child
}

#[test]
fn a_reader_that_stops_early_ends_it_quietly() {
    let f = Fixture::new();
    for mut command in f.commands() {
        let what = format!("{command:?}");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut front = [0; 10];
        let mut stdout = child.stdout.take().expect("piped");
        stdout.read_exact(&mut front).expect("some bytes");
        drop(stdout);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{what}");
        f.is_clean(&what);
    }
}

/// The flags of an open file belong to all who share it: O_NONBLOCK would break the next writer.
#[test]
fn shared_standard_output_keeps_its_flags() {
    let f = Fixture::new();
    let (mut read, written) = io::pipe().expect("a pipe");
    let shared = File::from(OwnedFd::from(written));
    // SAFETY: an open descriptor; no memory is touched.
    let flags = || unsafe { libc::fcntl(shared.as_raw_fd(), libc::F_GETFL) };
    let before = flags();
    let mut cat = Command::new(binary());
    cat.arg("cat").arg(&f.views[0]).stdout(shared.try_clone().expect("cloned"));
    let mut child = cat.spawn().expect("it starts");
    drop(cat);
    wait_until_full(&read);
    assert_eq!((flags(), before & libc::O_NONBLOCK), (before, 0));
    drop(shared);
    let mut all = Vec::new();
    read.read_to_end(&mut all).expect("read");
    assert!(child.wait().expect("it ends").success());
    assert!(all == sorted_lines(&f.content), "{} bytes", all.len());
}
