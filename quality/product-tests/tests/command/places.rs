//! Odd files in place of an output, or of a view's files: links, FIFOs, files of other users.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{fails, folder, merganser, names, prints, stderr};

/// Another user, as far as root is concerned.
const OTHER: u32 = 65534;
/// Beyond this a command counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

/// Runs it and expects it to end by itself, with status 2 and one sentence, which it gives.
fn fails_soon(dir: &Path, arguments: &[&str]) -> String {
    let mut child = merganser(dir, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().expect("killed");
            panic!("{arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output: Output = child.wait_with_output().expect("it ended");
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.matches('\n').count(), 1, "one line: {stderr}");
    stderr
}

#[test]
fn f10_no_link_of_another_user_is_followed_in_a_shared_folder() {
    let (dir, home) = (folder(), folder());
    if fs::metadata(dir.path()).expect("there").uid() != 0 {
        eprintln!("not root: nothing tested");
        return;
    }
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).expect("made");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("chmod");
    let precious = home.path().join("precious");
    fs::write(&precious, "precious").expect("written");
    fs::write(dir.path().join("in"), "b\na\n").expect("written");
    for (name, target) in [("out", &precious), ("dangling", &home.path().join("made"))] {
        let link = shared.join(name);
        symlink(target, &link).expect("linked");
        lchown(&link, Some(OTHER), Some(OTHER)).expect("chown");
        let output = format!("shared/{name}");
        for command in [&["sort", "in", "-o"][..], &["generate", "--records", "10", "-o"]] {
            let error = fails(dir.path(), &[command, &[&*output]].concat());
            let why = "is a symbolic link of user 65534 in a folder that all users may write";
            assert_eq!(error, format!("{output}: {why}"));
        }
    }
    assert_eq!(fs::read(&precious).expect("there"), b"precious");
    assert_eq!(names(home.path()), ["precious"]);
    assert_eq!(names(&shared), ["dangling", "out"]);
}

#[test]
fn outputs_that_are_links_fifos_and_devices_are_written_as_they_are() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("in"), "b\na\n").expect("written");
    fs::write(at("file"), "old").expect("written");
    symlink("file", at("link")).expect("linked");
    make_fifo(&at("fifo"));
    symlink("fifo", at("to fifo")).expect("linked");
    for output in ["/dev/null", "link"] {
        prints(dir.path(), &["sort", "in", "-o", output]);
    }
    assert_eq!(fs::read(at("file")).expect("there"), b"a\nb\n");
    assert!(at("link").is_symlink());
    assert_eq!(prints(dir.path(), &["sort", "in", "-o", "/dev/stdout"]), b"a\nb\n");
    for output in ["fifo", "to fifo"] {
        let read = std::thread::spawn({
            let fifo = at("fifo");
            move || fs::read(fifo).expect("read")
        });
        prints(dir.path(), &["sort", "in", "-o", output]);
        assert_eq!(read.join().expect("no panic"), b"a\nb\n");
    }
    assert_eq!(names(dir.path()), ["fifo", "file", "in", "link", "to fifo"]);
}

#[test]
fn f23_a_fifo_in_place_of_a_views_file_is_an_error_and_no_wait() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("in"), "b\na\n").expect("written");
    prints(dir.path(), &["sort", "in", "--view", "v"]);
    let run = names(&at("v")).into_iter().find(|name| name.ends_with(".run")).expect("a run");
    let reads: [&[&str]; 4] =
        [&["cat", "v"], &["info", "v"], &["verify", "v"], &["materialize", "v", "-o", "out"]];
    for name in ["manifest", &run, "consumed-into"] {
        let (file, kept) = (at("v").join(name), at("kept"));
        let was_there = fs::rename(&file, &kept).is_ok();
        make_fifo(&file);
        for arguments in reads {
            let error = fails_soon(dir.path(), arguments);
            let why = format!("v/{name}: is a FIFO, not a regular file");
            assert!(error.contains(&why), "{arguments:?}: {error}");
        }
        fs::remove_file(&file).expect("removed");
        if was_there {
            fs::rename(&kept, &file).expect("put back");
        }
    }
    let work = at(".out.unfinished");
    fs::DirBuilder::new().mode(0o700).create(&work).expect("made");
    make_fifo(&work.join("resume"));
    let error = fails_soon(dir.path(), &["materialize", "v", "-o", "out"]);
    assert!(error.contains("/resume: is a FIFO"), "{error}");
    assert_eq!(prints(dir.path(), &["cat", "v"]), b"a\nb\n");
}

#[test]
fn f19_a_leftover_of_a_killed_command_goes_with_the_next_one() {
    let dir = folder();
    fs::write(dir.path().join("in"), "b\na\n").expect("written");
    fs::write(dir.path().join("out"), "old").expect("written");
    fs::write(dir.path().join(".out.merganser-new"), "a\nb\n").expect("written");
    prints(dir.path(), &["sort", "in", "-o", "out"]);
    assert_eq!(names(dir.path()), ["in", "out"]);
}

#[test]
fn f30_another_hard_link_of_the_output_keeps_the_old_content() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("in"), "b\na\n").expect("written");
    fs::write(at("out"), "old").expect("written");
    fs::hard_link(at("out"), at("other")).expect("linked");
    prints(dir.path(), &["sort", "in", "-o", "out"]);
    assert_eq!(fs::read(at("out")).expect("there"), b"a\nb\n");
    assert_eq!(fs::read(at("other")).expect("there"), b"old");
}
