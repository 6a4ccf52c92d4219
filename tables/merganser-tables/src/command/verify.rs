//! `merganser table verify`.

use std::path::Path;
use std::sync::Arc;

use merganser_shell::config::{memory_bytes, threads};
use merganser_shell::failure::Failure;
use merganser_shell::opened::open_folder;
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, shown, standard};
use merganser_sort::view::MANIFEST_NAME;
use merganser_sort::{Budget, Progress};
use merganser_storage::Directory;
use merganser_tables::{Table, TableOrder, TableSummary, TableView, verify_table};

use crate::args::TableVerifyArgs;
use crate::inputs::Stores;
use crate::sentences::told;

/// Reads all rows, and says what was found.
pub(super) fn run(typed: &TableVerifyArgs, cancel: &Cancel) -> Result<(), Failure> {
    let progress = progress::on_stderr(typed.quiet, cancel);
    let (found, has_order) = match &typed.inputs[..] {
        [view] if view.join(MANIFEST_NAME).is_file() => {
            if !typed.keys.is_empty() {
                return Err("--key: a view has an order of its own; leave it out"
                    .to_owned()
                    .into());
            }
            (of_view(view, &*progress)?, true)
        }
        inputs => {
            let stores = Stores::new(cancel);
            let found = stores.find(inputs)?;
            let table = Table::open_inputs(&found, typed.hive.into()).map_err(told)?;
            let order = TableOrder::Keys(typed.keys.clone());
            (verify_table(&table, &order, &*progress).map_err(told)?, !typed.keys.is_empty())
        }
    };
    drop(progress);
    if typed.json {
        let mut all = serde_json::to_value(&found).expect("plain data");
        all["checksum"] = format!("{:016x}", found.checksum).into();
        standard::print(format!("{all:#}\n"))?;
    } else {
        let mut text = format!("rows        {}\n", found.rows);
        if has_order {
            text += &format!("duplicates  {}\n", found.duplicates);
        }
        text += &format!("checksum    {:016x}\n", found.checksum);
        standard::print(text)?;
    }
    match found.first_disorder {
        None => Ok(()),
        Some((file, row)) => Err(Failure::Disorder(Some(format!(
            "{}: row {row} should be before the row before it; {} rows are out of order",
            shown::name(&file),
            found.disorders
        )))),
    }
}

/// Reads the files of a view.
fn of_view(path: &Path, progress: &dyn Progress) -> Result<TableSummary, Failure> {
    let folder = open_folder(path)? as Arc<dyn Directory>;
    let budget = Budget::new(memory_bytes(None)?);
    let view = TableView::open(&folder, &budget, threads(None)?).map_err(told)?;
    let found = view.verify_files(progress).map_err(told)?;
    let name = shown::name(path);
    found.ok_or_else(|| {
        format!("{name}: has its rows itself; check it with merganser verify").into()
    })
}
