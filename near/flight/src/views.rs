//! Views as streams of records: all of one, or a range of records, bytes or keys.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use merganser_serve::session::{Grant, ROW_BYTES_MAX, SessionError, Sessions};
use merganser_sort::record::{Framing, FramingVisitor};
use merganser_sort::view::{Manifest, TypedKeyError, View, unescape_key};
use merganser_sort::{Budget, Error};
use merganser_storage::{Directory, Storage};

use crate::batches;
use crate::outlet::{BATCH_BYTES_MIN, BatchOutlet, COPIES, StreamEnd, StreamLender, batch_bytes};
use crate::wire::{KeyRange, ViewTicket};

/// Memory that a view's stream would like, in bytes: to read ahead on every run of it. It gets its share of the memory
/// for streams, or the least that works.
const MEMORY_BYTES: u64 = 64 << 20;
/// The least memory for the view itself.
const VIEW_BYTES_MIN: u64 = 4 << 20;
/// The share of a stream's memory that is for batches, 1 / 4. The view gets the rest.
const BATCH_SHARE: u64 = 4;
/// Bytes of a batch, if there is memory. A client that takes one in a few seconds does not stand still.
const BATCH_BYTES: usize = 256 << 10;
/// Threads that make the bytes of a view for one stream.
const THREADS: usize = 2;

/// Rows and bytes of the view at `path`: its header is a row of its own.
pub(crate) fn size(sessions: &Sessions, path: &str) -> Result<(u64, u64), SessionError> {
    let folder: Arc<dyn Directory> = sessions.data().folder(path)?;
    let manifest = Manifest::read(&folder).map_err(|e| engine(path, &e))?;
    if manifest.is_unreduced() {
        return Err(SessionError::Invalid(format!(
            "{path}: its rows are combined when they are read, so it has no size and can't be served"
        )));
    }
    // A byte order mark alone is no row.
    let has_header = manifest.order.format.has_header() && !manifest.preamble.is_empty();
    Ok((manifest.records + u64::from(has_header), manifest.size_bytes))
}

/// An open part of a view.
pub(crate) struct ViewPart {
    path: String,
    view: View,
    range: Range<u64>,
    /// Whether rows are records; otherwise they are pieces of any size.
    whole_records: bool,
    batch_bytes: usize,
    /// Given back after the view, which is declared before it.
    _memory: Grant,
}

/// Sends the records of a part.
struct SendRecords<'a> {
    part: &'a ViewPart,
    schema: &'a SchemaRef,
    outlet: &'a BatchOutlet,
}

impl FramingVisitor for SendRecords<'_> {
    type Output = Result<(), StreamEnd>;

    fn visit<F: Framing>(self, framing: F) -> Self::Output {
        self.part.send_records(framing, self.schema, self.outlet)
    }
}

impl ViewPart {
    /// Opens the view of `ticket`, and finds its part.
    pub(crate) fn open(lender: &StreamLender, ticket: &ViewTicket) -> Result<Self, SessionError> {
        let path = ticket.view.clone();
        let folder: Arc<dyn Directory> = lender.sessions().data().folder(&path)?;
        let mut least = VIEW_BYTES_MIN + (COPIES * BATCH_BYTES_MIN) as u64;
        loop {
            let memory = lender.memory(MEMORY_BYTES.max(least), least)?;
            let all = memory.memory_bytes();
            let most = (COPIES * BATCH_BYTES) as u64;
            let of_batches = (all / BATCH_SHARE).clamp((COPIES * BATCH_BYTES_MIN) as u64, most);
            match View::open(&folder, &Budget::new(all - of_batches), THREADS) {
                Ok(view) => {
                    let range = range(&view, ticket)?;
                    let batch_bytes = batch_bytes(of_batches);
                    let whole_records = ticket.bytes.is_none();
                    return Ok(ViewPart {
                        path,
                        view,
                        range,
                        whole_records,
                        batch_bytes,
                        _memory: memory,
                    });
                }
                // Once more with what it says that it needs; the system says if that is never there.
                Err(Error::Memory { least_bytes, .. }) if least_bytes > all - of_batches => {
                    drop(memory);
                    least = least_bytes + least_bytes / BATCH_SHARE + most;
                }
                Err(error) => return Err(engine(&path, &error)),
            }
        }
    }

    /// Hands its records to `outlet`.
    pub(crate) fn send(&self, schema: &SchemaRef, outlet: &BatchOutlet) -> Result<(), StreamEnd> {
        if !self.whole_records {
            return self.send_pieces(schema, outlet);
        }
        self.view.order().format().with(SendRecords { part: self, schema, outlet })
    }

