//! Views of tables as streams of typed columns: all rows of one, or a range of rows or keys.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use merganser_serve::session::{Grant, ROW_BYTES_MAX, SessionError};
use merganser_sort::view::Manifest;
use merganser_sort::{Budget, Error};
use merganser_storage::Directory;
use merganser_tables::{BatchSize, RowsWanted, TableError, TableView};

use crate::outlet::{BatchOutlet, COPIES, StreamEnd, StreamLender, batch_bytes};
use crate::view_access::{THREADS, ViewMemory, refuse_unordered, told, with_memory};
use crate::wire::{KeyRange, ViewTicket};

/// Bytes that a value takes in a batch, at least: rows of nulls are short, and their batches are not.
const VALUE_BYTES: usize = 16;

/// The columns of `ticket` in the view with this manifest.
pub(crate) fn schema_in(
    manifest: &Manifest,
    ticket: &ViewTicket,
) -> Result<SchemaRef, SessionError> {
    refuse_bytes(ticket)?;
    let found = TableView::schema_in(manifest, ticket.columns.as_deref());
    found.map_err(|error| told(&ticket.view, &error))
}

/// An open part of a view of a table.
pub(crate) struct TablePart {
    path: String,
    view: TableView,
    rows: RowsWanted,
    columns: Option<Vec<String>>,
    schema: SchemaRef,
    size: BatchSize,
    /// Given back after the view, which is declared before it.
    _memory: ViewMemory,
}

impl TablePart {
    /// Opens the view of `ticket` in `folder`, and finds its part.
    pub(crate) fn open(
        lender: &StreamLender,
        folder: &Arc<dyn Directory>,
        ticket: &ViewTicket,
    ) -> Result<Self, SessionError> {
        refuse_bytes(ticket)?;
        let path = ticket.view.clone();
        let open = |budget: &Budget| TableView::open(folder, budget, THREADS);
        let (view, memory) = with_memory(lender, &path, open)?;
        let rows = rows(&view, ticket)?;
        let columns = ticket.columns.clone();
        let schema = view.schema_of(columns.as_deref()).map_err(|error| told(&path, &error))?;
        let bytes = batch_bytes(memory.batches);
        // All columns are decoded, and then some of them sent.
        let row_bytes = VALUE_BYTES * (view.schema().fields().len() + 1);
        let default = BatchSize::default();
        let rows_most = (bytes / 2 / row_bytes).clamp(1, default.rows);
        let size = BatchSize { rows: rows_most, bytes: bytes / 2, row_bytes: ROW_BYTES_MAX };
        Ok(TablePart { path, view, rows, columns, schema, size, _memory: memory })
    }

    /// Its columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Hands its rows to `outlet`.
    pub(crate) fn send(&self, outlet: &BatchOutlet) -> Result<(), StreamEnd> {
        let columns = (self.columns.as_deref(), self.size);
        // Memory for batches of long rows.
        let mut more: Option<Grant> = None;
        let mut ended = None;
        let send = |batch: RecordBatch| {
            // The capacity of a column may be twice what is in it.
            let held: usize = batch.columns().iter().map(|c| c.get_buffer_memory_size()).sum();
            let is_long = held > 4 * self.size.bytes;
            let handed = match &more {
                None if is_long => outlet
                    .memory((COPIES * ROW_BYTES_MAX) as u64)
                    .map(|memory| more = Some(memory))
                    .map_err(StreamEnd::from),
                _ => Ok(()),
            };
            handed.and_then(|()| outlet.send(batch).map_err(StreamEnd::from)).map_err(|end| {
                ended = Some(end);
                TableError::from(Error::Cancelled)
            })
        };
        let done = self.view.batches_of(&self.rows, columns, send);
        match (done, ended) {
            (_, Some(end)) => Err(end),
            (Ok(_), None) => Ok(()),
            (Err(error), None) => Err(told(&self.path, &error).into()),
        }
    }
}

/// Rows of a table are columns, which have no bytes of their own.
fn refuse_bytes(ticket: &ViewTicket) -> Result<(), SessionError> {
    if ticket.bytes.is_none() {
        return Ok(());
    }
    let told = format!("{}: bytes: it is a table; ask for records, or for keys", ticket.view);
    Err(SessionError::Invalid(told))
}

/// The rows that `ticket` asks for: between two numbers, or those whose first key is from one value on and before another.
fn rows(view: &TableView, ticket: &ViewTicket) -> Result<RowsWanted, SessionError> {
    let mut rows = RowsWanted::default();
    if let Some((start, end)) = ticket.records {
        refuse_unordered(&ticket.view, "records", (start, end), view.rows_count())?;
        (rows.start, rows.end) = (Some(start), end);
    }
    if let Some(KeyRange { from, to }) = &ticket.keys {
        let row = |typed: &Option<String>| {
            let found = typed.as_ref().map(|typed| view.row_of_key(typed)).transpose();
            found.map_err(|error| told(&ticket.view, &error))
        };
        (rows.start, rows.end) = (row(from)?, row(to)?);
        if rows.start.zip(rows.end).is_some_and(|(start, end)| start > end) {
            let path = &ticket.view;
            let told =
                format!("{path}: keys: \"to\" comes before \"from\" in the order of the view");
            return Err(SessionError::Invalid(told));
        }
    }
    Ok(rows)
}
