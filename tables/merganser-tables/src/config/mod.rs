//! The settings that typed words mean.

mod folder;
pub(crate) mod sort;

use std::path::Path;

use merganser_tables::TableFormat;

use crate::args::TableForm;

pub(crate) use sort::TableSortConfig;

/// The format of a result: as it was asked for, or as the end of its name says; `None` if neither does.
pub(crate) fn format_of(form: Option<TableForm>, file: Option<&Path>) -> Option<TableFormat> {
    let end = file.and_then(|file| file.extension()).and_then(|end| end.to_str());
    let by_name = || match end?.to_ascii_lowercase().as_str() {
        "parquet" | "pq" => Some(TableFormat::Parquet),
        "arrow" | "feather" | "ipc" => Some(TableFormat::ArrowFile),
        "arrows" => Some(TableFormat::ArrowStream),
        "csv" => Some(TableFormat::Csv),
        "jsonl" | "ndjson" => Some(TableFormat::JsonLines),
        _ => None,
    };
    form.map(TableFormat::from).or_else(by_name)
}
