//! A view copied out to a file, so that an interruption costs nothing but time; and a view
//! *consumed*: copied out while its blocks are given back, in little more space than the file.
//!
//! ```text
//!   .OUT.merganser-partial   the output so far          OUT        after the last rename
//!   .OUT.merganser-resume    how much of it is synced, and where the merge goes on
//!   VIEW/consumed-into       which output a view is being consumed into; readers refuse it
//! ```
//!
//! The order of events is what makes a crash harmless: output written, output synced, resume point
//! written and synced, and only then the blocks before that point given back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use storage::{Directory, Storage, StorageExt};

use super::copy_view::{Steps, copy_view};
use crate::activity::{State, wait};
use crate::merge::bound::Bound;
use crate::run::format::corrupt;
use crate::view::{MANIFEST_NAME, ResumePoint, View};
use crate::{Budget, Error, Progress, Result};

const CONSUMED_NAME: &str = "consumed-into";
/// Name under which the marker is written before it is renamed.
const UNMARKED_NAME: &str = "consumed-into.new";
/// Resume points are this far apart, or a 64th of the whole when that is further.
const CHECKPOINT_BYTES: u64 = 64 << 20;

/// What [`materialize`] is asked for.
pub struct Materialize<'a> {
    /// The folder of the view.
    pub folder: &'a Arc<dyn Directory>,
    /// The folder of the output.
    pub output: &'a Arc<dyn Directory>,
    /// The output's name there.
    pub name: &'a str,
    /// What to call the output in the view's marker: a path.
    pub shown: &'a str,
    /// Whether to give the view's blocks back as they are copied, and remove it at the end.
    pub consume: bool,
    /// Memory.
    pub budget: &'a Budget,
    /// Threads that merge.
    pub threads: usize,
    /// The least distance of resume points, in bytes; `None`: 64 MiB or a 64th of the whole. A
    /// shorter one loses less work to an interruption, and syncs more often.
    pub checkpoint_bytes: Option<u64>,
}

/// Where an interrupted copy goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Resume {
    /// CRC32C of the view's manifest: which view this is.
    view: u32,
    /// Bytes of the output that are synced.
    written: u64,
    /// The bound there: key, and run and position of the tie.
    key: Vec<u8>,
    tie: Option<(usize, u64)>,
    /// Whether the whole output was written.
    complete: bool,
}

/// Name of the file beside an output `name` that says where an interrupted copy goes on.
#[must_use]
pub fn resume_name(name: &str) -> String {
    format!(".{name}.merganser-resume")
}

/// The output that the view in `folder` is being consumed into, if it is.
///
/// # Errors
/// The storage's own.
pub fn consumed_into(folder: &Arc<dyn Directory>) -> Result<Option<String>> {
    match folder.open(CONSUMED_NAME, false) {
        Ok(file) => {
            let bytes = file.read_vec(0, file.size().min(65536) as usize)?;
            Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::Io(e)),
    }
}

/// Copies a view out to a file. A call that was killed, repeated, goes on where the last resume
/// point was. Returns the bytes of the output.
///
/// # Errors
/// Damage found, a full disk, memory too small, cancellation, or the storage's own. As long as
/// nothing of the view was given back, it is whole then and nothing else is left behind; later,
/// view and partial output together are whole, and the same call goes on.
pub fn materialize(what: &Materialize<'_>, progress: &dyn Progress) -> Result<u64> {
    let Materialize { folder, output, name, shown, consume, .. } = *what;
    let partial_name = format!(".{name}.merganser-partial");
    let resume_name = resume_name(name);
    if let Some(other) = consumed_into(folder)?.filter(|other| other != shown) {
        return Err(Error::Unsupported(format!(
            "{}: this view is already being consumed into {other}; finish that first",
            folder.name()
        )));
    }
    let resume = read_resume(output, &resume_name)?;
    let left = folder.list()?;
    if !left.iter().any(|n| n == MANIFEST_NAME) && consumed_into(folder)?.is_some() {
        // Interrupted while the consumed view was being removed.
        finish_consumed(folder, output, &partial_name, &resume_name, name)?;
        return Ok(output.open(name, false)?.size());
    }
    if left.is_empty() && consume && output.list()?.iter().any(|n| n == name) {
        // Only the empty folder is left.
        return Ok(output.open(name, false)?.size());
    }
    let view = View::open_consumed(folder, what.budget, what.threads, consume)?;
    let view_id = crc32c::crc32c(&view.manifest().encode());
    let total = view.size();
    let consumed = consumed_into(folder)?.is_some();
    let there = output.list()?;
    let is_there = |wanted: &str| there.iter().any(|n| n == wanted);
    // What a resume point speaks of may have been removed since; a whole view starts again.
    let resume = resume.filter(|r| {
        r.view == view_id && (consumed || is_there(&partial_name) || r.complete && is_there(name))
    });

    if resume.as_ref().is_some_and(|r| r.complete) {
        progress.advance(total);
    } else {
        progress.phase("merging", Some(total));
        let partial = match &resume {
            Some(_) => output.open(&partial_name, true)?,
            None if consumed => {
                return Err(Error::Unsupported(format!(
                    "{}: half consumed, but {resume_name} or {partial_name} beside {shown} is gone; put it back",
                    folder.name()
                )));
            }
            None => {
                remove_if_there(output, &partial_name)?;
                output.create(&partial_name)?
            }
        };
        if consume && !consumed {
            if resume.is_none() {
                // The marker names a copy that is under way, so there must be one before it.
                let start = Resume {
                    view: view_id,
                    written: 0,
                    key: Vec::new(),
                    tie: None,
                    complete: false,
                };
                write_resume(output, &resume_name, &start)?;
            }
            mark_consumed(folder, shown)?;
        }
        let mut given_back = consumed;
        let copied =
            copy(what, &view, view_id, &partial, resume.as_ref(), &mut given_back, progress);
        if let Err(error) = copied {
            if !given_back {
                // The view is whole: nothing is lost with the rest, and a full disk gets its space
                // back. The marker goes first, for without it the view stands alone.
                remove_if_there(folder, CONSUMED_NAME)?;
                folder.sync()?;
                drop(partial);
                remove_if_there(output, &partial_name)?;
                remove_if_there(output, &resume_name)?;
            }
            return Err(error);
        }
    }
    match output.rename(&partial_name, name) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        done => done?,
    }
    output.sync()?;
    drop(view);
    if consume {
        finish_consumed(folder, output, &partial_name, &resume_name, name)?;
    } else {
        remove_if_there(output, &resume_name)?;
        output.sync()?;
    }
    Ok(total)
}

