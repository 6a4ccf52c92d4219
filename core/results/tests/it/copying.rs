//! A view that becomes a file.

use std::fs;
use std::os::unix::fs::symlink;

use merganser_results::ResultsError;
use merganser_results::materialize::CopyError;
use merganser_results::unfinished::WorkError;
use merganser_sort::Silent;

use crate::place::{EndsAt, Place, names_in};

#[test]
fn a_view_is_copied_or_consumed() {
    let place = Place::new();
    let records = place.view("view");
    let copied = place.copy("view", "out", false, &Silent).expect("copied");
    assert_eq!(copied.bytes, records.len() as u64);
    assert!(fs::read(place.at("out")).expect("there") == records);
    assert_eq!(place.names(), ["out", "view"]);
    place.copy("view", "out", true, &Silent).expect("consumed");
    assert!(fs::read(place.at("out")).expect("there") == records);
    assert_eq!(place.names(), ["out"]);
    let gone = place.copy("view", "out", true, &Silent).expect_err("there is no such view");
    assert!(matches!(gone, CopyError::Results(ResultsError::File { .. })), "{gone}");
}

/// The end is asked for at each look in turn, and the same job continues.
#[test]
fn a_copy_that_is_interrupted_continues() {
    let mut begun = 0;
    let place = Place::new();
    let records = place.view("kept");
    for look in 0.. {
        fs::create_dir(place.at("view")).expect("made");
        for name in names_in(&place.at("kept")) {
            let to = place.at("view").join(&name);
            fs::copy(place.at("kept").join(name), to).expect("copied");
        }
        let ended = place.copy("view", "out", true, &EndsAt::look(look));
        if ended.is_ok() {
            assert!(look > 2);
            break;
        }
        begun += u32::from(matches!(ended, Err(CopyError::Begun { .. })));
        place.copy("view", "out", true, &Silent).unwrap_or_else(|e| panic!("{look}: {e}"));
        assert!(fs::read(place.at("out")).expect("there") == records, "{look}");
        assert_eq!(place.names(), ["kept", "out"], "{look}");
        fs::remove_file(place.at("out")).expect("removed");
    }
    assert!(begun > 0, "no copy had begun");
}

#[test]
fn what_would_lose_records_is_refused() {
    let place = Place::new();
    let records = place.view("view");
    let inside = place.copy("view", "view/out", true, &Silent).expect_err("inside");
    assert!(matches!(inside, CopyError::Inside(_)), "{inside}");
    let open = fs::File::open(place.at("view")).expect("opened");
    open.try_lock_shared().expect("locked");
    let busy = place.copy("view", "out", true, &Silent).expect_err("a reader has it");
    assert!(matches!(busy, CopyError::ViewBusy { .. }), "{busy}");
    drop(open);
    let manifest = place.at("view").join("manifest");
    fs::hard_link(&manifest, place.at("link")).expect("linked");
    let linked = place.copy("view", "out", true, &Silent).expect_err("another copy");
    assert!(
        matches!(&linked, CopyError::OtherLinks(file) if *file == fs::canonicalize(&manifest).expect("there") || *file == manifest),
        "{linked}"
    );
    fs::remove_file(place.at("link")).expect("removed");
    // Work of a sort is not this job's.
    place.make_work("out");
    fs::write(place.work("out").join("000000.run"), "records").expect("written");
    let other = place.copy("view", "out", true, &Silent).expect_err("kept");
    assert!(
        matches!(other, CopyError::Results(ResultsError::Work(WorkError::Kept { .. }))),
        "{other}"
    );
    fs::remove_dir_all(place.work("out")).expect("removed");
    // A link as the result is followed; the view keeps every record until then.
    symlink(place.at("file"), place.at("out")).expect("linked");
    place.copy("view", "out", true, &Silent).expect("consumed");
    assert!(fs::read(place.at("file")).expect("there") == records);
}
