//! Batches of a view, for readers that ask for one after the other.
//!
//! ```text
//!   made        nothing runs, and no memory is taken
//!   first next  a thread merges and decodes ─► at most AHEAD batches ─► next, next, ...
//!   dropped     the thread ends, and its memory is free again
//! ```
//!
//! A program may make several readers and use one: DuckDB asks for three in a query.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use merganser_sort::Error;

use super::{RowsWanted, TableView};
use crate::TableError;

/// Batches that are decoded before they are asked for: one is read while the next one is made.
const AHEAD: usize = 1;

type Decoded = Result<RecordBatch, TableError>;

/// Rows of a view as batches. It does nothing until the first one is asked for.
pub struct ViewBatches {
    view: Arc<TableView>,
    wanted: RowsWanted,
    columns: Option<Vec<String>>,
    schema: SchemaRef,
    state: State,
}

enum State {
    Made,
    Reading { batches: Receiver<Decoded>, thread: JoinHandle<()> },
    Ended,
}

impl ViewBatches {
    /// These rows of `view`, with these columns or with all.
    ///
    /// # Errors
    /// A column that is not there.
    pub fn new(
        view: &Arc<TableView>,
        wanted: RowsWanted,
        columns: Option<Vec<String>>,
    ) -> Result<ViewBatches, TableError> {
        let schema = view.schema_of(columns.as_deref())?;
        Ok(ViewBatches { view: Arc::clone(view), wanted, columns, schema, state: State::Made })
    }

    /// The columns of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn begin(&mut self) -> std::io::Result<State> {
        let (sender, batches) = sync_channel(AHEAD);
        let view = Arc::clone(&self.view);
        let (wanted, columns) = (self.wanted.clone(), self.columns.take());
        let work = move || send_all(&view, &wanted, columns.as_deref(), &sender);
        let thread = merganser_storage::thread::spawn("view", work)?;
        Ok(State::Reading { batches, thread })
    }

    /// Waits for the thread, whose batches are no longer wanted.
    fn end(&mut self) -> std::thread::Result<()> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Reading { batches, thread } => {
                drop(batches);
                thread.join()
            }
            State::Made | State::Ended => Ok(()),
        }
    }
}

fn send_all(
    view: &TableView,
    wanted: &RowsWanted,
    columns: Option<&[String]>,
    to: &SyncSender<Decoded>,
) {
    let send = |batch| to.send(Ok(batch)).map_err(|_| Error::Cancelled.into());
    if let Err(error) = view.batches(wanted, columns, send) {
        // It fails only if the reader is gone.
        let _ = to.send(Err(error));
    }
}

impl Iterator for ViewBatches {
    type Item = Decoded;

    /// The next batch. Nothing follows an error.
    ///
    /// # Panics
    /// With the panic of the thread that decodes.
    fn next(&mut self) -> Option<Decoded> {
        if matches!(self.state, State::Made) {
            match self.begin() {
                Ok(reading) => self.state = reading,
                Err(error) => {
                    self.state = State::Ended;
                    return Some(Err(Error::from(error).into()));
                }
            }
        }
        let State::Reading { batches, .. } = &self.state else { return None };
        match batches.recv() {
            Ok(Ok(batch)) => Some(Ok(batch)),
            last => {
                if let Err(panic) = self.end() {
                    std::panic::resume_unwind(panic);
                }
                last.ok()
            }
        }
    }
}

impl Drop for ViewBatches {
    fn drop(&mut self) {
        // A reader that comes next gets the memory of this one, so it has to be back.
        let _ = self.end();
    }
}
