//! In the place of GNU `sort`: random command lines in GNU's spellings, over small inputs. Output and
//! exit status must be those of the `sort` that is installed.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use merganser_random::Random;
use merganser_testkit::install_program;

use crate::{folder, merganser, stderr};

/// Random command lines for each kind of test; `MERGANSER_DROPIN_CASES` overrides it.
const CASES: u64 = 250;

/// GNU sort, or a link to this program with its name, in `dir`.
fn sort(program: &Path, dir: &Path, words: &[String]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(dir).stdin(Stdio::null());
    command.env("LC_ALL", "C").env_remove("_POSIX2_VERSION").env_remove("POSIXLY_CORRECT");
    command.output().expect("it starts")
}

/// A folder with `sort`, a link to the command.
fn linked() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = folder();
    let link = dir.path().join("sort");
    symlink(merganser_testkit::program(), &link).expect("a link");
    (dir, link)
}

struct Chance(Random);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.bits() % bound
    }

    fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).expect("an index")]
    }

    /// Ordering letters, mostly ones that agree.
    fn letters(&mut self) -> String {
        let kind = self.pick(&["", "", "", "n", "g", "h", "M", "V", "d", "i", "di"]);
        let mut letters = kind.to_owned();
        for (letter, of) in [("b", 4), ("f", 5), ("r", 4), ("n", 50), ("d", 50)] {
            if self.once_in(of) {
                letters.push_str(letter);
            }
        }
        letters
    }

    /// `FIELD[.CHARACTER][LETTERS]`, counted from `first`.
    fn position(&mut self, first: u64, character: u64) -> String {
        let mut text = (first + self.below(3)).to_string();
        if self.once_in(3) {
            text.push_str(&format!(".{}", character + self.below(3)));
        }
        if self.once_in(3) {
            text.push_str(&self.letters());
        }
        text
    }

    /// A key, in one of its spellings.
    fn key(&mut self) -> Vec<String> {
        if self.once_in(3) {
            let mut words = vec![format!("+{}", self.position(0, 0))];
            if !self.once_in(3) {
                words.push(format!("-{}", self.position(0, 0)));
            }
            return words;
        }
        let mut key = self.position(1, 1);
        if !self.once_in(3) {
            key.push_str(&format!(",{}", self.position(1, 0)));
        }
        match self.below(5) {
            0 => vec!["-k".into(), key],
            1 => vec![format!("--key={key}")],
            2 => vec!["--k".into(), key],
            3 => vec![format!("-sk{key}")],
            _ => vec![format!("-k{key}")],
        }
    }

    /// An option that is no key, in one of its spellings.
    fn option(&mut self) -> Vec<String> {
        let spelled = match self.below(16) {
            0 => self.pick(&["-r", "--reverse", "--rev", "--re"]),
            1 => self.pick(&["-u", "--unique", "--u", "-ru"]),
            2 => self.pick(&["-s", "--stable", "--sta", "--s"]),
            3 => self.pick(&["-z", "--zero-terminated", "--z"]),
            4 => self.pick(&["-m", "--merge", "--me", "--m"]),
            5 => {
                self.pick(&["-c", "-C", "--check", "--ch=q", "--check=silent", "--check=d", "--c"])
            }
            6 => self.pick(&[
                "-t,",
                "-t ,",
                "--field-separator=,",
                "--fi ,",
                "-t=",
                "-t \\0",
                "-t xx",
            ]),
            7 => self.pick(&["--sort=numeric", "--sort=n", "--so month", "--sort=v", "--sort=g"]),
            8 => self.pick(&["--p=1", "--parallel=2", "--para 1", "--parallel=0", "--p=x"]),
            9 => self.pick(&["-S1", "-S 10%", "--buf=1M", "--buffer-size 5b", "-S x", "-S1Y"]),
            10 => self.pick(&["--batch-size=2", "--ba 16", "--batch=1", "--b=3", "--batch-size=x"]),
            11 => self.pick(&["--compress-program=gzip", "--comp gzip", "-y 5", "-y", "-yx"]),
            12 => self.pick(&["-T /tmp", "-T/tmp -T /var/tmp", "--temp=/tmp", "--t=/tmp"]),
            13 => self.pick(&["-n", "--num", "-g", "--ge", "-h", "--human", "-M", "--mo", "-V"]),
            14 => self.pick(&["-b", "--ignore-l", "-d", "--di", "-f", "--ignore-c", "-i", "--ig"]),
            _ => self.pick(&[
                "--debug",
                "--deb",
                "-Q",
                "--nothing",
                "--reverse=4",
                "-1",
                "--",
                "-o out",
            ]),
        };
        // A word may hold a blank nowhere else.
        spelled.split(' ').map(str::to_owned).collect()
    }

    /// Up to a dozen lines of words and numbers, without NaN: GNU sort 9.1 compares bytes of it that it
    /// never set, so that its order changes from run to run.
    fn lines(&mut self, end: u8) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..self.below(12) {
            for field in 0..self.below(4) {
                if field > 0 {
                    text.extend_from_slice(self.pick(&[" ", " ", "  ", "\t", ",", "="]).as_bytes());
                }
                let word = self.pick(&[
                    "a", "B", "b", "ab", "12", "-3", "1.5", "2.", "1e2", "0x1f", "2K", "1M", "3Mi",
                    "-", "-.", "jan", "FEBruary", "inf", "infx", "v1.10", "v1.9", "~x", "x!y",
                    "\u{1}", "\u{e9}", "",
                ]);
                text.extend_from_slice(word.as_bytes());
            }
            text.push(end);
        }
        if self.once_in(6) {
            text.pop();
        }
        text
    }

    /// A command line; operands and options in any order.
    fn command_line(&mut self, option: impl Fn(&mut Self) -> Vec<String>) -> Vec<String> {
        let mut groups: Vec<Vec<String>> = vec![vec!["input".into()]];
        for _ in 0..self.below(3) {
            groups.push(self.key());
        }
        for _ in 0..self.below(4) {
            groups.push(option(self));
        }
        if self.once_in(8) {
            let operand = self.pick(&["input", "missing", "+1x", "+0"]);
            groups.push(vec![operand.into()]);
        }
        let mut words = Vec::new();
        while !groups.is_empty() {
            let at = usize::try_from(self.below(groups.len() as u64)).expect("an index");
            words.extend(groups.swap_remove(at));
        }
        words
    }
}

