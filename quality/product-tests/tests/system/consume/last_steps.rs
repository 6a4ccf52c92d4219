//! Two commands on one output, and the same command after the last step of an earlier one.

use super::{Place, WORK};
use crate::preload::{Step, resume};

/// SAFETY finding F14: two copies to one output are not made at once.
#[test]
fn f14_a_second_copy_to_the_output_is_refused() {
    let Some(place) = Place::with_steps() else { return };
    place.does(&["sort", "in", "--view", "v"]);
    let copy = ["materialize", "v", "-o", "out"];
    let first = place.stopped(&copy, Step::first("rename", "out"));
    let said = place.refuses(&copy);
    assert!(said.contains("another process is making this now"), "{said}");
    resume(&first);
    let output = first.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    place.holds("out", &place.sorted, "the first copy");
}

/// SAFETY finding F29: after a kill in the last step, the same command says that all is done.
#[test]
fn f29_killed_at_its_last_step_the_command_was_finished() {
    for command in [
        &["sort", "--consume", "in", "-o", "out"][..],
        &["materialize", "--consume", "v", "-o", "out"],
    ] {
        let Some(place) = Place::with_steps() else { return };
        if command[0] == "materialize" {
            place.does(&["sort", "in", "--view", "v"]);
        }
        place.interrupted(command, Step::first("rmdir", WORK));
        let output = place.command(command).output().expect("it starts");
        let said = crate::harness::stderr(&output);
        assert!(output.status.success() && said.contains("was finished before"), "{said}");
        assert!(!place.folder.at(WORK).exists(), "{command:?}");
        place.holds("out", &place.sorted, "after the last step");
    }
}
