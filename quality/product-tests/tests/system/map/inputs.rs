//! Where records come from.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{map, text, tsv, words};
use crate::harness::{
    Chance, Folder, fails, merganser, merganser_itself, one_sentence, output_with, prints, stderr,
};

#[test]
fn standard_input_is_one_of_many() {
    let folder = Folder::new();
    let (a, b) = (folder.write("a", b"x y\n"), folder.write("b", b"y z"));
    let mut command = merganser(["map", "wordcount"]);
    let output = output_with(command.arg(&a).arg("-").arg(&b), b"z z\nq");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "q\t1\nx\t1\ny\t2\nz\t3\n");
    let output = output_with(&mut merganser(["map", "wordcount"]), b"only\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "only\t1\n");
    let twice = fails(&mut merganser(["map", "wordcount", "-", "-"]));
    assert!(twice.contains("name it once"), "{twice}");
}

/// `tail -F log | merganser map ...`: the writer may be idle for hours, and the error is reported now.
#[test]
fn a_map_that_fails_does_not_wait_for_an_idle_pipe() {
    // The first chunk has 512 KiB. The line that is wrong comes late in it, when another worker waits for the rest of
    // the second one.
    let numbers = |bytes: usize| "17\n".repeat(bytes / 3);
    let rows = [&numbers(480_000), "wrong\n", &numbers(200_000)].concat();
    for (words, head, told) in [
        (&["histogram"][..], "", "standard input: at byte 480000"),
        (&["histogram", "--header", "--column", "n"], "n\n", "standard input: at byte 480002"),
        (&["project", "--header", "--columns", "missing"], "n\n", "missing"),
    ] {
        let mut command = merganser_itself(["map", "--threads=2", "--memory=64M"]);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut pipe = child.stdin.take().expect("piped");
        // It may have failed before it takes all.
        drop(pipe.write_all([head, &rows].concat().as_bytes()));
        let until = Instant::now() + Duration::from_secs(30);
        while child.try_wait().expect("a child").is_none() {
            if Instant::now() > until {
                child.kill().expect("a child");
                panic!("{command:?}: waits for more input");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let sentence = one_sentence(&command, &child.wait_with_output().expect("it ended"));
        assert!(sentence.contains(told), "{sentence}");
    }
}

/// `merganser map histogram logs/*`: which of them is to be repaired?
#[test]
fn a_record_that_makes_no_sense_is_told_with_its_file() {
    for (words, good, bad) in [
        (&["histogram"][..], "1\n2\n", "3\n44\nx\n"),
        (&["project", "--columns", "2"], "1,2\n", "3,44\nx\n"),
    ] {
        let folder = Folder::new();
        let (good, bad) =
            (folder.write("good", good.as_bytes()), folder.write("bad", bad.as_bytes()));
        for inputs in [&[&bad][..], &[&good, &bad], &[&bad, &good]] {
            let sentence = fails(merganser(["map"]).args(words).args(inputs));
            assert!(sentence.contains("bad: at byte 5: "), "{words:?}: {sentence}");
        }
    }
}

/// Compressed files are known by what they hold, not by their names.
#[test]
fn compressed_inputs_are_read_as_what_they_hold() {
    let folder = Folder::new();
    let text = text(&mut Chance::new(), 3 << 20, 1000);
    let input = folder.write("input", &text);
    let counts = tsv(&words(&text));
    for program in ["gzip", "zstd"] {
        let mut compress = Command::new(program);
        let Ok(packed) = compress.arg("-c").arg(&input).output() else {
            eprintln!("skipped: there is no {program}");
            continue;
        };
        let name = folder.write(&format!("no name of {program}"), &packed.stdout);
        assert!(map(&["wordcount"], &[&name]) == counts, "{program}");
        assert!(map(&["wordcount", "--threads", "1"], &[&name]) == counts, "{program}");
        let piped = output_with(&mut merganser(["map", "wordcount"]), &packed.stdout);
        assert!(piped.stdout == counts, "{program}, piped: {}", stderr(&piped));
        // Two files in one are what both hold.
        let twice = folder.write("twice", &[&*packed.stdout, &packed.stdout].concat());
        let both = words(&[&*text, &text].concat());
        assert!(map(&["wordcount"], &[&twice]) == tsv(&both), "{program}, twice");
        let cut = folder.write("cut", &packed.stdout[..packed.stdout.len() / 2]);
        let sentence = fails(merganser(["map", "wordcount"]).arg(&cut));
        assert!(sentence.contains("cut"), "{program}: {sentence}");
    }
}

#[test]
fn many_files_are_one_input() {
    let folder = Folder::new();
    let mut chance = Chance::new();
    let texts: Vec<_> = (0..300).map(|_| text(&mut chance, 500, 100)).collect();
    let files: Vec<_> =
        texts.iter().enumerate().map(|(n, text)| folder.write(&format!("{n}"), text)).collect();
    assert!(map(&["wordcount"], &files) == tsv(&words(&texts.concat())));
    // Records in the order of the files.
    let matched = map(&["match", "--key", "w1"], &files);
    let lines = texts.iter().flat_map(|text| text.split_inclusive(|byte| *byte == b'\n'));
    let expected: Vec<_> = lines.filter(|line| line.windows(2).any(|two| two == b"w1")).collect();
    assert!(matched == expected.concat());
}

#[test]
fn lines_may_end_with_nul() {
    let folder = Folder::new();
    let input = folder.write("input", b"a\nb\0c\nd\0");
    assert_eq!(map(&["match", "-z", "--key", "c"], &[&input]), b"c\nd\0");
}

#[test]
fn empty_inputs_have_empty_results() {
    let folder = Folder::new();
    let input = folder.write("input", b"");
    for words in [&["wordcount"][..], &["match", "--key", "x"], &["wordcount", "--top", "3"]] {
        assert!(map(words, &[&input]).is_empty(), "{words:?}");
    }
    let view = folder.at("x.view");
    prints(merganser(["map", "wordcount", "--view"]).arg(&view).arg(&input));
    assert!(prints(merganser(["cat"]).arg(&view)).is_empty());
}

/// The bytes do not depend on threads, partitions and memory.
#[test]
fn the_result_is_the_same_however_it_is_made() {
    let folder = Folder::new();
    let (input, text) = super::many_words(&folder);
    let counts = tsv(&words(&text));
    let matched = map(&["match", "--key", "w1f", "--threads", "1"], &[&input]);
    for threads in ["1", "2", "4"] {
        for partition in ["auto", "1M", "100K"] {
            let how = ["--threads", threads, "--partition-size", partition, "--memory=64M"];
            let words = [&["wordcount"], &how[..]].concat();
            assert!(map(&words, &[&input]) == counts, "{how:?}");
        }
        let how = ["wordcount", "--threads", threads, super::SMALL_MEMORY];
        if threads != "4" {
            assert!(map(&how, &[&input]) == counts, "{how:?}");
        }
        assert!(map(&["match", "--key", "w1f", "--threads", threads], &[&input]) == matched);
    }
}
