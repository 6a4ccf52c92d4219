//! A test for every program of the project.

use std::path::Path;
use std::process::{Command, Output};

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(Path::new(program)).args(words).output().expect("it starts")
}

/// Holds `program` against the rules of all programs of the project: its outline and its help have `commands`, and a command
/// that it lacks is one sentence.
///
/// # Panics
/// If it does something else.
pub fn check_program(program: &str, commands: &[&str]) {
    let outline = run(program, &["--outline"]);
    let text = String::from_utf8(outline.stdout).expect("UTF-8");
    for command in commands {
        assert!(text.contains(&format!("\"name\":\"{command}\"")), "{command}: {text}");
        let help = String::from_utf8(run(program, &[command, "--help"]).stdout).expect("UTF-8");
        assert!(help.contains(&format!("Usage: merganser {command}")), "{help}");
    }
    let refused = run(program, &["absent"]);
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert_eq!((refused.status.code(), said.lines().count()), (Some(2), 1), "{said}");
}
