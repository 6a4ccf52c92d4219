//! What the manifest of a view says of its columns.

use std::path::Path;
use std::sync::Arc;

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_schema::SchemaRef;
use merganser_sort::view::Manifest;
use merganser_storage::contained::{self, Cause};
use serde::{Deserialize, Serialize};

use crate::codec::TableLayout;
use crate::hex::{from_hex, hex};
use crate::key::{ENCODING_VERSION, NullsAt, TableKey, find_keys};
use crate::schema::TableSchema;
use crate::sorted_files::ViewFiles;
use crate::source::ParquetOrigin;

/// What the manifest of a view says of its columns.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ViewColumns {
    /// The version of the encoding of keys and rows.
    encoding: u32,
    /// The columns of the key.
    keys: Vec<ViewKey>,
    /// All columns: a schema message of Arrow, in hexadecimal digits.
    schema: String,
    /// The columns in Parquet, and the notes of the first input: a file of Parquet without rows, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parquet: Option<String>,
    /// The name of a last column that counts rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<String>,
    /// The files that the rows are in, if the view has none itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<ViewFiles>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ViewKey {
    column: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    descending: bool,
    nulls: NullsAt,
    /// Whether its keys have a mark that says what is null.
    nullable: bool,
}

/// The manifest of a view with this layout, of a table from `origin`.
pub(crate) fn manifest_of(
    manifest: Manifest,
    layout: &TableLayout,
    origin: Option<&ParquetOrigin>,
) -> Manifest {
    manifest.of_table(columns_of(layout, origin, None))
}

/// The manifest of a view of `rows` rows with this layout, which are in `files`.
pub(crate) fn manifest_of_files(
    (name, made_unix_ns): (String, u64),
    (files, rows): (ViewFiles, u64),
    layout: &TableLayout,
    origin: Option<&ParquetOrigin>,
) -> Manifest {
    let columns = columns_of(layout, origin, Some(files));
    Manifest::of_table_in_files(name, rows, made_unix_ns, columns)
}

fn columns_of(
    layout: &TableLayout,
    origin: Option<&ParquetOrigin>,
    files: Option<ViewFiles>,
) -> serde_json::Value {
    let keys = layout.keys.iter().map(|key| ViewKey {
        column: key.name.clone(),
        descending: key.descending,
        nulls: key.nulls,
        nullable: key.nullable,
    });
    let columns = ViewColumns {
        encoding: ENCODING_VERSION,
        keys: keys.collect(),
        schema: schema_text(&layout.schema.own),
        parquet: origin.and_then(ParquetOrigin::to_bytes).map(|bytes| hex(&bytes)),
        count: layout.count.clone(),
        files,
    };
    serde_json::to_value(columns).expect("plain data")
}

fn schema_text(schema: &SchemaRef) -> String {
    let options = arrow_ipc::writer::IpcWriteOptions::default();
    let mut tracker = arrow_ipc::writer::DictionaryTracker::new(true);
    let encoded = arrow_ipc::writer::IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options);
    let mut message = Vec::new();
    arrow_ipc::writer::write_message(&mut message, encoded, &options)
        .expect("memory takes all bytes");
    hex(&message)
}

fn schema_of_text(text: &str) -> Option<SchemaRef> {
    let bytes = from_hex(text)?;
    // Its decoder trusts what the message says.
    let found = contained::run(Cause::Input, || try_schema_from_ipc_buffer(&bytes).ok());
    found.ok().flatten().map(Arc::new)
}

/// What a manifest says of a table.
pub(super) struct ViewMeaning {
    pub(super) layout: TableLayout,
    pub(super) origin: Option<ParquetOrigin>,
    pub(super) files: Option<ViewFiles>,
}

/// Reads what a manifest says of a table, or why it can't be read.
pub(super) fn meaning_of(manifest: &Manifest) -> Result<ViewMeaning, String> {
    let Some(table) = &manifest.table else {
        return Err("is no view of a table".to_owned());
    };
    let unknown = || "its manifest does not say what its columns are".to_owned();
    let columns: ViewColumns = serde_json::from_value(table.clone()).map_err(|_| unknown())?;
    if columns.encoding != ENCODING_VERSION {
        return Err(format!(
            "its rows are of version {}, and this program reads version {ENCODING_VERSION}",
            columns.encoding
        ));
    }
    let own = schema_of_text(&columns.schema).ok_or_else(unknown)?;
    let name = Path::new(&manifest.name);
    let schema = TableSchema::new(own, name).map_err(|error| error.to_string())?;
    let keys: Vec<_> = columns
        .keys
        .iter()
        .map(|key| TableKey {
            column: key.column.clone(),
            descending: key.descending,
            nulls: key.nulls,
            numeric: false,
        })
        .collect();
    let nullable = |index: usize| {
        let name = schema.own.field(index).name();
        columns.keys.iter().any(|key| key.column == *name && key.nullable)
    };
    let keys = find_keys(&keys, &schema.own, nullable, name).map_err(|error| error.to_string())?;
    let origin = columns.parquet.map(|text| from_hex(&text).and_then(ParquetOrigin::from_bytes));
    let origin = origin.map(|origin| origin.ok_or_else(unknown)).transpose()?;
    if columns.files.is_some() != manifest.is_in_files() {
        return Err(unknown());
    }
    let layout = TableLayout { count: columns.count, ..TableLayout::new(schema, keys) };
    Ok(ViewMeaning { layout, origin, files: columns.files })
}
