//! What `recover` says of interrupted work.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Place, SORT, states};
use crate::harness::{binary, merganser_itself, prints};
use crate::preload::{Step, resume};

/// `recover` describes each state, and the command that it names ends the work.
#[test]
fn recover_lists_the_leftovers_of_each_state() {
    let Some(place) = Place::with_steps() else { return };
    let asked = |json: bool| -> String {
        let mut recover = merganser_itself(["recover", "."]);
        recover.args(json.then_some("--json")).current_dir(place.folder.path());
        String::from_utf8(prints(&mut recover)).expect("text")
    };
    let told = || -> Vec<serde_json::Value> {
        let json: serde_json::Value = serde_json::from_str(&asked(true)).expect("JSON");
        json["leftovers"].as_array().expect("an array").clone()
    };
    // A command of `recover` is for a shell that finds this binary.
    let (own, usual) = (binary(), std::env::var("PATH").expect("a path"));
    let bin = Path::new(&own).parent().expect("a folder").display();
    let path = format!("{bin}:{usual}");
    let typed = |command: &serde_json::Value| {
        let command = command.as_str().expect("a command");
        let mut shell = Command::new("sh");
        shell.args(["-ec", command]).env("LC_ALL", "C").env("PATH", &path);
        prints(shell.current_dir(place.folder.path()));
    };
    let total = place.content.len();
    let whole = format!("all {total} bytes are");
    let words = |state: &str| match state {
        "sorting" => format!("of {total} bytes are sorted and here, the rest is in the inputs"),
        "removed" => format!("{whole} sorted and here, the inputs are removed"),
        "copying" | "copied" => "of them in the output that is being written".to_owned(),
        "delivered" => "the result is there; only leftovers are here".to_owned(),
        _ => format!("{whole} sorted and here"),
    };
    for (state, step) in states() {
        place.again("in");
        place.interrupted(&SORT, step);
        let left = told();
        let sort = left.iter().find(|l| l["kind"] == "sort").expect("a sort");
        let what = sort["what"].as_str().expect("text");
        assert!(what.contains(&words(state)), "{state}: {what}");
        assert_eq!(sort["only_copy"], state != "delivered", "{state}");
        assert_eq!(sort["in_use"], false, "{state}");
        let is_input = left.iter().any(|l| l["kind"] == "input" && l["only_copy"] == true);
        assert_eq!(is_input, ["sorting", "sorted"].contains(&state), "{state}: {left:?}");
        let text = asked(false);
        assert!(text.contains(what), "{state}: {text}");
        assert_eq!(text.contains("keep:  it has records"), state != "delivered", "{state}: {text}");
        typed(&sort["command"]);
        place.holds("out", &place.sorted, state);
        assert_eq!(told(), [serde_json::Value::Null; 0], "{state}");
        assert!(asked(false).contains("no interrupted work"), "{state}");
    }
    // While a process works there, there is nothing to do.
    place.again("in");
    let mut child = place.stopped(&SORT, states()[0].1);
    let left = told();
    let sort = left.iter().find(|l| l["kind"] == "sort").expect("a sort");
    assert_eq!(sort["in_use"], true);
    assert!(asked(false).contains("a process works on it now"));
    resume(&child);
    assert!(child.wait().expect("it ends").success());
    // Copies.
    for consume in [false, true] {
        place.again("in");
        place.does(&["sort", "in", "--view", "v"]);
        fs::remove_file(place.folder.at("in")).expect("removed");
        let mut copy = vec!["materialize", "v", "-o", "out"];
        if consume {
            copy.push("--consume");
        }
        place.interrupted(&copy, Step::first("rename", "out"));
        let left = told();
        let found = left.iter().find(|l| l["kind"] == "copy").expect("a copy");
        assert_eq!(found["only_copy"], consume, "{found}");
        let what = found["what"].as_str().expect("text");
        assert!(
            what.contains(&format!("complete: {total} of {total} bytes are written")),
            "{what}"
        );
        assert_eq!(left.iter().any(|l| l["kind"] == "view"), consume, "{left:?}");
        typed(&found["command"]);
        place.holds("out", &place.sorted, "a copy");
        assert_eq!(told(), [serde_json::Value::Null; 0]);
    }
    // A view that was not finished goes; its inputs are whole.
    place.again("in");
    place.interrupted(&["sort", "in", "--view", "out"], Step::first("rename", "out"));
    let left = told();
    assert_eq!((left.len(), &left[0]["only_copy"]), (1, &false.into()), "{left:?}");
    typed(&left[0]["command"]);
    place.holds("in", &place.content, "a view that was not finished");
    assert_eq!(place.folder.names(), ["in"]);
}
