//! The files of a table, and their rows.
//!
//! ```text
//!   find      files, folders and patterns as they are typed ─► files
//!   object    what is known of an object of a store: its name, its size, and that ranges of it can be read
//!   ends      the first and last bytes of objects
//!   folder_columns   what the folders of files name: country=FR
//!   kind      what a file is, by its first bytes
//!   content   bytes of a file or an object; pieces: those of an object, ahead
//!   opened    a file that several readers share, and whether it was changed
//!   parquet   row groups ─┬─► batches in their plain form
//!   arrow     batches   ──┤
//!   given     of a program┘
//! ```

mod arrow;
mod content;
mod ends;
mod find;
mod folder_columns;
mod given;
mod guard;
mod kind;
mod object;
mod opened;
mod parquet;
mod pieces;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::TableError;
use crate::schema::TableSchema;
use content::OpenContent;
use ends::{ObjectEnds, TAIL_BYTES, on_name, read_tail};
use guard::guarded;

pub use find::find_files;
pub(crate) use folder_columns::FolderValue;
pub use folder_columns::HiveColumns;
use folder_columns::{FolderColumns, with_columns};
pub use kind::{FileKind, kind_of};
pub use object::{ObjectError, RangeRead, StoredObject};
pub(crate) use opened::{OpenedFile, OuterSigns};
pub(crate) use parquet::{OpenedParquet, ParquetOrigin};

/// A file of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableFile {
    pub(crate) path: Arc<Path>,
    pub(crate) kind: FileKind,
    /// The parts that can be read apart from one another.
    pub(crate) parts: Vec<TablePart>,
    /// The values of the last columns of the table, which its folders name.
    pub(crate) of_folders: Vec<FolderValue>,
    content: FileContent,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
enum FileContent {
    /// In the file at its path.
    Disk,
    /// In an object, whose last `tail_bytes` describe it.
    Object { object: Arc<dyn StoredObject>, tail_bytes: u64 },
    /// The batches of a table that a program hands in; there is no file then.
    Given(given::GivenBatches),
}

impl TableFile {
    /// The file at `path`, whose folders name no columns.
    fn new(path: &Path, kind: FileKind, content: FileContent) -> TableFile {
        let (parts, of_folders) = (Vec::new(), Vec::new());
        TableFile { path: Arc::from(path), kind, parts, of_folders, content }
    }

    /// Whether it is a file of this machine, and no object and no table of a program.
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.content, FileContent::Disk)
    }

    fn with_parts(self, parts: Vec<TablePart>) -> TableFile {
        TableFile { parts, ..self }
    }

    /// Bytes of the file; 0 if there is none.
    fn bytes(&self) -> Result<u64, TableError> {
        match &self.content {
            FileContent::Disk => {
                Ok(std::fs::metadata(&self.path).map_err(TableError::on(&self.path))?.len())
            }
            FileContent::Object { object, .. } => Ok(object.bytes()),
            FileContent::Given(_) => Ok(0),
        }
    }

    /// Opens it. A reader of an object has memory for pieces that it reads ahead, and may know the end of it.
    fn open(
        &self,
        ahead_bytes: u64,
        tail: Option<ends::ObjectTail>,
    ) -> Result<OpenContent, TableError> {
        match &self.content {
            FileContent::Object { object, tail_bytes } => {
                let tail = match tail {
                    Some(tail) => tail,
                    None => read_tail(object, *tail_bytes)?,
                };
                Ok(OpenContent::of_object(object, ahead_bytes, tail))
            }
            FileContent::Disk | FileContent::Given(_) => {
                Ok(OpenContent::Disk(OpenedFile::open(&self.path)?))
            }
        }
    }

    /// Calls a library that reads `content`, which is this file's. If the store failed, its error is the reason.
    fn guarded<T, E: std::fmt::Display>(
        &self,
        content: &OpenContent,
        place: &str,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, TableError> {
        let done = guarded((&self.path, place), call);
        match content.failure() {
            Some(error) if done.is_err() => Err(on_name(&self.path)(error)),
            _ => done,
        }
    }
}

/// A file of a table, as a program names it.
#[derive(Debug, Clone)]
pub enum TableInput {
    /// A file on a disk of this machine.
    File(PathBuf),
    /// An object of a store.
    Object(Arc<dyn StoredObject>),
}

