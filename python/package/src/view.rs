//! Views, opened: of tables and of records.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use merganser_sort::files::FileDirectory;
use merganser_sort::record::Format;
use merganser_sort::view::{Manifest, View};
use merganser_sort::{Budget, Error};
use merganser_storage::{Directory, Storage};
use merganser_tables::{RowsWanted, TableError, TableView, ViewBatches};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::failure::Failure;
use crate::process;
use crate::stream::{CountedBatches, StreamsDone, capsule, schema_capsule};
use crate::value::key_value;
use crate::work::{Callers, run};

/// Streams of a view that are read at once, where its memory allows it: a query of DuckDB with a join has two or three.
const STREAMS: u64 = 4;

/// Bytes that are read at a time for records, one after the other.
const PIECE_BYTES: u64 = 1 << 20;

/// An open view. Python's `View` and all its slices share one.
#[pyclass(frozen, module = "merganser._merganser")]
pub(crate) struct OpenedView {
    kind: Kind,
    done: Arc<StreamsDone>,
}

enum Kind {
    Table(Arc<TableView>),
    Records(Arc<View>),
}

impl OpenedView {
    fn table(&self) -> PyResult<&Arc<TableView>> {
        process::check()?;
        match &self.kind {
            Kind::Table(view) => Ok(view),
            Kind::Records(view) => Err(Failure::Other(format!(
                "{}: is a view of records, which have no columns; read its lines() or bytes",
                view.name()
            ))
            .into()),
        }
    }

    fn records(&self) -> PyResult<&Arc<View>> {
        process::check()?;
        match &self.kind {
            Kind::Records(view) => Ok(view),
            Kind::Table(_) => Err(Failure::Other(
                "the view is one of a table, which has rows and no lines".to_owned(),
            )
            .into()),
        }
    }
}

/// Opens a view so that several streams fit into `memory`. A view plans its streams with the memory that is free when it is
/// opened, and one would take most of it: so a part of it is held meanwhile, if the view can be opened with the rest.
fn open_for_several(
    folder: &Arc<dyn Directory>,
    memory: u64,
    threads: usize,
) -> Result<Kind, Failure> {
    let is_table = TableView::is_one(&Manifest::read(folder)?);
    let open = |streams: u64| {
        let budget = Budget::new(memory);
        let _held = budget.reserve(memory - memory / streams, "other streams of this view")?;
        Ok::<_, Failure>(if is_table {
            Kind::Table(Arc::new(TableView::open(folder, &budget, threads)?))
        } else {
            Kind::Records(Arc::new(View::open(folder, &budget, threads)?))
        })
    };
    for streams in [STREAMS, STREAMS / 2] {
        match open(streams) {
            Err(Failure::Engine(Error::Memory { .. } | Error::Threads { .. })) => {}
            opened => return opened,
        }
    }
    open(1)
}

/// While a view is opened, only signals are looked at.
const NO_CALLERS: Callers = Callers { progress: None, cancel: None };

