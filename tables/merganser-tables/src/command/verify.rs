//! `merganser table verify`.

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, shown, standard};
use merganser_tables::{Table, TableOrder, verify_table};

use crate::args::TableVerifyArgs;
use crate::inputs::Stores;
use crate::sentences::told;

/// Reads all rows, and says what was found.
pub(super) fn run(typed: &TableVerifyArgs, cancel: &Cancel) -> Result<(), Failure> {
    let stores = Stores::new(cancel);
    let found = stores.find(&typed.inputs)?;
    let table = Table::open_inputs(&found, typed.hive.into()).map_err(told)?;
    let order = TableOrder::Keys(typed.keys.clone());
    let progress = progress::on_stderr(typed.quiet, cancel);
    let found = verify_table(&table, &order, &*progress).map_err(told)?;
    drop(progress);
    if typed.json {
        let mut all = serde_json::to_value(&found).expect("plain data");
        all["checksum"] = format!("{:016x}", found.checksum).into();
        standard::print(format!("{all:#}\n"))?;
    } else {
        let mut text = format!("rows        {}\n", found.rows);
        if !typed.keys.is_empty() {
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
