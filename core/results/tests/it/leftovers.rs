//! What `recover` reads: each kind of leftover, and damaged ones.

use std::fs;

use merganser_results::leftover::{LeftBehind, Leftover, leftovers};
use merganser_results::unfinished::{NextStep, Verdict, claimed_path};
use merganser_sort::Silent;
use merganser_sort::journal::SortPhase;
use merganser_storage::file::unpublished_names;

use crate::place::{Place, names_in};

/// The only leftover in the folder of `place`.
fn only(place: &Place) -> Leftover {
    let mut found = leftovers(place.folder()).expect("read");
    let left = found.pop().expect("a leftover");
    assert!(found.is_empty(), "{found:?}");
    left
}

/// A folder of unfinished work with these files.
fn folder_of(files: &[(&str, &str)]) -> Leftover {
    let place = Place::new();
    place.make_work("out");
    for (name, content) in files {
        fs::write(place.work("out").join(name), content).expect("written");
    }
    let left = only(&place);
    assert_eq!(names_in(&place.work("out")).len(), files.len(), "it only reads");
    left
}

/// The verdict of a folder without a journal, and whether the reason is known.
fn verdict_of(left: &Leftover) -> (Verdict, bool) {
    match &left.found {
        LeftBehind::Folder { verdict, trouble, .. } => (*verdict, trouble.is_some()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_place_without_leftovers_has_none() {
    let place = Place::new();
    place.view("view");
    place.file("file", "of a user");
    assert!(leftovers(place.folder()).expect("read").is_empty());
    assert!(leftovers(&place.at("file")).expect("read").is_empty());
    assert!(leftovers(&place.at("view")).expect("read").is_empty());
    assert!(leftovers(&place.at("no/such")).is_err());
}

#[test]
fn a_sort_and_its_input_are_found_from_any_name() {
    let place = Place::new();
    let records = place.many_records();
    let hidden = claimed_path(&place.at("in"));
    place.file("in", &records);
    place.until_there_is(&hidden, |end| {
        place.consume("in", "out", false, end).expect_err("interrupted");
    });
    let found = leftovers(place.folder()).expect("read");
    let [input, sort] = &found[..] else { panic!("{found:?}") };
    assert!(input.only_copy && sort.only_copy && !sort.in_use);
    let LeftBehind::Input { input: own, sorts } = &input.found else { panic!("{input:?}") };
    assert_eq!((own, sorts.len()), (&place.at("in"), 1));
    let LeftBehind::Sort { journal, resume: None, in_place: true, name_taken: false } = &sort.found
    else {
        panic!("{sort:?}")
    };
    assert_eq!(journal.phase, SortPhase::Sorting);
    assert!(journal.inputs[0].taken > 0);
    for name in [place.at("out"), place.work("out")] {
        let found = leftovers(&name).expect("read");
        assert!(matches!(&found[..], [left] if left.path == place.work("out")), "{found:?}");
    }
    // Another file takes the name of the result.
    place.file("out", "a stranger");
    let found = leftovers(&place.at("out")).expect("read");
    assert!(matches!(found[0].found, LeftBehind::Sort { name_taken: true, .. }), "{found:?}");
    // The folder is moved away from its place: no journal next to the input names it any more.
    fs::create_dir(place.at("elsewhere")).expect("made");
    let moved = place.at("elsewhere").join(".out.unfinished");
    fs::rename(place.work("out"), &moved).expect("moved");
    let found = leftovers(&place.at("elsewhere")).expect("read");
    assert!(matches!(found[0].found, LeftBehind::Sort { in_place: false, .. }), "{found:?}");
    let found = leftovers(&hidden).expect("read");
    assert!(
        matches!(&found[..], [Leftover { found: LeftBehind::Input { sorts, .. }, .. }] if sorts.is_empty()),
        "{found:?}"
    );
    // With a damaged journal, the note still says that the inputs lose their records.
    fs::rename(&moved, place.work("out")).expect("moved back");
    for (damage, trouble) in [(true, true), (false, false)] {
        let journal = place.work("out").join("sort-journal");
        match damage {
            true => fs::write(&journal, "damage").expect("written"),
            false => fs::remove_file(&journal).expect("removed"),
        }
        let left = &leftovers(&place.work("out")).expect("read")[0];
        let (verdict, has_trouble) = verdict_of(left);
        assert_eq!(verdict, Verdict::Orphaned { whole_view: false });
        assert_eq!(verdict.next_step(), NextStep::Keep);
        assert!(left.only_copy && has_trouble == trouble, "{left:?}");
    }
}

#[test]
fn a_copy_and_its_view_are_found() {
    let place = Place::new();
    place.view("view");
    let marker = place.at("view").join("consumed-into");
    // A copy that fails before a byte was given back removes the marker again.
    place.until_there_is(&marker, |end| {
        place.copy("view", "out", true, end).expect_err("interrupted");
    });
    let found = leftovers(place.folder()).expect("read");
    let [copy, view] = &found[..] else { panic!("{found:?}") };
    assert!(copy.only_copy && view.only_copy);
    let LeftBehind::Copy { resume, in_place: true, name_taken: false } = &copy.found else {
        panic!("{copy:?}")
    };
    assert!(resume.consume && !resume.complete && resume.written > 0);
    let LeftBehind::ConsumedView { output, is_copied: true, is_own: true, .. } = &view.found else {
        panic!("{view:?}")
    };
    assert_eq!(*output, fs::canonicalize(place.folder()).expect("there").join("out"));
    // Without its other half, or with a damaged one, the marker proves nothing.
    fs::write(place.work("out").join("resume"), "damage").expect("written");
    let found = leftovers(place.folder()).expect("read");
    assert_eq!(verdict_of(&found[0]), (Verdict::Orphaned { whole_view: false }, true));
    assert!(matches!(found[1].found, LeftBehind::ConsumedView { is_copied: false, .. }));
}

#[test]
fn a_process_that_works_there_is_seen() {
    let place = Place::new();
    place.make_work("out");
    assert!(!only(&place).in_use);
    let lock = fs::File::open(place.work("out")).expect("opened");
    lock.try_lock().expect("locked");
    assert!(only(&place).in_use);
}

#[test]
fn folders_without_a_journal_are_judged() {
    let empty = folder_of(&[]);
    assert_eq!((verdict_of(&empty), empty.only_copy), ((Verdict::Empty, false), false));
    let unexplained = folder_of(&[("000000.run", "records")]);
    let verdict = Verdict::Unexplained { whole_view: false };
    assert_eq!((verdict_of(&unexplained), unexplained.only_copy), ((verdict, false), true));
    let foreign = folder_of(&[("mine.txt", "of a user")]);
    let LeftBehind::Folder { verdict: Verdict::Foreign, stranger: Some(name), .. } = &foreign.found
    else {
        panic!("{foreign:?}")
    };
    assert!(name == "mine.txt" && !foreign.only_copy);
    for damaged in ["sort-journal", "work-note", "resume", "pipeline-journal"] {
        let left = folder_of(&[("000000.run", "records"), (damaged, "no such thing")]);
        let verdict = Verdict::Orphaned { whole_view: false };
        assert_eq!((verdict_of(&left), left.only_copy), ((verdict, true), true), "{damaged}");
    }
}

#[test]
fn a_whole_view_without_a_journal_can_be_copied_to_a_free_name() {
    let place = Place::new();
    place.view("out");
    fs::rename(place.at("out"), place.work("out")).expect("renamed");
    fs::set_permissions(place.work("out"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("set");
    let copy_to = |place: &Place| match only(place).found {
        LeftBehind::Folder {
            verdict: Verdict::Unexplained { whole_view: true }, copy_to, ..
        } => copy_to,
        other => panic!("{other:?}"),
    };
    assert_eq!(copy_to(&place), Some(place.at("out.recovered")));
    place.file("out.recovered", "of a user");
    assert_eq!(copy_to(&place), None);
}

#[test]
fn what_is_no_folder_or_not_ours_can_not_be_read() {
    let place = Place::new();
    place.file(".out.unfinished", "a file");
    assert!(matches!(only(&place).found, LeftBehind::Unreadable(_)));
    fs::remove_file(place.work("out")).expect("removed");
    std::os::unix::fs::symlink(place.folder(), place.work("out")).expect("linked");
    assert!(matches!(only(&place).found, LeftBehind::Unreadable(_)));
}

#[test]
fn a_view_that_still_has_its_journal_is_whole() {
    let place = Place::new();
    let records = place.many_records();
    place.file("in", &records);
    let journal = place.at("out").join("sort-journal");
    // The last step removes the journal. It is kept aside, and put back.
    let kept = place.at("kept");
    place.until_there_is(&claimed_path(&place.at("in")), |end| {
        place.consume("in", "out", true, end).expect_err("interrupted");
    });
    fs::copy(place.work("out").join("sort-journal"), &kept).expect("kept");
    place.consume("in", "out", true, &Silent).expect("a view");
    assert!(leftovers(place.folder()).expect("read").is_empty());
    fs::copy(&kept, &journal).expect("put back");
    let left = only(&place);
    let LeftBehind::SortedView { is_its: true, is_own: true, journal: read } = &left.found else {
        panic!("{left:?}")
    };
    assert!(!left.only_copy && read.command.view);
    // Under another name it is not the view that the journal says.
    fs::rename(place.at("out"), place.at("other")).expect("renamed");
    assert!(matches!(only(&place).found, LeftBehind::SortedView { is_its: false, .. }));
    // Nothing says what a damaged journal of a view is, and a view without a journal is whole.
    fs::write(place.at("other").join("sort-journal"), "damage").expect("written");
    assert!(leftovers(place.folder()).expect("read").is_empty());
}

#[test]
fn a_result_without_its_name_is_found() {
    let place = Place::new();
    let name = unpublished_names("out".as_ref()).next().expect("a name");
    let hidden = place.folder().join(name);
    fs::write(&hidden, "perhaps not whole").expect("written");
    let left = only(&place);
    assert!(left.only_copy && matches!(left.found, LeftBehind::Unpublished), "{left:?}");
    fs::hard_link(&hidden, place.at("out")).expect("linked");
    let left = only(&place);
    assert!(!left.only_copy && matches!(left.found, LeftBehind::SecondName), "{left:?}");
}
