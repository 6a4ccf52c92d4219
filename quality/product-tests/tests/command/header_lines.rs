//! `--header-prefix`: headers of VCF, BED and the like.

use std::fs;

use crate::{fails, folder, merganser, names, prints, stderr};

const FIRST: &str = "##version\n#CHROM\tPOS\nchr2\t5\nchr1\t7\n";
const SECOND: &str = "##version\n#CHROM\tPOS\nchr10\t1\nchr1\t3";
const SORTED: &str = "##version\n#CHROM\tPOS\nchr1\t3\nchr1\t7\nchr2\t5\nchr10\t1\n";
const KEYS: [&str; 4] = ["--header-prefix=#", "--quiet", "-k1,1V", "-k2,2n"];

#[test]
fn every_road_keeps_the_header_first() {
    let dir = folder();
    let dir = dir.path();
    let run = |command: &[&str], rest: &[&str]| prints(dir, &[command, &KEYS[..], rest].concat());
    fs::write(dir.join("a"), FIRST).expect("written");
    fs::write(dir.join("b"), SECOND).expect("written");
    assert_eq!(run(&["sort"], &["a", "b"]), SORTED.as_bytes());
    assert_eq!(run(&["sort", "--top=1"], &["a", "b"]), &SORTED.as_bytes()[..28]);
    run(&["sort"], &["a", "b", "-o", "both"]);
    run(&["sort"], &["a", "b", "--view", "both.view"]);
    assert_eq!(fs::read(dir.join("both")).expect("read"), SORTED.as_bytes());
    assert_eq!(prints(dir, &["cat", "both.view"]), SORTED.as_bytes());
    assert_eq!(prints(dir, &["cat", "both.view", "--records", "0..1"]), b"chr1\t3\n");
    prints(dir, &["materialize", "both.view", "-o", "copy", "--quiet"]);
    assert_eq!(fs::read(dir.join("copy")).expect("read"), SORTED.as_bytes());
    run(&["sort", "-c"], &["both"]);
    let (file, view) =
        (run(&["verify"], &["both"]), prints(dir, &["verify", "both.view", "--quiet"]));
    assert_eq!(String::from_utf8_lossy(&file), String::from_utf8_lossy(&view));
    // In place, merged, consumed.
    for input in ["a", "b"] {
        run(&["sort"], &[input, "-o", input]);
    }
    assert_eq!(run(&["sort", "-m"], &["a", "b"]), SORTED.as_bytes());
    assert_eq!(run(&["sort", "-m", "--top=1"], &["a", "b"]), &SORTED.as_bytes()[..28]);
    assert_eq!(run(&["sort", "-u"], &["a", "a", "b"]), SORTED.as_bytes());
    run(&["sort", "--consume"], &["a", "b", "-o", "consumed"]);
    assert_eq!(fs::read(dir.join("consumed")).expect("read"), SORTED.as_bytes());
}

#[test]
fn a_check_counts_the_lines_of_the_header() {
    let dir = folder();
    fs::write(dir.path().join("a"), FIRST).expect("written");
    let output = merganser(dir.path(), &["sort", "-c", "--header-prefix=#", "a"]).output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "merganser: a:4: disorder: chr1\t7\n");
}

#[test]
fn records_that_begin_as_a_header_are_records_of_a_view() {
    let dir = folder();
    fs::write(dir.path().join("a"), "#h\nx\n#y\n").expect("written");
    prints(dir.path(), &["sort", "--header-prefix=#", "a", "--view", "v", "--quiet"]);
    let found = prints(dir.path(), &["verify", "v", "--quiet"]);
    assert!(found.starts_with(b"records         2\nbytes           8\n"));
}

#[test]
fn other_headers_and_other_formats_are_refused() {
    let dir = folder();
    let dir = dir.path();
    for (name, text) in [("a", FIRST), ("c", "##version\n#CHROM\nchr1\n")] {
        fs::write(dir.join(name), text).expect("written");
    }
    let sentence = "c: line 2 of its header is not that of an input before it; give inputs with the same header lines, or with none";
    for how in [&["-o", "out"][..], &["-m"], &["--view", "v"], &["--consume", "-o", "out"]] {
        assert_eq!(fails(dir, &[&["sort", "--header-prefix=#", "a", "c"], how].concat()), sentence);
        assert_eq!(names(dir), ["a", "c"], "{how:?}");
        assert_eq!(fs::read(dir.join("a")).expect("read"), FIRST.as_bytes());
    }
    for (how, sentence) in [
        (["--header-prefix=#", "--format=csv"], "--header-prefix: only with --format lines"),
        (
            ["--header-prefix=", "-n"],
            "--header-prefix '': every line begins with it; give at least one byte",
        ),
        (
            ["--header-prefix=#", "--debug"],
            "--debug: is for a look at standard output; leave out --header-prefix",
        ),
    ] {
        assert_eq!(fails(dir, &[&["sort", "a"], &how[..]].concat()), sentence);
    }
}

#[test]
fn a_csv_header_is_no_record_of_a_merge() {
    let dir = folder();
    fs::write(dir.path().join("a"), "id\n1\n2\n").expect("written");
    let words = ["sort", "-m", "--format=csv", "--header", "--key=id:n", "--top=1", "a"];
    assert_eq!(prints(dir.path(), &words), b"id\n1\n");
}
