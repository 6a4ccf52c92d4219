//! Commands that can't end are refused before a byte is taken.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use merganser_testkit::install_program;

use super::Place;
use crate::harness::{binary, is_root, names, one_sentence, prints};

#[test]
fn f7_inputs_that_are_one_file() {
    let place = Place::new();
    let cases: [(&str, &[&str]); 7] = [
        ("", &["sort", "--consume", "in", "in", "-o", "out"]),
        ("", &["sort", "--consume", "in", "./in", "-o", "out"]),
        ("", &["sort", "--consume", "in", "in", "-o", "in"]),
        ("hard", &["sort", "--consume", "in", "link", "-o", "out"]),
        ("hard", &["sort", "--consume", "link", "-o", "out"]),
        ("soft", &["sort", "--consume", "in", "link", "-o", "out"]),
        ("soft", &["sort", "--consume", "link", "-o", "out"]),
    ];
    for (link, case) in cases {
        place.again("in");
        match link {
            "hard" => fs::hard_link(place.folder.at("in"), place.folder.at("link")),
            "soft" => std::os::unix::fs::symlink("in", place.folder.at("link")),
            _ => Ok(()),
        }
        .expect("linked");
        let before = place.folder.names();
        place.refuses(case);
        place.holds("in", &place.content, &format!("{case:?}"));
        assert_eq!(place.folder.names(), before, "{case:?}");
    }
    // An output inside the view would go with it.
    place.again("in");
    place.does(&["sort", "in", "--view", "v"]);
    place.refuses(&["materialize", "--consume", "v", "-o", "v/sorted.txt"]);
    place.holds("v", &place.sorted, "an output inside");
    // Files that are not part of the view stay.
    place.folder.write("v/notes", b"mine\n");
    place.does(&["materialize", "--consume", "v", "-o", "out"]);
    place.holds("out", &place.sorted, "a stranger in the view");
    assert_eq!(names(&place.folder.at("v")), ["notes"]);
}

/// A command that could not finish is refused while its input is complete.
#[test]
fn f11_refused_before_a_byte_is_taken() {
    let place = Place::new();
    fs::create_dir(place.folder.at("d")).expect("made");
    prints(Command::new("mkfifo").arg(place.folder.at("fifo")));
    let before = place.folder.names();
    let long = |bytes: usize| "x".repeat(bytes);
    let (too_long, just_too_long) = (long(300), long(244));
    let outputs: [&[&str]; 6] = [
        &["-o", "d"],
        &["-o", "fifo"],
        &["-o", &too_long],
        &["-o", &just_too_long],
        &["-o", "missing/out"],
        &["--view", "d"],
    ];
    for output in outputs {
        let said = place.refuses(&[&["sort", "--consume", "in"], output].concat());
        assert_eq!(said.lines().count(), 1, "{said}");
        place.holds("in", &place.content, &format!("{output:?}"));
        assert_eq!(place.folder.names(), before, "{output:?}");
    }
    // The longest name for which there is room.
    let longest = long(243);
    place.does(&["sort", "--consume", "in", "-o", &longest]);
    place.holds(&longest, &place.sorted, "243 bytes");
    // So with the hidden names of inputs.
    let (fits, too_long) = (long(235), long(236));
    place.again(&too_long);
    place.refuses(&["sort", "--consume", &too_long, "-o", "out"]);
    place.holds(&too_long, &place.content, "236 bytes");
    assert_eq!(place.folder.names(), [&too_long[..]]);
    place.again(&fits);
    place.does(&["sort", "--consume", &fits, "-o", "out"]);
    place.holds("out", &place.sorted, "235 bytes");
    // Names that are no text.
    let strange = OsStr::from_bytes(b"strange\xff");
    place.again("in");
    fs::rename(place.folder.at("in"), place.folder.path().join(strange)).expect("renamed");
    prints(place.command(&["sort", "--consume"]).arg(strange).arg("-o").arg(strange));
    assert!(fs::read(place.folder.path().join(strange)).expect("there") == place.sorted);
    prints(place.command(&["sort"]).arg(strange).args(["--view", "v"]));
    prints(place.command(&["materialize", "--consume", "v", "-o"]).arg(strange));
    assert!(fs::read(place.folder.path().join(strange)).expect("there") == place.sorted);
    assert_eq!(place.folder.names().len(), 1);
}

/// Another user, whose id owns nothing else.
const OTHER: u32 = 65534;

/// A folder in which the input can't be removed.
#[test]
fn f11_an_input_that_cannot_be_removed() {
    if !is_root("another user") {
        return;
    }
    let place = Place::new();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    open(place.folder.path(), 0o755);
    fs::create_dir(place.folder.at("d")).expect("made");
    fs::rename(place.folder.at("in"), place.folder.at("d/in")).expect("renamed");
    open(&place.folder.at("d/in"), 0o666);
    fs::create_dir(place.folder.at("results")).expect("made");
    open(&place.folder.at("results"), 0o777);
    // The binary itself must be within reach of that user.
    let own = place.folder.at("merganser");
    install_program(binary(), &own);
    for mode in [0o755, 0o1777] {
        open(&place.folder.at("d"), mode);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&own);
        command.args(["sort", &place.memory, "--consume", "d/in", "-o", "results/out"]);
        command.current_dir(place.folder.path()).stdin(Stdio::null());
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => return eprintln!("skipped: no setpriv: {error}"),
        };
        let said = one_sentence(&command, &output);
        assert!(said.contains("d/in: --consume: can't be removed"), "{said}");
        place.holds("d/in", &place.content, &format!("{mode:o}"));
        assert_eq!(names(&place.folder.at("d")), ["in"]);
        assert_eq!(names(&place.folder.at("results")), [""; 0]);
    }
    // In a folder that all users may write to, users can consume their own files.
    let path = place.folder.at("d/in");
    std::os::unix::fs::chown(&path, Some(OTHER), Some(OTHER)).expect("given");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&own);
    command.args(["sort", &place.memory, "--consume", "d/in", "-o", "results/out"]);
    prints(command.current_dir(place.folder.path()).stdin(Stdio::null()));
    place.holds("results/out", &place.sorted, "own file");
    assert_eq!(names(&place.folder.at("d")), [""; 0]);
}
