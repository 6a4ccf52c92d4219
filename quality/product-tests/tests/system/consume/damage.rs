//! The files of an interrupted command are damaged before the next command continues.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{HIDDEN, Place, SORT, WORK, states};
use crate::preload::Step;

/// Changes one bit of a file; the same call again undoes it.
fn flip(path: &PathBuf, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).expect("there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("reads");
    file.write_all_at(&[byte[0] ^ 4], at).expect("writes");
}

/// The files in the folder of unfinished work that hold records.
fn with_records(place: &Place, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.folder.at(folder)).expect("lists").map(|e| e.expect("lists"));
    let full = entries.filter(|entry| entry.metadata().expect("there").len() > 0);
    let paths = full.map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| {
            path.extension().is_some_and(|kind| kind == "run") || path.ends_with("partial")
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn a_damaged_run_or_copy_is_noticed_before_more_is_removed() {
    for (state, step) in states() {
        if state == "delivered" {
            continue;
        }
        let Some(place) = Place::with_steps() else { return };
        place.interrupted(&SORT, step);
        let found = with_records(&place, WORK);
        let is_copying = found.iter().any(|path| path.ends_with("partial"));
        // Of a run that is being copied a part is given back already.
        let checked = found.iter().filter(|path| !is_copying || path.ends_with("partial"));
        let mut count = 0;
        for path in checked {
            let size = fs::metadata(path).expect("there").len();
            // Records begin behind the header of a run; a small one has zeros in its middle.
            for at in [4100, size / 2].into_iter().take(if size > 1 << 20 { 2 } else { 1 }) {
                let at = if is_copying { at / 4 } else { at };
                flip(path, at);
                let said = place.refuses(&SORT);
                assert!(said.contains("damaged at byte"), "{state}: {said}");
                flip(path, at);
                count += 1;
            }
        }
        assert!(count > 0, "{state}");
        place.ends(&SORT, "out", state);
    }
}

#[test]
fn a_damaged_view_does_not_get_its_name() {
    let command = ["sort", "--consume", "in", "--view", "out"];
    for state in ["sorting", "sorted", "removed"] {
        let Some(place) = Place::with_steps() else { return };
        let at_end = Step { of: Some("rename"), name: Some("out"), at: 1 };
        let step = states().into_iter().find(|(name, _)| *name == state).map(|(_, step)| step);
        let step = if state == "removed" { at_end } else { step.expect("listed") };
        place.interrupted(&command, step);
        let path = with_records(&place, WORK).remove(0);
        flip(&path, 5000);
        let said = place.refuses(&command);
        assert!(said.contains("damaged at byte"), "{state}: {said}");
        assert!(!place.folder.at("out").exists(), "{state}: a damaged view has its name");
        flip(&path, 5000);
        place.ends(&command, "out", state);
    }
}

#[test]
fn a_copy_of_a_whole_view_starts_again_when_its_beginning_is_damaged() {
    let Some(place) = Place::with_steps() else { return };
    place.does(&["sort", "in", "--view", "v"]);
    let command = ["materialize", "v", "-o", "out"];
    place.interrupted(&command, Step { of: Some("rename"), name: Some("out"), at: 1 });
    let path = with_records(&place, WORK).remove(0);
    assert!(path.ends_with("partial"));
    flip(&path, 5000);
    place.does(&command);
    assert!(place.read("out") == place.sorted, "the damaged copy was published");
}

#[test]
fn a_folder_that_cannot_be_removed_is_an_error() {
    for command in [&SORT[..], &["materialize", "v", "-o", "out"]] {
        let Some(place) = Place::with_steps() else { return };
        place.does(&["sort", "in", "--view", "v"]);
        let step = Step { of: Some("rmdir"), name: Some(WORK), at: 1 };
        let said = place.fails_at(command, step);
        assert!(said.contains("the result is complete"), "{command:?}: {said}");
        assert!(said.contains(WORK), "{command:?}: {said}");
        assert!(place.read("out") == place.sorted, "{command:?}: the result is not complete");
    }
}

#[test]
fn an_input_that_cannot_be_removed_is_an_error() {
    let Some(place) = Place::with_steps() else { return };
    let step = Step { of: Some("unlink"), name: Some(HIDDEN), at: 1 };
    let said = place.fails_at(&SORT, step);
    assert!(said.contains("in: "), "{said}");
    place.ends(&SORT, "out", "after the input could not be removed");
}

#[test]
fn a_changed_input_is_noticed_when_the_journal_knows_its_time() {
    let Some(place) = Place::with_steps() else { return };
    // The journal is written first, then before and after bytes are given back.
    place.interrupted(&SORT, Step { of: Some("rename"), name: Some("sort-journal"), at: 4 });
    let hidden = place.folder.at(HIDDEN);
    let found = fs::metadata(&hidden).expect("claimed");
    flip(&hidden, found.len() - 10);
    let said = place.refuses(&SORT);
    assert!(said.contains("another program changed this input"), "{said}");
    flip(&hidden, found.len() - 10);
    let file = fs::File::options().write(true).open(&hidden).expect("there");
    file.set_modified(found.modified().expect("known")).expect("sets");
    place.ends(&SORT, "out", "after the change was undone");
}

#[test]
fn a_missing_input_can_be_restored_from_a_copy() {
    let Some(place) = Place::with_steps() else { return };
    // Killed after bytes were given back: the journal has the time before that.
    place.interrupted(&SORT, Step { of: Some("rename"), name: Some("sort-journal"), at: 3 });
    let hidden = place.folder.at(HIDDEN);
    fs::rename(&hidden, place.folder.at("moved")).expect("moves");
    let said = place.refuses(&SORT);
    assert!(said.contains("is gone") && said.contains("touch -d @"), "{said}");
    let copied = fs::copy(place.folder.at("moved"), &hidden).expect("copies");
    assert_eq!(copied, place.content.len() as u64);
    fs::remove_file(place.folder.at("moved")).expect("removes");
    let touch = said[said.find("touch -d @").expect("said")..].split(';').next().expect("one");
    let mut shell = std::process::Command::new("sh");
    assert!(
        shell
            .args(["-c", touch])
            .current_dir(place.folder.path())
            .status()
            .expect("runs")
            .success()
    );
    place.ends(&SORT, "out", "after the input was restored");
}

#[test]
fn a_time_that_a_power_cut_lost_is_no_change() {
    let Some(place) = Place::with_steps() else { return };
    place.interrupted(&SORT, Step { of: Some("rename"), name: Some("sort-journal"), at: 4 });
    let file = fs::File::options().write(true).open(place.folder.at(HIDDEN));
    let file = file.expect("claimed");
    let modified = file.metadata().and_then(|found| found.modified()).expect("known");
    file.set_modified(modified - std::time::Duration::from_secs(1)).expect("sets");
    place.ends(&SORT, "out", "with an earlier time");
}
