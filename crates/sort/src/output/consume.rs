//! A view copied out to a file, so that an interruption costs nothing but time; and a view
//! *consumed*: copied out while its blocks are given back, in little more space than the file.
//!
//! ```text
//!   WORK/partial         the output so far; renamed to the output when it is whole
//!   WORK/resume          how much of it is synced, and where the merge continues
//!   VIEW/consumed-into   which output the view is being consumed into; readers refuse it
//! ```
//!
//! WORK is a folder of the caller's, which no other user may write to: what is found there is
//! the caller's own, and checksums find what a crash damaged. The order of events is what makes a crash harmless: output written, output synced,
//! resume point written and synced, and only then the blocks before that point given back.
//!
//! | found in WORK | what a copy of the same view does |
//! |---|---|
//! | nothing, or a resume point of a view that was only copied | starts |
//! | `resume`, `partial` | checks what was written, and continues behind the last resume point |
//! | `resume` says complete, `partial` | checks what was written, and publishes |
//! | `resume` says complete, no `partial` | it was published; removes what is left of a consumed view |
//! | `resume` of another view that is being consumed | refuses |

use std::io;
use std::sync::Arc;

use merganser_storage::{Directory, DirectoryExt, Storage, StorageExt};
use serde::{Deserialize, Serialize};

use super::copy_view::{Steps, copy_view};
use crate::activity::{State, wait};
use crate::merge::bound::Bound;
use crate::run::format::corrupt;
use crate::sealed::{seal, unseal};
use crate::sorter::journal::Text;
use crate::view::{MANIFEST_NAME, Manifest, ResumePoint, View};
use crate::{Budget, Error, Progress, Result};

/// Name of the marker in the folder of a view that is being consumed.
pub const CONSUMED_NAME: &str = "consumed-into";
/// Name of the output in the folder of unfinished work.
pub const PARTIAL_NAME: &str = "partial";
/// Name of the resume point there.
pub const RESUME_NAME: &str = "resume";
const FORMAT_NAME: &str = "merganser-resume";
const VERSION: u32 = 2;
/// A resume point holds a key, and a key is no longer than a record that fits into memory.
const RESUME_BYTES_MAX: u64 = 1 << 30;
/// Resume points are this far apart, or a 64th of the whole when that is further.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// Resume points of a consumed view are a 64th of the whole apart, but at least this far: between
/// two of them the data is on the disk twice.
const CONSUME_BYTES_MIN: u64 = 2 << 20;
const CHECKPOINT_SHARE: u64 = 64;
/// What an interrupted copy has written is checked in pieces of this size.
const CHECKED_BYTES: u64 = 1 << 20;

/// Gives the complete output its name: called with the file [`PARTIAL_NAME`], after which that name
/// is gone from the folder of unfinished work and the output is durable under its own.
pub type Publish<'a> = &'a dyn Fn(&Arc<dyn Storage>) -> io::Result<()>;

/// What [`materialize`] is asked for.
pub struct Materialize<'a> {
    /// The folder of the view. It may be `work` itself.
    pub folder: &'a Arc<dyn Directory>,
    /// The folder of unfinished work, in the file system of the output.
    pub work: &'a Arc<dyn Directory>,
    /// Gives the output its name.
    pub publish: Publish<'a>,
    /// The output's path, for the view's marker and the resume point.
    pub output: Text,
    /// The view's path, for the resume point.
    pub view: Text,
    /// Whether to give the view's blocks back as they are copied, and remove it at the end.
    pub consume: bool,
    /// Memory.
    pub budget: &'a Budget,
    /// Threads that merge.
    pub threads: usize,
    /// The least distance of resume points, in bytes; `None`: 64 MiB or a 64th of the whole, and for
    /// a view that is consumed 2 MiB or a 64th. A shorter one loses less work to an interruption
    /// and takes less space, and syncs more often.
    pub checkpoint_bytes: Option<u64>,
}

/// Where an interrupted copy continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    format: String,
    version: u32,
    /// CRC32C of the view's manifest: which view this is.
    view_crc: u32,
    /// The path of the view.
    pub view: Text,
    /// The path of the output.
    pub output: Text,
    /// Whether the view is given back as it is copied.
    pub consume: bool,
    /// Bytes of the output that are synced.
    pub written: u64,
    /// CRC32C of these bytes.
    written_crc: u32,
    /// Bytes of the whole output.
    pub total: u64,
    /// The bound there: key, and run and position of the tie.
    key: Vec<u8>,
    tie: Option<(usize, u64)>,
    /// Whether the whole output was written.
    pub complete: bool,
}

