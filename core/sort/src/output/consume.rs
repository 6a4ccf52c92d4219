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

use super::copy_view::{Steps, copy_view};
use super::resume::{RESUME_NAME, Resume, check_written};
use crate::activity::{WorkerState, wait};
use crate::bound::Bound;
use crate::sorter::note::WorkNote;
use crate::text::JournalText;
use crate::view::{CONSUMED_NAME, MANIFEST_NAME, Manifest, ResumePoint, View, consumed_into};
use crate::{Budget, Error, Progress, Result};

/// Name of the output in the folder of unfinished work.
pub const PARTIAL_NAME: &str = "partial";
/// Resume points are this far apart, or a 64th of the whole when that is further.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// Resume points of a consumed view are a 64th of the whole apart, but at least this far: between
/// two of them the data is on the disk twice.
const CONSUME_BYTES_MIN: u64 = 2 << 20;
const CHECKPOINT_SHARE: u64 = 64;
/// Gives the complete output its name: called with the file [`PARTIAL_NAME`], after which that name
/// is gone from the folder of unfinished work and the output is durable under its own.
pub type Publish<'a> = &'a dyn Fn(&Arc<dyn Storage>) -> io::Result<()>;

/// The request that [`materialize`] gets.
pub struct Materialize<'a> {
    /// The folder of the view. It may be `work` itself.
    pub folder: &'a Arc<dyn Directory>,
    /// The folder of unfinished work, in the file system of the output.
    pub work: &'a Arc<dyn Directory>,
    /// Gives the output its name.
    pub publish: Publish<'a>,
    /// The output's path, for the view's marker and the resume point.
    pub output: JournalText,
    /// The view's path, for the resume point.
    pub view: JournalText,
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
    refuse_other_use(what, marker.as_ref())?;
    if let Some(done) = resume.as_ref().filter(|r| r.complete && r.consume)
        && is_left_of(done, folder, marker.is_some())?
    {
        // Only the removal of the view was left.
        finish(work, what.publish, progress)?;
        remove_consumed(folder)?;
        return Ok(done.total);
    }
    let view = match consume {
        true => View::open_to_consume(folder, what.budget, what.threads)?,
        false => View::open(folder, what.budget, what.threads)?,
    };
    let fresh = Resume::at_start((&what.view, &what.output), consume, &view);
    if let Some(other) = resume.as_ref().filter(|r| r.consume && !r.is_of_same_view(&fresh)) {
        return Err(Error::OtherCopy {
            folder: work.name().to_owned(),
            view: other.view.as_os_str().to_owned(),
        });
    }
    let resume = resume.filter(|r| r.is_of_same_view(&fresh));
    let resume = match usable(what, resume, marker.is_some(), progress) {
        Err(Error::Cancelled) if marker.is_none() => {
            abandon(folder, work, true)?;
            return Err(Error::Cancelled);
        }
        resume => resume?,
    };
    let complete = resume.as_ref().is_some_and(|r| r.complete);
    let partial = if resume.is_some() {
        work.open(PARTIAL_NAME, true)?
    } else {
        work.remove_if_exists(PARTIAL_NAME)?;
        work.create(PARTIAL_NAME)?
    };
    let mut given_back = marker.is_some();
    let mut copying = || {
        if !complete {
            progress.phase("merging", Some(fresh.total));
            if marker.is_none() {
                // The marker names a copy that is under way, so there must be one before it. The
                // point of a copy that is no consumption says whose the partial output is.
                let point = resume.clone().unwrap_or_else(|| fresh.clone());
                Resume { consume, ..point }.write(work)?;
            }
            if consume && marker.is_none() {
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
            drop(partial);
            abandon(folder, work, marker.is_none())?;
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

/// Refuses a view that another command consumes, or whose consumption this command does not continue.
fn refuse_other_use(what: &Materialize<'_>, marker: Option<&JournalText>) -> Result<()> {
    let Materialize { folder, consume, .. } = *what;
    let Some(output) = marker else { return Ok(()) };
    let view = folder.name().to_owned();
    if *output != what.output {
        return Err(Error::ConsumedElsewhere { view, output: output.as_os_str().to_owned() });
    }
    if !consume {
        return Err(Error::BeingConsumed { view, output: what.output.as_os_str().to_owned() });
    }
    Ok(())
}

/// The resume point, if the copy can be continued there: what was written before it is as it was. A
/// copy that has given nothing back of its view starts again otherwise.
fn usable(
    what: &Materialize<'_>,
    resume: Option<Resume>,
    marked: bool,
    progress: &dyn Progress,
) -> Result<Option<Resume>> {
    let Materialize { folder, work, .. } = *what;
    let partial = work.open_if_exists(PARTIAL_NAME)?;
    let (Some(resume), Some(partial)) = (resume, partial) else {
        if marked {
            return Err(Error::PartialGone {
                view: folder.name().to_owned(),
                partial: format!("{}/{PARTIAL_NAME}", work.name()),
            });
        }
        return Ok(None);
    };
    match check_written(&*partial, &resume, progress) {
        // The view is whole, and gives the same bytes again.
        Err(Error::Corrupt { .. }) if !marked => Ok(None),
        checked => checked.map(|()| Some(resume)),
    }
}

/// Whether `folder` is what is left of the view whose copy is `done`: it has the marker and, as long
/// as it has a manifest, that view's; or nothing at all. A view that was made again under the same
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
/// Says whether a complete copy was there. The rest of the view and the resume point stay.
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

/// Undoes a copy that has given nothing back.
fn abandon(folder: &Arc<dyn Directory>, work: &Arc<dyn Directory>, marked: bool) -> Result<()> {
    if marked {
        folder.remove_if_exists(CONSUMED_NAME)?;
        folder.remove_if_exists(&format!("{CONSUMED_NAME}.new"))?;
        folder.sync()?;
    }
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
fn mark_consumed(folder: &Arc<dyn Directory>, output: &JournalText) -> Result<()> {
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
        let _waiting = wait(WorkerState::Writing);
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
    // A kill right after the view got its name leaves the note of its making.
    WorkNote::remove(folder)?;
    folder.remove_if_exists(&format!("{CONSUMED_NAME}.new"))?;
    folder.remove_if_exists(CONSUMED_NAME)?;
    Ok(folder.sync()?)
}
