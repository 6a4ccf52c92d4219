//! The hidden name of an input.

use std::fs;
use std::io;
use std::path::Path;

use merganser_results::Notice;
use merganser_results::unfinished::{
    ClaimError, WorkError, claim, claim_unlinked, claimed_path, has_claimed, note_of, unclaim_all,
};
use merganser_sort::journal::{CommandNote, FileNote, InputProgress, JournalText, SortJournal};
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use parking_lot::Mutex;

use crate::place::Place;

fn known(path: &Path) -> FileNote {
    note_of(&fs::symlink_metadata(path).expect("there"))
}

fn journal_of(input: &Path, file: FileNote) -> SortJournal {
    let text = |path: &Path| JournalText::from(path.as_os_str());
    let note = CommandNote {
        words: Vec::new(),
        folder: text(Path::new("/")),
        output: text(Path::new("/out")),
        view: false,
        mode: 0o644,
        owner: None,
    };
    let input = InputProgress { path: text(input), file, taken: 0, given_back: 0 };
    SortJournal::new(note, OrderSpec::new(Format::Lines { delimiter: b'\n' }), vec![input])
}

#[test]
fn a_claim_that_is_taken_twice_is_one_claim() {
    let place = Place::new();
    let input = place.file("in", "records");
    let file = known(&input);
    for _ in 0..2 {
        claim(&input, &file).expect("claimed");
        assert_eq!(place.names(), [".in.merganser-consumed"]);
    }
    // A new file with the name is not the input, whose claim stands.
    place.file("in", "a newer file");
    claim(&input, &file).expect("claimed before");
    assert_eq!(fs::read(&input).expect("there"), b"a newer file");
    assert_eq!(fs::read(claimed_path(&input)).expect("there"), b"records");
    assert!(has_claimed(&journal_of(&input, file)));
}

#[test]
fn the_claim_of_another_command_is_left_alone() {
    let place = Place::new();
    let input = place.file("in", "the first");
    claim(&input, &known(&input)).expect("claimed");
    place.file("in", "the second file");
    let refused = claim(&input, &known(&input)).expect_err("the hidden name is taken");
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    let inner = refused.get_ref().and_then(|inner| inner.downcast_ref::<WorkError>());
    assert!(matches!(inner, Some(WorkError::Taken(name)) if *name == claimed_path(&input)));
    assert_eq!(fs::read(&input).expect("there"), b"the second file");
    assert_eq!(fs::read(claimed_path(&input)).expect("there"), b"the first");
}

#[test]
fn another_file_with_the_name_of_the_input_is_not_claimed() {
    let place = Place::new();
    let input = place.file("in", "records");
    let file = known(&input);
    fs::rename(&input, place.at("elsewhere")).expect("moved");
    for newer in [false, true] {
        if newer {
            place.file("in", "newer");
        }
        let refused = claim(&input, &file).expect_err("moved away");
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        let inner = refused.get_ref().and_then(|inner| inner.downcast_ref::<ClaimError>());
        assert!(matches!(inner, Some(ClaimError::Moved(name)) if *name == input));
        assert_eq!(input.exists(), newer);
        assert!(!claimed_path(&input).exists());
    }
}

#[test]
fn an_input_with_another_link_keeps_its_own_name() {
    let place = Place::new();
    let input = place.file("in", "records");
    let file = known(&input);
    fs::hard_link(&input, place.at("link")).expect("linked");
    let refused = claim_unlinked(&input, &file).expect_err("another link");
    let inner = refused.get_ref().and_then(|inner| inner.downcast_ref::<ClaimError>());
    assert!(matches!(inner, Some(ClaimError::OtherLink(name)) if *name == input));
    assert_eq!(place.names(), ["in", "link"]);
    fs::remove_file(place.at("link")).expect("removed");
    claim_unlinked(&input, &file).expect("claimed");
}

#[test]
fn an_input_gets_its_name_back_unless_it_was_changed() {
    let place = Place::new();
    let input = place.file("in", "records");
    let journal = journal_of(&input, known(&input));
    let told = Mutex::new(Vec::new());
    let tell = |notice: &Notice| told.lock().push(notice.clone());
    claim(&input, &journal.inputs[0].file).expect("claimed");
    unclaim_all(&journal, &tell).expect("given back");
    assert_eq!(place.names(), ["in"]);
    // Without a claim there is nothing to do.
    unclaim_all(&journal, &tell).expect("nothing");
    assert!(told.lock().is_empty());
    claim(&input, &journal.inputs[0].file).expect("claimed");
    let hidden = claimed_path(&input);
    fs::write(&hidden, "another length").expect("written");
    unclaim_all(&journal, &tell).expect("kept");
    assert_eq!(told.into_inner(), [Notice::KeepsHiddenName(hidden)]);
    assert_eq!(place.names(), [".in.merganser-consumed"]);
}

#[test]
fn a_new_file_keeps_its_name_when_the_input_would_get_it_back() {
    let place = Place::new();
    let input = place.file("in", "records");
    let journal = journal_of(&input, known(&input));
    claim(&input, &journal.inputs[0].file).expect("claimed");
    place.file("in", "newer");
    unclaim_all(&journal, &|_| {}).expect_err("the name is taken");
    assert_eq!(fs::read(&input).expect("there"), b"newer");
    assert_eq!(fs::read(claimed_path(&input)).expect("there"), b"records");
}
