//! `count`: equal records, counted within a limit of memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use merganser_random::Random;

use crate::{fails, folder, names, prints, stderr};

/// Values with their counts, the largest first, as lines.
fn model(lines: &[Vec<u8>], min: u64, top: usize) -> Vec<u8> {
    let mut counts = BTreeMap::<&[u8], u64>::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    let mut rows: Vec<_> = counts.into_iter().filter(|(_, count)| *count >= min).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let row = |(value, count): &(&[u8], u64)| {
        [count.to_string().as_bytes(), b"\t", value, b"\n"].concat()
    };
    rows.iter().take(top).flat_map(row).collect()
}

fn lines_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let line = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect()
}

fn count(dir: &Path, bytes: &[u8], options: &[&str]) -> Vec<u8> {
    fs::write(dir.join("in"), bytes).expect("written");
    prints(dir, &[&["count", "in"], options].concat())
}

#[test]
fn the_most_frequent_come_first() {
    let dir = folder();
    let dir = dir.path();
    let text = b"pear\napple\npear\nfig\napple\npear";
    assert_eq!(count(dir, text, &[]), b"3\tpear\n2\tapple\n1\tfig\n");
    assert_eq!(count(dir, text, &["--top=1"]), b"3\tpear\n");
    assert_eq!(count(dir, text, &["--min=2"]), b"3\tpear\n2\tapple\n");
    assert_eq!(prints(dir, &["count", "in", "in", "--top=1"]), b"6\tpear\n");
    prints(dir, &["count", "in", "-o", "in"]);
    assert_eq!(fs::read(dir.join("in")).expect("read"), b"3\tpear\n2\tapple\n1\tfig\n");
    assert_eq!(names(dir), ["in"]);
    assert_eq!(count(dir, b"a\0b\0a", &["-z"]), b"2\ta\x001\tb\0");
    assert_eq!(count(dir, b"#a\n#b\nx\n#c\nx\n", &["--header-prefix=#"]), b"2\tx\n1\t#c\n");
}

#[test]
fn fields_and_columns_are_counted() {
    let dir = folder();
    let dir = dir.path();
    let log = b"1,get,/a\n2,put,/b\n3,get,/c\n4\n";
    assert_eq!(count(dir, log, &["-t,", "-k2,2"]), b"2\tget\n1\t\n1\tput\n");
    assert_eq!(count(dir, log, &["-t,", "-k2,2", "-k1,1", "--top=2"]), b"1\t,4\n1\tget,1\n");
    let blanks = b"x  b\ny b\n";
    assert_eq!(count(dir, blanks, &["-k2,2"]), b"1\t  b\n1\t b\n");
    assert_eq!(count(dir, blanks, &["-k2b,2"]), b"2\tb\n");
    let sales = b"city,item\r\nUlm,tea\r\n\"Bonn, \"\"B\"\"\",tea\r\n\"Ulm\",jam\r\n";
    let csv = ["--format=csv", "--header", "--key=city"];
    assert_eq!(count(dir, sales, &csv), b"city,count\nUlm,2\n\"Bonn, \"\"B\"\"\",1\n");
    let both = [&csv[..], &["--key=2", "--top=1"]].concat();
    assert_eq!(count(dir, sales, &both), b"city,item,count\n\"Bonn, \"\"B\"\"\",tea,1\n");
    assert_eq!(
        count(dir, sales, &csv[..2]).split(|b| *b == b'\n').next(),
        Some(&b"city,item,count"[..])
    );
    assert_eq!(count(dir, b"a\tb\nc\tb\nd\n", &["--format=tsv", "--key=2"]), b"b\t2\n\t1\n");
}

#[test]
fn every_tiny_input_is_counted() {
    let dir = folder();
    for len in 0..=4 {
        for number in 0..3_usize.pow(len) {
            let digit = |place| b"a\0\n"[number / 3_usize.pow(place) % 3];
            let bytes: Vec<u8> = (0..len).map(digit).collect();
            let found = count(dir.path(), &bytes, &[]);
            assert_eq!(found, model(&lines_of(&bytes), 1, usize::MAX), "{bytes:?}");
        }
    }
}

/// Few values and many, short and long, in memory and not, printed whole and in part.
#[test]
fn any_input_is_counted_as_by_a_map() {
    let dir = folder();
    for seed in 0..14 {
        let mut random = Random::new(seed);
        let kinds = [3, 1000, 1 << 40][random.below(3) as usize];
        let long = [1, 40][random.below(2) as usize];
        let mut lines = Vec::new();
        for _ in 0..random.below(150_000) {
            let value = random.below(kinds) * random.below(2);
            lines.push(value.to_string().repeat(1 + random.below(long) as usize).into_bytes());
        }
        let bytes: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        fs::write(dir.path().join("in"), &bytes).expect("written");
        let (min, top) =
            (1 + random.below(3), [1, 7, 60_000, usize::MAX][random.below(4) as usize]);
        let (min_typed, top_typed) = (format!("--min={min}"), format!("--top={top}"));
        let mut words = vec!["count", "in", "-T", ".", &min_typed];
        words.extend((top < usize::MAX).then_some(&top_typed[..]));
        words.push(["--memory=3M", "--memory=100M"][random.below(2) as usize]);
        words.push(["--threads=1", "--threads=3"][random.below(2) as usize]);
        assert!(prints(dir.path(), &words) == model(&lines, min, top), "{seed} {words:?}");
        assert_eq!(names(dir.path()), ["in"]);
    }
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let dir = folder();
    let dir = dir.path();
    fs::write(dir.join("in"), "a,b\n\"x,1\n").expect("written");
    fs::write(dir.join("other"), "a,c\n1,2\n").expect("written");
    for (words, sentence) in [
        (
            &["in", "--format=csv"][..],
            "in: at byte 4: its last row has a quote that is never closed; repair the input or choose another --format",
        ),
        (&["other", "--format=csv", "--key=3"], "--key '3': no row has that many columns"),
        (
            &["other", "--format=csv", "--header", "--key=b"],
            "--key 'b': there is no column 'b'; there are 2: a, c",
        ),
        (
            &["other", "--format=csv", "--key=b"],
            "--key 'b': a column is a number from 1 where there is no header",
        ),
        (&["missing"], "missing: No such file or directory"),
        (
            &["other", "--memory=1M"],
            "--memory 1M is too small for counting: at least 2097152 bytes are needed; give 2M",
        ),
    ] {
        assert_eq!(fails(dir, &[&["count", "-o", "out"], words].concat()), sentence);
        assert_eq!(names(dir), ["in", "other"]);
    }
}

/// A limit on the size of files stands for a disk that is full.
#[test]
fn a_disk_that_fails_is_an_error_without_a_result() {
    let dir = folder();
    let dir = dir.path();
    let lines: String = (0..400_000_u64).map(|n| format!("{}\n", n * 7919 % 400_009)).collect();
    fs::write(dir.join("in"), lines).expect("written");
    fs::create_dir(dir.join("temp")).expect("made");
    let program = merganser_testkit::program();
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec '{}' count in -T temp --memory 3M -o out",
        Path::new(&program).display()
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(dir).output();
    let output = output.expect("bash");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).starts_with("merganser: temp"), "{output:?}");
    assert_eq!(names(dir), ["in", "temp"]);
    assert_eq!(names(&dir.join("temp")), [""; 0]);
    let words = ["count", "in", "-o", "/dev/full"];
    assert_eq!(fails(dir, &words), "/dev/full: No space left on device");
}
