//! The folder of unfinished work, and a view or files that grow in one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_results::leftover::{LeftBehind, leftovers};
use merganser_results::unfinished::{
    DoomedFolders, NextStep, Target, UnfinishedFiles, UnfinishedView, Verdict, WorkError,
    WorkFolder,
};
use merganser_results::{Notice, ResultSource, ResultsError};
use merganser_sort::journal::JournalText;
use merganser_sort::note::{NotedInput, WorkNote};
use parking_lot::Mutex;

use crate::place::{Place, files_of, names_in, unheard};

/// Folders that would be removed by a signal now.
#[derive(Clone, Default)]
struct Doomed(Arc<Mutex<Vec<PathBuf>>>);

impl DoomedFolders for Doomed {
    fn add(&self, folder: &Path) {
        self.0.lock().push(folder.to_owned());
    }

    fn remove(&self, folder: &Path) {
        self.0.lock().retain(|known| known != folder);
    }
}

fn open(place: &Place) -> Result<WorkFolder, ResultsError> {
    WorkFolder::open(&Target::new(&place.at("out")).expect("a place"))
}

/// The refusal to clear a folder with these files.
fn kept(files: &[(&str, &str)]) -> WorkError {
    let place = Place::new();
    place.make_work("out");
    for (name, content) in files {
        fs::write(place.work("out").join(name), content).expect("written");
    }
    let folder = open(&place).expect("opened");
    let refused = folder.clear(&|notice| panic!("{notice:?}")).expect_err("kept");
    drop(folder);
    assert_eq!(names_in(&place.work("out")).len(), files.len());
    match refused {
        ResultsError::Work(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn one_process_works_in_a_folder() {
    let place = Place::new();
    let first = open(&place).expect("opened");
    let Err(ResultsError::Work(WorkError::Busy { target, .. })) = open(&place) else {
        panic!("it is locked")
    };
    assert_eq!(target, place.at("out"));
    first.close().expect("closed");
    assert!(place.names().is_empty());
    let again = open(&place).expect("opened");
    assert!(!again.was_finished().expect("listed") && !again.has_leftovers().expect("listed"));
}

#[test]
fn the_last_step_is_known_later() {
    let place = Place::new();
    let folder = open(&place).expect("opened");
    folder.mark_finished().expect("marked");
    // The process ends before it removes the folder.
    let mode = fs::metadata(place.work("out")).expect("there").permissions();
    drop(folder);
    place.make_work("out");
    fs::set_permissions(place.work("out"), mode).expect("set");
    let again = open(&place).expect("opened");
    assert!(again.was_finished().expect("listed"));
}

#[test]
fn a_folder_that_others_prepared_is_refused() {
    let place = Place::new();
    place.make_work("out");
    fs::set_permissions(place.work("out"), fs::Permissions::from_mode(0o777)).expect("set");
    let refused = open(&place).err().expect("refused");
    assert!(matches!(refused, ResultsError::Work(WorkError::Writable(_))), "{refused}");
    fs::remove_dir(place.work("out")).expect("removed");
    symlink(place.folder(), place.work("out")).expect("linked");
    let refused = open(&place).err().expect("refused");
    assert!(matches!(refused, ResultsError::Work(WorkError::NoFolder(_))), "{refused}");
}

#[test]
fn records_that_nothing_speaks_for_are_kept() {
    let verdict = |files: &[(&str, &str)]| match kept(files) {
        WorkError::Kept { verdict, trouble, .. } => (verdict, trouble.is_some()),
        other => panic!("{other}"),
    };
    let orphaned = Verdict::Orphaned { whole_view: false };
    assert_eq!(
        verdict(&[("000000.run", "records")]),
        (Verdict::Unexplained { whole_view: false }, false)
    );
    for damaged in ["sort-journal", "work-note", "resume", "pipeline-journal"] {
        let found = verdict(&[("000000.run", "records"), (damaged, "no such thing")]);
        assert_eq!(found, (orphaned, true), "{damaged}");
    }
    let WorkError::Stranger { name, .. } = kept(&[("mine.txt", "of a user")]) else {
        panic!("a stranger")
    };
    assert_eq!(name, "mine.txt");
    let with_records = kept(&[("mine.txt", "of a user"), ("000000.run", "records")]);
    assert!(matches!(with_records, WorkError::Stranger { .. }), "{with_records}");
}

#[test]
fn what_a_killed_view_left_is_cleared_and_told() {
    let place = Place::new();
    let folder = open(&place).expect("opened");
    let input = place.file("in", "records");
    let input = NotedInput { path: JournalText::from(input.as_os_str()), file: None };
    let output = JournalText::from(place.at("out").as_os_str());
    WorkNote::new(false, output, Some(vec![input])).write(&files_of(folder.path())).expect("noted");
    fs::write(folder.path().join("000000.run"), "records").expect("written");
    let told = Mutex::new(Vec::new());
    folder.clear(&|notice| told.lock().push(notice.clone())).expect("cleared");
    assert_eq!(told.into_inner(), [Notice::Cleared(place.work("out"))]);
    assert!(names_in(&place.work("out")).is_empty());
    // An empty folder is nothing to tell of.
    folder.clear(&|notice| panic!("{notice:?}")).expect("empty");
}

#[test]
fn a_view_that_is_dropped_leaves_nothing() {
    let place = Place::new();
    let input = place.file("in", "records");
    let doomed = Doomed::default();
    let sources = [ResultSource::Stream("standard input"), ResultSource::File(&input)];
    let create =
        || UnfinishedView::create(&place.at("view"), &sources, Box::new(doomed.clone()), &unheard);
    let view = create().expect("begun");
    assert_eq!(*doomed.0.lock(), [view.path()]);
    let note = WorkNote::read(&files_of(view.path())).expect("read").expect("a note");
    let inputs = note.inputs.expect("noted");
    assert!(!note.consumes && inputs[0].file.is_none() && inputs[1].file.is_some());
    assert_eq!(inputs[0].path, JournalText(b"standard input".to_vec()));
    drop(view);
    assert!(doomed.0.lock().is_empty());
    assert_eq!(place.names(), ["in"]);
    // A killed process drops nothing: the next one clears its folder.
    let view = create().expect("begun");
    fs::write(view.path().join("000000.run"), "records").expect("written");
    view.publish().expect("published");
    assert!(doomed.0.lock().is_empty());
    assert_eq!(names_in(&place.at("view")), ["000000.run"]);
    let refused = create().err().expect("it is there");
    assert!(matches!(refused, ResultsError::Work(WorkError::ViewExists(_))), "{refused}");
}

#[test]
fn a_view_does_not_take_a_name_that_a_stranger_took() {
    let place = Place::new();
    let doomed = Doomed::default();
    let view = UnfinishedView::create(&place.at("view"), &[], Box::new(doomed.clone()), &unheard);
    let view = view.expect("begun");
    place.file("view", "a stranger");
    let refused = view.publish().expect_err("taken");
    assert!(matches!(refused, ResultsError::Work(WorkError::Taken(_))), "{refused}");
    assert_eq!(fs::read(place.at("view")).expect("there"), b"a stranger");
    assert_eq!(place.names(), ["view"]);
    assert!(doomed.0.lock().is_empty());
}

/// Begins the folder of files `out`, made of the file `in`, with a file in a folder.
fn begin_files(place: &Place, doomed: &Doomed) -> Result<UnfinishedFiles, ResultsError> {
    let input = place.at("in");
    let sources = [ResultSource::File(&input)];
    let files =
        UnfinishedFiles::create(&place.at("out"), &sources, Box::new(doomed.clone()), &unheard)?;
    fs::create_dir_all(files.path().join("a=1/b=2")).expect("made");
    fs::write(files.path().join("a=1/b=2/part-00000"), "rows").expect("written");
    Ok(files)
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let place = Place::new();
    let doomed = Doomed::default();
    place.file("in", "rows");
    let begun = begin_files(&place, &doomed).expect("begun");
    assert_eq!(*doomed.0.lock(), [place.work("out")]);
    assert_eq!(place.names(), [".out.unfinished", "in"]);
    drop(begun);
    assert!(doomed.0.lock().is_empty());
    assert_eq!(place.names(), ["in"]);
    // An empty folder may have the name.
    for is_there in [false, true] {
        if is_there {
            fs::create_dir(place.at("out")).expect("made");
        }
        begin_files(&place, &doomed).expect("begun").publish().expect("published");
        assert!(doomed.0.lock().is_empty());
        assert_eq!(place.names(), ["in", "out"]);
        assert_eq!(names_in(&place.at("out")), ["a=1"]);
        let file = place.at("out/a=1/b=2/part-00000");
        assert_eq!(fs::read(&file).expect("there"), b"rows");
        let refused = begin_files(&place, &doomed).err().expect("it is there");
        assert!(matches!(refused, ResultsError::Work(WorkError::NotFree(_))), "{refused}");
        fs::remove_dir_all(place.at("out")).expect("removed");
    }
    // Nothing else may have it, nor a link to an empty folder.
    fs::create_dir(place.at("empty")).expect("made");
    for make in [
        |place: &Place| drop(place.file("out", "of a user")),
        |place: &Place| symlink("empty", place.at("out")).expect("linked"),
    ] {
        make(&place);
        let refused = begin_files(&place, &doomed).err().expect("taken");
        assert!(matches!(refused, ResultsError::Work(WorkError::NotFree(_))), "{refused}");
        assert_eq!(place.names(), ["empty", "in", "out"]);
        fs::remove_file(place.at("out")).expect("removed");
    }
}

#[test]
fn files_do_not_take_a_name_that_a_stranger_took() {
    for is_file in [false, true] {
        let place = Place::new();
        let doomed = Doomed::default();
        place.file("in", "rows");
        let files = begin_files(&place, &doomed).expect("begun");
        let kept = if is_file { "out" } else { "out/kept" };
        if !is_file {
            fs::create_dir(place.at("out")).expect("made");
        }
        place.file(kept, "a stranger");
        let refused = files.publish().expect_err("taken");
        assert!(matches!(refused, ResultsError::Work(WorkError::Taken(_))), "{refused}");
        assert_eq!(fs::read(place.at(kept)).expect("there"), b"a stranger");
        assert_eq!(place.names(), ["in", "out"]);
        assert!(doomed.0.lock().is_empty());
    }
}

#[test]
fn files_of_a_killed_command_are_named_and_removed() {
    let place = Place::new();
    let doomed = Doomed::default();
    place.file("in", "rows");
    let left_by_a_kill = || {
        let files = begin_files(&place, &doomed).expect("begun");
        // A killed process drops nothing.
        fs::rename(place.work("out"), place.at("aside")).expect("renamed");
        drop(files);
        fs::rename(place.at("aside"), place.work("out")).expect("renamed");
    };
    left_by_a_kill();
    let found = leftovers(place.folder()).expect("read").pop().expect("a leftover");
    let LeftBehind::Folder { verdict, files: true, .. } = found.found else { panic!("{found:?}") };
    assert_eq!(verdict, Verdict::Copies { inputs_whole: true });
    assert_eq!((verdict.next_step(), found.only_copy), (NextStep::Remove, false));
    assert!(found.bytes >= 4096, "{} bytes of files and the note", found.bytes);
    let told = Mutex::new(Vec::new());
    let input = place.at("in");
    let sources = [ResultSource::File(&input)];
    let tell = |notice: &Notice| told.lock().push(format!("{notice:?}"));
    let again =
        UnfinishedFiles::create(&place.at("out"), &sources, Box::new(doomed.clone()), &tell);
    let again = again.expect("begun");
    assert!(names_in(&again.path()).is_empty());
    drop(again);
    let told = told.into_inner();
    assert!(told.len() == 1 && told[0].starts_with("Cleared"), "{told:?}");
    // Without its note, nothing says that the rows are elsewhere.
    left_by_a_kill();
    fs::remove_file(place.work("out").join("work-note")).expect("removed");
    let refused = begin_files(&place, &doomed).err().expect("kept");
    assert!(matches!(refused, ResultsError::Work(WorkError::Kept { .. })), "{refused}");
    assert!(place.work("out").join("files/a=1/b=2/part-00000").exists());
}
