//! `merganser table info`.

use std::sync::Arc;

use merganser_shell::failure::Failure;
use merganser_shell::opened::open_folder;
use merganser_shell::signals::Cancel;
use merganser_shell::{shown, standard};
use merganser_sort::Budget;
use merganser_sort::view::MANIFEST_NAME;
use merganser_storage::Directory;
use merganser_tables::{FilesOfView, Table, TableView};
use serde_json::json;

use crate::args::TableInfoArgs;
use crate::inputs::Stores;
use crate::sentences::told;

/// Memory in which a view is opened, in bytes.
const MEMORY_BYTES: u64 = 256 << 20;

/// Describes a view, or files.
pub(super) fn run(typed: &TableInfoArgs, cancel: &Cancel) -> Result<(), Failure> {
    let (what, rows, schema, more) = match &typed.inputs[..] {
        [view] if view.join(MANIFEST_NAME).is_file() => {
            let folder = open_folder(view)? as Arc<dyn Directory>;
            match TableView::files_in(&folder).map_err(told)? {
                Some(FilesOfView { schema, order, rows, files }) => {
                    let files: Vec<_> = files.iter().map(|(path, _)| shown::name(path)).collect();
                    let more = json!({ "view": shown::name(view), "order": order, "files": files });
                    ("a view of a table, whose rows are in files", Some(rows), schema, more)
                }
                None => {
                    let opened = TableView::open(&folder, &Budget::new(MEMORY_BYTES), 1);
                    let opened = opened.map_err(told)?;
                    let more = json!({ "view": shown::name(view), "order": opened.order() });
                    ("a view of a table", Some(opened.rows_count()), opened.schema(), more)
                }
            }
        }
        inputs => {
            let stores = Stores::new(cancel);
            let found = stores.find(inputs)?;
            let table = Table::open_inputs(&found, typed.hive.into()).map_err(told)?;
            let names: Vec<_> = found.iter().map(|input| shown::name(input.name())).collect();
            ("a table", table.rows(), Arc::clone(table.schema()), json!({ "files": names }))
        }
    };
    let columns = schema.fields().iter().map(|field| {
        json!({
            "name": field.name(),
            "type": field.data_type().to_string(),
            "nullable": field.is_nullable(),
        })
    });
    let columns: Vec<_> = columns.collect();
    if typed.json {
        let mut all = json!({ "rows": rows, "columns": columns });
        let object = all.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        return standard::print(format!("{all:#}\n"));
    }
    let mut text = format!("{what}\n");
    if let Some(files) = more["files"].as_array() {
        text += &format!("files    {}\n", files.len());
    }
    if let Some(order) = more["order"].as_str().filter(|order| !order.is_empty()) {
        text += &format!("order    {order}\n");
    }
    if let Some(rows) = rows {
        text += &format!("rows     {rows}\n");
    }
    text += "columns\n";
    let width = schema.fields().iter().map(|field| field.name().chars().count()).max().unwrap_or(0);
    for field in schema.fields() {
        let null = if field.is_nullable() { "" } else { ", never null" };
        let name = shown::escaped(field.name(), &[]);
        text += &format!("  {name:width$}  {}{null}\n", field.data_type());
    }
    standard::print(text)
}
