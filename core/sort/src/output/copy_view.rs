//! A view copied to a file in steps, so that an interrupted copy can be resumed.
//!
//! ```text
//!   portions ──► file ──(a step is due)──► all written ──► the caller syncs and remembers the place
//!                                                      └──► the view's space before it is given back
//! ```

use std::sync::Arc;

use merganser_storage::{ALIGNMENT, Storage, StorageExt};

use super::copy::{Follow, Out, copy};
use super::file::FileSink;
use super::resume::KEY_BYTES_MAX;
use crate::activity;
use crate::portion::{Portion, Portions, Start};
use crate::run::format::corrupt;
use crate::view::{GivingBack, ResumePoint, View};
use crate::{Error, Progress, Result};

/// Points at which all that comes before was handed to the file.
pub(crate) struct Steps<'a> {
    /// Bytes from one to the next, at least.
    pub(crate) bytes: u64,
    /// Makes the bytes before a point durable, and remembers the point and their CRC32C.
    pub(crate) reached: &'a mut dyn FnMut(&ResumePoint, u32) -> Result<()>,
    /// Whether the space of the view before a point is given back once it is remembered.
    pub(crate) give_back: bool,
}

/// Copies `view` to `partial`, which holds all bytes before `from`, whose CRC32C is the second part of
/// `from`. Returns the CRC32C of the whole when all is written; the last bytes are not synced.
///
/// # Errors
/// Damage, a full disk, cancellation, the storage's own, and the errors of a step.
pub(crate) fn copy_view(
    view: &View,
    partial: &Arc<dyn Storage>,
    from: Option<(ResumePoint, u32)>,
    steps: Steps<'_>,
    progress: &dyn Progress,
) -> Result<u32> {
    let _worker = activity::enter("write");
    let total = view.size();
    let preamble = &view.manifest().preamble;
    let base = preamble.len() as u64;
    let offset = from.as_ref().map_or(0, |(from, _)| from.written);
    if from.as_ref().is_some_and(|(point, _)| !view.can_resume_at(point)) {
        return Err(wrong_point(&**partial, offset, "is no place where the view can be continued"));
    }
    let page = offset % ALIGNMENT as u64;
    let before = partial.read_vec(offset - page, page as usize)?;
    let mut sink = FileSink::new(Arc::clone(partial), offset, before, Some(total));
    // A view that is given back and its copy together take little more than the view did.
    sink.allocate_in_steps_of(steps.bytes);
    let resumed = from.is_some();
    if !resumed {
        sink.push_bytes(preamble)?;
    }
    progress.advance(offset);
    let start = ResumePoint { written: base, bound: None };
    let (begin, crc) = from.unwrap_or_else(|| (start, crc32c::crc32c(preamble)));
    let mut portions = view.resume(&begin)?;
    let mut stepping = Stepping {
        checkpoint: sink.offset() + steps.bytes,
        base,
        partial: &**partial,
        offset,
        crc,
        giving: GivingBack::new(view, begin.written - base, steps.bytes),
        steps,
    };
    let bytes = copy(&mut portions, Out::File(sink), None, &mut stepping, progress)?;
    stepping.giving.finish()?;
    if resumed && bytes != total {
        return Err(wrong_point(&**partial, offset, "does not lead to the end of the view"));
    }
    assert_eq!(bytes, total, "a view's size is exact");
    Ok(stepping.crc)
}

/// The error for a resume point that does not fit the view. Its file has a right checksum, but may say
/// anything.
fn wrong_point(partial: &dyn Storage, offset: u64, text: &str) -> Error {
    corrupt(partial.name(), offset, format!("its resume point {offset} {text}"))
}

/// A copy that is under way.
struct Stepping<'v, 's> {
    steps: Steps<'s>,
    /// The next point is at or after this offset.
    checkpoint: u64,
    giving: GivingBack<'v>,
    /// Bytes of the file before the first portion of the view.
    base: u64,
    partial: &'v dyn Storage,
    /// Where the copy began.
    offset: u64,
    /// CRC32C of all bytes that were handed out.
    crc: u32,
}

impl Follow for Stepping<'_, '_> {
    fn before(&mut self, next: &Portion, out: &mut Out<'_>, from: &mut dyn Portions) -> Result<()> {
        let padded = next.pad as u64 == out.offset() % ALIGNMENT as u64;
        if !padded || self.base + next.output_offset != out.offset() {
            let text = "is not where the records continue that its key names";
            return Err(wrong_point(self.partial, self.offset, text));
        }
        let before = self.crc;
        self.crc = crc32c::crc32c_append(before, next.bytes());
        if out.offset() < self.checkpoint {
            return Ok(());
        }
        let bound = match &next.start {
            Start::Merge { bound, .. } => bound.clone(),
            Start::Here => None,
        };
        if bound.as_ref().is_some_and(|bound| bound.key.len() > KEY_BYTES_MAX) {
            // The next portion may begin with a shorter one.
            return Ok(());
        }
        out.flush(from)?;
        (self.steps.reached)(&ResumePoint { written: out.offset(), bound }, before)?;
        if self.steps.give_back {
            self.giving.before(next)?;
        }
        self.checkpoint = out.offset() + self.steps.bytes;
        Ok(())
    }
}
