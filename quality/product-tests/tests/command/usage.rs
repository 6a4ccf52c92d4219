//! Arguments that can't be right, and how the command ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::{fails, folder, merganser, stderr};

#[test]
fn a_refusal_is_one_sentence_that_names_the_flag() {
    let dir = folder();
    let table: &[(&[&str], &str)] = &[
        (&[], "no command given; see merganser --help"),
        (&["srot"], "unrecognized subcommand 'srot'; there is 'sort'; see merganser --help"),
        (
            &["help", "srot"],
            "unrecognized subcommand 'srot'; there is 'sort'; see merganser --help",
        ),
        (
            &["sort", "--ouput", "x", "y"],
            "unexpected argument '--ouput' found; there is '--output'; see merganser sort --help",
        ),
        (&["sort", "-t", "ab"], "-t 'ab': a separator is one byte, such as ; or \\t"),
        (
            &["generate"],
            "the following required arguments were not provided: --records <N>; see merganser generate --help",
        ),
        (
            &["generate", "--records", "10", "--record-size", "3"],
            "--record-size: 3 is not between 10 bytes and 1 GiB",
        ),
    ];
    for (arguments, sentence) in table {
        assert_eq!(fails(dir.path(), arguments), *sentence, "{arguments:?}");
    }
    let count = fails(dir.path(), &["generate", "--records", "10X"]);
    assert!(
        count.starts_with("invalid value '10X' for '--records <N>': '10X' is no number"),
        "{count}"
    );
    let size = fails(dir.path(), &["generate", "--records", "10", "--record-size", "1Q"]);
    assert!(size.contains("'Q' is no unit of size"), "{size}");
}

