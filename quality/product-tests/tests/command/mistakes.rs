//! Mistakes of users, and the sentence that each one gets: one line, exit status 2, without words of Rust or numbers
//! of the system.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{folder, merganser, stderr};

/// Command lines, and what the sentence must contain.
const MISTAKES: &[(&[&str], &str)] = &[
    (&["srot"], "unrecognized subcommand 'srot'"),
    (&["array"], "array: no command given; it has create"),
    (&["hadoop"], "hadoop: no command given; it has"),
    (&["simulate"], "simulate: say run, sort, rates, record or array, or --list"),
    (&["ssdlet"], "ssdlet: no command given; it has"),
    (&["sort", "missing"], "missing: No such file or directory"),
    (&["sort", "-m", "in", "missing"], "missing: No such file or directory"),
    (&["sort", "-c", "missing"], "missing: No such file or directory"),
    (&["sort", "."], ".: "),
    (&["sort", "in", "-o", "nodir/x"], "nodir/x: No such file or directory"),
    (&["sort", "in", "-o", "."], ".: is a directory; -o takes a file"),
    (&["sort", "in", "-o", "a", "--view", "b"], "-o and --view: give one of them"),
    (&["sort", "in", "--memory", "1M"], "--memory 1M is too small for sorting: at least "),
    (&["sort", "in", "--memory", "1000"], "--memory 1000 is too small for sorting: at least "),
    (&["sort", "in", "--memory", "0"], "--memory: at least 1 byte"),
    (&["sort", "in", "--memory=-1"], "'-1' is no size"),
    (&["sort", "in", "--memory", "ten"], "'ten' is no size"),
    (&["sort", "in", "--memory", "10X"], "'X' is no unit of size: use K, M, G, T"),
    (&["sort", "in", "--memory", "1..2"], "'1..2' is no size"),
    (&["sort", "in", "-S", "-1"], "'-1' is no size"),
    (&["sort", "in", "--threads", "100000"], "--threads 100000 are too many for --memory "),
    (&["sort", "in", "--threads", "0"], "--threads: at least 1"),
    (&["sort", "in", "--threads", "two"], "invalid value 'two' for '--threads <N>'"),
    (&["sort", "in", "-k"], "-k: a value is missing"),
    (&["sort", "in", "--key"], "--key: a value is missing"),
    (&["sort", "in", "-nk"], "-k: a value is missing"),
    (&["sort", "in", "-o"], "-o: a value is missing"),
    (&["sort", "in", "-k", "0"], "-k '0': "),
    (&["sort", "in", "-k", "2,"], "-k '2,': a field number must follow the ','"),
    (&["sort", "in", "-k", "1x"], "-k '1x': "),
    (&["sort", "in", "-t", "ab"], "-t 'ab': a separator is one byte"),
    (&["sort", "in", "-ng"], "options '-gn' are incompatible"),
    (&["sort", "in", "-c", "-o", "x"], "-c: only checks; leave out -o"),
    (&["sort", "in", "-R", "--random-source", "missing"], "missing: No such file or directory"),
    (&["sort", "in", "--consume"], "--consume"),
    (&["sort", "in", "--batch-size=1"], "--batch-size: at least 2"),
    (&["sort", "in", "--report", "x.txt"], "--report: 'x.txt' ends neither in .html"),
    (&["sort", "in", "--format", "fixed:0"], "a record has at least 1 byte"),
    (&["sort", "in", "--format", "fixed:8", "--key", "4:8"], "--key '4:8': the key ends outside"),
    (&["sort", "--files0-from", "missing"], "missing: No such file or directory"),
    (&["sort", "--explain"], "--explain: needs inputs whose size is known; name files"),
    (&["sort", "in", "-u", "--view", "v"], "-u and --view cannot go together"),
    (&["sort", "in", "--top", "3", "--view", "v"], "--top and --view cannot go together"),
    (&["cat", "missing"], "missing: No such file or directory"),
    (&["info", "missing"], "missing: No such file or directory"),
    (&["verify", "missing"], "missing: No such file or directory"),
    (&["materialize", "missing", "-o", "x"], "missing: No such file or directory"),
    (&["generate", "--records", "10X"], "'10X' is no number of records"),
    (&["generate", "--records", "5", "-o", "nodir/x"], "nodir/x: No such file or directory"),
    (&["map", "wordcount", "missing"], "missing: No such file or directory"),
    (&["map", "nosuch", "in"], "nosuch"),
    (
        &["simulate", "run", "--size", "1K"],
        "--size: sizes: 1024 bytes, expected multiples of the alignment",
    ),
    (&["simulate", "run", "--size", "0"], "--size: "),
];

