//! What long work says on standard error: nothing in scripts, lines for logs, and one line at the end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::{folder, merganser, stderr};

/// A file of lines that is larger than the least memory, and its number of lines.
const RECORDS: u32 = 200_000;

fn large(dir: &Path) {
    let lines: String = (0..RECORDS).map(|i| format!("{}\n", i * 7919 % 1_000_003)).collect();
    fs::write(dir.join("large"), lines).expect("written");
}

/// What a command that succeeds says on standard error, line by line.
fn said(dir: &Path, words: &[&str]) -> Vec<String> {
    let output = merganser(dir, words).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    stderr(&output).lines().map(str::to_owned).collect()
}

/// Whether a line begins with seconds and then `what`.
fn tells(line: &str, what: &str) -> bool {
    let rest = line.strip_prefix("merganser: ").unwrap_or_default();
    rest.split_once(" s: ")
        .is_some_and(|(seconds, rest)| seconds.parse::<u64>().is_ok() && rest.starts_with(what))
}

#[test]
fn a_log_has_each_phase_and_what_was_done() {
    let dir = folder();
    large(dir.path());
    let sort = ["sort", "large", "-o", "out", "--memory", "3M", "--threads", "1"];
    let lines = said(dir.path(), &[&sort[..], &["--progress=log"]].concat());
    assert!(tells(&lines[0], "sorting: 0 bytes of 1.38 MB"), "{lines:?}");
    let merging = lines.iter().find(|line| tells(line, "merging: 0 bytes of 1.38 MB, "));
    let merging = merging.unwrap_or_else(|| panic!("no merge: {lines:?}"));
    assert!(merging.contains(" MB/s, ") && merging.ends_with(" left"), "{merging}");
    let last = lines.last().expect("a line");
    assert!(last.starts_with("merganser: sorted 200,000 records, 1.38 MB, in "), "{last}");
    assert!(last.contains(" MB/s, 2.") && last.ends_with(" bytes written per byte"), "{last}");
    // One that fits into the memory is written once.
    let once = said(dir.path(), &["sort", "large", "-o", "once", "--progress", "log"]);
    assert!(once.last().is_some_and(|last| last.contains(", 1.00 bytes written")), "{once:?}");
    for words in [
        &["sort", "-m", "out", "-o", "merged"][..],
        &["sort", "large", "--view", "v"],
        &["materialize", "v", "-o", "copy"],
        &["sort", "--consume", "large", "-o", "consumed"],
    ] {
        let lines = said(dir.path(), &[words, &["--progress=log"]].concat());
        let last = lines.last().expect("a line");
        assert!(last.contains(" 1.38 MB, in ") && last.contains(" MB/s"), "{words:?}: {lines:?}");
        assert!(lines.len() >= 2, "{words:?}: {lines:?}");
    }
    // A compressed copy is smaller than what was copied.
    let packed = said(dir.path(), &["materialize", "v", "-o", "copy.gz", "--progress=log"]);
    assert!(packed.last().is_some_and(|last| !last.contains("written")), "{packed:?}");
}

#[test]
fn scripts_and_quiet_users_hear_nothing() {
    let dir = folder();
    large(dir.path());
    let sort = ["sort", "large", "-o", "out", "--memory", "3M", "--threads", "1"];
    for words in [
        &[][..],
        &["--quiet"],
        &["--progress=auto"],
        // The later one counts.
        &["--progress=log", "--quiet"],
    ] {
        assert!(said(dir.path(), &[&sort[..], words].concat()).is_empty(), "{words:?}");
    }
    assert!(!said(dir.path(), &[&sort[..], &["--quiet", "--progress=log"]].concat()).is_empty());
    // In the place of GNU sort, too.
    symlink(merganser_testkit::program(), dir.path().join("sort")).expect("a link");
    let run = |words: &[&str]| {
        let mut command = Command::new(dir.path().join("sort"));
        let output = command.current_dir(dir.path()).args(words).output().expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(run(&["large", "-o", "out"]), "");
    let lines = run(&["large", "-o", "out", "--progress=log"]);
    assert!(lines.contains("\nsort: sorted 200,000 records, "), "{lines}");
    let wrong = merganser(dir.path(), &["sort", "large", "--progress=loud"]).output();
    let wrong = stderr(&wrong.expect("it starts"));
    assert!(wrong.contains("'loud'") && wrong.lines().count() == 1, "{wrong}");
}
