//! The name of an output that is complete but does not bear its own name yet.
//!
//! A file can't be linked over another one: it gets a hidden name first and is renamed then. A kill
//! between the two calls leaves the hidden name, which the next run with the same output removes. A
//! lock tells a leftover from work in progress: it ends with its process.
//!
//! | name | when |
//! |---|---|
//! | `.OUT.merganser-new` | the usual one |
//! | `.OUT.merganser-new.1` to `.7` | other processes make the same output at the same time |
//! | `.START-HASH.merganser-new` and so on | OUT is too long for that: its first 200 bytes, and 16 hexadecimal digits |

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::at;
use super::error::FileError;
use super::own::{self, CAREFUL};
use super::resolve::identity;

/// How many processes may give one output its name at the same time.
const SLOTS: usize = 8;
/// The longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;
const SUFFIX: &str = ".merganser-new";
/// How much of a long name stays.
const START_BYTES: usize = 200;

/// The hidden names that the output `name` may have in its folder.
pub fn unpublished_names(name: &OsStr) -> impl Iterator<Item = OsString> + use<> {
    let whole = [b".", name.as_bytes(), SUFFIX.as_bytes()].concat();
    let room = NAME_BYTES_MAX - ".1".len();
    let first = if whole.len() <= room {
        whole
    } else {
        let start = &name.as_bytes()[..START_BYTES];
        let hash = format!("-{:016x}{SUFFIX}", fnv(name.as_bytes()));
        [b".", start, hash.as_bytes()].concat()
    };
    (0..SLOTS).map(move |slot| {
        let number = if slot == 0 { String::new() } else { format!(".{slot}") };
        OsString::from_vec([&first, number.as_bytes()].concat())
    })
}

/// The name of the output, if `hidden` is one of its hidden names. Of a long name only the start is
/// known.
#[must_use]
pub fn unpublished_name_of(hidden: &OsStr) -> Option<OsString> {
    let bytes = hidden.as_bytes();
    let whole = match bytes {
        [whole @ .., b'.', b'1'..=b'7'] => whole,
        whole => whole,
    };
    let name = whole.strip_prefix(b".")?.strip_suffix(SUFFIX.as_bytes())?;
    (!name.is_empty()).then(|| OsStr::from_bytes(name).to_owned())
}

/// FNV-1a: names that differ only behind their start get hidden names that differ, too.
fn fnv(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Removes the files that killed processes left of the output `name`. A file of another user, a file
/// with other hard links and a file in use stay.
pub(super) fn clear(folder: &File, name: &OsStr) {
    for hidden in unpublished_names(name) {
        // A leftover that can't be removed costs a slot, and nothing else.
        let _ = clear_one(folder, &hidden);
    }
}

/// Whether there is nothing under this hidden name, or no longer.
fn clear_one(folder: &File, hidden: &OsStr) -> io::Result<()> {
    let file = match at::open(folder, hidden, OFlags::RDONLY | CAREFUL, 0) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let found = file.metadata()?;
    own::check_file(&found)?;
    file.try_lock().map_err(|e| match e {
        TryLockError::Error(e) => e,
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
    })?;
    // Another process may have removed it, and a third one made a new one, before the lock.
    match at::stat(folder, hidden)? {
        Some(now) if identity(&now) == identity(&found) => at::remove(folder, hidden),
        _ => Ok(()),
    }
}

/// Locks a file that is going to bear a hidden name, as long as it is open. Where there are no locks
/// the leftovers of one process may be taken for those of another.
pub(super) fn lock(file: &File) {
    let _ = file.try_lock();
}

/// Makes a private, locked file under a hidden name of the output `name`.
pub(super) fn create(folder: &File, name: &OsStr) -> io::Result<(File, OsString)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    take(name, |hidden| {
        let file = at::open(folder, hidden, flags, 0o600)?;
        lock(&file);
        // Before the lock it looked like a leftover.
        let kept = at::stat(folder, hidden)?.map(|now| identity(&now));
        if kept == Some(identity(&file.metadata()?)) {
            Ok(file)
        } else {
            Err(io::ErrorKind::AlreadyExists.into())
        }
    })
}

/// Gives the unnamed, locked `file` a hidden name of the output `name`.
pub(super) fn link(file: &File, folder: &File, name: &OsStr) -> io::Result<OsString> {
    take(name, |hidden| at::link(file, folder, hidden)).map(|((), hidden)| hidden)
}

/// The first hidden name that can be had.
fn take<T>(name: &OsStr, attempt: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(T, OsString)> {
    for hidden in unpublished_names(name) {
        match attempt(&hidden) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(taken) => return Ok((taken, hidden)),
        }
    }
    let first = unpublished_names(name).next().expect("there are several");
    let first = Path::new(&first).display().to_string();
    let why = "this and seven more hidden names are taken: by processes that write the same output, or by other users";
    Err(FileError::wrap(&first, "create", io::Error::new(io::ErrorKind::AlreadyExists, why)))
}