impl TableInput {
    /// How many bytes it has; 0 if a file does not say.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            TableInput::File(path) => std::fs::metadata(path).map_or(0, |found| found.len()),
            TableInput::Object(object) => object.bytes(),
        }
    }

    /// Its name in sentences.
    #[must_use]
    pub fn name(&self) -> &Path {
        match self {
            TableInput::File(path) => path,
            TableInput::Object(object) => object.name(),
        }
    }
}

/// A row group of Parquet, a batch of an Arrow file, or all of an Arrow stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TablePart {
    /// Its number in the file.
    pub(crate) number: usize,
    /// Its rows; 0 for Arrow, whose rows are not counted before they are read.
    pub(crate) rows: u64,
    /// About how many bytes its values take.
    pub(crate) bytes: u64,
    /// What one of its readers holds at least, in bytes, except pieces that are read ahead.
    pub(crate) reader_bytes: u64,
    /// Bytes of an object that one of its readers reads ahead, at least and at most; nothing of a file.
    ahead: AheadBytes,
}

/// The memory for pieces that are read ahead.
#[derive(Debug, Clone, Copy, Default)]
struct AheadBytes {
    least: u64,
    most: u64,
}

/// A table in files.
pub(crate) struct TableSource {
    pub(crate) files: Vec<TableFile>,
    pub(crate) schema: TableSchema,
    /// For each column, whether a file says that it may have nulls.
    pub(crate) may_be_null: Vec<bool>,
    /// What the first file says that a result in Parquet should keep.
    pub(crate) origin: Option<ParquetOrigin>,
}

/// What a look at a file finds.
struct Looked {
    file: TableFile,
    schema: arrow_schema::SchemaRef,
    may_be_null: Vec<bool>,
    origin: Option<ParquetOrigin>,
}

impl TableSource {
    /// Looks at all files.
    ///
    /// # Errors
    /// A file that is no table, or has other columns than the first, in itself or in its folders.
    pub(crate) fn open(
        inputs: &[TableInput],
        hive: HiveColumns,
    ) -> Result<TableSource, TableError> {
        let mut source: Option<TableSource> = None;
        let mut folders = FolderColumns::new(hive);
        let mut ends = ObjectEnds::new(inputs.iter().filter_map(|input| match input {
            TableInput::File(_) => None,
            TableInput::Object(object) => Some(object),
        }));
        for input in inputs {
            let path = input.name();
            let (kind, content, tail) = match input {
                TableInput::File(path) => (kind_of(path)?, FileContent::Disk, None),
                TableInput::Object(object) => {
                    let (kind, tail) = ends.next()?;
                    let object = Arc::clone(object);
                    let content = FileContent::Object { object, tail_bytes: TAIL_BYTES };
                    (kind, content, Some(tail))
                }
            };
            let file = TableFile::new(path, kind, content);
            let Looked { file, schema, may_be_null, origin } = match kind {
                FileKind::Parquet => parquet::look(file, tail)?,
                _ => arrow::look(file, tail)?,
            };
            folders.add(path, &schema, inputs[0].name())?;
            source = Some(match source {
                None => {
                    let schema = TableSchema::new(schema, path)?;
                    TableSource { files: vec![file], schema, may_be_null, origin }
                }
                Some(mut source) => {
                    source.schema = source.schema.with(&schema, (path, &source.files[0].path))?;
                    for (all, this) in source.may_be_null.iter_mut().zip(may_be_null) {
                        *all |= this;
                    }
                    // Each file may have written its columns in its own way.
                    if let Some(first) = &source.origin
                        && origin.is_none_or(|origin| origin.columns != first.columns)
                    {
                        source.origin = source.origin.map(ParquetOrigin::without_columns);
                    }
                    source.files.push(file);
                    source
                }
            });
        }
        let nowhere = || TableError::NoFiles { folder: PathBuf::from(".") };
        let mut source = source.ok_or_else(nowhere)?;
        let of_folders = folders.give_to(&mut source.files);
        if !of_folders.is_empty() {
            let own = &source.schema.own;
            let (fields, has_nulls): (Vec<_>, Vec<_>) = of_folders.into_iter().unzip();
            let fields = own.fields().iter().cloned().chain(fields.into_iter().map(Arc::new));
            let all = Schema::new_with_metadata(fields.collect::<Vec<_>>(), own.metadata().clone());
            source.schema = TableSchema::new(Arc::new(all), inputs[0].name())?;
            source.may_be_null.extend(has_nulls);
        }
        Ok(source)
    }

