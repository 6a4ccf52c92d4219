//! Sorts of lines and of other records that are no tables.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::files::{FileStorage, UnfinishedView, view_name};
use merganser_sort::key::{OrderSpec, parse_separator};
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::SortInput;
use merganser_sort::{Budget, SortOptions, SortOutput, sort};
use merganser_storage::Storage;
use merganser_storage::file::descriptors;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::failure::{Failure, on};
use crate::output;
use crate::work::{Callers, run};

/// Descriptors that a merge needs in addition to its inputs.
const OTHER_DESCRIPTORS: u64 = 16;

/// A sort of records, as Python asks for it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RecordsJob {
    paths: Vec<PathBuf>,
    /// The bytes of an array, instead of files.
    array: Option<PyBackedBytes>,
    /// A file, or a view.
    output: Option<PathBuf>,
    view: Option<PathBuf>,
    /// Such as `lines` or `fixed:100`.
    format: String,
    keys: Vec<String>,
    /// GNU sort's letters for keys without any.
    options: String,
    separator: Option<String>,
    header: bool,
    stable: bool,
    unique: bool,
    top: Option<u64>,
    sorted_inputs: bool,
    memory: u64,
    threads: usize,
    temp: Vec<PathBuf>,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
}

/// What a sort did.
#[derive(IntoPyObject)]
pub(crate) struct RecordsDone {
    records: u64,
    runs: u64,
    merged: bool,
}

fn order(job: &RecordsJob) -> Result<OrderSpec, Failure> {
    let number = |typed: &str| typed.parse::<u64>().map_err(|error| error.to_string());
    let mut format = Format::parse(&job.format, &number)
        .map_err(|error| Failure::Key(format!("format: {error}")))?;
    let separator = job.separator.as_ref().map(|typed| parse_separator(typed.as_bytes()));
    let mut separator = separator.transpose()?;
    if let Format::Csv { separator: of_rows, header, .. } = &mut format {
        *header = job.header;
        *of_rows = separator.take().unwrap_or(*of_rows);
    } else if job.header {
        return Err(Failure::Key("header: only rows of csv have one".to_owned()));
    }
    let spec = OrderSpec {
        format,
        keys: job.keys.clone(),
        options: job.options.clone(),
        separator,
        stable: job.stable,
        unique: job.unique,
        salt: 0,
        header_prefixes: Vec::new(),
    };
    if !format.has_header() {
        spec.compile(None)?;
    }
    Ok(spec)
}

fn input(path: &Path, order: &OrderSpec, budget: &Budget) -> Result<SortInput, Failure> {
    let metadata = std::fs::metadata(path).map_err(on(path))?;
    let opened = if metadata.is_file() || metadata.is_dir() {
        SortInput::Storage(FileStorage::open_path(path, false)? as Arc<dyn Storage>)
    } else {
        let reader = Box::new(File::open(path).map_err(on(path))?);
        SortInput::Stream { name: path.display().to_string(), reader }
    };
    Ok(opened.unpacked(order.format.content(), budget)?)
}

/// Does `job` in a thread, and waits for it.
#[pyfunction]
pub(crate) fn sort_records(py: Python<'_>, job: &Bound<'_, PyDict>) -> PyResult<RecordsDone> {
    let mut job: RecordsJob = job.extract()?;
    let callers = Callers { progress: job.progress.take(), cancel: job.cancel.take() };
    run(py, &callers, move |watch| {
        let order = order(&job)?;
        let budget = Budget::new(job.memory);
        let inputs = job.paths.iter().map(|path| input(path, &order, &budget));
        let mut inputs = inputs.collect::<Result<Vec<_>, Failure>>()?;
        if let Some(bytes) = job.array.take() {
            // As they are: numbers may look like the first bytes of a compressed file.
            let reader = Box::new(Cursor::new(bytes));
            inputs.push(SortInput::Stream { name: "the array".to_owned(), reader });
        }
        let temp = output::temp(&job.temp);
        if let (true, Some(path)) = (job.sorted_inputs, &job.output) {
            let mut to = output::open(path, watch)?;
            let with = Merging {
                order: &order,
                budget: &budget,
                temp: &temp,
                temp_limit_bytes: None,
                inputs_max: usize::try_from(
                    (descriptors::left().saturating_sub(OTHER_DESCRIPTORS) / 2).max(2),
                )
                .unwrap_or(usize::MAX),
            };
            let records = merge_sorted(inputs, &with, &**watch, |piece| {
                to.write_all(piece.bytes)?;
                Ok(true)
            })?;
            to.finish()?;
            return Ok(RecordsDone { records, runs: 0, merged: true });
        }
        let options =
            SortOptions::new(order).budget(&budget).threads(job.threads).temp(temp).top(job.top);
        let sort = |to: SortOutput<'_>| sort(inputs, to, &options, &**watch);
        let done = match (&job.output, &job.view) {
            (Some(path), _) => {
                let mut to = output::open(path, watch)?;
                let done = match to.storage() {
                    Some(storage) => sort(SortOutput::Storage(storage))?,
                    None => sort(SortOutput::Writer(&mut to))?,
                };
                to.finish()?;
                done
            }
            (None, Some(path)) => {
                let inputs: Vec<&Path> = job.paths.iter().map(PathBuf::as_path).collect();
                let view = UnfinishedView::create(path, &inputs)?;
                let folder = view.directory();
                let done = sort(SortOutput::View { folder, name: view_name(path) })?;
                view.publish()?;
                done
            }
            (None, None) => unreachable!("records have an output"),
        };
        Ok(RecordsDone { records: done.records, runs: done.runs, merged: false })
    })
}
