//! Views of tables: sorted rows that are read as batches.
//!
//! The view is one of length-prefixed records, whose keys and values are those of [`crate::key`] and [`crate::row`]. Its
//! manifest says which columns they are.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_schema::{DataType, SchemaRef};
use merganser_sort::rows::RecordCutter;
use merganser_sort::view::{Manifest, View, ViewStream};
use merganser_sort::{Budget, Progress, Silent};
use merganser_storage::contained::{self, Cause};
use merganser_storage::{Directory, Storage};
use serde::{Deserialize, Serialize};

use crate::TableError;
use crate::codec::TableLayout;
use crate::key::{ENCODING_VERSION, KeyColumn, KeyEncoder, NullsAt, TableKey, find_keys};
use crate::schema::TableSchema;
use crate::sink::{
    BatchSize, ParquetOptions, TableFormat, WantedColumns, each_batch, fits_csv, write_as,
    write_parquet,
};
use crate::source::ParquetOrigin;
use crate::table_rows::{KeyAndValue, TableRows};
use crate::types::{Held, plain_type};

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
    };
    manifest.of_table(serde_json::to_value(columns).expect("plain data"))
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let bytes = digits.map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    bytes.collect()
}

fn schema_of_text(text: &str) -> Option<SchemaRef> {
    let bytes = from_hex(text)?;
    // Its decoder trusts what the message says.
    let found = contained::run(Cause::Input, || try_schema_from_ipc_buffer(&bytes).ok());
    found.ok().flatten().map(Arc::new)
}

/// A view of a table.
pub struct TableView {
    view: View,
    layout: TableLayout,
    origin: Option<ParquetOrigin>,
    budget: Budget,
}

/// A part of a view, in rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowsWanted {
    /// The first row; `None` for the first of all.
    pub start: Option<u64>,
    /// The row behind the last one.
    pub end: Option<u64>,
    /// Rows at most.
    pub head: Option<u64>,
}

impl TableView {
    /// Whether a manifest is that of a table.
    #[must_use]
    pub fn is_one(manifest: &Manifest) -> bool {
        manifest.table.is_some()
    }

    /// Opens the view in `folder`.
    ///
    /// # Errors
    /// As [`View::open`]; a view that is no table, or one of a later version.
    pub fn open(
        folder: &Arc<dyn Directory>,
        budget: &Budget,
        threads: usize,
    ) -> Result<TableView, TableError> {
        let view = View::open(folder, budget, threads)?;
        let (layout, origin) = layout_of(view.manifest())
            .map_err(|why| TableError::NotATableView { view: folder.name().to_owned(), why })?;
        Ok(TableView { view, layout, origin, budget: budget.clone() })
    }

