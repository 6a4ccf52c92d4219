//! A report, trace or table that a command writes besides its result never overwrites an input or the result.

use std::fs;

use super::harness::{Folder, fails, merganser, prints};

/// Commands that read the view `v` and each other word that ends with `.json`, and write `out.json`. The name of one
/// more file follows.
const COMMANDS: [&[&str]; 15] = [
    &["sort", "in.json", "-o", "out.json", "--report"],
    &["sort", "in.json", "-o", "out.json", "--consume", "--report"],
    &["sort", "-m", "in.json", "-o", "out.json", "--report"],
    &["sort", "in.json", "--view", "new", "--report"],
    &["sort", "in.json", "--view", "new", "--consume", "--report"],
    &["materialize", "v", "-o", "out.json", "--report"],
    &["materialize", "v", "-o", "out.json", "--consume", "--report"],
    &["map", "wordcount", "in.json", "-o", "out.json", "--report"],
    &["map", "match", "--keys", "keys.json", "in.json", "-o", "out.json", "--report"],
    &["sort", "--files0-from", "list.json", "-o", "out.json", "--report"],
    &["sort", "-R", "--random-source", "keys.json", "in.json", "-o", "out.json", "--report"],
    &["map", "matrix", "in.json", "-o", "out.json", "--report"],
    &["pipeline", "in.json", "--stage", "a:cat", "-o", "out.json", "--report"],
    &["blast", "--report", "in.json", "blastn", "-query", "in.json", "-db", "db.fa", "-out"],
    &["generate", "--format", "fasta", "--records", "3", "-o", "out.json", "--truth"],
];

/// Every file below the folder, and its content.
fn content(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let files = |of: &str| {
        let entries = fs::read_dir(folder.at(of)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| format!("{of}/{}", name.to_str().expect("UTF-8")));
        names.filter(|name| folder.at(name).is_file()).collect::<Vec<_>>()
    };
    let mut all = [files("."), files("v")].concat();
    all.sort();
    let read = |name: String| (fs::read(folder.at(&name)).expect("read"), name);
    all.into_iter().map(read).map(|(bytes, name)| (name, bytes)).collect()
}

fn place() -> Folder {
    let folder = Folder::new();
    folder.write("in.json", b">b\nC\n>a\nC\n");
    folder.write("keys.json", b"C\nrandom bytes for an order\n");
    folder.write("list.json", b"in.json\0");
    folder.write("db.fa", b">b\nC\n>a\nC\n");
    prints(merganser(["sort", "in.json", "--view", "v"]).current_dir(folder.path()));
    fs::hard_link(folder.at("in.json"), folder.at("hard.json")).expect("linked");
    std::os::unix::fs::symlink("in.json", folder.at("soft.json")).expect("linked");
    folder
}

#[test]
fn no_second_file_overwrites_an_input_or_the_result() {
    let folder = place();
    let before = content(&folder);
    for command in COMMANDS {
        let mut names: Vec<&str> =
            command.iter().copied().filter(|word| word.ends_with(".json")).collect();
        if names.contains(&"in.json") {
            names.extend(["./in.json", "hard.json", "soft.json"]);
        }
        if names.contains(&"out.json") {
            names.push("v/../out.json");
        }
        if command.contains(&"v") {
            names.push("v/report.json");
        }
        for name in names {
            let words = command.iter().copied().chain([name]);
            let told = fails(merganser(words).current_dir(folder.path()));
            let why = ["would be overwritten", "is inside v", "both name the same file"];
            assert!(why.iter().any(|part| told.contains(part)), "{command:?} {name}: {told}");
            assert_eq!(content(&folder), before, "{command:?} {name}");
            assert!(!folder.at("new").exists(), "{command:?} {name}");
        }
    }
}

/// A report's old content goes when the new one is there, not before, and a command that fails leaves none behind.
#[test]
fn a_report_appears_with_the_result() {
    let folder = place();
    folder.write("old.json", b"old");
    for report in ["old.json", "new.json"] {
        let words = ["sort", "missing", "-o", "out.json", "--report", report];
        fails(merganser(words).current_dir(folder.path()));
    }
    assert_eq!(fs::read(folder.at("old.json")).expect("read"), b"old");
    assert!(!folder.at("new.json").exists() && !folder.at("out.json").exists());
    let words = ["sort", "in.json", "-o", "out.json", "--report", "old.json"];
    prints(merganser(words).current_dir(folder.path()));
    let report = fs::read_to_string(folder.at("old.json")).expect("text");
    assert!(report.contains("report_version"), "{report}");
}
