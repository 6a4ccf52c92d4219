//! Random options and random inputs: `merganser sort` must print the same output as GNU `sort`, and
//! refuse the same command lines.
//!
//! Every case takes one of several ways from input to output; all of them must give the same
//! bytes. A difference is shrunk to a few lines before it is reported.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::harness::{
    Chance, Folder, asked, gnu_sort, merganser, output_with, prints, small_memory, stderr,
};

/// Differences that are printed in full; the others are only counted.
const TOLD_MAX: usize = 8;

/// From input to output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `sort INPUT...`
    Printed,
    /// `sort < INPUT`
    Piped,
    /// `sort INPUT... -o FILE`
    File,
    /// `sort INPUT... -o INPUT`
    OntoInput,
    /// `sort INPUT... --view VIEW`, `cat VIEW`
    View,
    /// `sort INPUT... --view VIEW`, `materialize VIEW -o FILE`
    Materialized,
    /// `sort -c INPUT`: only the status counts.
    Check,
}

#[derive(Clone)]
struct Case {
    number: u64,
    options: Vec<String>,
    inputs: Vec<Vec<u8>>,
    way: Way,
    /// For inputs larger than this; 0 is the command's own choice.
    memory: u64,
}

#[test]
fn small_inputs_with_random_options() {
    run_cases(asked("MERGANSER_GNU_CASES", 400), Case::small);
}

#[test]
fn inputs_larger_than_memory_with_random_options() {
    let memory = small_memory();
    let cases = asked("MERGANSER_GNU_CASES", 400).div_ceil(100);
    run_cases(cases, |chance, number| Case::spilling(chance, number, memory));
}

/// Runs the cases on two threads, and fails with all differences together.
fn run_cases(count: u64, make: impl Fn(&mut Chance, u64) -> Case + Sync) {
    let chance = Chance::new();
    let next = AtomicU64::new(0);
    let differences = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let folder = Folder::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let case = make(&mut chance.of_case(number), number);
                    if case.difference(&folder).is_some() {
                        let told = differences.lock().len();
                        let case = if told < TOLD_MAX { case.shrunk(&folder) } else { case };
                        let how = case.difference(&folder).unwrap_or_default();
                        differences.lock().push(format!("{case}{how}"));
                    }
                }
            });
        }
    });
    let differences = differences.into_inner();
    let told = differences[..differences.len().min(TOLD_MAX)].join("\n");
    assert!(differences.is_empty(), "{} of {count} cases differ:\n{told}", differences.len());
}

impl Case {
    fn small(chance: &mut Chance, number: u64) -> Case {
        let zero = chance.once_in(10);
        let separator = if chance.once_in(2) {
            Some(chance.pick(&[",", ":", "\t", " ", "x", "\\0"]))
        } else {
            None
        };
        let mut options = random_options(chance, separator);
        if zero {
            options.push("-z".into());
        }
        let texture = chance.below(TEXTURES);
        let lines_max = chance.pick(&[&3, &12, &12, &60]);
        let count = 1 + chance.below(3).min(chance.below(3));
        let mut inputs: Vec<_> = (0..count)
            .map(|_| random_lines(chance, texture, separator, zero, *lines_max))
            .collect();
        let way = match chance.below(10) {
            0 | 1 => Way::Printed,
            2 => Way::Piped,
            3 => Way::File,
            4 => Way::OntoInput,
            5..=7 => Way::View,
            8 => Way::Materialized,
            _ => Way::Check,
        };
        let merge = way != Way::Check && chance.once_in(8);
        if merge || way == Way::Check && chance.once_in(2) {
            // The result of -m and -c on unsorted inputs is outside this test.
            inputs = inputs.iter().map(|input| sorted_by_gnu(&options, input)).collect();
        }
        if merge {
            options.push("-m".into());
            // A pipe would join the inputs into one that is not sorted.
            inputs.truncate(if way == Way::Piped { 1 } else { inputs.len() });
        }
        if way == Way::Check {
            inputs.truncate(1);
            options.push(chance.pick(&["-c", "-C"]).into());
        }
        Case { number, options, inputs, way, memory: 0 }
    }

