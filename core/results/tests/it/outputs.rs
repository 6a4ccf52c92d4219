//! A result that is written in one go, without signals.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_results::ResultsError;
use merganser_results::output::{OutputError, ResultOutput};
use merganser_results::stopped::{Cancellation, Stopped};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::place::Place;

/// The end, once it is asked for.
#[derive(Default)]
struct Asked(AtomicBool);

impl Cancellation for Asked {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_pipe_without_a_reader_is_left_when_the_end_is_asked_for() {
    let place = Place::new();
    let pipe = place.at("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
    let asked = Arc::new(Asked(AtomicBool::new(true)));
    let refused = ResultOutput::open(&pipe, asked).err().expect("no reader");
    let ResultsError::File { path, error } = refused else { panic!("{refused}") };
    assert_eq!((path, Stopped::of_error(&error)), (pipe, Some(Stopped::Cancelled)));
}

#[test]
fn a_reader_that_goes_away_ends_the_writes() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let file = fs::File::from(std::os::fd::OwnedFd::from(writer));
    let output = ResultOutput::standard(Ok(file), Arc::new(Asked::default()));
    let mut output = output.expect("opened");
    output.write_all(b"first").expect("written");
    let mut first = [0; 5];
    reader.read_exact(&mut first).expect("read");
    drop(reader);
    let ended = output.write_all(b"second").expect_err("no reader");
    assert_eq!(Stopped::of_error(&ended), Some(Stopped::ClosedPipe));
}

#[test]
fn a_closed_standard_output_fails_when_it_is_written_to() {
    let closed = Err(std::io::Error::from_raw_os_error(libc::EBADF));
    let output = ResultOutput::standard(closed, Arc::new(Asked::default()));
    let mut output = output.expect("nothing is written yet");
    output.write_all(b"x").expect_err("closed");
}

#[test]
fn a_folder_that_takes_no_new_file_keeps_the_old_result() {
    let place = Place::new();
    fs::create_dir(place.at("folder")).expect("made");
    let refused = ResultOutput::open(&place.at("folder"), Arc::new(Asked::default()));
    let refused = refused.err().expect("a directory");
    assert!(matches!(refused, ResultsError::Output(OutputError::Directory(_))), "{refused}");
    let out = place.file("folder/out", "old");
    fs::set_permissions(place.at("folder"), fs::Permissions::from_mode(0o500)).expect("set");
    // A privileged user may write there.
    if let Err(refused) = ResultOutput::open(&out, Arc::new(Asked::default())) {
        assert!(matches!(refused, ResultsError::Output(OutputError::NoRoomBeside(_))), "{refused}");
    }
    fs::set_permissions(place.at("folder"), fs::Permissions::from_mode(0o700)).expect("set");
    assert_eq!(fs::read(&out).expect("there"), b"old");
}
