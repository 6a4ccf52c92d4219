//! Golden help. `MERGANSER_BLESS=1 cargo test -p merganser-product-tests --test command` rewrites the files.

use std::path::{Path, PathBuf};

use merganser_testkit::examples::examples;

use crate::{folder, merganser, names, prints, stderr};

const COMMANDS: [&str; 23] = [
    "sort",
    "count",
    "cat",
    "mount",
    "export",
    "materialize",
    "info",
    "verify",
    "recover",
    "table",
    "map",
    "pipeline",
    "blast",
    "generate",
    "ssdlet",
    "serve",
    "array",
    "hadoop",
    "simulate",
    "emulate",
    "reproduce",
    "completions",
    "man",
];

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/golden")
}

/// Compares with `tests/command/golden/NAME`, or rewrites it.
fn golden(name: &str, found: &[u8]) {
    let path = golden_folder().join(name);
    let found = String::from_utf8(found.to_vec()).expect("UTF-8");
    if std::env::var_os("MERGANSER_BLESS").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name} changed; MERGANSER_BLESS=1 accepts this:\n{found}");
}

#[test]
fn help_is_as_reviewed() {
    let dir = folder();
    golden("merganser.txt", &prints(dir.path(), &["--help"]));
    for command in COMMANDS {
        golden(&format!("{command}.txt"), &prints(dir.path(), &[command, "--help"]));
    }
    for what in ["run", "sort", "rates", "record", "array"] {
        let help = prints(dir.path(), &["simulate", what, "--help"]);
        golden(&format!("simulate-{what}.txt"), &help);
    }
    for what in ["new", "check", "list"] {
        let help = prints(dir.path(), &["ssdlet", what, "--help"]);
        golden(&format!("ssdlet-{what}.txt"), &help);
    }
    for what in ["create", "serve", "check", "salvage", "info", "report"] {
        let help = prints(dir.path(), &["array", what, "--help"]);
        golden(&format!("array-{what}.txt"), &help);
    }
    for what in ["sort", "cat", "info", "verify"] {
        let help = prints(dir.path(), &["table", what, "--help"]);
        golden(&format!("table-{what}.txt"), &help);
    }
    for what in ["serve", "advise"] {
        let help = prints(dir.path(), &["hadoop", what, "--help"]);
        golden(&format!("hadoop-{what}.txt"), &help);
    }
}

#[test]
fn help_fits_a_terminal_and_teaches_with_examples() {
    let dir = folder();
    for command in COMMANDS {
        let help = String::from_utf8(prints(dir.path(), &[command, "--help"])).expect("UTF-8");
        let (_, examples) = help.split_once("Examples:\n").expect(command);
        assert!(examples.contains(&format!("  merganser {command}")), "{command}");
        assert!(
            examples.lines().all(|line| line.starts_with("  ")),
            "{command}: an example is wrapped"
        );
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}");
    }
}

/// Each program parses the examples of its own commands. An example may continue with a command of another program.
/// With `--help` at its end, a command line is parsed and does nothing.
#[test]
fn options_in_examples_exist_in_whichever_program() {
    let dir = folder();
    let mut seen = 0;
    for help in std::fs::read_dir(golden_folder()).expect("listed") {
        let help = std::fs::read_to_string(help.expect("listed").path()).expect("text");
        for words in examples(&help) {
            // After `--` it would be a file, and after `blast` an option of BLAST's.
            if words[0] != "merganser" || words.iter().any(|word| word == "--" || word == "blast") {
                continue;
            }
            seen += 1;
            let found =
                merganser(dir.path(), &[&words[1..], &["--help".to_owned()]].concat()).output();
            let found = found.expect("it starts");
            assert!(found.status.success(), "{}: {}", words.join(" "), stderr(&found));
        }
    }
    assert!(seen > 120, "{seen}");
}

#[test]
fn the_manual_has_a_page_per_command() {
    let dir = folder();
    let page = String::from_utf8(prints(dir.path(), &["man"])).expect("UTF-8");
    assert!(page.contains(".TH merganser 1"), "{page}");
    prints(dir.path(), &["man", "--dir", "."]);
    let mut expected: Vec<_> =
        COMMANDS.iter().map(|command| format!("merganser-{command}.1")).collect();
    expected.push("merganser.1".into());
    expected.extend(["advise", "serve"].map(|what| format!("merganser-hadoop-{what}.1")));
    expected.extend(
        ["array", "rates", "record", "run", "sort"]
            .map(|what| format!("merganser-simulate-{what}.1")),
    );
    let of_table = ["cat", "info", "sort", "verify"];
    expected.extend(of_table.map(|what| format!("merganser-table-{what}.1")));
    expected.extend(["check", "list", "new"].map(|what| format!("merganser-ssdlet-{what}.1")));
    let of_array = ["check", "create", "info", "report", "salvage", "serve"];
    expected.extend(of_array.map(|what| format!("merganser-array-{what}.1")));
    expected.sort();
    assert_eq!(names(dir.path()), expected);
    let sort = std::fs::read_to_string(dir.path().join("merganser-sort.1")).expect("a page");
    assert!(sort.contains("zero\\-terminated"), "options are described");
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    let dir = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = String::from_utf8(prints(dir.path(), &["completions", shell])).expect("UTF-8");
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("temp-limit"), "{shell}: options");
    }
}