    fn spilling(chance: &mut Chance, number: u64, memory: u64) -> Case {
        let mut case = Case::small(chance, number);
        case.options.retain(|o| !matches!(&**o, "-m" | "-c" | "-C" | "-z"));
        if case.way == Way::Check {
            case.way = Way::View;
        }
        let separator = case.options.iter().find_map(|o| o.strip_prefix("-t")).map(str::to_owned);
        let bytes = (memory * 3 / 2 + chance.below(memory)) as usize;
        let texture = chance.below(TEXTURES);
        let mut input = Vec::with_capacity(bytes + 100_000);
        // Stretches of lines are repeated, so that making them is cheap and many keys are equal.
        while input.len() < bytes {
            let stretch = random_lines(chance, texture, separator.as_deref(), false, 300);
            for _ in 0..1 + chance.below(40) {
                input.extend_from_slice(&stretch);
                if !stretch.ends_with(b"\n") {
                    input.push(b'\n');
                }
            }
        }
        case.inputs = vec![input];
        case.memory = memory;
        case
    }

    /// How the command's answer differs from GNU's, if it does.
    fn difference(&self, folder: &Folder) -> Option<String> {
        let names: Vec<_> = (0..self.inputs.len()).map(|i| format!("input{i}")).collect();
        for (name, input) in names.iter().zip(&self.inputs) {
            folder.write(name, input);
        }
        let mut gnu = gnu_sort(&self.options);
        let gnu = gnu.args(&names).current_dir(folder.path()).output().expect("GNU sort starts");
        let ours = self.run(folder.path(), &names);
        let _ = fs::remove_file(folder.at("output"));
        let _ = fs::remove_dir_all(folder.at("v.view"));

        let (expected, status) = (gnu.status.code(), ours.status.code());
        if status == Some(2) && expected != Some(2) && self.may_be_refused(&ours) {
            return None;
        }
        if status != expected {
            let said = stderr(&ours);
            return Some(format!("  status {status:?}, GNU {expected:?}\n  {said}"));
        }
        if expected != Some(0) || self.way == Way::Check || ours.stdout == gnu.stdout {
            return None;
        }
        let at = ours.stdout.iter().zip(&gnu.stdout).take_while(|(a, b)| a == b).count();
        let around = |bytes: &[u8]| {
            let bytes = &bytes[at.saturating_sub(40)..bytes.len().min(at + 40)];
            bytes.escape_ascii().to_string()
        };
        let (ours, gnus) = (around(&ours.stdout), around(&gnu.stdout));
        Some(format!("  from byte {at} on:\n  ours ..{ours}\n  GNU  ..{gnus}\n"))
    }

    /// A view needs an exact size before anything is merged, and may say so for `-u`.
    fn may_be_refused(&self, ours: &Output) -> bool {
        matches!(self.way, Way::View | Way::Materialized)
            && self.options.iter().any(|o| o.starts_with("-u"))
            && stderr(ours).contains("-u")
    }

    fn run(&self, folder: &Path, names: &[String]) -> Output {
        let sort = || {
            let mut command = merganser(["sort"]);
            command.args(&self.options).current_dir(folder);
            if self.memory > 0 {
                command.args(["--memory", &self.memory.to_string()]);
            }
            command
        };
        let then_read = |output: Output, file: &str| {
            let stdout = if output.status.success() {
                fs::read(folder.join(file)).expect("the output is there")
            } else {
                Vec::new()
            };
            Output { stdout, ..output }
        };
        match self.way {
            Way::Printed | Way::Check => sort().args(names).output().expect("it starts"),
            Way::Piped => {
                let all = self.inputs.iter().map(|i| with_last_end(i, &self.options));
                // Several files are one text, each with its last line ended.
                output_with(&mut sort(), &all.collect::<Vec<_>>().concat())
            }
            Way::File => {
                let output = sort().args(names).args(["-o", "output"]).output().expect("it starts");
                then_read(output, "output")
            }
            Way::OntoInput => {
                let output =
                    sort().args(names).args(["-o", &names[0]]).output().expect("it starts");
                then_read(output, &names[0])
            }
            Way::View | Way::Materialized => {
                let made =
                    sort().args(names).args(["--view", "v.view"]).output().expect("it starts");
                if !made.status.success() {
                    return made;
                }
                if self.way == Way::View {
                    let mut cat = merganser(["cat", "v.view"]);
                    return cat.current_dir(folder).output().expect("it starts");
                }
                let mut copy = merganser(["materialize", "v.view", "-o", "output"]);
                then_read(copy.current_dir(folder).output().expect("it starts"), "output")
            }
        }
    }