impl Resume {
    /// Reads the resume point in a folder of unfinished work, if it has one.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::UnknownVersion`]; the storage's own.
    pub fn read(work: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let Some(file) = work.open_if_exists(RESUME_NAME)? else { return Ok(None) };
        if file.size() > RESUME_BYTES_MAX {
            return Err(corrupt(
                file.name(),
                RESUME_BYTES_MAX,
                "too large for a resume point".into(),
            ));
        }
        let bytes = file.read_vec(0, file.size() as usize)?;
        Self::decode(file.name(), &bytes).map(Some)
    }

    /// Reads the bytes of a resume point; `file` names it in errors.
    ///
    /// # Errors
    /// As [`Resume::read`].
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let resume: Resume = unseal(file, "resume point", bytes)?;
        if resume.format != FORMAT_NAME || resume.version != VERSION {
            return Err(Error::UnknownVersion {
                file: file.to_owned(),
                kind: resume.format,
                version: resume.version,
                known: format!("{FORMAT_NAME} version {VERSION}"),
            });
        }
        if resume.written > resume.total {
            return Err(corrupt(file, 0, "more is written than there is".to_owned()));
        }
        Ok(resume)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    fn write(&self, work: &Arc<dyn Directory>) -> Result<()> {
        Ok(work.publish(RESUME_NAME, &self.encode())?)
    }
}

/// The output that the view in `folder` is being consumed into, if it is.
///
/// # Errors
/// The storage's own.
pub fn consumed_into(folder: &Arc<dyn Directory>) -> Result<Option<Text>> {
    let Some(file) = folder.open_if_exists(CONSUMED_NAME)? else { return Ok(None) };
    let mut bytes = file.read_vec(0, file.size().min(4096) as usize)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(Some(Text(bytes)))
}

/// Copies a view out to a file. A call that was killed, repeated, continues where the last resume
/// point was. Returns the bytes of the output.
///
/// After a view was consumed, its folder is empty and the resume point says so: the caller removes
/// the folder, and then calls [`forget`].
///
/// # Errors
/// Damage found, a full disk, memory too small, cancellation, or the storage's own. As long as
/// nothing of the view was given back, it is whole then and nothing else is left behind; later,
/// view and partial output together are whole, and the same call continues.
pub fn materialize(what: &Materialize<'_>, progress: &dyn Progress) -> Result<u64> {
    let Materialize { folder, work, consume, .. } = *what;
    let resume = Resume::read(work)?;
    let marker = consumed_into(folder)?;
    if let Some(other) = marker.as_ref().filter(|other| **other != what.output) {
        return Err(Error::ConsumedElsewhere {
            view: folder.name().to_owned(),
            output: other.as_os_str().to_owned(),
        });
    }
    if marker.is_some() && !consume {
        return Err(Error::BeingConsumed {
            view: folder.name().to_owned(),
            output: what.output.as_os_str().to_owned(),
        });
    }
    if let Some(done) = resume.as_ref().filter(|r| r.complete && r.consume)
        && is_left_of(done, folder, marker.is_some())?
    {
        // Only the removal of the view was left.
        finish(work, what.publish, progress)?;
        remove_consumed(folder)?;
        return Ok(done.total);
    }
    let view = View::open_consumed(folder, what.budget, what.threads, consume)?;
    let fresh = Resume {
        format: FORMAT_NAME.to_owned(),
        version: VERSION,
        view_crc: crc32c::crc32c(&view.manifest().encode()),
        view: what.view.clone(),
        output: what.output.clone(),
        consume,
        written: 0,
        written_crc: 0,
        total: view.size(),
        key: Vec::new(),
        tie: None,
        complete: false,
    };
    let is_this = |r: &Resume| r.view_crc == fresh.view_crc && r.total == fresh.total;
    if let Some(other) = resume.as_ref().filter(|r| r.consume && !is_this(r)) {
        return Err(Error::OtherCopy {
            folder: work.name().to_owned(),
            view: other.view.as_os_str().to_owned(),
        });
    }
    let partial = work.open_if_exists(PARTIAL_NAME)?;
    // A copy that was not to consume its view may be continued or forgotten, as may one that had
    // only begun to.
    let resume = resume.filter(|r| is_this(r) && partial.is_some());
    if marker.is_some() && resume.is_none() {
        return Err(Error::PartialGone {
            view: folder.name().to_owned(),
            partial: format!("{}/{PARTIAL_NAME}", work.name()),
        });
    }
    let resume = match (resume, &partial) {
        (Some(resume), Some(partial)) => match check_written(&**partial, &resume, progress) {
            // The view is whole, and gives the same bytes again.
            Err(Error::Corrupt { .. }) if marker.is_none() => None,
            checked => checked.map(|()| Some(resume))?,
        },
        _ => None,
    };
    let complete = resume.as_ref().is_some_and(|r| r.complete);
    drop(partial);
    let partial = if resume.is_some() {
        work.open(PARTIAL_NAME, true)?
    } else {
        work.remove_if_exists(PARTIAL_NAME)?;
        work.create(PARTIAL_NAME)?
    };
    let mut given_back = marker.is_some();
    let mut copying = || {
        if complete {
            progress.advance(fresh.total);
        } else {
            progress.phase("merging", Some(fresh.total));
            if consume && marker.is_none() {
                // The marker names a copy that is under way, so there must be one before it.
                let point = resume.clone().unwrap_or_else(|| fresh.clone());
                Resume { consume, ..point }.write(work)?;
                mark_consumed(folder, &what.output)?;
            }
            copy(what, &view, &fresh, &partial, resume.as_ref(), &mut given_back, progress)?;
        }
        Ok((what.publish)(&partial)?)
    };
    if let Err(error) = copying() {
        if !given_back {
            // The view is whole: nothing is lost with the rest, and a full disk gets its space
            // back. The marker goes first, for without it the view stands alone.
            abandon(folder, work, partial, marker.is_none())?;
        }
        return Err(error);
    }
    drop((view, partial));
    if consume {
        remove_consumed(folder)?;
    } else {
        forget(work)?;
    }
    Ok(fresh.total)
}

