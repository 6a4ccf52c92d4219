//! Arguments that can't be right, and how the command ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::{fails, folder, merganser, stderr};

#[test]
fn a_refusal_is_one_sentence_that_names_the_flag() {
    let dir = folder();
    let table: &[(&[&str], &str)] = &[
        (&[], "no command given; see merganser --help"),
        (&["srot"], "unrecognized subcommand 'srot'; see merganser --help"),
        (
            &["generate"],
            "the following required arguments were not provided: --records <N>; see merganser --help",
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