#[test]
fn a_mistake_gets_one_sentence_in_words_of_the_user() {
    let dir = folder();
    fs::write(dir.path().join("in"), "b\na\n").expect("written");
    let mut wrong = Vec::new();
    for (words, expected) in MISTAKES {
        let output = merganser(dir.path(), words).output().expect("it runs");
        let said = stderr(&output);
        let line = said.trim_end_matches('\n');
        let foreign = ["(os error", "Error {", "Some(", "None", "Fixed(", "Os {", "panicked"];
        let is_clear = !foreign.iter().any(|word| line.contains(word)) && !line.contains('\n');
        if output.status.code() != Some(2) || !line.contains(expected) || !is_clear {
            wrong.push(format!("{words:?}: {:?}, {said}", output.status.code()));
        }
        assert!(output.stdout.is_empty(), "{words:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(names(dir.path()), ["in"], "nothing was made");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("listed");
    entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect()
}

/// Commands that GNU sort takes and this one once refused: nothing is opened that is not needed.
#[test]
fn what_is_not_needed_is_not_looked_for() {
    let dir = folder();
    fs::write(dir.path().join("in"), "b\na\n").expect("written");
    for words in [
        &["sort", "-T", "/does/not/exist", "in"][..],
        &["sort", "-m", "--batch-size=2", "-T", "/does/not/exist", "in"],
        &["sort", "--random-source=/does/not/exist", "in"],
        &["sort", "-S", " 5K", "in"],
        &["sort", "-S", "+1M", "in"],
    ] {
        let output = merganser(dir.path(), words).output().expect("it runs");
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{words:?}");
    }
    fs::write(dir.path().join("big"), "some text\n".repeat(2_000_000)).expect("written");
    let needed = ["sort", "-T", "/does/not/exist", "--memory", "5M", "big"];
    let output = merganser(dir.path(), &needed).output().expect("it runs");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said, "merganser: /does/not/exist: No such file or directory\n");
}

/// Whatever there is to merge or sort: six descriptors, or seven with `-o`; three of them are standard input, output and error.
#[test]
fn six_descriptors_are_enough_for_any_number_of_inputs() {
    let dir = folder();
    let program = merganser_testkit::program();
    for number in 0..300 {
        fs::write(dir.path().join(format!("f{number}")), format!("{number}\n")).expect("written");
    }
    fs::write(dir.path().join("big"), "some text\n".repeat(2_000_000)).expect("written");
    for limit in 6..=9 {
        for (command, lines) in [
            ("sort -n f? > out", 10),
            ("sort -n f* > out", 300),
            ("sort -m f? > out", 10),
            ("sort -m f* > out", 300),
            ("sort -nu f* f* > out", 300),
            ("sort -n f* -o out", 300),
            ("sort -m f* -o out", 300),
            ("sort -c big > out", 0),
            ("sort --memory 5M big > out", 2_000_000),
            ("sort --memory 5M big -o out", 2_000_000),
        ] {
            // The folder of the output is open, too.
            let limit = if command.ends_with("-o out") { limit + 1 } else { limit };
            let script = format!("ulimit -n {limit}; exec {program} {command}");
            let mut shell = Command::new("bash");
            let output = shell.args(["-c", &script]).current_dir(dir.path()).output();
            let output = output.expect("it runs");
            let case = format!("{limit}: {command}: {}", stderr(&output));
            assert_eq!(output.status.code(), Some(0), "{case}");
            let out = fs::read(dir.path().join("out")).expect("written");
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), lines, "{case}");
        }
    }
}
