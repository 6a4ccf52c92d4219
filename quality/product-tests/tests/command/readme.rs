//! The examples of the README and of the guides are commands that exist, and print what they say.

use std::path::Path;
use std::process::Command;

use crate::folder;

/// The page `name` of this repository.
fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(path).expect("there")
}

/// Lines that begin with `$ ` are commands of a shell, and the lines after them are what they print.
#[test]
fn a_session_prints_what_the_page_says() {
    let dir = folder();
    let program = Path::new(merganser_testkit::program());
    let programs = program.parent().expect("a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)));
    let path = path.expect("a list of folders");
    let mut sessions = 0;
    for name in ["README.md", "docs/near/node.md"] {
        let text = page(name);
        for block in text.split("```").skip(1).step_by(2).filter(|block| block.contains("\n$ ")) {
            let mut parts = block.split("\n$ ");
            parts.next();
            for part in parts {
                let (command, expected) = part.split_once('\n').expect("a command and a line");
                let mut shell = Command::new("sh");
                shell.args(["-c", command]).current_dir(dir.path()).env("PATH", &path);
                let output = shell.output().expect("it starts");
                let printed = String::from_utf8(output.stdout).expect("UTF-8");
                assert_eq!(printed.trim_end(), expected.trim_end(), "{name}: {command}");
                assert!(output.status.success() && output.stderr.is_empty(), "{name}: {command}");
                sessions += 1;
            }
        }
    }
    assert!(sessions > 0);
}

/// Each `merganser map SSDLET` of the pages has options that this SSDlet takes.
#[test]
fn examples_of_map_are_understood() {
    let dir = folder();
    let input = dir.path().join("input");
    std::fs::write(&input, "a\n").expect("written");
    let mut seen = 0;
    for name in ["README.md", "docs/near/node.md"] {
        let text = page(name);
        for line in text.lines().filter_map(|line| line.strip_prefix("merganser map ")) {
            // Text after three spaces is a remark.
            let command = line.split("   ").next().expect("a command");
            if command.contains(".wasm") || command.starts_with("matrix") {
                continue;
            }
            std::fs::write(dir.path().join("keys.txt"), "key\n").expect("written");
            let mut shell = Command::new("sh");
            let command = command.replace(" --explain", "");
            let script = format!("\"$0\" map {command} --explain");
            shell.args(["-c", &script]).arg(merganser_testkit::program());
            let output = shell.current_dir(dir.path()).output().expect("it starts");
            let said = String::from_utf8(output.stderr).expect("UTF-8");
            let missing = said.contains("No such file or directory");
            assert!(output.status.success() || missing, "{command}: {said}");
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
}
