//! Sorts of tables.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use arrow_ipc::reader::StreamReader;
use merganser_sort::Budget;
use merganser_sort::files::{UnfinishedView, view_name};
use merganser_sort::run::Compression;
use merganser_tables::{
    DiskFolder, EqualRows, FolderFiles, HiveColumns, NullsAt, ParquetOptions, Table, TableError,
    TableFormat, TableInput, TableKey, TableOptions, TableOrder, TableOutput, find_files, kind_of,
    sort_table as sort,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::Failure;
use crate::given::table_of;
use crate::output::{self, KeptResult};
use crate::stream::ArrowRows;
use crate::work::{Callers, run};

/// A sort of a table, as Python asks for it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TableJob {
    /// Files, folders and patterns; or `table` is given.
    paths: Vec<PathBuf>,
    table: Option<Py<PyAny>>,
    /// A file, or a view; without either the result stays in memory.
    output: Option<PathBuf>,
    view: Option<PathBuf>,
    /// Name, descending, nulls last. `None` for all columns.
    keys: Option<Vec<(String, bool, bool)>>,
    /// For a random order.
    seed: Option<u64>,
    /// `all`, `first` or `count`.
    equal: String,
    top: Option<u64>,
    sorted_inputs: bool,
    /// `output` is a folder of files, with folders for the values of these columns, and with a limit for the bytes of a file.
    partition_by: Vec<String>,
    file_size: Option<u64>,
    /// Whether names of folders such as `country=FR` are columns of the inputs.
    hive: bool,
    format: Option<String>,
    compression: Option<String>,
    row_group_rows: Option<u64>,
    /// How runs of a view are packed: `off`, `lz4`, `zstd`.
    packed: String,
    memory: u64,
    threads: usize,
    temp: Vec<PathBuf>,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
}

fn unknown<T>(what: &str, word: &str, known: &str) -> Result<T, Failure> {
    Err(Failure::Key(format!("{what}: {word:?} is unknown; choose one of {known}")))
}

fn order(job: &TableJob, table: &Table) -> TableOrder {
    match (job.seed, &job.keys) {
        (Some(seed), _) => TableOrder::Shuffled { seed },
        (None, Some(keys)) => TableOrder::Keys(
            keys.iter()
                .map(|(column, descending, last)| {
                    let mut key = TableKey::ascending(column);
                    key.descending = *descending;
                    key.nulls = if *last { NullsAt::Last } else { NullsAt::First };
                    key
                })
                .collect(),
        ),
        (None, None) => TableOrder::Keys(table.all_columns()),
    }
}

fn parquet(job: &TableJob) -> Result<ParquetOptions, Failure> {
    let mut parquet = ParquetOptions::default();
    if let Some(word) = &job.compression {
        let unknown = |why| Failure::Key(format!("compression: {word:?} is unknown; {why}"));
        parquet.compression = Some(word.parse().map_err(unknown)?);
    }
    if let Some(rows) = job.row_group_rows {
        parquet.group_rows = rows;
    }
    Ok(parquet)
}

/// The format of a result in `file`: as it was asked for, as its name says, or else that of the first input.
fn format(job: &TableJob, file: &Path, first: Option<&Path>) -> Result<TableFormat, Failure> {
    if let Some(word) = &job.format {
        return match TableFormat::of_end(word) {
            Some(format) => Ok(format),
            None => unknown("format", word, "parquet, arrow, arrows, csv, jsonl"),
        };
    }
    if let Some(format) = TableFormat::of_name(file) {
        return Ok(format);
    }
    let Some(first) = first else {
        return Err(Failure::Key(format!(
            "format: the name {} does not say what the result is; choose one of parquet, arrow, arrows, csv, jsonl",
            file.display()
        )));
    };
    Ok(kind_of(first)?.into())
}

/// Refuses a result in a folder whose format or name says that it is no Parquet.
fn refuse_other_format(job: &TableJob, folder: &Path) -> Result<(), Failure> {
    let format = match &job.format {
        Some(word) => TableFormat::of_end(word),
        None => Some(TableFormat::of_name(folder).unwrap_or(TableFormat::Parquet)),
    };
    if format == Some(TableFormat::Parquet) {
        return Ok(());
    }
    let what = "files in a folder are of Parquet; give output_format='parquet'";
    Err(Failure::Key(format!("{}: {what}", folder.display())))
}

/// What a sort did: its report, and the rows of a result in memory.
#[derive(IntoPyObject)]
pub(crate) struct TableDone {
    rows: u64,
    result_rows: u64,
    row_bytes: u64,
    runs: u64,
    merged: bool,
    result: Option<ArrowRows>,
}