fn cases() -> u64 {
    let asked = std::env::var("MERGANSER_DROPIN_CASES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(CASES)
}

/// `MERGANSER_SEED`, or one from the clock; a failure names it.
fn seed() -> u64 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    let asked = std::env::var("MERGANSER_SEED").ok().and_then(|seed| seed.parse().ok());
    asked.unwrap_or(u64::from(now.subsec_nanos()))
}

/// GNU sort tells a wrong WORD by the status of a disorder; a script could not tell them apart here.
fn status_of(output: &Output, gnu: bool) -> Option<i32> {
    match output.status.code() {
        Some(1) if gnu && stderr(output).contains("Valid arguments are:") => Some(2),
        status => status,
    }
}

/// Runs both on random command lines, and compares.
fn compare(option: impl Fn(&mut Chance) -> Vec<String>) {
    let (dir, link) = linked();
    let gnu_dir = folder();
    let seed = seed();
    for case in 0..cases() {
        let mut chance = Chance(Random::of_record(seed, case));
        let words = chance.command_line(&option);
        let is_zero = words.iter().any(|word| word == "-z" || word.starts_with("--z"));
        let mut input = chance.lines(if is_zero { 0 } else { b'\n' });
        if chance.once_in(3) {
            // Checks and merges mostly want sorted inputs.
            std::fs::write(gnu_dir.path().join("input"), &input).expect("written");
            let order = words.iter().filter(|word| !["-c", "-C", "-m"].contains(&&***word));
            let order: Vec<_> = order.filter(|w| !w.contains("debug")).cloned().collect();
            let sorted = sort(Path::new("sort"), gnu_dir.path(), &order);
            if sorted.status.success() && !sorted.stdout.is_empty() {
                input = sorted.stdout;
            }
        }
        let mut outputs = Vec::new();
        for (program, dir) in [(&*link, dir.path()), (Path::new("sort"), gnu_dir.path())] {
            let _ = std::fs::remove_file(dir.join("out"));
            std::fs::write(dir.join("input"), &input).expect("written");
            let done = sort(program, dir, &words);
            outputs.push((done, std::fs::read(dir.join("out")).ok()));
        }
        let [(ours, our_file), (gnus, gnu_file)] = &outputs[..] else { unreachable!() };
        let told = || {
            let (ours, gnus) = (stderr(ours), stderr(gnus));
            let input = input.escape_ascii();
            format!("seed {seed}, case {case}: sort {words:?}\n{input}\nours {ours}GNU  {gnus}")
        };
        assert_eq!(status_of(ours, false), status_of(gnus, true), "{}", told());
        if ours.status.code() != Some(2) {
            let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
            assert_eq!(text(&ours.stdout), text(&gnus.stdout), "{}", told());
            assert_eq!(our_file, gnu_file, "{}", told());
        }
    }
}

