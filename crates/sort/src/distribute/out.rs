//! Sorted pieces on their way out: to a file straight from their buffers, or copied to a stream.
//!
//! ```text
//!   pieces ──► File: written where they lie, buffers come back once written     (nothing moves a byte)
//!          ──► Copied: duplicates were removed, so a piece lies nowhere near its place in the file
//!          ──► Stream: a pipe
//! ```
//!
//! A file may be written in *steps*: after each, all before it was written, and whoever asked may
//! sync it, remember how far it got, and give the space of what was read back ([`BucketView::release`]).

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use storage::{Completions, Operation, Storage};

use super::bucket::{Bucket, BucketSet};
use super::stream::{PieceStream, SortedPiece, StreamOptions};
use super::view::{BucketStream, BucketView};
use super::{Distributed, stream_room};
use crate::activity::{self, State, wait};
use crate::key::Order;
use crate::merge::window::count_records;
use crate::output::{FileSink, ignore_unsupported};
use crate::{Budget, Progress, Result};

/// Where pieces go.
enum Out<'a> {
    /// Pieces lie in their buffers as in the file.
    File(FileSink),
    Copied(FileSink),
    Stream(&'a mut dyn Write, u64),
}

impl Out<'_> {
    fn offset(&self) -> u64 {
        match self {
            Out::File(sink) | Out::Copied(sink) => sink.offset(),
            Out::Stream(_, bytes) => *bytes,
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Out::File(sink) | Out::Copied(sink) => sink.push_bytes(bytes),
            Out::Stream(writer, written) => {
                let _waiting = wait(State::Writing);
                writer.write_all(bytes)?;
                *written += bytes.len() as u64;
                Ok(())
            }
        }
    }

    fn push(&mut self, piece: SortedPiece, from: &PieceStream) -> Result<()> {
        if let Out::File(sink) = self {
            let (pad, len) = (piece.pad, piece.len);
            let (buffer, claimed) = piece.into_parts();
            let recycle = &mut |buffer, claimed| from.recycle(buffer, claimed);
            return sink.push_padded((buffer, pad, len), claimed, recycle);
        }
        self.push_bytes(piece.bytes())?;
        let (buffer, claimed) = piece.into_parts();
        from.recycle(buffer, claimed);
        Ok(())
    }

    /// Gives a buffer that was written back to `to`; false when none is being written.
    fn return_one(&mut self, to: &PieceStream) -> Result<bool> {
        let Out::File(sink) = self else { return Ok(false) };
        let written = sink.written()?;
        let found = written.is_some();
        if let Some((buffer, claimed)) = written {
            to.recycle(buffer, claimed);
        }
        Ok(found)
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

/// Points at which all that comes before was handed to the file.
pub(crate) struct Steps<'a> {
    /// Bytes from one to the next, at least.
    pub(crate) bytes: u64,
    /// Is told how many bytes of the file there are.
    pub(crate) reached: &'a mut dyn FnMut(u64) -> Result<()>,
}

/// Hands all of `stream` out. Returns the bytes of all, and the records where `counted` says how to
/// count them.
fn drain(
    stream: &mut PieceStream,
    mut out: Out<'_>,
    mut steps: Option<Steps<'_>>,
    counted: Option<&Order>,
    progress: &dyn Progress,
) -> Result<(u64, u64)> {
    let mut records = 0;
    let mut begun = out.offset();
    loop {
        // What is being written may be what the next piece waits for.
        while !stream.is_ready() && out.return_one(stream)? {}
        let Some(piece) = stream.next()? else { break };
        if progress.cancelled() {
            return Err(crate::Error::Cancelled);
        }
        let due = steps.as_mut().filter(|steps| out.offset() - begun >= steps.bytes);
        if let (Some(steps), Out::File(sink)) = (due, &mut out) {
            while let Some((buffer, claimed)) = sink.written()? {
                stream.recycle(buffer, claimed);
            }
            sink.flush()?;
            begun = sink.offset();
            (steps.reached)(begun)?;
        }
        progress.advance(piece.len as u64);
        records += counted.map_or(0, |order| count_records(order, piece.bytes()));
        out.push(piece, stream)?;
    }
    Ok((out.finish()?, records))
}

