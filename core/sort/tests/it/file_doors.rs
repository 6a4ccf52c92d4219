//! Files in, files and views out: whole or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use merganser_sort::files::{UnfinishedView, open_view, sort_file, sort_file_to_view};
use merganser_sort::key::OrderSpec;
use merganser_sort::note::{NOTE_NAME, WorkNote};
use merganser_sort::record::Format;
use merganser_sort::view::MANIFEST_NAME;
use merganser_sort::{Error, SortOptions};
use merganser_storage::file::FileDirectory;
use merganser_storage::{Directory, StorageExt};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("listed");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn options() -> SortOptions {
    SortOptions::default().memory(8 << 20).threads(2)
}

/// Lines of 9 digits in no order: more than fits into the memory of [`options`].
fn many_lines() -> Vec<u8> {
    (0..2_000_000_u32).flat_map(|n| format!("{:010}\n", n.reverse_bits()).into_bytes()).collect()
}

#[test]
fn a_file_is_sorted_into_itself_and_keeps_its_mode() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("lines");
    fs::write(&path, many_lines()).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
    let report = sort_file(
        &path,
        &path,
        &options().temp(vec![FileDirectory::open(place.path()).expect("opened")]),
    );
    assert!(report.expect("sorted").runs > 1, "it doesn't fit into the memory");
    let sorted = fs::read(&path).expect("read");
    assert!(sorted.chunks(11).is_sorted() && sorted.len() == many_lines().len());
    assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o640);
    assert_eq!(names(place.path()), ["lines"]);
}

#[test]
fn a_compressed_file_is_sorted_by_its_content() {
    let place = tempfile::tempdir().expect("a folder");
    let (path, output) = (place.path().join("fruit.gz"), place.path().join("fruit"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"pear\nfig\n").expect("packed");
    fs::write(&path, packed.finish().expect("packed")).expect("written");
    sort_file(&path, &output, &options()).expect("sorted");
    assert_eq!(fs::read(&output).expect("read"), b"fig\npear\n");
}

#[test]
fn a_sort_that_fails_leaves_the_old_file_and_nothing_else() {
    let place = tempfile::tempdir().expect("a folder");
    let (path, output) = (place.path().join("lines"), place.path().join("sorted"));
    fs::write(&path, many_lines()).expect("written");
    fs::write(&output, "old").expect("written");
    let failed = sort_file(&path, &output, &options().temp(Vec::new()));
    assert!(matches!(failed, Err(Error::NoTemp)), "{failed:?}");
    let missing = sort_file(place.path().join("no such"), &output, &options());
    let sentence = missing.expect_err("there is no input").to_string();
    assert!(sentence.contains("no such") && sentence.contains("No such file"), "{sentence}");
    assert_eq!(fs::read_to_string(&output).expect("read"), "old");
    let onto_folder = sort_file(&path, place.path(), &options()).expect_err("it is a folder");
    assert!(
        onto_folder.to_string().contains("is a directory, not a regular file"),
        "{onto_folder}"
    );

    let view = place.path().join("v.view");
    let bad = SortOptions::new(OrderSpec::new(Format::Fixed { bytes: 7 })).memory(8 << 20);
    let failed = sort_file_to_view(&path, &view, &bad);
    assert!(matches!(failed, Err(Error::LastRecord { .. })), "{failed:?}");
    assert_eq!(names(place.path()), ["lines", "sorted"]);
}

#[test]
fn a_view_appears_whole_and_replaces_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let (path, folder) = (place.path().join("lines"), place.path().join("v.view"));
    fs::write(&path, many_lines()).expect("written");
    sort_file_to_view(&path, &folder, &options()).expect("sorted");
    assert_eq!(names(place.path()), ["lines", "v.view"]);
    assert!(!names(&folder).contains(&NOTE_NAME.to_owned()), "{:?}", names(&folder));
    let view = open_view(&folder, &options().budget, 2).expect("opened");
    let first = view.read_vec(0, 22).expect("read");
    assert_eq!(first, b"0000000000\n0000002048\n");
    let range = view.range_of_keys(Some(b"0000002048"), Some(b"0000002049")).expect("found");
    assert_eq!(range, 11..22);
    assert_eq!(view.range_of_keys(None, None).expect("all"), 0..22_000_000);

    let again = sort_file_to_view(&path, &folder, &options()).expect_err("it is there");
    let sentence = again.to_string();
    assert!(matches!(again, Error::ViewExists { .. }), "{again:?}");
    assert!(sentence.contains("v.view: exists already"), "{sentence}");
    let onto_file = sort_file_to_view(&path, &path, &options());
    assert!(matches!(onto_file, Err(Error::ViewExists { .. })), "{onto_file:?}");
    let nameless = sort_file_to_view(&path, "/", &options());
    assert!(matches!(nameless, Err(Error::ViewExists { .. })), "{nameless:?}");
}