#[test]
fn random_command_lines_do_the_same_as_in_gnu_sort() {
    compare(Chance::option);
}

#[test]
fn debug_underlines_what_gnu_sort_underlines() {
    compare(|chance| match chance.below(3) {
        0 => vec!["--debug".into()],
        1 => vec![chance.pick(&["-t,", "-s", "-u", "-z", "-r", "-b", "-n", "-t="]).into()],
        _ => vec![format!(
            "-{}",
            Some(chance.letters()).filter(|l| !l.is_empty()).unwrap_or("s".into())
        )],
    });
}

#[test]
fn a_link_and_a_hard_link_are_the_command_sort() {
    let (dir, link) = linked();
    std::fs::write(dir.path().join("file"), "b 10\na 9\n").expect("written");
    let hard = dir.path().join("hard/sort");
    std::fs::create_dir(dir.path().join("hard")).expect("made");
    if std::fs::hard_link(merganser_testkit::program(), &hard).is_err() {
        // Another file system.
        install_program(merganser_testkit::program(), &hard);
    }
    for program in [link, hard] {
        let run = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(ToString::to_string).collect();
            sort(&program, dir.path(), &words)
        };
        assert_eq!(run(&["-k2n", "file"]).stdout, b"a 9\nb 10\n");
        let help = String::from_utf8(run(&["--help"]).stdout).expect("UTF-8");
        assert!(help.contains("Usage: sort [OPTIONS] [INPUT]..."), "{help}");
        let version = run(&["--version"]).stdout;
        assert!(version.starts_with(b"sort (merganser) "), "{}", version.escape_ascii());
        assert_eq!(stderr(&run(&["-c", "file"])), "sort: file:2: disorder: a 9\n");
        assert_eq!(
            stderr(&run(&["--r"])),
            "sort: option '--r' is ambiguous; possibilities: '--random-sort' '--random-source' \
             '--reverse'; see sort --help\n"
        );
    }
}

#[test]
fn debug_prints_doubts_in_gnu_sorts_words() {
    let (dir, link) = linked();
    std::fs::write(dir.path().join("file"), "b 10\na 9\n").expect("written");
    for words in
        ["", "-n", "-k2", "-k2n", "-k3,2", "-rk1b,1", "-srk1b,1", "-k1.2,1.3 -k2.2,2n", "-fnk1b"]
    {
        let words: Vec<_> =
            format!("--debug file {words}").split_whitespace().map(str::to_owned).collect();
        let ours = sort(&link, dir.path(), &words);
        let gnus = sort(Path::new("sort"), dir.path(), &words);
        assert_eq!(stderr(&ours), stderr(&gnus), "{words:?}");
        assert_eq!(ours.stdout, gnus.stdout, "{words:?}");
    }
}

#[test]
fn the_environment_of_posix_decides_on_old_keys() {
    let (dir, link) = linked();
    std::fs::write(dir.path().join("file"), "a 2\nb 1\n").expect("written");
    for (name, value) in
        [("_POSIX2_VERSION", "200112"), ("_POSIX2_VERSION", "199209"), ("POSIXLY_CORRECT", "1")]
    {
        for words in ["+1 file", "+1 -2 file", "file -r", "file -o out"] {
            let run = |program: &Path| {
                let mut command = Command::new(program);
                command.args(words.split(' ')).current_dir(dir.path()).stdin(Stdio::null());
                command.env("LC_ALL", "C").env(name, value).output().expect("it starts")
            };
            let (ours, gnus) = (run(&link), run(Path::new("sort")));
            assert_eq!(ours.status.code(), gnus.status.code(), "{name}={value} {words}");
            assert_eq!(ours.stdout, gnus.stdout, "{name}={value} {words}");
        }
    }
}

#[test]
fn merganser_sort_takes_the_same_words() {
    let dir = folder();
    std::fs::write(dir.path().join("file"), "a 2\nb 1\n").expect("written");
    let output = merganser(dir.path(), &["sort", "+1", "-2", "--p=1", "-S1", "file"]).output();
    let output = output.expect("it starts");
    assert_eq!((stderr(&output).as_str(), &*output.stdout), ("", &b"b 1\na 2\n"[..]));
}
