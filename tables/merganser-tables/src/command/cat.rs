//! `merganser table cat`.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_shell::config::{memory_bytes, threads};
use merganser_shell::failure::Failure;
use merganser_shell::opened::open_folder;
use merganser_shell::output::refuse_compressed;
use merganser_shell::progress::HiddenBar;
use merganser_shell::signals::Cancel;
use merganser_sort::Budget;
use merganser_storage::Directory;
use merganser_tables::{ParquetOptions, RowsWanted, TableFormat, TableView};

use crate::args::TableCatArgs;
use crate::config::format_of;
use crate::inputs::Stores;
use crate::output::BytesOutput;
use crate::sentences::told;

/// Writes a part of a view.
pub(super) fn run(typed: &TableCatArgs, cancel: &Cancel) -> Result<(), Failure> {
    let threads = threads(typed.threads)?;
    let budget = Budget::new(memory_bytes(typed.memory)?);
    let path = typed.output.as_deref().filter(|path| *path != Path::new("-"));
    let folder = open_folder(&typed.view)? as Arc<dyn Directory>;
    let view = TableView::open(&folder, &budget, threads).map_err(told)?;
    let columns = typed.columns.as_deref();
    let text = || if view.fits_csv(columns) { TableFormat::Csv } else { TableFormat::JsonLines };
    let format = format_of(typed.output_format, path).unwrap_or_else(text);
    let is_text = matches!(format, TableFormat::Csv | TableFormat::JsonLines);
    if path.is_none() && !is_text && stdout().is_terminal() {
        let what = "standard output is a terminal: name a file with -o, or take";
        return Err(format!("{what} --output-format csv").into());
    }
    if let Some(path) = path {
        refuse_compressed(path, "a table is packed inside")?;
    }
    let wanted = wanted(&view, typed)?;
    let stores = Stores::new(cancel);
    let notes = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    let notes = PathBuf::from(notes.unwrap_or_else(|| "/tmp".into()));
    let mut to = BytesOutput::open(path, (&stores, &notes), (0, &budget), cancel)?;
    let how = (&ParquetOptions::default(), threads);
    let bar = HiddenBar(cancel.clone());
    view.write(&wanted, columns, (&mut to, format), how, &bar).map_err(told)?;
    to.finish()
}

/// The rows that were asked for.
fn wanted(view: &TableView, typed: &TableCatArgs) -> Result<RowsWanted, Failure> {
    let count = view.rows_count();
    let row = |typed: &Option<String>| {
        typed.as_deref().map(|typed| view.row_of_key(typed)).transpose().map_err(told)
    };
    let (start, end) = match typed.records {
        Some(range) => {
            if range.start > count {
                let (start, view) = (range.start, merganser_shell::shown::name(&typed.view));
                return Err(
                    format!("--records: begins at {start}, and {view} has {count} rows").into()
                );
            }
            (Some(range.start), range.end)
        }
        None => (row(&typed.from_key)?, row(&typed.to_key)?),
    };
    if start.zip(end).is_some_and(|(start, end)| start > end) {
        return Err("--to-key: is before --from-key in the order of the view".to_owned().into());
    }
    Ok(RowsWanted { start, end, head: typed.head.map(|count| count.0) })
}
