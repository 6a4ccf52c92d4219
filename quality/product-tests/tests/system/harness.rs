//! Running the command, and where: the part that all tests share.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use merganser_random::Random;

/// Seconds after which a command counts as hanging.
const PATIENCE: &str = "60";

/// The binary under test.
pub(crate) fn binary() -> OsString {
    std::env::var_os("MERGANSER").unwrap_or_else(|| merganser_testkit::program().into())
}

/// `merganser` with an empty standard input and without the caller's settings.
pub(crate) fn merganser<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", PATIENCE]).arg(binary()).args(arguments);
    quiet(command)
}

/// The same without a guard against hanging, so that the process is the child itself.
pub(crate) fn merganser_itself<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    quiet(command)
}

/// GNU `sort` with these arguments.
pub(crate) fn gnu_sort<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("sort");
    command.args(arguments);
    quiet(command)
}

fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).env("LC_ALL", "C").env_remove("TMPDIR");
    command
}

/// Runs a command that must succeed; returns its output.
pub(crate) fn prints(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}\n{}: {}", output.status, stderr(&output));
    output.stdout
}

/// Runs a command that must end with status 2 and one sentence; gives the sentence.
pub(crate) fn fails(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    one_sentence(command, &output)
}

/// Checks that a command ended as a failed `merganser` does; gives the sentence.
pub(crate) fn one_sentence(command: &Command, output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{command:?}\n{}: {said}", output.status);
    assert_eq!(said.matches('\n').count(), 1, "{command:?}\nnot one line: {said}");
    let sentence = said.trim_end().strip_prefix("merganser: ");
    sentence.unwrap_or_else(|| panic!("{command:?}\nno name of the command: {said}")).to_owned()
}

/// Runs a command with something to read.
pub(crate) fn output_with(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        // A command that fails early closes its input; its messages are checked later.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("it ends")
    })
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder that goes away with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::Builder::new().prefix("merganser-").tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file; gives its path.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, content).expect("written");
        path
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.path())
    }
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |e: std::io::Result<fs::DirEntry>| e.expect("an entry").file_name();
    let mut names: Vec<_> = entries.map(|e| name(e).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Flips a bit in the middle of the largest file of a view, and returns the name of that file.
pub(crate) fn damage(view: &Path) -> String {
    let largest = names(view)
        .into_iter()
        .max_by_key(|name| fs::metadata(view.join(name)).expect("there").len())
        .expect("a run");
    let mut bytes = fs::read(view.join(&largest)).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(view.join(&largest), bytes).expect("written");
    largest
}

/// Makes a view of `input`; returns its path.
pub(crate) fn view_of(folder: &Folder, input: &Path, options: &[&str]) -> PathBuf {
    let view = folder.at("made.view");
    prints(merganser(["sort"]).args(options).arg(input).arg("--view").arg(&view));
    view
}

/// A small `--memory` that works for a sort, in bytes: twice the least that the command names
/// when asked to do with nothing.
pub(crate) fn small_memory() -> u64 {
    static LEAST: LazyLock<u64> = LazyLock::new(|| {
        let folder = Folder::new();
        let input = folder.write("input", b"b\na\n");
        let sentence = fails(merganser(["sort", "--memory", "1"]).arg(input));
        let numbers = sentence.split(|c: char| !c.is_ascii_digit());
        let least = numbers.filter_map(|n| n.parse::<u64>().ok()).max();
        least.unwrap_or_else(|| panic!("it does not say the least memory: {sentence}"))
    });
    *LEAST * 2
}

/// A number from the environment, or how many a quick run takes.
pub(crate) fn asked(variable: &str, quick: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(quick, |n| n.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {n}")))
}

/// Whether this is root, with a line said when it is not.
pub(crate) fn is_root(why: &str) -> bool {
    // SAFETY: asking for the own id touches no memory and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: {why} needs root");
    }
    root
}

/// Where chance comes from.
pub(crate) struct Chance(Random);

impl Chance {
    /// Takes the seed from `MERGANSER_SEED` or the clock, and prints it before its first use.
    pub(crate) fn new() -> Self {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
        let seed = asked("MERGANSER_SEED", u64::from(now.subsec_nanos()));
        eprintln!("MERGANSER_SEED={seed}");
        Chance(Random::new(seed))
    }

    /// The chance of one case, the same whatever the other cases drew.
    pub(crate) fn of_case(&self, case: u64) -> Chance {
        Chance(Random::of_record(self.0.clone().bits(), case))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// Below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `of` times.
    pub(crate) fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Lines of 20 to 119 letters, about `bytes` of them.
    pub(crate) fn lines(&mut self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 120);
        while out.len() < bytes {
            for _ in 0..20 + self.below(100) {
                out.push(b'a' + (self.next() >> 32) as u8 % 26);
            }
            out.push(b'\n');
        }
        out
    }
}

/// The lines of `content`, each with its newline, sorted by their bytes.
pub(crate) fn sorted_lines(content: &[u8]) -> Vec<u8> {
    let mut lines: Vec<_> = content.split_inclusive(|&b| b == b'\n').collect();
    lines.sort();
    lines.concat()
}

/// The first line that a server prints on its standard error, which is piped and can be read on.
pub(crate) fn first_line(server: &mut Child) -> String {
    let mut stderr = server.stderr.take().expect("piped");
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Byte by byte, or the rest would be lost.
        while !line.ends_with(b"\n") && stderr.read(&mut byte).expect("read") > 0 {
            line.push(byte[0]);
        }
        let _ = to.send((line, stderr));
    });
    let Ok((line, stderr)) = from.recv_timeout(Duration::from_secs(30)) else {
        let _ = server.kill();
        panic!("it says nothing");
    };
    server.stderr = Some(stderr);
    String::from_utf8(line).expect("text")
}
