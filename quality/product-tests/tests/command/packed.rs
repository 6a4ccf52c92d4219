//! Compressed inputs of `sort` and `verify`.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{fails, folder, merganser, names, prints, stderr};

/// Compresses `name` to `name.packed`; false where there is no such program.
fn pack(dir: &Path, program: &str, name: &str) -> bool {
    let Ok(packed) = Command::new(program).arg("-c").arg(name).current_dir(dir).output() else {
        eprintln!("skipped: there is no {program}");
        return false;
    };
    fs::write(dir.join(format!("{name}.packed")), packed.stdout).expect("written");
    true
}

#[test]
fn compressed_inputs_are_sorted_as_what_they_hold() {
    let dir = folder();
    for (format, key) in
        [("lines", "1,1"), ("csv", "2"), ("fasta", "length"), ("gensort", "0:10"), ("ascii", "")]
    {
        let make = ["generate", "--format", format, "--records", "3000", "-o", "in"];
        prints(dir.path(), &make);
        let name = match format {
            "gensort" => "fixed:100",
            "ascii" => "lines",
            other => other,
        };
        let options = ["--format", name, "--key", key];
        let options = if key.is_empty() { &options[..2] } else { &options };
        let expected = prints(dir.path(), &[&["sort", "in"], options].concat());
        for program in ["gzip", "zstd"] {
            if !pack(dir.path(), program, "in") {
                continue;
            }
            let sorted = prints(dir.path(), &[&["sort", "in.packed"], options].concat());
            assert!(sorted == expected, "{program} {format}");
            let twice = prints(dir.path(), &[&["sort", "in", "in.packed"], options].concat());
            assert_eq!(twice.len(), 2 * expected.len());
            let file = fs::File::open(dir.path().join("in.packed")).expect("there");
            let mut command = merganser(dir.path(), &[&["sort"], options].concat());
            let output = command.stdin(file).output().expect("it starts");
            assert!(output.stdout == expected, "{program} {format}: {}", stderr(&output));
            prints(dir.path(), &[&["sort", "in.packed", "--view", "v.view"], options].concat());
            assert!(prints(dir.path(), &["cat", "v.view"]) == expected);
            fs::remove_dir_all(dir.path().join("v.view")).expect("there");
        }
    }
}

#[test]
fn a_compressed_file_is_checked_as_what_it_holds() {
    let dir = folder();
    fs::write(dir.path().join("in"), "a\nb\nc\n").expect("written");
    assert!(pack(dir.path(), "gzip", "in"), "gzip is there");
    let plain = prints(dir.path(), &["verify", "in"]);
    assert_eq!(prints(dir.path(), &["verify", "in.packed"]), plain);
    prints(dir.path(), &["sort", "-c", "in.packed"]);
    prints(dir.path(), &["sort", "-m", "in", "in.packed", "-o", "merged"]);
    assert_eq!(fs::read(dir.path().join("merged")).expect("there"), b"a\na\nb\nb\nc\nc\n");
}

#[test]
fn no_decompress_takes_the_bytes_as_they_are() {
    let dir = folder();
    fs::write(dir.path().join("in"), "b\na\n".repeat(50)).expect("written");
    assert!(pack(dir.path(), "gzip", "in"), "gzip is there");
    let bytes = fs::read(dir.path().join("in.packed")).expect("there");
    let sorted = prints(dir.path(), &["sort", "--no-decompress", "in.packed"]);
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.sort_unstable();
    assert_eq!(sorted, [lines.join(&b'\n'), b"\n".to_vec()].concat());
}

#[test]
fn what_is_damaged_is_named_and_nothing_is_left() {
    let dir = folder();
    prints(dir.path(), &["generate", "--format", "lines", "--records", "20K", "-o", "in"]);
    for program in ["gzip", "zstd"] {
        if !pack(dir.path(), program, "in") {
            continue;
        }
        let whole = fs::read(dir.path().join("in.packed")).expect("there");
        fs::remove_file(dir.path().join("in.packed")).expect("there");
        fs::write(dir.path().join("cut"), &whole[..whole.len() / 2]).expect("written");
        for target in ["-o", "--view"] {
            let told = fails(dir.path(), &["sort", "in", "cut", "in", target, "out"]);
            assert!(told.starts_with("cut: at byte "), "{told}");
            assert!(
                told.ends_with("; the file is damaged or cut, restore it from a copy"),
                "{told}"
            );
            assert_eq!(names(dir.path()), ["cut", "in"], "{program}");
        }
        let told = fails(dir.path(), &["verify", "cut"]);
        assert!(told.starts_with("cut: at byte "), "{told}");
    }
}

#[test]
fn a_compressed_file_gives_no_space_back() {
    let dir = folder();
    fs::write(dir.path().join("in"), "b\na\n").expect("written");
    assert!(pack(dir.path(), "gzip", "in"), "gzip is there");
    let before = fs::read(dir.path().join("in.packed")).expect("there");
    assert_eq!(
        fails(dir.path(), &["sort", "--consume", "in.packed", "-o", "out"]),
        "in.packed: --consume: is compressed, and bytes can't be given back from the middle of a compressed file; decompress it first, or leave out --consume"
    );
    assert_eq!(fs::read(dir.path().join("in.packed")).expect("there"), before);
    assert_eq!(names(dir.path()), ["in", "in.packed"]);
}

#[test]
fn a_plan_names_its_assumption() {
    let dir = folder();
    prints(dir.path(), &["generate", "--format", "lines", "--records", "200K", "-o", "in"]);
    assert!(pack(dir.path(), "gzip", "in"), "gzip is there");
    let explain = ["sort", "in.packed", "--explain", "--memory", "8M"];
    let plan = String::from_utf8(prints(dir.path(), &explain)).expect("UTF-8");
    assert!(plan.contains("assumed: compressed inputs expand as"), "{plan}");
    assert!(plan.contains("how much compressed inputs hold is not known"), "{plan}");
    let mut child = merganser(dir.path(), &["sort", "--explain"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(stderr(&output).contains("name files"), "{}", stderr(&output));
}