    /// All rows; `None` if a file does not say how many it has.
    pub(crate) fn rows(&self) -> Option<u64> {
        let are_counted = self.files.iter().all(|file| file.kind == FileKind::Parquet);
        are_counted.then(|| self.parts().map(|part| part.rows).sum())
    }

    /// About how many bytes its values take.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts().map(|part| part.bytes).sum()
    }

    /// The memory for pieces that a reader reads ahead: as much as is given, if that is not more than helps or less than it needs.
    pub(crate) fn ahead_bytes(&self, given: u64) -> u64 {
        let least = self.parts().map(|part| part.ahead.least).max().unwrap_or(0);
        let most = self.parts().map(|part| part.ahead.most).max().unwrap_or(0);
        given.clamp(least, most.max(least))
    }

    fn parts(&self) -> impl Iterator<Item = &TablePart> {
        self.files.iter().flat_map(|file| &file.parts)
    }
}

/// A file has a null in a column that it says has no nulls.
pub(crate) fn null_in(file: &TableFile) -> TableError {
    TableError::Damaged {
        file: file.path.to_path_buf(),
        place: String::new(),
        why: "has a null in a column that must have none".to_owned(),
    }
}

/// The rows and columns of a file that a reader hands out.
#[derive(Debug, Clone)]
pub(crate) struct SelectedRows {
    /// The number of the first row.
    pub(crate) first_row: u64,
    /// The numbers of the columns of the table, rising.
    pub(crate) columns: Vec<usize>,
    /// Bytes of values of a batch, about, and its rows at most.
    pub(crate) batch_bytes: u64,
    pub(crate) batch_rows: u64,
}

/// A file of Parquet that stays open.
pub(crate) struct OpenedTableFile {
    /// The file; its folders name no columns yet.
    pub(crate) file: TableFile,
    pub(crate) parquet: OpenedParquet,
    /// Its own columns.
    pub(crate) schema: arrow_schema::SchemaRef,
}

impl OpenedTableFile {
    /// Opens the file of Parquet at `path`.
    ///
    /// # Errors
    /// The system's own; damage.
    pub(crate) fn open(path: &Path) -> Result<OpenedTableFile, TableError> {
        let (parquet, looked) = OpenedParquet::open(path)?;
        let Looked { file, schema, .. } = looked;
        Ok(OpenedTableFile { file, parquet, schema })
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> u64 {
        self.file.parts.iter().map(|part| part.rows).fold(0, u64::saturating_add)
    }

    /// About how much memory the pages take that a reader of these columns of the table holds, in bytes.
    pub(crate) fn page_bytes(&self, columns: &[usize]) -> u64 {
        self.parquet.page_bytes(columns)
    }

    /// A reader of some rows and columns.
    pub(crate) fn reader(&self, selected: &SelectedRows) -> TableReader {
        let reader = parquet::ParquetReader::of_opened(&self.parquet, &self.file, selected);
        let own = self.parquet.columns();
        let others = selected.columns.iter().filter_map(|column| column.checked_sub(own));
        let of_folders = others.map(|column| self.file.of_folders[column].clone()).collect();
        TableReader { of_folders, of_file: FileReader::Parquet(reader) }
    }
}

/// Reads parts of a file, in order.
pub(crate) struct TableReader {
    of_folders: Vec<FolderValue>,
    of_file: FileReader,
}

enum FileReader {
    Parquet(parquet::ParquetReader),
    Arrow(arrow::ArrowReader),
}

impl TableReader {
    /// A reader of these parts of `file`, with memory for pieces that it reads ahead.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn open(
        file: &TableFile,
        parts: std::ops::Range<usize>,
        ahead_bytes: u64,
    ) -> Result<TableReader, TableError> {
        let of_file = match file.kind {
            FileKind::Parquet => {
                FileReader::Parquet(parquet::ParquetReader::open(file, parts, ahead_bytes)?)
            }
            _ => FileReader::Arrow(arrow::ArrowReader::open(file, parts, ahead_bytes)?),
        };
        Ok(TableReader { of_folders: file.of_folders.clone(), of_file })
    }

    /// The next batch, its columns in their plain forms with views, and the number of its part; a few thousand rows at most.
    ///
    /// # Errors
    /// Damage, the system's own.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, RecordBatch)>, TableError> {
        let read = match &mut self.of_file {
            FileReader::Parquet(reader) => reader.next(),
            FileReader::Arrow(reader) => reader.next(),
        };
        let Some((part, batch)) = read? else { return Ok(None) };
        Ok(Some((part, with_columns(batch, &self.of_folders)?)))
    }
}
