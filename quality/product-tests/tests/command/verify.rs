//! `verify` and `sort -c`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{fails, folder, merganser, prints, signal, stderr};

/// Runs it on `input`; returns its status, its output and its messages.
fn piped(dir: &Path, arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut child = merganser(dir, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // It may stop reading at the first disorder.
    let _ = child.stdin.take().expect("piped").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

#[test]
fn a_thousand_records_have_valsorts_count_and_sum() {
    let dir = folder();
    let records = prints(dir.path(), &["generate", "--records", "1000"]);
    fs::write(dir.path().join("data"), &records).expect("written");
    let arguments = ["verify", "--format", "fixed:100", "--key", "0:10", "data"];
    let output = merganser(dir.path(), &arguments).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert_eq!(
        table,
        "records         1000\nbytes           100000\nduplicate keys  0\n\
         checksum        1ea6370b955\nsorted          no\n"
    );
    let sentence = stderr(&output);
    assert!(
        sentence.starts_with("merganser: data: not sorted: record 2 at byte 200 belongs"),
        "{sentence}"
    );

    let mut sorted: Vec<&[u8]> = records.chunks(100).collect();
    sorted.sort();
    fs::write(dir.path().join("data"), sorted.concat()).expect("written");
    let table = String::from_utf8(prints(dir.path(), &arguments)).expect("UTF-8");
    assert!(table.contains("checksum        1ea6370b955\nsorted          yes\n"), "{table}");
    let json = prints(dir.path(), &[&arguments[..], &["--json"]].concat());
    assert!(String::from_utf8(json).expect("UTF-8").contains(r#""checksum":"1ea6370b955""#));
}

#[test]
fn check_says_what_gnu_sort_says() {
    let dir = folder();
    let cases: &[(&[&str], &[u8])] = &[
        (&["-c"], b"a\nb\nc\n"),
        (&["-c"], b"a\nc\nb\n"),
        (&["-c"], b"a\nc\nb"),
        (&["-C"], b"b\na\n"),
        (&["-C"], b"a\nb\n"),
        (&["-cu"], b"a\na\n"),
        (&["-c"], b""),
        (&["-cn"], b"2\n10\n9\n"),
        (&["-cr"], b"2\n1\n1\n3\n"),
        (&["-c", "-k2,2"], b"b 1\na 1\n"),
        (&["-c", "-s", "-k2,2"], b"b 1\na 1\n"),
        (&["-cz"], b"a\0c\0b\0"),
        (&["-c", "-t:", "-k2n"], b"x:9\ny:10\nz:3:\n"),
    ];
    for (options, input) in cases {
        fs::write(dir.path().join("input"), input).expect("written");
        for file in ["input", "-"] {
            let arguments = [&["sort"], *options, &[file]].concat();
            let (status, printed, said) = piped(dir.path(), &arguments, input);
            let mut gnu = Command::new("sort");
            gnu.args(&arguments[1..]).current_dir(dir.path()).env("LC_ALL", "C");
            let gnu = gnu.stdin(fs::File::open(dir.path().join("input")).expect("there")).output();
            let gnu = gnu.expect("GNU sort is installed");
            // With -z its message ends as its lines do.
            let expected = stderr(&gnu).replace("sort: ", "merganser: ").replace('\0', "\n");
            assert_eq!((status, said), (gnu.status.code(), expected), "{arguments:?} {input:?}");
            assert_eq!(printed, "");
        }
    }
}

#[test]
fn a_csv_header_is_line_one() {
    let dir = folder();
    let arguments = ["sort", "-c", "--format", "csv", "--header", "--key", "id:n"];
    let (status, _, said) = piped(dir.path(), &arguments, b"name,id\na,2\nb,10\nc,9\n");
    assert_eq!((status, said.as_str()), (Some(1), "merganser: -:4: disorder: c,9\n"));
}

#[test]
fn an_uncheckable_input_is_an_error_that_names_it() {
    let dir = folder();
    assert_eq!(fails(dir.path(), &["verify", "missing"]), "missing: No such file or directory");
    fs::write(dir.path().join("short"), [0; 150]).expect("written");
    let error = fails(dir.path(), &["verify", "--format", "fixed:100", "short"]);
    assert!(error.starts_with("short: at byte 100: its last record is cut short"), "{error}");
    let error =
        fails(dir.path(), &["sort", "-c", "--format", "csv", "--header", "--key", "id", "short"]);
    assert!(error.starts_with("--key 'id'"), "{error}");
}

#[test]
fn a_check_of_a_pipe_without_a_writer_can_be_stopped() {
    let dir = folder();
    let mut child =
        merganser(dir.path(), &["verify", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let open = child.stdin.take().expect("piped");
    // The handler is in place once the signals thread exists.
    let tasks = format!("/proc/{}/task", child.id());
    let names = || {
        fs::read_dir(&tasks)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
    };
    while !names().any(|name| name.trim_end() == "signals") {
        std::thread::yield_now();
    }
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    drop(open);
}