    fn send_records(
        &self,
        framing: impl Framing,
        schema: &SchemaRef,
        outlet: &BatchOutlet,
    ) -> Result<(), StreamEnd> {
        let failed = |error: Error| StreamEnd::Error(engine(&self.path, &error));
        let fresh = || Vec::with_capacity(self.batch_bytes + self.batch_bytes / 8);
        // The last record in `values` may lack its end.
        let (mut ends, mut values) = (vec![0_i32], fresh());
        let mut range = self.range.clone();
        let preamble = &self.view.manifest().preamble;
        if range.start == 0 && !preamble.is_empty() {
            // A header row is a row of its own, with a byte order mark before it; a mark alone isn't a row.
            range.start = range.end.min(preamble.len() as u64);
            if self.view.order().format().has_header() && range.start == preamble.len() as u64 {
                values.extend_from_slice(preamble);
                ends.push(i32::try_from(values.len()).expect("a header is short"));
            }
        }
        let mut stream = self.view.stream(range).map_err(failed)?;
        // Memory for records that are longer than a batch.
        let mut more = None;
        while let Some(mut bytes) = stream.next_bytes().map_err(failed)? {
            while !bytes.is_empty() {
                let room = self.batch_bytes.saturating_sub(values.len()).max(self.batch_bytes / 8);
                let (now, later) = bytes.split_at(bytes.len().min(room));
                values.extend_from_slice(now);
                bytes = later;
                let mut at = end_of(&ends);
                while let Some(len) = framing.next(&values[at..]) {
                    at += len;
                    ends.push(i32::try_from(at).expect("batches are small"));
                }
                if values.len() - at > ROW_BYTES_MAX {
                    let path = &self.path;
                    let told = format!(
                        "{path}: a record has more than {ROW_BYTES_MAX} bytes; ask for bytes, not records"
                    );
                    return Err(SessionError::Invalid(told).into());
                }
                if values.len() - at > self.batch_bytes && more.is_none() {
                    more = Some(outlet.memory((COPIES * ROW_BYTES_MAX) as u64)?);
                }
                if values.len() >= self.batch_bytes && at > 0 {
                    let mut next = fresh();
                    next.extend_from_slice(&values[at..]);
                    values.truncate(at);
                    let full = std::mem::replace(&mut values, next);
                    let ends = std::mem::replace(&mut ends, vec![0]);
                    outlet.send(batches::records(schema, ends, full))?;
                }
            }
        }
        // The rest is a record without a terminator of its own: the last one, or one that ends where the next one begins.
        if values.len() > end_of(&ends) {
            ends.push(i32::try_from(values.len()).expect("batches are small"));
        }
        if ends.len() > 1 {
            outlet.send(batches::records(schema, ends, values))?;
        }
        Ok(())
    }

    fn send_pieces(&self, schema: &SchemaRef, outlet: &BatchOutlet) -> Result<(), StreamEnd> {
        let failed = |error: Error| StreamEnd::Error(engine(&self.path, &error));
        let mut stream = self.view.stream(self.range.clone()).map_err(failed)?;
        while let Some(bytes) = stream.next_bytes().map_err(failed)? {
            for piece in bytes.chunks(self.batch_bytes) {
                let end = i32::try_from(piece.len()).expect("batches are small");
                outlet.send(batches::records(schema, vec![0, end], piece.to_vec()))?;
            }
        }
        Ok(())
    }
}

/// Where the last record of `ends` ends.
fn end_of(ends: &[i32]) -> usize {
    ends.last().map_or(0, |end| *end as usize)
}

/// The bytes of the view that `ticket` asks for, as `merganser cat` takes them: a range of records or
/// keys leaves the header out.
fn range(view: &View, ticket: &ViewTicket) -> Result<Range<u64>, SessionError> {
    let failed = |error: Error| engine(&ticket.view, &error);
    let size = view.size();
    let header = view.manifest().preamble.len() as u64;
    let (start, end) = match (ticket.records, ticket.bytes, &ticket.keys) {
        (Some((start, end)), ..) => {
            let there = view.records();
            refuse_unordered(&ticket.view, "records", (start, end), there)?;
            let end = end.map_or(Ok(size), |end| view.offset_of_record(end)).map_err(failed)?;
            (view.offset_of_record(start).map_err(failed)?, end)
        }
        (_, Some((start, end)), _) => {
            refuse_unordered(&ticket.view, "bytes", (start, end), size)?;
            (start, end.unwrap_or(size))
        }
        (.., Some(KeyRange { from, to })) => {
            let key = |typed: &Option<String>| {
                typed.as_ref().map(|typed| typed_key(view, &ticket.view, typed)).transpose()
            };
            let (from, to) = (key(from)?, key(to)?);
            if from.as_ref().zip(to.as_ref()).is_some_and(|(from, to)| from > to) {
                let path = &ticket.view;
                let told =
                    format!("{path}: keys: \"to\" comes before \"from\" in the order of the view");
                return Err(SessionError::Invalid(told));
            }
            let place = |key: Vec<u8>| view.offset_of_key(&key).map_err(failed);
            (from.map_or(Ok(header), place)?, to.map_or(Ok(size), place)?)
        }
        (None, None, None) => (0, size),
    };
    Ok(start.min(size)..end.max(start).min(size))
}

/// Refuses a range that ends before it begins, or begins behind the end of the view, which is at `there`.
fn refuse_unordered(
    path: &str,
    what: &str,
    (start, end): (u64, Option<u64>),
    there: u64,
) -> Result<(), SessionError> {
    let told = if end.is_some_and(|end| end < start) {
        format!("{path}: {what}: the range ends before it begins, at {start}")
    } else if start > there {
        format!("{path}: {what}: the range begins at {start}, and the view has {there}")
    } else {
        return Ok(());
    };
    Err(SessionError::Invalid(told))
}

/// The key of the view that a client wrote.
fn typed_key(view: &View, path: &str, typed: &str) -> Result<Vec<u8>, SessionError> {
    let key = unescape_key(typed.as_bytes()).ok_or_else(|| {
        SessionError::Invalid("in a key, after \\ comes xHH, t, n, r, 0 or another \\".to_owned())
    })?;
    view.typed_key(&key).map_err(|error| match error {
        TypedKeyError::Refused(why) => {
            SessionError::Invalid(format!("{path}: {why}; use records or bytes"))
        }
        TypedKeyError::Engine(error) => engine(path, &error),
    })
}

/// An error of the engine on the view at `path`.
fn engine(path: &str, error: &Error) -> SessionError {
    match error {
        Error::NotAView { .. } => SessionError::Missing(format!("{path}: it is not a view")),
        // A client does not know the folder's own name.
        error => SessionError::Failed(format!(
            "{path}: {}",
            error.to_string().replace("/proc/self/fd/", "#")
        )),
    }
}
