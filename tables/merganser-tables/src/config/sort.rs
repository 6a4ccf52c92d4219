//! The settings of `merganser table sort`.

use std::path::{Path, PathBuf};

use merganser_shell::config::destination::temp_dirs;
use merganser_shell::config::{Destination, ReportConfig, memory_bytes, threads};
use merganser_shell::failure::Failure;
use merganser_sort::run::Compression;
use merganser_storage::address::is_address;
use merganser_tables::{
    EqualRows, FolderFiles, HiveColumns, ParquetOptions, TableFormat, TableKey,
};

use super::folder::folder_files;
use super::format_of;
use crate::args::TableSortArgs;
use crate::args::sort::RunPacking;
use crate::inputs::refuse_address;

/// What to sort, and where to.
#[derive(Debug)]
pub(crate) struct TableSortConfig {
    /// Files, folders and patterns.
    pub inputs: Vec<PathBuf>,
    /// What becomes of columns that their folders name.
    pub hive: HiveColumns,
    /// The order that was asked for.
    pub order: AskedOrder,
    /// What becomes of rows with equal keys.
    pub equal: EqualRows,
    /// Whether inputs are in order.
    pub merge: bool,
    /// Rows that are wanted.
    pub top: Option<u64>,
    /// Where the result goes.
    pub destination: Destination,
    /// Its files, if it is a folder of them.
    pub folder: Option<FolderFiles>,
    /// Its format; `None` for that of the first input.
    pub format: Option<TableFormat>,
    /// How Parquet is written.
    pub parquet: ParquetOptions,
    /// How runs of a view are packed.
    pub packed: Compression,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
    /// Folders for temporary files.
    pub temp_dirs: Vec<PathBuf>,
    /// The report to write.
    pub report: Option<ReportConfig>,
    /// No bar.
    pub quiet: bool,
}

/// The order of a result, before its columns are known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AskedOrder {
    /// By these columns.
    Keys(Vec<TableKey>),
    /// By all columns.
    AllColumns,
    /// At random.
    Shuffled(u64),
}

impl TryFrom<TableSortArgs> for TableSortConfig {
    type Error = Failure;

    fn try_from(typed: TableSortArgs) -> Result<Self, Failure> {
        let equal = match (typed.distinct, typed.count) {
            (_, true) => EqualRows::Count,
            (true, false) => EqualRows::KeepFirst,
            (false, false) => EqualRows::KeepAll,
        };
        let order = match (typed.shuffle, &typed.keys[..], equal) {
            (true, ..) => AskedOrder::Shuffled(typed.seed.unwrap_or(0)),
            // Folders alone are an order.
            (false, [], EqualRows::KeepAll) if !typed.partition_by.is_empty() => {
                AskedOrder::Keys(Vec::new())
            }
            (false, [], EqualRows::KeepAll) => {
                let what = "--key: name the columns to sort by, as in --key name --key qty:r";
                return Err(format!("{what}; merganser info INPUT lists them").into());
            }
            (false, [], _) => AskedOrder::AllColumns,
            (false, keys, _) => AskedOrder::Keys(keys.to_vec()),
        };
        if typed.merge && equal != EqualRows::KeepAll {
            let what = "-m: merges all rows; leave it out with --distinct and --count";
            return Err(what.to_owned().into());
        }
        let destination = match (&typed.output, &typed.view) {
            (_, Some(view)) => Destination::View(view.clone()),
            (Some(file), None) if file != Path::new("-") => Destination::File(file.clone()),
            _ => Destination::Stdout,
        };
        if matches!(destination, Destination::View(_)) && typed.output_format.is_some() {
            let what = "--output-format: a view has a form of its own; leave it out";
            return Err(what.to_owned().into());
        }
        let file = match &destination {
            Destination::File(file) => Some(&**file),
            _ => None,
        };
        let format = format_of(typed.output_format, file);
        let folder = folder_files(&typed, (&destination, format))?;
        // A folder may be typed with a slash.
        let destination = match destination {
            Destination::File(path) if folder.is_some() && !is_address(&path) => {
                Destination::File(path.components().collect())
            }
            other => other,
        };
        let report = ReportConfig::new(typed.report)?;
        if let Some(report) = &report {
            refuse_address("--report", &report.path, "a report is")?;
        }
        let mut parquet = ParquetOptions::default();
        parquet.compression = typed.compression.map(Into::into);
        if typed.row_group_rows.0 == 0 {
            return Err("--row-group-rows: give at least 1".to_owned().into());
        }
        parquet.group_rows = typed.row_group_rows.0;
        // The runs of a merge without a result of its own go to a folder, too.
        for folder in &typed.temp.dirs {
            refuse_address("--temp-dir", folder, "temporary files are")?;
        }
        if let Some(view) = &typed.view {
            refuse_address("--view", view, "a view is")?;
        }
        let is_object = destination.path().is_some_and(is_address);
        let near = if is_object { &Destination::Stdout } else { &destination };
        let mut temp_dirs = temp_dirs(typed.temp, near);
        if let (Destination::View(view), true) = (&destination, temp_dirs.is_empty()) {
            let parent = view.parent().filter(|parent| *parent != Path::new(""));
            temp_dirs.push(parent.unwrap_or(Path::new(".")).to_owned());
        }
        Ok(TableSortConfig {
            inputs: typed.inputs,
            hive: typed.hive.into(),
            order,
            equal,
            merge: typed.merge,
            top: typed.top.map(|count| count.0),
            folder,
            format,
            destination,
            parquet,
            packed: match typed.compress {
                RunPacking::Off => Compression::Off,
                RunPacking::Lz4 => Compression::Lz4,
                RunPacking::Zstd => Compression::Zstd,
            },
            memory_bytes: memory_bytes(typed.memory)?,
            threads: threads(typed.threads)?,
            temp_dirs,
            report,
            quiet: typed.quiet,
        })
    }
}