/// Does `job` in a thread, and waits for it.
#[pyfunction]
pub(crate) fn sort_table(py: Python<'_>, job: &Bound<'_, PyDict>) -> PyResult<TableDone> {
    let mut job: TableJob = job.extract()?;
    let given = job.table.take();
    let given = given.map(|table| table_of(table.bind(py))).transpose()?;
    let callers = Callers { progress: job.progress.take(), cancel: job.cancel.take() };
    run(py, &callers, move |watch| {
        let (table, files) = match given {
            Some(table) => (table, Vec::new()),
            None => {
                let files = find_files(&job.paths)?;
                let hive = if job.hive { HiveColumns::Read } else { HiveColumns::LeaveOut };
                let inputs: Vec<_> = files.iter().cloned().map(TableInput::File).collect();
                (Table::open_inputs(&inputs, hive)?, files)
            }
        };
        let budget = Budget::new(job.memory);
        let mut options = TableOptions::new(order(&job, &table), budget, output::temp(&job.temp));
        options.equal = match &*job.equal {
            "first" => EqualRows::KeepFirst,
            "count" => EqualRows::Count,
            _ => EqualRows::KeepAll,
        };
        options.top = job.top;
        options.sorted_inputs = job.sorted_inputs;
        options.threads = job.threads;
        options.packed = match &*job.packed {
            "off" => Compression::Off,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            word => return unknown("packed", word, "off, lz4, zstd"),
        };
        options.parquet = parquet(&job)?;
        let sort = |to| sort(&table, to, &options, &**watch);
        let mut result = None;
        let done = match (&job.output, &job.view) {
            (Some(path), _) if job.file_size.is_some() || !job.partition_by.is_empty() => {
                refuse_other_format(&job, path)?;
                let wanted = FolderFiles {
                    partition_by: job.partition_by.clone(),
                    file_bytes: job.file_size,
                };
                // Before a folder for unfinished work is made.
                wanted.check(&options).map_err(TableError::from)?;
                let unfinished = output::begin_files(path, &files)?;
                let folder = DiskFolder::new(&unfinished.path());
                let done = sort(TableOutput::Folder { folder: &folder, files: wanted })?;
                unfinished.publish()?;
                done
            }
            (Some(path), _) => {
                let format = format(&job, path, files.first().map(PathBuf::as_path))?;
                output::refuse_compressed(path)?;
                let mut to = output::open(path, watch)?;
                let done = sort(TableOutput::Bytes { to: &mut to, format })?;
                to.finish()?;
                done
            }
            (None, Some(path)) => {
                let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
                let view = UnfinishedView::create(path, &inputs)?;
                let folder = view.directory();
                let done = sort(TableOutput::View { folder, name: view_name(path) })?;
                view.publish()?;
                done
            }
            (None, None) => {
                let mut kept = KeptResult { bytes: Vec::new(), limit_bytes: job.memory };
                let to = TableOutput::Bytes { to: &mut kept, format: TableFormat::ArrowStream };
                let done = sort(to)?;
                let arrow = |error| Failure::from(TableError::Arrow(error));
                let reader = StreamReader::try_new(Cursor::new(kept.bytes), None).map_err(arrow)?;
                let schema = reader.schema();
                let batches = reader.collect::<Result<Vec<_>, _>>().map_err(arrow)?;
                result = Some(ArrowRows::new(schema, batches));
                done
            }
        };
        Ok(TableDone {
            rows: done.rows,
            result_rows: done.result_rows,
            row_bytes: done.row_bytes,
            runs: done.runs,
            merged: done.merged,
            result,
        })
    })
}

/// Whether the file at `path` is a table by its first bytes, or a folder or pattern, which only tables have.
#[expect(clippy::needless_pass_by_value, reason = "the path is made of an object of Python")]
#[pyfunction]
pub(crate) fn is_table(path: PathBuf) -> PyResult<bool> {
    if path.is_file() {
        return match kind_of(&path) {
            Ok(_) | Err(TableError::Encrypted { .. }) => Ok(true),
            Err(TableError::NotATable { .. }) => Ok(false),
            Err(error) => Err(Failure::from(error).into()),
        };
    }
    // Anything else is a folder or a pattern, or names itself.
    let found = find_files(std::slice::from_ref(&path)).map_err(Failure::from)?;
    if found != [path.clone()] {
        return Ok(true);
    }
    if path.exists() {
        // A pipe or a device.
        return Ok(false);
    }
    let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
    Err(crate::failure::on(&path)(missing).into())
}