/// Makes readers refuse the view. Nothing of it is given back before this returns.
fn mark_consumed(folder: &Arc<dyn Directory>, shown: &str) -> Result<()> {
    remove_if_there(folder, UNMARKED_NAME)?;
    let marker = folder.create(UNMARKED_NAME)?;
    marker.write_at(0, format!("{shown}\n").as_bytes())?;
    marker.sync()?;
    folder.rename(UNMARKED_NAME, CONSUMED_NAME)?;
    folder.sync()?;
    Ok(())
}

fn copy(
    what: &Materialize<'_>,
    view: &View,
    view_id: u32,
    partial: &Arc<dyn Storage>,
    resume: Option<&Resume>,
    given_back: &mut bool,
    progress: &dyn Progress,
) -> Result<()> {
    let total = view.size();
    let resume_name = &resume_name(what.name);
    let from = resume.filter(|r| r.written > 0).map(|r| ResumePoint {
        written: r.written,
        bound: Some(Bound { key: r.key.clone(), tie: r.tie }).filter(|b| *b != Bound::start()),
    });
    let step = what.checkpoint_bytes.unwrap_or(CHECKPOINT_BYTES.max(total / 64)).max(1);
    let reached = &mut |point: &ResumePoint| {
        let Bound { key, tie } = point.bound.clone().unwrap_or_else(Bound::start);
        let at = Resume { view: view_id, written: point.written, key, tie, complete: false };
        remember(what.output, resume_name, partial, &at)?;
        *given_back |= what.consume;
        Ok(())
    };
    let steps = Steps { bytes: step, reached, give_back: what.consume };
    copy_view(view, partial, from, steps, progress)?;
    partial.sync()?;
    write_complete(what.output, resume_name, view_id, total)
}

/// Makes what was written durable, and then that it was.
fn remember(
    output: &Arc<dyn Directory>,
    resume_name: &str,
    partial: &Arc<dyn Storage>,
    at: &Resume,
) -> Result<()> {
    {
        let _waiting = wait(State::Writing);
        partial.sync()?;
    }
    write_resume(output, resume_name, at)
}

/// Remembers that all of the output is written.
fn write_complete(
    output: &Arc<dyn Directory>,
    resume_name: &str,
    view: u32,
    total: u64,
) -> Result<()> {
    let done = Resume { view, written: total, key: Vec::new(), tie: None, complete: true };
    write_resume(output, resume_name, &done)
}

/// Publishes a complete output and removes what is left of its view: the manifest first, and last
/// the marker, which leads here again after an interruption.
fn finish_consumed(
    folder: &Arc<dyn Directory>,
    output: &Arc<dyn Directory>,
    partial_name: &str,
    resume_name: &str,
    name: &str,
) -> Result<()> {
    if output.list()?.iter().any(|n| n == partial_name) {
        output.rename(partial_name, name)?;
        output.sync()?;
    }
    remove_if_there(folder, MANIFEST_NAME)?;
    folder.sync()?;
    for name in folder.list()?.iter().filter(|n| *n != CONSUMED_NAME) {
        remove_if_there(folder, name)?;
    }
    folder.sync()?;
    remove_if_there(output, resume_name)?;
    output.sync()?;
    remove_if_there(folder, CONSUMED_NAME)
}

fn remove_if_there(folder: &Arc<dyn Directory>, name: &str) -> Result<()> {
    match folder.remove(name) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::Io(e)),
        _ => Ok(()),
    }
}

fn write_resume(output: &Arc<dyn Directory>, name: &str, resume: &Resume) -> Result<()> {
    let mut bytes = serde_json::to_vec(resume).expect("plain data");
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    let fresh = format!("{name}.new");
    remove_if_there(output, &fresh)?;
    let file = output.create(&fresh)?;
    file.write_at(0, &bytes)?;
    file.sync()?;
    output.rename(&fresh, name)?;
    output.sync()?;
    Ok(())
}

fn read_resume(output: &Arc<dyn Directory>, name: &str) -> Result<Option<Resume>> {
    let file = match output.open(name, false) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::Io(e)),
    };
    let bytes = file.read_vec(0, file.size() as usize)?;
    let malformed = || corrupt(file.name(), 0, "not a resume point".to_owned());
    let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return Err(malformed());
    }
    serde_json::from_slice(body).map(Some).map_err(|_| malformed())
}