/// `help WORDS` is the help of the command, of other programs, too.
#[test]
fn help_may_come_first() {
    let dir = folder();
    let said = |words: &[&str]| {
        let output = merganser(dir.path(), words).output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    for words in [&[][..], &["sort"], &["materialize"], &["map"]] {
        if words == ["map"] && !cfg!(feature = "near") {
            continue;
        }
        let asked = said(&[&["help"], words].concat());
        assert_eq!(asked, said(&[words, &["--help"]].concat()), "{words:?}");
        assert!(asked.contains("Usage: merganser"), "{asked}");
    }
}

/// `version` is `--version`.
#[test]
fn the_version_may_be_asked_for_by_a_word() {
    let dir = folder();
    let said = |word: &str| {
        let output = merganser(dir.path(), &[word]).output().expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert_eq!(said("version"), said("--version"));
    assert!(said("version").starts_with("merganser "), "{}", said("version"));
    let more = fails(dir.path(), &["version", "sort"]);
    assert!(more.contains("'version'"), "{more}");
}

/// Variables stand for options that are not given, and an error in one names it.
#[test]
fn the_environment_may_say_how_much_and_where() {
    let dir = folder();
    std::fs::write(dir.path().join("lines"), "b\na\n").expect("written");
    let with = |name: &str, value: &str, words: &[&str]| {
        let mut command = merganser(dir.path(), words);
        command.env(name, value).output().expect("it starts")
    };
    for (name, value, sentence) in [
        ("MERGANSER_MEMORY", "1Q", "MERGANSER_MEMORY=1Q: 'Q' is no unit of size"),
        ("MERGANSER_MEMORY", "0", "MERGANSER_MEMORY: at least 1 byte"),
        ("MERGANSER_MEMORY", "1M", "MERGANSER_MEMORY=1M is too small for sorting"),
        ("MERGANSER_THREADS", "100000", "MERGANSER_THREADS=100000 are too many for "),
        ("MERGANSER_THREADS", "two", "MERGANSER_THREADS=two: invalid digit"),
        ("MERGANSER_THREADS", "0", "MERGANSER_THREADS: at least 1"),
    ] {
        let output = with(name, value, &["sort", "lines"]);
        assert_eq!(output.status.code(), Some(2), "{name}={value}");
        let said = stderr(&output);
        assert!(said.contains(sentence), "{said}");
        // The option counts, and an empty variable does nothing.
        for words in
            [&["sort", "lines", "--memory", "64M", "--threads", "1"][..], &["sort", "lines"]]
        {
            let value = if words.len() == 2 { "" } else { value };
            let output = with(name, value, words);
            assert_eq!(output.stdout, b"a\nb\n", "{name}={value}: {}", stderr(&output));
        }
    }
    // More than the machine has is said, whoever asked for it.
    for output in [
        with("MERGANSER_MEMORY", "1000T", &["sort", "lines"]),
        with("MERGANSER_MEMORY", "64M", &["sort", "lines", "--memory", "1000T"]),
    ] {
        let said = stderr(&output);
        assert!(said.contains("1000T is more than the ") && said.contains(" is used"), "{said}");
        assert_eq!((output.stdout, output.status.code()), (b"a\nb\n".to_vec(), Some(0)));
    }
    // More than the memory: runs go where the variable says, unless an option or a view says otherwise.
    let large: String = (0..200_000).map(|i| format!("{}\n", i * 7919 % 1_000_003)).collect();
    std::fs::write(dir.path().join("large"), large).expect("written");
    let words = ["sort", "large", "-o", "out", "--memory", "3M", "--threads", "1"];
    let missing = with("MERGANSER_TEMP_DIR", "missing", &words);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        stderr(&missing)
            .contains("missing: No such file or directory; MERGANSER_TEMP_DIR names this folder"),
        "{}",
        stderr(&missing)
    );
    let typed = with("MERGANSER_TEMP_DIR", ".", &[&words[..], &["-T", "missing"]].concat());
    let said = stderr(&typed);
    assert!(said.ends_with("missing: No such file or directory\n"), "{said}");
    for more in [&["-T", "."][..], &["--temp-dir=."]] {
        let output = with("MERGANSER_TEMP_DIR", "missing", &[&words, more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let view = ["sort", "large", "--view", "v", "--memory", "3M", "--threads", "1"];
    let output = with("MERGANSER_TEMP_DIR", "missing", &view);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Tabs between fields, as words for those who can't type the byte.
#[test]
fn tabs_may_be_named() {
    let dir = folder();
    std::fs::write(dir.path().join("rows"), "id\tn\n1\t9\n2\t\"1\t0\"\n3\t10\n").expect("written");
    let sorted = |words: &[&str]| {
        let output = merganser(dir.path(), words).output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let by_name = sorted(&["sort", "--format", "tsv", "--header", "--key", "n", "rows"]);
    assert_eq!(by_name, "id\tn\n2\t\"1\t0\"\n3\t10\n1\t9\n");
    let csv =
        ["sort", "--format", "csv", "--csv-separator", "\\t", "--header", "--key", "n", "rows"];
    assert_eq!(sorted(&csv), by_name);
    let lines = ["sort", "-t", "\\t", "-k2,2n", "rows"];
    assert_eq!(sorted(&lines), "2\t\"1\t0\"\nid\tn\n1\t9\n3\t10\n");
    let other = ["sort", "--format", "tsv", "-t", ";", "rows"];
    assert_eq!(sorted(&other), sorted(&["sort", "--format", "csv", "-t", ";", "rows"]));
}

/// The first thread of a process gets what `ulimit -s` leaves; a stack that overflows would end it without a sentence.
#[test]
fn a_small_stack_is_enough() {
    let dir = folder();
    std::fs::write(dir.path().join("lines"), "b\na\n").expect("written");
    let limited = |arguments: &str| {
        let script = format!("ulimit -s 64 && exec {} {arguments}", merganser_testkit::program());
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir(dir.path()).output().expect("bash")
    };
    let sorted = limited("sort lines");
    assert_eq!((sorted.status.code(), &sorted.stdout[..]), (Some(0), &b"a\nb\n"[..]));
    let refused = limited("sort missing");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(limited("sort --help").status.code(), Some(0));
    if cfg!(feature = "near") {
        assert_eq!(limited("serve --help").status.code(), Some(0));
    }
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let dir = folder();
    let error = fails(dir.path(), &["generate", "--records", "10", "-o", "missing/file"]);
    assert_eq!(error, "missing/file: No such file or directory");
    let error = fails(dir.path(), &["generate", "--records", "10", "-o", "."]);
    assert_eq!(error, ".: is a directory; -o takes a file");
    let error = fails(dir.path(), &["generate", "--records", "1M", "-o", "/dev/full"]);
    assert_eq!(error, "/dev/full: No space left on device");
}

#[test]
fn a_closed_pipe_is_a_quiet_success() {
    let dir = folder();
    let mut child = merganser(dir.path(), &["generate", "--format", "lines", "--records", "1T"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(line.len() > 20);
}