#[test]
fn a_name_that_is_taken_meanwhile_stays_with_its_new_owner() {
    let place = tempfile::tempdir().expect("a folder");
    let (path, folder) = (place.path().join("lines"), place.path().join("v.view"));
    fs::write(&path, "b\na\n").expect("written");
    let view = UnfinishedView::create(&folder, &[&path]).expect("begun");
    let busy = UnfinishedView::create(&folder, &[&path]);
    assert!(matches!(busy, Err(Error::Unfinished { .. })), "two processes make it");
    fs::write(&folder, "other").expect("written");
    let taken = view.publish();
    assert!(matches!(taken, Err(Error::ViewExists { .. })), "{taken:?}");
    assert_eq!(fs::read_to_string(&folder).expect("read"), "other");
    assert_eq!(names(place.path()), ["lines", "v.view"]);
}

/// What a killed process leaves is removed if its note says that the inputs have all records, and refused otherwise.
#[test]
fn only_leftovers_of_copies_are_removed() {
    let place = tempfile::tempdir().expect("a folder");
    let (path, folder) = (place.path().join("lines"), place.path().join("v.view"));
    let work = place.path().join(".v.view.unfinished");
    fs::write(&path, "b\na\n").expect("written");
    // As if the process were killed: nothing is dropped, but the lock is gone.
    let leave = |files: &[&str], note: Option<bool>| {
        let made = FileDirectory::create_own(&work).expect("made");
        let directory: std::sync::Arc<dyn Directory> = made;
        if let Some(consumes) = note {
            let output = folder.as_os_str().into();
            WorkNote::new(consumes, output, None).write(&directory).expect("written");
        }
        for file in files {
            fs::write(work.join(file), "x").expect("written");
        }
    };
    for (files, note) in [
        (&[][..], None),
        (&["work-note.new"][..], None),
        (&[][..], Some(false)),
        (&["000000.run", MANIFEST_NAME, "000001.buckets.new"][..], Some(false)),
    ] {
        leave(files, note);
        sort_file_to_view(&path, &folder, &options()).unwrap_or_else(|e| panic!("{files:?}: {e}"));
        assert_eq!(names(place.path()), ["lines", "v.view"], "{files:?}");
        fs::remove_dir_all(&folder).expect("removed");
    }
    for (files, note) in [
        (&["000000.run"][..], None),
        (&["000000.run"][..], Some(true)),
        (&["diary"][..], Some(false)),
        (&["work-note"][..], None),
    ] {
        leave(files, note);
        let refused = sort_file_to_view(&path, &folder, &options()).expect_err("refused");
        let known = matches!(refused, Error::Unfinished { .. } | Error::Corrupt { .. });
        assert!(
            known && refused.to_string().contains(".v.view.unfinished"),
            "{files:?}: {refused}"
        );
        for file in files {
            assert!(work.join(file).exists(), "{file} is removed");
        }
        fs::remove_dir_all(&work).expect("removed");
    }
}