    /// Its columns, with the types that they had.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.layout.result_schema()
    }

    /// The columns of its order, as a sort takes them: `name, qty:r:last`.
    #[must_use]
    pub fn order(&self) -> String {
        let keys = self.layout.keys.iter().map(|key| {
            let descending = if key.descending { ":r" } else { "" };
            let nulls = if key.nulls == NullsAt::Last { ":last" } else { "" };
            format!("{}{descending}{nulls}", key.name)
        });
        keys.collect::<Vec<_>>().join(", ")
    }

    /// Whether csv can hold these columns, or all.
    #[must_use]
    pub fn fits_csv(&self, columns: Option<&[String]>) -> bool {
        let wanted = |name: &String| columns.is_none_or(|columns| columns.contains(name));
        let fields = self.schema();
        fields.fields().iter().all(|field| !wanted(field.name()) || fits_csv(field))
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows_count(&self) -> u64 {
        self.view.records()
    }

    /// The number of the first row that is not before those whose first key column has the value `typed`.
    ///
    /// # Errors
    /// A value that the column can't have; damage found.
    pub fn row_of_key(&self, typed: &str) -> Result<u64, TableError> {
        self.row_of_value(&self.value_of(typed)?)
    }

    /// The number of the first row that is not before those whose first key column has the only value of `value`, an
    /// array of [`TableView::key_type`].
    ///
    /// # Errors
    /// A null or a value that the column can't have; damage found.
    pub fn row_of_value(&self, value: &ArrayRef) -> Result<u64, TableError> {
        let key = self.key_of(value)?;
        let offset = self.view.offset_of_key(&key)?;
        self.row_at(offset)
    }

    /// The number of the first row behind those whose first key column has the value `typed`.
    ///
    /// # Errors
    /// As [`TableView::row_of_key`].
    pub fn row_behind_key(&self, typed: &str) -> Result<u64, TableError> {
        self.row_behind_value(&self.value_of(typed)?)
    }

    /// The number of the first row behind those whose first key column has the only value of `value`.
    ///
    /// # Errors
    /// As [`TableView::row_of_value`].
    pub fn row_behind_value(&self, value: &ArrayRef) -> Result<u64, TableError> {
        let mut key = self.key_of(value)?;
        let open = self.layout.keys.first().is_some_and(|key| key.is_open);
        if open {
            // No string is between one and the same with a zero byte behind it.
            key.push(0);
        } else {
            // The smallest bytes that no key with this beginning has, nor one before it.
            while key.pop_if(|last| *last == 0xFF).is_some() {}
            match key.last_mut() {
                Some(last) => *last += 1,
                None => return Ok(self.rows_count()),
            }
        }
        let offset = self.view.offset_of_key(&key)?;
        self.row_at(offset)
    }

    /// The rows whose first key column has a value; all rows of a view that is in no order.
    ///
    /// # Errors
    /// Damage found.
    pub fn rows_with_a_value(&self) -> Result<Range<u64>, TableError> {
        let all = 0..self.rows_count();
        let Some(key) = self.layout.keys.first().filter(|key| key.nullable) else {
            return Ok(all);
        };
        // The mark is the first byte of a key.
        let (null, value) = crate::key::marks(key.nulls);
        let border = self.row_at(self.view.offset_of_key(&[null.max(value)])?)?;
        Ok(if null < value { border..all.end } else { 0..border })
    }

    /// The plain type of the first key column: that of values that are looked for. `None` for a view that is in no order.
    #[must_use]
    pub fn key_type(&self) -> Option<&DataType> {
        self.layout.keys.first().map(|key| &key.plain)
    }

    /// The first key column, and whether its greatest values come first.
    #[must_use]
    pub fn first_key(&self) -> Option<(&str, bool)> {
        self.layout.keys.first().map(|key| (&key.name[..], key.descending))
    }

    /// The number of the row that begins at `offset`.
    fn row_at(&self, offset: u64) -> Result<u64, TableError> {
        // Rows begin at growing offsets.
        let (mut low, mut high) = (0, self.rows_count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.view.offset_of_record(middle)? < offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn ordered_key(&self) -> Result<&KeyColumn, TableError> {
        self.layout.keys.first().ok_or_else(|| TableError::NotATableView {
            view: self.view.manifest().name.clone(),
            why: "its rows are in no order".to_owned(),
        })
    }

    fn no_value(&self, key: &KeyColumn, typed: &str) -> TableError {
        TableError::NoValue {
            typed: typed.to_owned(),
            column: key.name.clone(),
            data_type: self.layout.schema.own.field(key.index).data_type().clone(),
        }
    }

    /// A typed text as a value of the first key column.
    fn value_of(&self, typed: &str) -> Result<ArrayRef, TableError> {
        let key = self.ordered_key()?;
        let text: ArrayRef = Arc::new(StringArray::from(vec![typed]));
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let value = cast_with_options(&text, &key.plain, &options);
        value.map_err(|_| self.no_value(key, typed))
    }

    /// The beginning of all keys whose first column has the only value of `value`.
    fn key_of(&self, value: &ArrayRef) -> Result<Vec<u8>, TableError> {
        let key = self.ordered_key()?;
        let refused = || {
            let shown = array_value_to_string(value, 0).unwrap_or_default();
            self.no_value(key, &shown)
        };
        if value.len() != 1 || value.null_count() > 0 || *value.data_type() != key.plain {
            return Err(refused());
        }
        let value = cast(value, &plain_type(&key.plain, Held::AsViews)).map_err(|_| refused())?;
        let alone = KeyColumn { index: 0, ..key.clone() };
        let mut encoder = KeyEncoder::new(&[alone]);
        encoder.encode(1, &[value]).map_err(|_| refused())?;
        Ok(encoder.key(0).to_vec())
    }

    fn rows(&self, wanted: &RowsWanted) -> Result<ViewRows<'_>, TableError> {
        let count = self.rows_count();
        let start = wanted.start.unwrap_or(0).min(count);
        let end = wanted.end.unwrap_or(count).min(count);
        let end = end.min(start.saturating_add(wanted.head.unwrap_or(u64::MAX))).max(start);
        let offset = |row: u64| match row {
            0 => Ok(0),
            row if row >= count => Ok(self.view.size()),
            row => self.view.offset_of_record(row),
        };
        let bytes: Range<u64> = offset(start)?..offset(end)?;
        Ok(ViewRows {
            stream: self.view.stream(bytes)?,
            records: RecordCutter::new(&self.budget)?,
            used: 0,
            row: Vec::new(),
        })
    }

    /// Hands out rows as batches of these columns, or of all; how many rows.
    ///
    /// # Errors
    /// A column that is not there; damage found; those of `each`.
    pub fn batches(
        &self,
        wanted: &RowsWanted,
        columns: Option<&[String]>,
        each: impl FnMut(RecordBatch) -> Result<(), TableError>,
    ) -> Result<u64, TableError> {
        self.batches_of(wanted, (columns, BatchSize::default()), each)
    }

    /// The same in batches of a size.
    ///
    /// # Errors
    /// As [`TableView::batches`]; a row that is too long.
    pub fn batches_of(
        &self,
        wanted: &RowsWanted,
        (columns, size): (Option<&[String]>, BatchSize),
        each: impl FnMut(RecordBatch) -> Result<(), TableError>,
    ) -> Result<u64, TableError> {
        let columns = self.wanted(columns)?;
        each_batch(&mut self.rows(wanted)?, &self.layout, (&columns, size), &Silent, each)
    }

    /// The columns of these names, in this order, or all.
    ///
    /// # Errors
    /// A column that is not there.
    pub fn schema_of(&self, columns: Option<&[String]>) -> Result<SchemaRef, TableError> {
        Ok(self.wanted(columns)?.schema)
    }

    /// The same of the view with this manifest, which need not be opened.
    ///
    /// # Errors
    /// As [`TableView::open`]; a column that is not there.
    pub fn schema_in(
        manifest: &Manifest,
        columns: Option<&[String]>,
    ) -> Result<SchemaRef, TableError> {
        let not_one = |why| TableError::NotATableView { view: manifest.name.clone(), why };
        let (layout, _) = layout_of(manifest).map_err(not_one)?;
        Ok(wanted_of(&layout, &manifest.name, columns)?.schema)
    }

    fn wanted(&self, columns: Option<&[String]>) -> Result<WantedColumns, TableError> {
        wanted_of(&self.layout, &self.view.manifest().name, columns)
    }

    /// Writes rows in a format, all columns or some; how many rows.
    ///
    /// # Errors
    /// A column that is not there; damage found; those of `to`; [`merganser_sort::Error::Cancelled`].
    pub fn write(
        &self,
        wanted: &RowsWanted,
        columns: Option<&[String]>,
        (to, format): (&mut (dyn Write + Send), TableFormat),
        (parquet, threads): (&ParquetOptions, usize),
        progress: &dyn Progress,
    ) -> Result<u64, TableError> {
        let mut rows = self.rows(wanted)?;
        let columns = self.wanted(columns)?;
        if format == TableFormat::Parquet {
            let how = (&self.budget, threads);
            let what = (&self.layout, &columns, self.origin.as_ref());
            return write_parquet(&mut rows, what, to, parquet, how, progress);
        }
        write_as(&mut rows, (&self.layout, &columns), to, format, progress)
    }
}

fn wanted_of(
    layout: &TableLayout,
    view: &str,
    columns: Option<&[String]>,
) -> Result<WantedColumns, TableError> {
    WantedColumns::new(layout, columns).map_err(|column| TableError::NoColumn {
        file: view.into(),
        column,
        has: layout.result_schema().fields().iter().map(|field| field.name().clone()).collect(),
    })
}

fn layout_of(manifest: &Manifest) -> Result<(TableLayout, Option<ParquetOrigin>), String> {
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
    let name = std::path::Path::new(&manifest.name);
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
    Ok((TableLayout { count: columns.count, ..TableLayout::new(schema, keys) }, origin))
}

/// Rows of a view.
struct ViewRows<'a> {
    stream: ViewStream<'a>,
    records: RecordCutter,
    /// The bytes that the stream gave last and that are used.
    used: usize,
    row: Vec<u8>,
}

impl TableRows for ViewRows<'_> {
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        loop {
            let all = self.stream.last_bytes();
            let mut rest = &all[self.used..];
            let found = self.records.next(&mut rest)?;
            let used = all.len() - rest.len();
            if let Some(record) = found {
                self.row.clear();
                self.row.extend_from_slice(record);
                self.used = used;
                break;
            }
            self.used = 0;
            if self.stream.next_bytes()?.is_none() {
                return if self.records.is_inside_a_record() {
                    Err(TableError::DamagedRow)
                } else {
                    Ok(None)
                };
            }
        }
        let (lengths, rest) = self.row.split_first_chunk::<8>().ok_or(TableError::DamagedRow)?;
        let key = u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
        rest.split_at_checked(key).map(Some).ok_or(TableError::DamagedRow)
    }
}
