//! A view copied to a file in steps, so that an interrupted copy can be resumed.
//!
//! ```text
//!   portions ──► file ──(a step is due)──► all written ──► the caller syncs and remembers the place
//!                                                      └──► the view's space before it is given back
//! ```

use std::sync::Arc;

use storage::{ALIGNMENT, Storage, StorageExt};

use super::copy::{Follow, Out, copy};
use super::file::FileSink;
use crate::activity;
use crate::portion::{Portion, Portions, Start};
use crate::run::format::corrupt;
use crate::view::{GivingBack, ResumePoint, View};
use crate::{Progress, Result};

/// Points at which all that comes before was handed to the file.
pub(crate) struct Steps<'a> {
    /// Bytes from one to the next, at least.
    pub(crate) bytes: u64,
    /// Makes the bytes before a point durable, and remembers the point.
    pub(crate) reached: &'a mut dyn FnMut(&ResumePoint) -> Result<()>,
    /// Whether the space of the view before a point is given back once it is remembered.
    pub(crate) give_back: bool,
}

/// Copies `view` to `partial`, which holds all bytes before `from`. Returns when all is written; the
/// last bytes are not synced.
///
/// # Errors
/// Damage found, a full disk, cancellation, the storage's own, and what a step answers.
pub(crate) fn copy_view(
    view: &View,
    partial: &Arc<dyn Storage>,
    from: Option<ResumePoint>,
    steps: Steps<'_>,
    progress: &dyn Progress,
) -> Result<()> {
    let _worker = activity::enter("write");
    let total = view.size();
    let preamble = &view.manifest().preamble;
    let base = preamble.len() as u64;
    let offset = from.as_ref().map_or(0, |from| from.written);
    if partial.size() < offset {
        let text = format!("{offset} bytes were synced but only {} are there", partial.size());
        return Err(corrupt(partial.name(), partial.size(), text));
    }
    if let Some(point) = from.as_ref().filter(|point| !view.can_resume_at(point)) {
        let text = format!("its resume point {} is no place between two buckets", point.written);
        return Err(corrupt(partial.name(), point.written, text));
    }
    let page = offset % ALIGNMENT as u64;
    let before = partial.read_vec(offset - page, page as usize)?;
    let mut sink = FileSink::new(Arc::clone(partial), offset, before, Some(total));
    if from.is_none() {
        sink.push_bytes(preamble)?;
    }
    progress.advance(offset);
    let begin = from.unwrap_or(ResumePoint { written: base, bound: None });
    let mut portions = view.resume(&begin)?;
    let mut stepping = Stepping {
        checkpoint: sink.offset() + steps.bytes,
        giving: GivingBack::new(view, begin.written - base, steps.bytes),
        steps,
    };
    let bytes = copy(&mut portions, Out::File(sink), None, &mut stepping, progress)?;
    stepping.giving.finish()?;
    assert_eq!(bytes, total, "a view's size is exact");
    Ok(())
}

/// A copy that is under way.
struct Stepping<'v, 's> {
    steps: Steps<'s>,
    /// The next point is at or after this offset.
    checkpoint: u64,
    giving: GivingBack<'v>,
}

impl Follow for Stepping<'_, '_> {
    fn before(&mut self, next: &Portion, out: &mut Out<'_>, from: &mut dyn Portions) -> Result<()> {
        if out.offset() < self.checkpoint {
            return Ok(());
        }
        out.flush(from)?;
        let bound = match &next.start {
            Start::Merge { bound, .. } => bound.clone(),
            Start::Here => None,
        };
        (self.steps.reached)(&ResumePoint { written: out.offset(), bound })?;
        if self.steps.give_back {
            self.giving.before(next)?;
        }
        self.checkpoint = out.offset() + self.steps.bytes;
        Ok(())
    }
}