impl Distributed {
    /// Sorts bucket after bucket into `storage`; space on temporary disks is given back on the
    /// way. Returns bytes and records written.
    ///
    /// # Errors
    /// Damage found, a full disk, cancellation, the storage's own.
    pub(crate) fn write_to_storage(
        self,
        storage: &Arc<dyn Storage>,
        budget: &Budget,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<(u64, u64)> {
        let (storage, base) = (Arc::clone(storage), self.header.len() as u64);
        if self.set.unique {
            let sink = FileSink::new(storage, 0, Vec::new(), None);
            return self.write(Out::Copied(sink), None, budget, threads, progress);
        }
        let total = Some(base + self.data_bytes());
        let sink = FileSink::new(storage, 0, Vec::new(), total);
        self.write(Out::File(sink), Some(base), budget, threads, progress)
    }

    /// As [`Distributed::write_to_storage`], to a stream.
    ///
    /// # Errors
    /// As there, and the writer's own.
    pub(crate) fn write_to(
        self,
        writer: &mut (dyn Write + Send),
        budget: &Budget,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<(u64, u64)> {
        self.write(Out::Stream(writer, 0), None, budget, threads, progress)
    }

    fn write(
        self,
        mut out: Out<'_>,
        align: Option<u64>,
        budget: &Budget,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<(u64, u64)> {
        let _worker = activity::enter("write");
        progress.phase("sorting buckets", Some(self.header.len() as u64 + self.data_bytes()));
        out.push_bytes(&self.header)?;
        let options = StreamOptions { threads, align, discard: true };
        let (set, pieces) = (Arc::clone(&self.set), self.set.pieces());
        let mut stream = PieceStream::new(set, pieces, stream_room(budget), options, budget)?;
        let counted = self.set.unique.then(|| Arc::clone(&self.set.order));
        let (bytes, records) = drain(&mut stream, out, None, counted.as_deref(), progress)?;
        Ok((bytes, if counted.is_some() { records } else { self.records() }))
    }
}

impl BucketStream {
    /// Writes all of it to `sink`, which stands where the stream was aligned to. Returns the bytes
    /// of the file.
    ///
    /// # Errors
    /// Damage found, a full disk, cancellation, the storage's own, and what a step answers.
    pub(crate) fn write(
        mut self,
        sink: FileSink,
        steps: Steps<'_>,
        progress: &dyn Progress,
    ) -> Result<u64> {
        let _worker = activity::enter("write");
        let out = Out::File(sink);
        Ok(drain(self.pieces(), out, Some(steps), None, progress)?.0)
    }
}

/// Space of a view that is being given back.
pub(crate) struct Giving {
    completions: Completions,
    in_flight: usize,
}

impl Giving {
    pub(crate) fn new() -> Self {
        Giving { completions: Completions::new(), in_flight: 0 }
    }

    /// Waits until all of it is given back. What a file system cannot give back costs space alone.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn finish(&mut self, view: &BucketView) -> Result<()> {
        while self.in_flight > 0 {
            let done = self.completions.wait(&*view.files()[0].clock());
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }

    fn submit(&mut self, file: &dyn Storage, offset: u64, len: u64) -> Result<()> {
        file.submit(0, Operation::Discard { offset, len }, &self.completions);
        self.in_flight += 1;
        while let Some(done) = self.completions.poll() {
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }
}

impl BucketView {
    /// Begins to give back the space of the bytes of `range`, both ends of which are where pieces
    /// begin. They are not read again.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn release(&self, range: Range<u64>, giving: &mut Giving) -> Result<()> {
        let set = self.set();
        let mut start = 0;
        for bucket in &set.buckets {
            let end = start + bucket.bytes;
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                release_part(set, bucket, from - start..to - start, giving)?;
            }
            start = end;
        }
        Ok(())
    }
}

/// `part` begins with a block of `bucket` and ends with one.
fn release_part(
    set: &BucketSet,
    bucket: &Bucket,
    part: Range<u64>,
    giving: &mut Giving,
) -> Result<()> {
    let mut start = 0;
    for extent in &bucket.extents {
        let (from, to) = (part.start.max(start), part.end.min(start + extent.bytes));
        if from < to {
            let offset = extent.physical + (from - start);
            let len = (to - from).next_multiple_of(4096);
            giving.submit(&*set.files[extent.file as usize], offset, len)?;
        }
        start += extent.bytes;
    }
    Ok(())
}