#[pymethods]
impl OpenedView {
    /// Opens the view in the folder `path`, with `memory` bytes for all that read it at once.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, memory: u64, threads: usize) -> PyResult<OpenedView> {
        run(py, &NO_CALLERS, move |_| {
            let folder: Arc<dyn Directory> = FileDirectory::open(&path)?;
            let kind = open_for_several(&folder, memory, threads)?;
            Ok(OpenedView { kind, done: Arc::default() })
        })
    }

    /// Whether it is one of a table.
    #[getter]
    fn is_table(&self) -> bool {
        matches!(self.kind, Kind::Table(_))
    }

    /// Rows or records.
    #[getter]
    fn rows(&self) -> u64 {
        match &self.kind {
            Kind::Table(view) => view.rows_count(),
            Kind::Records(view) => view.records(),
        }
    }

    /// Rows that all its streams have handed out so far.
    #[getter]
    fn rows_read(&self) -> u64 {
        self.done.rows.load(Ordering::Relaxed)
    }

    /// Raises the last error of a stream, if there was one. It is forgotten then.
    fn raise_failure(&self) -> PyResult<()> {
        match self.done.failure.lock().take() {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    /// The order, as `merganser sort` takes it.
    #[getter]
    fn order(&self) -> String {
        match &self.kind {
            Kind::Table(view) => view.order(),
            Kind::Records(view) => view.order().spec().keys.join(", "),
        }
    }

    /// The first column of the key and whether it descends; None for records and shuffled tables.
    #[getter]
    fn first_key(&self) -> Option<(String, bool)> {
        match &self.kind {
            Kind::Table(view) => {
                view.first_key().map(|(name, descending)| (name.to_owned(), descending))
            }
            Kind::Records(_) => None,
        }
    }

    /// The format of records, such as `fixed:100`, and the bytes of each if that is one number.
    #[getter]
    fn record_format(&self) -> PyResult<(String, Option<usize>)> {
        let format = self.records()?.order().format();
        let bytes = match format {
            Format::Fixed { bytes } => Some(bytes),
            _ => None,
        };
        Ok((format.typed(), bytes))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> PyResult<Vec<String>> {
        let schema = self.table()?.schema();
        Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    /// The schema of these columns, or of all, as a capsule.
    #[expect(clippy::needless_pass_by_value, reason = "the names are made of a list of Python")]
    fn schema<'py>(
        &self,
        py: Python<'py>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.table()?.schema_of(columns.as_deref()).map_err(Failure::from)?;
        schema_capsule(py, &schema)
    }

    /// A stream of the rows from `start` to `end`, as a capsule. Nothing is read before its first batch.
    fn stream<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
        columns: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let wanted = RowsWanted { start: Some(start), end: Some(end), head: None };
        let batches = ViewBatches::new(self.table()?, wanted, columns).map_err(Failure::from)?;
        capsule(py, Box::new(CountedBatches::new(batches, Arc::clone(&self.done))))
    }

    /// The rows whose first key is between two values, both included; None is no bound. Rows without a value are not
    /// among them. If `exact` is false, the bounds may be rounded to what the column can have.
    fn range_of(
        &self,
        py: Python<'_>,
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
        exact: bool,
    ) -> PyResult<(u64, u64)> {
        let view = self.table()?;
        let Some((column, descending)) = view.first_key() else {
            let why = "the rows of the view are in no order, so they have no ranges".to_owned();
            return Err(Failure::Key(why).into());
        };
        let data_type = view.key_type().expect("of the first key");
        let value = |bound: &Bound<'_, PyAny>| match bound.is_none() {
            true => Ok(None),
            false => key_value(bound, (column, data_type), exact).map(Some),
        };
        let (low, high) = (value(low)?, value(high)?);
        let (first, last) = if descending { (high, low) } else { (low, high) };
        let view = Arc::clone(view);
        run(py, &NO_CALLERS, move |_| {
            let values = view.rows_with_a_value()?;
            let found = |row: Result<u64, TableError>| row.map_err(Failure::from);
            let start = first.map(|value| found(view.row_of_value(&value))).transpose()?;
            let end = last.map(|value| found(view.row_behind_value(&value))).transpose()?;
            let start = start.unwrap_or(values.start).max(values.start);
            let end = end.unwrap_or(values.end).min(values.end);
            Ok((start, end.max(start)))
        })
    }

    /// The bytes of the records from `start` to `end`.
    fn record_bytes<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let view = Arc::clone(self.records()?);
        let bytes = run(py, &NO_CALLERS, move |watch| {
            use merganser_sort::Progress as _;
            let (from, to) = (view.offset_of_record(start)?, view.offset_of_record(end)?);
            let len = to.saturating_sub(from);
            let too_many = |_| Failure::Other(format!("no memory for {len} bytes"));
            let mut bytes = Vec::new();
            bytes
                .try_reserve_exact(usize::try_from(len).unwrap_or(usize::MAX))
                .map_err(too_many)?;
            let mut stream = view.stream(from..to)?;
            while let Some(piece) = stream.next_bytes()? {
                bytes.extend_from_slice(piece);
                if watch.cancelled() {
                    return Err(Error::Cancelled.into());
                }
            }
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The records from `start` to `end`, one after the other.
    fn each_record(&self, start: u64, end: u64) -> PyResult<ViewRecords> {
        let view = Arc::clone(self.records()?);
        let format = view.order().format();
        let place = Place { at: None, rows: start..end, piece: Vec::new(), used: 0, end: 0 };
        Ok(ViewRecords { view, format, place: Mutex::new(place) })
    }
}

/// Records of a view, one after the other.
#[pyclass(frozen, module = "merganser._merganser")]
pub(crate) struct ViewRecords {
    view: Arc<View>,
    format: Format,
    place: Mutex<Place>,
}

struct Place {
    /// Where the next piece begins; `None` before the first one.
    at: Option<u64>,
    rows: std::ops::Range<u64>,
    piece: Vec<u8>,
    used: usize,
    /// Where the last record ends.
    end: u64,
}

impl ViewRecords {
    /// The next record, without the end of its line.
    fn next_record(&self) -> Result<Option<Vec<u8>>, Failure> {
        let mut place = self.place.lock();
        let Some(len) = self.find(&mut place)? else { return Ok(None) };
        let start = place.used;
        place.used += len;
        let record = &place.piece[start..start + len];
        let end: &[u8] = match self.format {
            Format::Lines { delimiter } => &[delimiter],
            Format::Csv { .. } => b"\n",
            _ => b"",
        };
        Ok(Some(record.strip_suffix(end).unwrap_or(record).to_vec()))
    }

    /// The length of the next record, which is in the piece then.
    fn find(&self, place: &mut Place) -> Result<Option<usize>, Failure> {
        if place.rows.is_empty() {
            return Ok(None);
        }
        if place.at.is_none() {
            place.at = Some(self.view.offset_of_record(place.rows.start)?);
            place.end = self.view.offset_of_record(place.rows.end)?;
        }
        let mut wanted = PIECE_BYTES;
        loop {
            let rest = &place.piece[place.used..];
            let at = place.at.expect("set above");
            let is_all = at >= place.end;
            let len = match is_all {
                false => self.format.record_len(rest),
                true => self.format.first_len(rest),
            };
            if let Some(len) = len.filter(|_| !rest.is_empty()) {
                place.rows.start += 1;
                return Ok(Some(len));
            }
            if is_all {
                let what = "the records and their number contradict each other";
                return Err(Failure::Other(format!("{}: {what}", self.view.name())));
            }
            place.piece.drain(..place.used);
            place.used = 0;
            let len = wanted.min(place.end - at) as usize;
            let old = place.piece.len();
            place.piece.resize(old + len, 0);
            let read =
                merganser_storage::StorageExt::read_at(&*self.view, at, &mut place.piece[old..]);
            let read = read.inspect_err(|_| place.piece.truncate(old))?;
            place.piece.truncate(old + read);
            place.at = Some(at + read as u64);
            wanted *= 2;
        }
    }
}

#[pymethods]
impl ViewRecords {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next record, without the end of its line.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        process::check()?;
        py.check_signals()?;
        // Another thread may hold the place while it waits for the interpreter's lock.
        let record = py.detach(|| self.next_record())?;
        Ok(record.map(|record| PyBytes::new(py, &record)))
    }
}
