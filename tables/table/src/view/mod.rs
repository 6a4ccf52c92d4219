//! Views of tables: sorted rows that are read as batches.
//!
//! ```text
//!   columns   the manifest: which columns there are, and where the rows are
//!   runs      rows in runs of the view: length-prefixed records of keys ([`crate::key`]) and values ([`crate::row`])
//!             rows in sorted files outside it: [`crate::sorted_files`]
//!   batches   batches for readers that ask for one after the other
//! ```

mod batches;
mod columns;
mod runs;

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, SchemaRef};
use merganser_sort::view::{Manifest, View};
use merganser_sort::{Budget, Progress, Silent};
use merganser_storage::Directory;

use crate::TableError;
use crate::codec::TableLayout;
use crate::key::{KeyColumn, KeyEncoder, NullsAt};
use crate::sink::{
    BatchSize, ParquetOptions, TableFormat, WantedColumns, each_batch, fits_csv, write_as,
    write_parquet,
};
use crate::sorted_files::SortedFiles;
use crate::source::ParquetOrigin;
use crate::table_rows::TableRows;
use crate::types::{Held, plain_type};
use crate::verify::TableSummary;
use columns::{ViewMeaning, meaning_of};
use runs::RunRows;

pub use batches::ViewBatches;
pub(crate) use columns::{manifest_of, manifest_of_files};

/// A view of a table.
pub struct TableView {
    name: String,
    rows: StoredRows,
    layout: TableLayout,
    origin: Option<ParquetOrigin>,
    budget: Budget,
}

/// Where the rows of a view are.
enum StoredRows {
    /// In its runs.
    Runs(Box<RunRows>),
    /// In files outside it.
    Files(Box<SortedFiles>),
}

/// Rows that are read, and the columns that they have.
struct PartOfView<'a> {
    rows: Box<dyn TableRows + 'a>,
    layout: TableLayout,
    wanted: WantedColumns,
}