    /// The same case with as few lines and options as still differ.
    fn shrunk(self, folder: &Folder) -> Case {
        let mut best = self;
        if best.memory > 0 {
            // A difference in a large input mostly also appears with each of its lines once.
            let distinct: BTreeSet<_> = best.inputs[0].split_inclusive(|&b| b == b'\n').collect();
            let mut case = best.clone();
            (case.inputs[0], case.memory) = (distinct.into_iter().collect::<Vec<_>>().concat(), 0);
            if case.difference(folder).is_some() {
                best = case;
            }
        }
        if best.inputs.iter().map(Vec::len).sum::<usize>() > 100_000 {
            return best;
        }
        let end = if best.options.iter().any(|o| o == "-z") { 0 } else { b'\n' };
        'again: loop {
            for (i, input) in best.inputs.iter().enumerate() {
                let lines: Vec<_> = input.split_inclusive(|&b| b == end).collect();
                for cut in [lines.len() / 2, lines.len() / 4, 2, 1] {
                    for from in (0..lines.len()).step_by(cut.max(1)) {
                        let mut fewer = lines.clone();
                        fewer.drain(from..(from + cut.max(1)).min(lines.len()));
                        let mut case = best.clone();
                        case.inputs[i] = fewer.concat();
                        if case.difference(folder).is_some() {
                            best = case;
                            continue 'again;
                        }
                    }
                }
            }
            for at in 0..best.options.len() {
                let mut case = best.clone();
                case.options.remove(at);
                if case.difference(folder).is_some() {
                    best = case;
                    continue 'again;
                }
            }
            return best;
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "case {}: {:?} {:?}", self.number, self.way, self.options)?;
        if self.memory > 0 {
            return writeln!(f, "  memory {}, input {} bytes", self.memory, self.inputs[0].len());
        }
        for input in &self.inputs {
            writeln!(f, "  input b\"{}\"", input.escape_ascii())?;
        }
        Ok(())
    }
}

fn with_last_end(input: &[u8], options: &[String]) -> Vec<u8> {
    let end = if options.iter().any(|o| o == "-z") { 0 } else { b'\n' };
    let mut input = input.to_vec();
    if input.last().is_some_and(|&last| last != end) {
        input.push(end);
    }
    input
}

fn sorted_by_gnu(options: &[String], input: &[u8]) -> Vec<u8> {
    // Options that GNU refuses leave the input as it is, and are refused again later.
    let output = output_with(&mut gnu_sort(options), input);
    if output.status.success() { output.stdout } else { input.to_vec() }
}

fn random_options(chance: &mut Chance, separator: Option<&str>) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(separator) = separator {
        options.push(format!("-t{separator}"));
    }
    for _ in 0..chance.below(4).min(chance.below(4)) {
        options.push(format!("-k{}", random_key(chance)));
    }
    options.extend(random_letters(chance).into_iter().map(|letter| format!("-{letter}")));
    for (letter, of) in [("-s", 4), ("-u", 5), ("-r", 5)] {
        if chance.once_in(of) {
            options.push(letter.into());
        }
    }
    options
}

/// Ordering letters that mostly go together, and seldom do not.
fn random_letters(chance: &mut Chance) -> Vec<char> {
    let mut letters: Vec<char> = match chance.below(12) {
        0..=3 => vec![],
        4 | 5 => vec!['n'],
        6 => vec!['g'],
        7 => vec!['h'],
        8 => vec!['M'],
        9 => vec!['V'],
        10 => vec!['d'],
        _ => vec!['i'],
    };
    for (letter, of) in [('b', 4), ('f', 4), ('r', 5), ('d', 40), ('n', 40)] {
        if chance.once_in(of) {
            letters.push(letter);
        }
    }
    letters
}

/// `POS1[,POS2]`, each `FIELD[.CHARACTER][LETTERS]`.
fn random_key(chance: &mut Chance) -> String {
    let position = |chance: &mut Chance, first: u64| {
        let mut text = (1 + chance.below(4)).to_string();
        if chance.once_in(3) {
            text += &format!(".{}", first + chance.below(4));
        }
        if chance.once_in(3) {
            text.extend(random_letters(chance));
        }
        text
    };
    let mut key = position(chance, 1);
    if !chance.once_in(3) {
        key += &format!(",{}", position(chance, 0));
    }
    key
}

const TEXTURES: u64 = 10;

fn random_lines(
    chance: &mut Chance,
    texture: u64,
    separator: Option<&str>,
    zero: bool,
    lines_max: u64,
) -> Vec<u8> {
    let end = if zero { 0 } else { b'\n' };
    let mut out = Vec::new();
    for _ in 0..chance.below(lines_max + 1) {
        for field in 0..chance.below(5) {
            if field > 0 {
                match separator {
                    Some("\\0") => out.push(0),
                    Some(separator) => out.extend_from_slice(separator.as_bytes()),
                    None => out.extend_from_slice(chance.pick(&[" ", " ", "  ", "\t"]).as_bytes()),
                }
            }
            random_field(chance, texture, &mut out);
        }
        // A field of random bytes may hold line ends of its own, which is as good.
        out.push(end);
    }
    if chance.once_in(5) {
        out.pop();
    }
    out
}

