//! The settings that typed words mean.

mod folder;
pub(crate) mod sort;

use std::path::Path;

use merganser_tables::TableFormat;

use crate::args::TableForm;

pub(crate) use sort::TableSortConfig;

/// The format of a result: as it was asked for, or as the end of its name says; `None` if neither does.
pub(crate) fn format_of(form: Option<TableForm>, file: Option<&Path>) -> Option<TableFormat> {
    form.map(TableFormat::from).or_else(|| TableFormat::of_name(file?))
}
