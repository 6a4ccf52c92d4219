//! A table in files, and its order.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use crate::TableError;
use crate::codec::TableLayout;
use crate::key::{TableKey, find_keys};
use crate::sink::can_name_folders;
use crate::source::{FileKind, HiveColumns, TableInput, TableSource};

/// The order of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOrder {
    /// By these columns.
    Keys(Vec<TableKey>),
    /// At random, the same for the same seed and the same files.
    Shuffled {
        /// The seed.
        seed: u64,
    },
}

/// A table in files of Parquet and Arrow, which have the same columns, or in batches of a program.
pub struct Table {
    pub(crate) source: TableSource,
}

impl Table {
    /// Looks at all files. Their folders may name more columns.
    ///
    /// # Errors
    /// A file that is no table or has other columns than the first; columns that rows can't hold.
    pub fn open(files: &[PathBuf]) -> Result<Table, TableError> {
        let inputs: Vec<_> = files.iter().cloned().map(TableInput::File).collect();
        Table::open_inputs(&inputs, HiveColumns::default())
    }

    /// Looks at all files and objects, and at what their folders name, or not.
    ///
    /// # Errors
    /// As [`Table::open`]; those of the stores.
    pub fn open_inputs(inputs: &[TableInput], hive: HiveColumns) -> Result<Table, TableError> {
        Ok(Table { source: TableSource::open(inputs, hive)? })
    }

    /// A table of batches that a program hands in; errors call it `name`. It can be sorted once.
    ///
    /// The batches are read by one thread, and their memory is no part of a budget.
    ///
    /// # Errors
    /// Columns that rows can't hold.
    pub fn from_batches(
        name: &str,
        schema: SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Result<Table, TableError> {
        Ok(Table { source: TableSource::of_batches(name, schema, Box::new(batches))? })
    }

    /// Its columns, with the types of the first file.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.source.schema.own
    }

    /// The kind of its first file.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.source.files[0].kind
    }

    /// About how many bytes its values take, not packed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    /// How many rows it has; `None` if they are not counted before they are read, as in files of Arrow.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        self.source.rows()
    }

    /// The layout of its rows in this order, behind that of the columns that name folders.
    pub(crate) fn layout(
        &self,
        order: &TableOrder,
        partition_by: &[String],
    ) -> Result<TableLayout, TableError> {
        let TableSource { files, schema, may_be_null, .. } = &self.source;
        let file = &files[0].path;
        let mut keys: Vec<_> = partition_by.iter().map(|name| TableKey::ascending(name)).collect();
        if let TableOrder::Keys(wanted) = order {
            // In a folder, all values of its column are equal.
            let others = wanted.iter().filter(|key| !partition_by.contains(&key.column));
            keys.extend(others.cloned());
        }
        let mut keys = find_keys(&keys, &schema.own, |index| may_be_null[index], file)?;
        let partitions = partition_by.len();
        for key in &mut keys[..partitions] {
            if !can_name_folders(&key.plain) {
                let data_type = schema.own.field(key.index).data_type().clone();
                let (file, column) = (file.to_path_buf(), key.name.clone());
                return Err(TableError::NoPartition { file, column, data_type });
            }
            // Its end tells which keys are of a folder.
            key.is_open = false;
        }
        if partitions > 0 && partitions == schema.own.fields().len() {
            return Err(TableError::AllPartitions { file: file.to_path_buf() });
        }
        Ok(TableLayout { partitions, ..TableLayout::new(schema.clone(), keys) })
    }

    /// A key of all columns, in their order.
    #[must_use]
    pub fn all_columns(&self) -> Vec<TableKey> {
        let fields = self.schema().fields().iter();
        fields.map(|field| TableKey::ascending(field.name())).collect()
    }

    /// About how much memory a reader of one part takes, in bytes, except pieces of an object that it reads ahead.
    pub(crate) fn reader_bytes(&self) -> u64 {
        let parts = self.source.files.iter().flat_map(|file| &file.parts);
        parts.map(|part| part.reader_bytes).max().unwrap_or(0) + BATCHES_BYTES
    }

    /// Shares of all parts: neighbours, with about as many bytes in each. With `whole_files`, all parts of a file are in one.
    pub(crate) fn shares(
        &self,
        count: usize,
        whole_files: bool,
    ) -> Vec<Vec<(usize, std::ops::Range<usize>)>> {
        let total = self.source.bytes().max(1);
        let mut shares = vec![Vec::new(); count];
        let mut before = 0;
        for (file, found) in self.source.files.iter().enumerate() {
            let file_bytes: u64 = found.parts.iter().map(|part| part.bytes).sum();
            let (start, mut in_file) = (before, 0);
            before += file_bytes;
            for (number, part) in found.parts.iter().enumerate() {
                // Where the middle of the part is, or that of the file.
                let middle = if whole_files { file_bytes / 2 } else { in_file + part.bytes / 2 };
                let middle = u128::from(start + middle) * count as u128;
                in_file += part.bytes;
                let share = ((middle / u128::from(total)) as usize).min(count - 1);
                let share: &mut Vec<(usize, std::ops::Range<usize>)> = &mut shares[share];
                match share.last_mut() {
                    Some((last, parts)) if *last == file => parts.end = number + 1,
                    _ => share.push((file, number..number + 1)),
                }
            }
        }
        shares.retain(|share| !share.is_empty());
        shares
    }
}

/// Memory of a batch on its way from columns to rows, in bytes: as it is read, as rows, and as keys.
const BATCHES_BYTES: u64 = 6 << 20;
