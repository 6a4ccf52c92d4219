//! Views as streams of records: all of one, or a range of records, bytes or keys. Views of tables are in [`crate::tables`].

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use merganser_serve::session::{ROW_BYTES_MAX, SessionError, Sessions};
use merganser_sort::record::{Framing, FramingVisitor};
use merganser_sort::view::{Manifest, TypedKeyError, View, unescape_key};
use merganser_sort::{Budget, Error};
use merganser_storage::{Directory, Storage};
use merganser_tables::TableView;

use crate::outlet::{BatchOutlet, COPIES, StreamEnd, StreamLender, batch_bytes};
use crate::tables::{self, TablePart};
use crate::view_access::{THREADS, ViewMemory, engine, refuse_unordered, with_memory};
use crate::wire::{KeyRange, ViewTicket};
use crate::{batches, schema};

/// The columns and the size of a view.
pub(crate) struct ViewFacts {
    /// The columns that a ticket gives.
    pub(crate) schema: SchemaRef,
    /// Rows of the whole view: its header is a row of its own.
    pub(crate) records: u64,
    /// Bytes of its records.
    pub(crate) bytes: u64,
}

/// Looks at the view of `ticket`.
pub(crate) fn describe(
    sessions: &Sessions,
    ticket: &ViewTicket,
) -> Result<ViewFacts, SessionError> {
    let path = &ticket.view;
    let folder: Arc<dyn Directory> = sessions.data().folder(path)?;
    let manifest = Manifest::read(&folder).map_err(|e| engine(path, &e))?;
    refuse_unserved(path, &manifest)?;
    let schema = if TableView::is_one(&manifest) {
        tables::schema_in(&manifest, ticket)?
    } else {
        refuse_columns(ticket)?;
        schema::of_view()
    };
    // A byte order mark alone is no row.
    let records = manifest.records + u64::from(manifest.has_header());
    Ok(ViewFacts { schema, records, bytes: manifest.size_bytes })
}

/// Some views have no size, and some would have the node read files that are not below its data folder.
fn refuse_unserved(path: &str, manifest: &Manifest) -> Result<(), SessionError> {
    let why = if manifest.is_unreduced() {
        "its rows are combined when they are read, so it has no size and can't be served"
    } else if manifest.is_in_files() {
        "is a view of a table whose rows are in files of Parquet, which a node does not read"
    } else {
        return Ok(());
    };
    Err(SessionError::Invalid(format!("{path}: {why}")))
}

/// Records have no columns.
fn refuse_columns(ticket: &ViewTicket) -> Result<(), SessionError> {
    if ticket.columns.is_none() {
        return Ok(());
    }
    let told = format!("{}: columns: it has records, and only tables have columns", ticket.view);
    Err(SessionError::Invalid(told))
}

/// An open part of a view, of either kind.
pub(crate) enum OpenedView {
    /// Records.
    Records(Box<ViewPart>),
    /// Rows of a table.
    Table(Box<TablePart>),
}

impl OpenedView {
    /// Opens the view of `ticket`, and finds its part.
    pub(crate) fn open(lender: &StreamLender, ticket: &ViewTicket) -> Result<Self, SessionError> {
        let folder: Arc<dyn Directory> = lender.sessions().data().folder(&ticket.view)?;
        let manifest = Manifest::read(&folder).map_err(|e| engine(&ticket.view, &e))?;
        refuse_unserved(&ticket.view, &manifest)?;
        if TableView::is_one(&manifest) {
            let part = TablePart::open(lender, &folder, ticket)?;
            return Ok(OpenedView::Table(Box::new(part)));
        }
        refuse_columns(ticket)?;
        let part = ViewPart::open(lender, &folder, ticket)?;
        Ok(OpenedView::Records(Box::new(part)))
    }

    /// Its columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            OpenedView::Records(_) => schema::of_view(),
            OpenedView::Table(part) => Arc::clone(part.schema()),
        }
    }

    /// Hands all of it to `outlet`.
    pub(crate) fn send(&self, outlet: &BatchOutlet) -> Result<(), StreamEnd> {
        match self {
            OpenedView::Records(part) => part.send(&schema::of_view(), outlet),
            OpenedView::Table(part) => part.send(outlet),
        }
    }
}

/// An open part of a view of records.
pub(crate) struct ViewPart {
    path: String,
    view: View,
    range: Range<u64>,
    /// Whether rows are records; otherwise they are pieces of any size.
    whole_records: bool,
    batch_bytes: usize,
    /// Given back after the view, which is declared before it.
    _memory: ViewMemory,
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
    /// Opens the view of `ticket` in `folder`, and finds its part.
    fn open(
        lender: &StreamLender,
        folder: &Arc<dyn Directory>,
        ticket: &ViewTicket,
    ) -> Result<Self, SessionError> {
        let path = ticket.view.clone();
        let open = |budget: &Budget| Ok(View::open(folder, budget, THREADS)?);
        let (view, memory) = with_memory(lender, &path, open)?;
        let range = range(&view, ticket)?;
        let batch_bytes = batch_bytes(memory.batches);
        let whole_records = ticket.bytes.is_none();
        Ok(ViewPart { path, view, range, whole_records, batch_bytes, _memory: memory })
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
            // A header is a row of its own, with a byte order mark before it; a mark alone isn't a row.
            range.start = range.end.min(preamble.len() as u64);
            if self.view.manifest().has_header() && range.start == preamble.len() as u64 {
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