/// The facts about a view whose rows are in files outside it, without a look at these.
#[derive(Debug, Clone)]
pub struct FilesOfView {
    /// The columns.
    pub schema: SchemaRef,
    /// The columns of its order, as a sort takes them: `name, qty:r:last`.
    pub order: String,
    /// How many rows there are.
    pub rows: u64,
    /// The files and how many rows each has, in the order in which rows with equal keys come.
    pub files: Vec<(PathBuf, u64)>,
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
        let manifest = Manifest::read(folder)?;
        let runs = match manifest.is_in_files() {
            false => Some(View::open(folder, budget, threads)?),
            true => None,
        };
        let refused = |why| TableError::NotATableView { view: folder.name().to_owned(), why };
        let ViewMeaning { layout, origin, files } = meaning_of(&manifest).map_err(refused)?;
        let rows = if let Some(view) = runs {
            StoredRows::Runs(Box::new(RunRows { view, budget: budget.clone() }))
        } else {
            let noted = files.as_ref().expect("a manifest of files has them");
            let opened = SortedFiles::open(folder.name(), noted, &layout, budget)?;
            StoredRows::Files(Box::new(opened))
        };
        Ok(TableView { name: manifest.name, rows, layout, origin, budget: budget.clone() })
    }

    /// The facts in the manifest in `folder`, if it is that of a view whose rows are in files outside it.
    ///
    /// # Errors
    /// A manifest that can't be read.
    pub fn files_in(folder: &Arc<dyn Directory>) -> Result<Option<FilesOfView>, TableError> {
        let manifest = Manifest::read(folder)?;
        if !manifest.is_in_files() {
            return Ok(None);
        }
        let ViewMeaning { layout, files, .. } = meaning_of(&manifest)
            .map_err(|why| TableError::NotATableView { view: folder.name().to_owned(), why })?;
        Ok(Some(FilesOfView {
            schema: layout.result_schema(),
            order: order_of(&layout),
            rows: manifest.records,
            files: files.iter().flat_map(|files| files.paths()).collect(),
        }))
    }

    /// Its columns, with the types that they had.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.layout.result_schema()
    }

    /// The columns of its order, as a sort takes them: `name, qty:r:last`.
    #[must_use]
    pub fn order(&self) -> String {
        order_of(&self.layout)
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
        match &self.rows {
            StoredRows::Runs(rows) => rows.count(),
            StoredRows::Files(files) => files.rows_count(),
        }
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
        self.row_of_bytes(&self.key_of(value)?)
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
        self.row_of_bytes(&key)
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
        let border = self.row_of_bytes(&[null.max(value)])?;
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

    /// The number of the first row whose key is not before `key`.
    fn row_of_bytes(&self, key: &[u8]) -> Result<u64, TableError> {
        match &self.rows {
            StoredRows::Runs(rows) => rows.row_of_key(key),
            StoredRows::Files(files) => files.row_of_key(key),
        }
    }

    fn ordered_key(&self) -> Result<&KeyColumn, TableError> {
        self.layout.keys.first().ok_or_else(|| TableError::NotATableView {
            view: self.name.clone(),
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

    /// Opens the rows that are wanted. In files, columns that are not wanted are not read.
    fn part(
        &self,
        wanted: &RowsWanted,
        columns: Option<&[String]>,
    ) -> Result<PartOfView<'_>, TableError> {
        let columns = self.wanted(columns)?;
        let count = self.rows_count();
        let start = wanted.start.unwrap_or(0).min(count);
        let end = wanted.end.unwrap_or(count).min(count);
        let end = end.min(start.saturating_add(wanted.head.unwrap_or(u64::MAX))).max(start);
        Ok(match &self.rows {
            StoredRows::Runs(runs) => {
                let (rows, layout) = (Box::new(runs.read(start..end)?), self.layout.clone());
                PartOfView { rows, layout, wanted: columns }
            }
            StoredRows::Files(files) => {
                let (rows, layout, numbers) = files.read(start..end, &columns.numbers)?;
                let wanted = columns.among(&numbers);
                PartOfView { rows: Box::new(rows), layout, wanted }
            }
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
        let PartOfView { mut rows, layout, wanted } = self.part(wanted, columns)?;
        each_batch(&mut *rows, &layout, (&wanted, size), &Silent, each)
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
        let meaning = meaning_of(manifest).map_err(not_one)?;
        Ok(wanted_of(&meaning.layout, &manifest.name, columns)?.schema)
    }

    fn wanted(&self, columns: Option<&[String]>) -> Result<WantedColumns, TableError> {
        wanted_of(&self.layout, &self.name, columns)
    }

    /// Reads all rows of a view whose rows are in files outside it, in the order of the view; `None` for one that has runs, which
    /// the engine checks.
    ///
    /// # Errors
    /// Those of the files; [`merganser_sort::Error::Cancelled`].
    pub fn verify_files(
        &self,
        progress: &dyn Progress,
    ) -> Result<Option<TableSummary>, TableError> {
        match &self.rows {
            StoredRows::Runs(_) => Ok(None),
            StoredRows::Files(files) => files.verify(progress).map(Some),
        }
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
        let PartOfView { mut rows, layout, wanted } = self.part(wanted, columns)?;
        if format == TableFormat::Parquet {
            let how = (&self.budget, threads);
            let what = (&layout, &wanted, self.origin.as_ref());
            return write_parquet(&mut *rows, what, to, parquet, how, progress);
        }
        write_as(&mut *rows, (&layout, &wanted), to, format, progress)
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

/// The columns of an order, as a sort takes them.
fn order_of(layout: &TableLayout) -> String {
    let keys = layout.keys.iter().map(|key| {
        let descending = if key.descending { ":r" } else { "" };
        let nulls = if key.nulls == NullsAt::Last { ":last" } else { "" };
        format!("{}{descending}{nulls}", key.name)
    });
    keys.collect::<Vec<_>>().join(", ")
}