/// Whether `folder` is what is left of the view whose copy is `done`: it has the marker and, as long
/// as it has a manifest, that view's; or nothing at all. A view that was made anew under the same
/// name has no marker.
fn is_left_of(done: &Resume, folder: &Arc<dyn Directory>, marked: bool) -> Result<bool> {
    let whole = folder.list()?.iter().any(|name| name == MANIFEST_NAME);
    Ok(match (marked, whole) {
        (true, true) => crc32c::crc32c(&Manifest::read(folder)?.encode()) == done.view_crc,
        (false, true) => false,
        (_, false) => true,
    })
}

/// Publishes the output in a folder of unfinished work, if it is complete and was not published yet.
/// Says whether a complete copy was there. What is left of the view and the resume point stay.
///
/// # Errors
/// Those of [`Resume::read`] and of `publish`; [`Error::Corrupt`] when the output is not what was
/// written.
pub fn finish(
    work: &Arc<dyn Directory>,
    publish: Publish<'_>,
    progress: &dyn Progress,
) -> Result<bool> {
    let Some(resume) = Resume::read(work)?.filter(|resume| resume.complete) else {
        return Ok(false);
    };
    if let Some(partial) = work.open_if_exists(PARTIAL_NAME)? {
        check_written(&*partial, &resume, progress)?;
        publish(&partial)?;
    }
    Ok(true)
}

/// Reads what an interrupted copy has written, and compares it with the checksum in the resume point.
fn check_written(partial: &dyn Storage, resume: &Resume, progress: &dyn Progress) -> Result<()> {
    if partial.size() < resume.written {
        let (written, size) = (resume.written, partial.size());
        let detail = format!("{written} bytes were synced but only {size} are there");
        return Err(corrupt(partial.name(), size, detail));
    }
    progress.phase("checking", Some(resume.written));
    let (mut at, mut crc) = (0, 0);
    while at < resume.written {
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let bytes = partial.read_vec(at, (resume.written - at).min(CHECKED_BYTES) as usize)?;
        crc = crc32c::crc32c_append(crc, &bytes);
        at += bytes.len() as u64;
        progress.advance(bytes.len() as u64);
    }
    if crc != resume.written_crc {
        let detail = format!(
            "its first {at} bytes have the CRC {crc:08x}, and {:08x} was written",
            resume.written_crc
        );
        return Err(corrupt(partial.name(), 0, detail));
    }
    Ok(())
}

/// Undoes a copy that has given nothing back.
fn abandon(
    folder: &Arc<dyn Directory>,
    work: &Arc<dyn Directory>,
    partial: Arc<dyn Storage>,
    marked: bool,
) -> Result<()> {
    if marked {
        folder.remove_if_exists(CONSUMED_NAME)?;
        folder.remove_if_exists(&format!("{CONSUMED_NAME}.new"))?;
        folder.sync()?;
    }
    drop(partial);
    work.remove_if_exists(PARTIAL_NAME)?;
    forget(work)
}

/// Removes the resume point: the copy has ended.
///
/// # Errors
/// The storage's own.
pub fn forget(work: &Arc<dyn Directory>) -> Result<()> {
    work.remove_if_exists(&format!("{RESUME_NAME}.new"))?;
    work.remove_if_exists(RESUME_NAME)?;
    Ok(work.sync()?)
}