fn random_field(chance: &mut Chance, texture: u64, out: &mut Vec<u8>) {
    let digits = |chance: &mut Chance, max: u64, out: &mut Vec<u8>| {
        for _ in 0..chance.below(max + 1) {
            out.push(b'0' + chance.below(10) as u8);
        }
    };
    match texture {
        0 => {
            for _ in 0..chance.below(6) {
                out.push(*chance.pick(&[&b'a', &b'b', &b'0', &b'1', &b' ', &b'.', &b',', &b'-']));
            }
        }
        1 => {
            out.extend_from_slice(
                chance.pick(&["", "", "-", "-", " ", "+", "0", "00", "--"]).as_bytes(),
            );
            digits(chance, 4, out);
            if chance.once_in(3) {
                out.push(b'.');
                digits(chance, 3, out);
            }
            if chance.once_in(12) {
                digits(chance, 40, out);
            }
        }
        2 => {
            for _ in 0..chance.below(6) {
                out.push(
                    *chance.pick(&[
                        &b'a', &b'A', &b'b', &b'B', &b'_', &b'-', &b'9', &0xe4, &b'Z', &b'[',
                    ]),
                );
            }
        }
        3 => {
            let names = [
                "JAN", "feb", "Mar", "apr", "MAY", "June", "jul", "aug", "SEP", "octo", "nov",
                "DECEMBER", "xyz", "", " Jan", "ja",
            ];
            out.extend_from_slice(chance.pick(&names).as_bytes());
        }
        4 => {
            out.extend_from_slice(chance.pick(&["", "", "-", " "]).as_bytes());
            digits(chance, 3, out);
            if chance.once_in(3) {
                out.push(b'.');
                digits(chance, 2, out);
            }
            out.extend_from_slice(
                chance.pick(&["", "K", "k", "M", "G", "T", "P", "Ki", "Z", "b"]).as_bytes(),
            );
        }
        5 => {
            for _ in 0..chance.below(5) {
                let parts =
                    [".", "-", "~", "1", "10", "9", "01", "a", "B", ".tar", ".gz", "v", "0", "xc"];
                out.extend_from_slice(chance.pick(&parts).as_bytes());
            }
        }
        6 => {
            for _ in 0..chance.below(8) {
                out.push(match chance.next() as u8 {
                    // GNU sort 9.1 takes this byte in a number for a separator of thousands.
                    0x80 => 0x81,
                    // Suffixes of human numbers since GNU sort 9.2.
                    b'R' | b'r' | b'Q' | b'q' => b'w',
                    byte => byte,
                });
            }
        }
        7 => {
            // No NaN: GNU sort's order of several depends on the order they come in.
            let numbers = [
                "1",
                "-1",
                "1e3",
                "1E-3",
                "-2.5e+2",
                ".5",
                "5.",
                "1e",
                "e1",
                "0x1F",
                "0x.8p1",
                "inf",
                "-inf",
                "INFINITY",
                "",
                "abc",
                "1e400",
                "-1e400",
                "1e-5000",
                "0",
                "-0",
                "+7",
                " 3",
                "1.0000000000000000001",
                "12345678901234567890",
            ];
            out.extend_from_slice(chance.pick(&numbers).as_bytes());
        }
        8 => out.extend_from_slice(chance.pick(&["", "same", "same", "Same"]).as_bytes()),
        _ => {
            for _ in 0..chance.below(30) {
                out.push(b'a' + chance.below(3) as u8);
            }
        }
    }
}

/// Several thousand lines, so that the lines of a real text are judged too.
#[test]
fn a_program_text_as_people_sort_it() {
    let folder = Folder::new();
    let mut text = Vec::new();
    for source in ["/etc/services", "/etc/passwd", "/usr/share/dict/words", "/etc/mime.types"] {
        text.extend(fs::read(source).unwrap_or_default());
    }
    text.extend_from_slice(include_bytes!("differential.rs"));
    let input = folder.write("text", &text);
    for options in [
        &[][..],
        &["-u"],
        &["-f"],
        &["-k2"],
        &["-t:", "-k3n", "-k1,1"],
        &["-V"],
        &["-rn"],
        &["-d", "-b"],
    ] {
        let ours = prints(merganser(["sort"]).args(options).arg(&input));
        let gnu = prints(gnu_sort(options).arg(&input));
        assert!(ours == gnu, "{options:?}");
    }
}
