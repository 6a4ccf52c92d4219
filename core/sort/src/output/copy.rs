//! Portions on their way out: to a file straight from their buffers, or copied.
//!
//! ```text
//!   portions ──► File: written from their own buffers, which go back once written   (no byte is moved)
//!            ──► Copied: duplicates are removed or only the top is wanted, so a portion is not
//!                        aligned with its place in the file
//!            ──► Stream: a pipe
//! ```
//!
//! Whatever makes the bytes, this is the loop that hands them out. The caller looks at each portion
//! before it goes out ([`Follow`]): it gives back the space behind a merge, or remembers from time to
//! time how far a copy got.

use std::io::Write;

use super::file::FileSink;
use super::ordered::Top;
use crate::activity::{WorkerState, wait};
use crate::key::Order;
use crate::portion::{Portion, Portions};
use crate::{Error, Progress, Result};

/// Where portions go.
pub(crate) enum Out<'a> {
    /// A file; each portion is aligned in its buffer as in the file.
    File(FileSink),
    /// A file, through a copy.
    Copied(FileSink),
    /// A stream, and how many bytes it got.
    Stream(&'a mut dyn Write, u64),
}

impl Out<'_> {
    /// Bytes that were handed out.
    pub(crate) fn offset(&self) -> u64 {
        match self {
            Out::File(sink) | Out::Copied(sink) => sink.offset(),
            Out::Stream(_, bytes) => *bytes,
        }
    }

    /// Appends bytes from anywhere.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Out::File(sink) | Out::Copied(sink) => sink.push_bytes(bytes),
            Out::Stream(writer, written) => {
                let _waiting = wait(WorkerState::Writing);
                writer.write_all(bytes)?;
                *written += bytes.len() as u64;
                Ok(())
            }
        }
    }

    fn push(&mut self, portion: Portion, from: &mut dyn Portions) -> Result<()> {
        if let Out::File(sink) = self {
            return sink.push(portion, from);
        }
        self.push_bytes(portion.bytes())?;
        from.recycle(portion.buffer, portion.ticket);
        Ok(())
    }

    /// Gives a buffer that was written back to `to`; false when no buffer is being written.
    fn return_one(&mut self, to: &mut dyn Portions) -> Result<bool> {
        let Out::File(sink) = self else { return Ok(false) };
        let written = sink.written()?;
        let found = written.is_some();
        if let Some((buffer, ticket)) = written {
            to.recycle(buffer, ticket);
        }
        Ok(found)
    }

    /// Waits until all that was handed out is written. Nothing is synced.
    pub(crate) fn flush(&mut self, to: &mut dyn Portions) -> Result<()> {
        while self.return_one(to)? {}
        match self {
            Out::File(sink) | Out::Copied(sink) => sink.flush(),
            Out::Stream(writer, _) => Ok(writer.flush()?),
        }
    }

    /// Ends it here; the bytes of all.
    fn finish(self) -> Result<u64> {
        let bytes = self.offset();
        match self {
            Out::File(sink) | Out::Copied(sink) => sink.finish()?,
            Out::Stream(writer, _) => writer.flush()?,
        }
        Ok(bytes)
    }
}

/// A caller that watches a copy.
pub(crate) trait Follow {
    /// `next` is made and goes out next.
    ///
    /// # Errors
    /// The caller's own; the copy ends with it.
    fn before(&mut self, next: &Portion, out: &mut Out<'_>, from: &mut dyn Portions) -> Result<()>;
}

/// Nothing.
impl Follow for () {
    fn before(&mut self, _: &Portion, _: &mut Out<'_>, _: &mut dyn Portions) -> Result<()> {
        Ok(())
    }
}

/// Hands out all of `portions`, or what `top` takes of them. Returns the bytes of all.
///
/// # Errors
/// Damage found, a full disk, cancellation, the storage's or the stream's own.
pub(crate) fn copy(
    portions: &mut dyn Portions,
    mut out: Out<'_>,
    mut top: Option<(&mut Top, &Order)>,
    follow: &mut dyn Follow,
    progress: &dyn Progress,
) -> Result<u64> {
    loop {
        // The next portion may wait for a buffer that is being written.
        while portions.wants_buffers() && out.return_one(portions)? {}
        let Some(portion) = portions.next()? else { break };
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        follow.before(&portion, &mut out, portions)?;
        progress.advance(portion.len as u64);
        let Some((top, order)) = &mut top else {
            out.push(portion, portions)?;
            continue;
        };
        let (bytes, more) = top.take(order, portion.bytes());
        out.push_bytes(bytes)?;
        portions.recycle(portion.buffer, portion.ticket);
        if !more {
            break;
        }
    }
    out.finish()
}
