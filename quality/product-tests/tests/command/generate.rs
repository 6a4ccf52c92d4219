//! Test data, judged by `sha256sum`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{folder, merganser, names, prints, signal};

fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum is installed");
    child.stdin.take().expect("piped").write_all(bytes).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("UTF-8")[..64].to_owned()
}

#[test]
fn a_thousand_records_are_the_sort_benchmarks() {
    let dir = folder();
    let table: &[(&[&str], &str)] = &[
        (&[], "f524474116510d1debac6d38152e793a7e3cb71b1dd2bb45b6610e3c17698177"),
        (&["--skew"], "e29ce5d551d332a974d978a4a4b3535efcd5df559328fe4ee11bf7f481269444"),
        (
            &["--format", "ascii"],
            "6c26b26a61464dd78038f9c60907c851ac043c07584b12835fe065cbca31aad2",
        ),
        (
            &["--format", "ascii", "--skew"],
            "33dc462ab1da5ddedecf127d65c8856b59baec45a15b91f79aafd116514ac65e",
        ),
    ];
    for (options, expected) in table {
        let arguments = [&["generate", "--records", "1000"], *options].concat();
        assert_eq!(sha256(&prints(dir.path(), &arguments)), *expected, "{options:?}");
    }
}

/// Other data under the same options would make every recorded measurement incomparable.
#[test]
fn lines_and_csv_never_change() {
    let dir = folder();
    for (format, expected) in [
        ("lines", "73a026420589acb8fb2b0a42a55f470b37a1aacbd507997045047916ae686396"),
        ("csv", "9bfb4aea4c1ae9c77251b4fac5da9e89d5dd9d26a6ddaa0fd97594eddf995aab"),
    ] {
        let made = prints(
            dir.path(),
            &["generate", "--format", format, "--records", "1000", "--seed", "7"],
        );
        assert_eq!(sha256(&made), expected, "{format}");
    }
}

#[test]
fn sequences_never_change() {
    let dir = folder();
    for (alphabet, expected) in [
        ("dna", "497830527f2c047792286cc60356d649aaf69caba23fd1cf12c00e3c0d5d312e"),
        ("protein", "56af63fcca0fc4647ac419d7de7eb566e7f6cf0f2479fb4e6fde0c2c761d7e0c"),
    ] {
        let arguments = ["generate", "--format", "fasta", "--records", "1000", "--seed", "7"];
        let options = ["--alphabet", alphabet, "--truth", "truth"];
        let made = prints(dir.path(), &[&arguments[..], &options].concat());
        assert_eq!(sha256(&made), expected, "{alphabet}");
    }
    prints(
        dir.path(),
        &["generate", "--format", "fasta", "--records", "1000", "--seed", "7", "-o", "a"],
    );
    let table = std::fs::read(dir.path().join("a.truth.tsv")).expect("a table");
    let expected = "73fde1806032ed072805ff0d21e3541d63bb6f3719e2a15ba5ab72c05a42cb23";
    assert_eq!(sha256(&table), expected);
}

#[test]
fn a_file_holds_the_same_bytes_as_standard_output() {
    let dir = folder();
    let arguments = ["generate", "--format", "lines", "--records", "30K", "--first", "5"];
    let printed = prints(dir.path(), &arguments);
    prints(dir.path(), &[&arguments[..], &["-o", "lines", "--threads", "3"]].concat());
    assert!(std::fs::read(dir.path().join("lines")).expect("a file") == printed);
    assert_eq!(names(dir.path()), ["lines"]);
}

#[test]
fn an_unfinished_file_is_removed_and_the_old_one_stays() {
    let dir = folder();
    let path = dir.path().join("data");
    std::fs::write(&path, "old").expect("written");
    let mut child = merganser(dir.path(), &["generate", "--records", "1T", "-o", "data"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Its unfinished file has no name, so only /proc shows how much it has written.
    let written = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0)
    };
    while written() < 10_000_000 {
        std::thread::yield_now();
    }
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert_eq!(names(dir.path()), ["data"]);
    assert_eq!(std::fs::read(&path).expect("there"), b"old");
}
