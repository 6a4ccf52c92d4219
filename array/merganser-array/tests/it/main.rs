//! The program by itself. Tests of all programs together are in `quality/product-tests`, which finds this one where
//! this test had it built.

use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_merganser-array")).args(words).output().expect("it starts")
}

#[test]
fn it_says_what_commands_it_has() {
    let outline = run(&["--outline"]);
    let text = String::from_utf8(outline.stdout).expect("UTF-8");
    assert!(text.contains("\"name\":\"array\""), "{text}");
    let help = run(&["array", "--help"]);
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    assert!(help.contains("Usage: merganser array"), "{help}");
}

#[test]
fn a_command_that_it_lacks_is_one_sentence() {
    let refused = run(&["absent"]);
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert_eq!((refused.status.code(), said.lines().count()), (Some(2), 1), "{said}");
}