/// Makes readers refuse the view. Nothing of it is given back before this returns.
fn mark_consumed(folder: &Arc<dyn Directory>, output: &Text) -> Result<()> {
    let line = [&output.0[..], b"\n"].concat();
    Ok(folder.publish(CONSUMED_NAME, &line)?)
}

fn copy(
    what: &Materialize<'_>,
    view: &View,
    fresh: &Resume,
    partial: &Arc<dyn Storage>,
    resume: Option<&Resume>,
    given_back: &mut bool,
    progress: &dyn Progress,
) -> Result<()> {
    let total = view.size();
    let from = resume.filter(|r| r.written > 0).map(|r| {
        let bound = Bound { key: r.key.clone(), tie: r.tie };
        let bound = Some(bound).filter(|bound| *bound != Bound::start());
        (ResumePoint { written: r.written, bound }, r.written_crc)
    });
    let least = if what.consume { CONSUME_BYTES_MIN } else { CHECKPOINT_BYTES };
    let step = what.checkpoint_bytes.unwrap_or(least.max(total / CHECKPOINT_SHARE)).max(1);
    let reached = &mut |point: &ResumePoint, written_crc: u32| {
        let Bound { key, tie } = point.bound.clone().unwrap_or_else(Bound::start);
        remember(
            what.work,
            partial,
            &Resume { written: point.written, written_crc, key, tie, ..fresh.clone() },
        )?;
        *given_back |= what.consume;
        Ok(())
    };
    let steps = Steps { bytes: step, reached, give_back: what.consume };
    let written_crc = copy_view(view, partial, from, steps, progress)?;
    partial.sync()?;
    Resume { written: total, written_crc, complete: true, ..fresh.clone() }.write(what.work)
}

/// Makes what was written durable, and then that it was.
fn remember(work: &Arc<dyn Directory>, partial: &Arc<dyn Storage>, at: &Resume) -> Result<()> {
    {
        let _waiting = wait(State::Writing);
        partial.sync()?;
    }
    at.write(work)
}

/// Removes what is left of a view whose whole content is published: the files that its manifest
/// names and the view's own, and nothing else that may be in the folder. The marker goes last, since
/// it makes readers refuse what is left.
fn remove_consumed(folder: &Arc<dyn Directory>) -> Result<()> {
    let left = folder.list()?;
    if left.iter().any(|name| name == MANIFEST_NAME) {
        let manifest = Manifest::read(folder)?;
        let segments = manifest.buckets.iter().flat_map(|bucket| &bucket.segments);
        let mut files: Vec<&str> = segments.map(|segment| &*segment.run).collect();
        files.dedup();
        for file in files {
            folder.remove_if_exists(file)?;
        }
        folder.sync()?;
        folder.remove_if_exists(MANIFEST_NAME)?;
        folder.sync()?;
    }
    folder.remove_if_exists(&format!("{CONSUMED_NAME}.new"))?;
    folder.remove_if_exists(CONSUMED_NAME)?;
    Ok(folder.sync()?)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn resume() -> Resume {
        Resume {
            format: FORMAT_NAME.to_owned(),
            version: VERSION,
            view_crc: 0x89ab_cdef,
            view: Text::from(OsStr::new("/data/big.view")),
            output: Text(b"/data/out\xff".to_vec()),
            consume: true,
            written: 64,
            written_crc: 0x0123_4567,
            total: 100,
            key: b"key\0\xff".to_vec(),
            tie: Some((2, 17)),
            complete: false,
        }
    }

    #[test]
    fn the_bytes_are_pinned() {
        let text = String::from_utf8(resume().encode()).expect("text");
        let golden = include_str!("golden/resume");
        assert_eq!(text, golden, "docs/formats.md and the version must follow");
    }

    #[test]
    fn written_bytes_are_read_back() {
        let resume = resume();
        assert_eq!(Resume::decode("x", &resume.encode()).expect("whole"), resume);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = resume().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let read = Resume::decode("x", &damaged);
            assert!(matches!(read, Err(Error::Corrupt { .. })), "byte {at}");
            assert!(Resume::decode("x", &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_resume_point_that_wrote_more_than_there_is_is_damaged() {
        let wrong = Resume { written: 101, ..resume() };
        assert!(matches!(Resume::decode("x", &wrong.encode()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn another_version_is_not_read() {
        let wrong = Resume { version: VERSION + 1, ..resume() };
        assert!(matches!(Resume::decode("x", &wrong.encode()), Err(Error::UnknownVersion { .. })));
    }
}
