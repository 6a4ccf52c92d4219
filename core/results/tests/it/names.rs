//! A complete file gets its name, and takes it from no other program's file.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use merganser_results::ResultsError;
use merganser_results::unfinished::{
    ResultAttributes, SpecialKind, Target, TargetError, WorkError, note_of, publish,
};

use crate::place::Place;

fn error_of(refused: &io::Error) -> Option<&WorkError> {
    refused.get_ref()?.downcast_ref()
}

fn target_of(path: &Path) -> Target {
    Target::new(path).expect("a place")
}

#[test]
fn a_free_name_is_taken_with_the_attributes() {
    let place = Place::new();
    let partial = place.file("partial", "result");
    let attributes = ResultAttributes { mode: 0o640, owner: None };
    publish(&partial, &target_of(&place.at("out")), None, attributes).expect("published");
    assert_eq!(fs::read(place.at("out")).expect("there"), b"result");
    let mode = fs::metadata(place.at("out")).expect("there").permissions().mode();
    assert_eq!((mode & 0o777, place.names()), (0o640, vec!["out".to_owned()]));
}

#[test]
fn only_the_file_that_was_there_is_replaced() {
    let place = Place::new();
    let out = place.file("out", "old");
    let old = note_of(&fs::symlink_metadata(&out).expect("there"));
    let target = target_of(&out);
    // Another file takes the name; a new one could get the number of one that is gone.
    let stranger = place.file("stranger", "of another program");
    fs::rename(&out, place.at("old")).expect("renamed");
    fs::rename(&stranger, &out).expect("renamed");
    let partial = place.file("partial", "result");
    for replaces in [None, Some(&old)] {
        let refused = publish(&partial, &target, replaces, ResultAttributes::of_new());
        let refused = refused.expect_err("taken");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(matches!(error_of(&refused), Some(WorkError::Taken(name)) if *name == out));
        assert_eq!(fs::read(&out).expect("there"), b"of another program");
        assert_eq!(fs::read(&partial).expect("there"), b"result");
    }
    // The file itself is replaced.
    fs::rename(place.at("old"), &out).expect("renamed");
    publish(&partial, &target, Some(&old), ResultAttributes::of_new()).expect("published");
    assert_eq!(fs::read(&out).expect("there"), b"result");
}

#[test]
fn a_link_that_took_the_name_is_not_followed() {
    let place = Place::new();
    let (out, other) = (place.at("out"), place.file("other", "kept"));
    let target = target_of(&out);
    let partial = place.file("partial", "result");
    symlink(&other, &out).expect("linked");
    publish(&partial, &target, None, ResultAttributes::of_new()).expect_err("taken");
    assert_eq!(fs::read(&other).expect("there"), b"kept");
    fs::remove_file(&out).expect("removed");
    fs::remove_file(&partial).expect("removed");
    symlink(&other, &partial).expect("linked");
    publish(&partial, &target, None, ResultAttributes::of_new()).expect_err("no file of ours");
    assert!(!out.exists());
}

#[test]
fn a_name_that_no_file_can_get_is_refused_before_any_work() {
    let place = Place::new();
    let refused = |name: &str| match target_of(&place.at(name)).check_file() {
        Err(ResultsError::Target(error)) => error,
        other => panic!("{name}: {other:?}"),
    };
    fs::create_dir(place.at("folder")).expect("made");
    assert!(matches!(refused("folder"), TargetError::Directory(_)));
    let _listener = UnixListener::bind(place.at("socket")).expect("bound");
    assert!(matches!(refused("socket"), TargetError::Special { kind: SpecialKind::Socket, .. }));
    let long = "x".repeat(250);
    let wanted = format!(".{long}.unfinished").len() - 255;
    assert!(
        matches!(refused(&long), TargetError::LongName { over_bytes, .. } if over_bytes == wanted)
    );
    assert!(matches!(
        Target::new(Path::new("/")),
        Err(ResultsError::Target(TargetError::NoName(_)))
    ));
    assert!(Target::new(&place.at("no/such")).is_err());
    // A link is followed once, so a change of the link later does not matter.
    let file = place.file("file", "old");
    symlink(&file, place.at("link")).expect("linked");
    let target = target_of(&place.at("link"));
    assert_eq!(target.path(), fs::canonicalize(&file).expect("there"));
    assert!(target.check_file().expect("free").is_some());
}
