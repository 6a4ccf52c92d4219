//! Views that hold no rows: files of Parquet that are in order already are merged when the view is read.
//!
//! ```text
//!   noted      the files as they were: path, size, time, checksum of the footer, rows; and the fences of their merge
//!   key_merge  the keys of all files, merged         watched  rows of a file that must not change meanwhile
//!   fences     where each file is at every Nth row of the merge
//!
//!   make     files ─► keys alone, their order checked ─► fences ─► manifest
//!   read     a row, or a key ─► the fence before it ─► keys from there ─► a place in each file ─► rows from there, merged
//! ```
//!
//! Nothing is believed that was not read: the order is that of the keys in the pages, not of statistics, which may be cut,
//! differ in what is less than a NaN or a null, or be wrong. It is checked when the view is made, and again for all rows that
//! are read. Pages that are stepped over are found by their own headers, not by an index.
//!
//! A file that is not the one that was noted is an error before any of its rows is handed out. It stays open then, so a file
//! that is replaced is still read, and one that is written to is an error.

mod fences;
mod key_merge;
mod noted;
#[cfg(test)]
mod tests;
mod watched;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use merganser_sort::budget::Reservation;
use merganser_sort::rows::{RowStream, RowTree, RowsBy};
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::file::descriptors;

use crate::TableError;
use crate::codec::TableLayout;
use crate::schema::TableSchema;
use crate::source::{FileKind, OpenedTableFile, SelectedRows, null_in};
use crate::table::Table;
use crate::table_rows::{KeyAndValue, TableRows};
use crate::verify::{RowsChecksum, TableSummary};
use fences::{Fence, Fences, kept};
use key_merge::KeyMerge;
use watched::WatchedRows;

pub(crate) use noted::ViewFiles;

/// Bytes of values of a batch that a reader decodes, at least and at most.
const BATCH_BYTES: (u64, u64) = (64 << 10, 2 << 20);
/// Rows of a batch, at most.
const BATCH_ROWS: u64 = 8192;
/// Rows of a batch of keys while a place is looked for, which is near.
const BATCH_ROWS_NEAR: u64 = 512;
/// How often a batch is in memory: as it is read, as rows, and as keys.
const BATCH_COPIES: u64 = 3;
/// The part of the memory that readers of files may take, 1 / 2. The rest is for what is made of the rows.
const READERS_SHARE: u64 = 2;

/// Whether the table is one of files whose rows can stay where they are.
pub(crate) fn can_stay(table: &Table) -> bool {
    table.source.files.iter().all(|file| file.kind == FileKind::Parquet && file.is_on_disk())
}

/// Checks the order of all files of `table`, and makes the fences of their merge; and how many rows there are.
///
/// # Errors
/// Rows that are not in order; files that can't be read at once when the view is read; those of the files;
/// [`Error::Cancelled`].
pub(crate) fn note_sorted(
    table: &Table,
    layout: &Arc<TableLayout>,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(ViewFiles, u64), TableError> {
    note_with(Fences::new(table.source.files.len()), table, layout, (budget, progress))
}

/// Does what [`note_sorted`] says, with `fences`, which are empty.
fn note_with(
    fences: Fences,
    table: &Table,
    layout: &Arc<TableLayout>,
    (budget, progress): (&Budget, &dyn Progress),
) -> Result<(ViewFiles, u64), TableError> {
    refuse_too_many(table.source.files.len() as u64)?;
    let mut files = Vec::with_capacity(table.source.files.len());
    for known in &table.source.files {
        let path = std::path::absolute(&known.path).map_err(TableError::on(&known.path))?;
        let mut opened = OpenedTableFile::open(&path)?;
        opened.file.of_folders = known.of_folders.clone();
        refuse_other_columns(&opened, layout, || TableError::ChangedWhileRead { file: path })?;
        files.push(opened);
    }
    let all: Vec<_> = (0..layout.schema.own.fields().len()).collect();
    let room = budget.free_bytes() / READERS_SHARE;
    // The readers of all columns would fit, so those of the keys do.
    let (batch_bytes, readers) = readers(&files, &all, room)?;
    let _memory = budget.reserve(readers, "reading the keys of the files")?;
    let keys = key_layout(layout)?;
    progress.phase("checking", Some(table.source.bytes()));
    let (fences, merged) = merge_all(&files, &keys, (fences, batch_bytes), progress)?;
    Ok((ViewFiles::new(&files, &fences)?, merged.rows))
}

/// What a merge of all keys counts.
#[derive(Default)]
struct MergedKeys {
    rows: u64,
    /// Rows that have the key of the row before them.
    duplicates: u64,
}

/// Merges the keys of all files from the first row to the last one, and fills `fences`, which are empty.
fn merge_all(
    files: &[OpenedTableFile],
    (keys, numbers): &(Arc<TableLayout>, Vec<usize>),
    (mut fences, batch_bytes): (Fences, u64),
    progress: &dyn Progress,
) -> Result<(Fences, MergedKeys), TableError> {
    let all = rows_of(files);
    let parts = files.iter().flat_map(|file| &file.file.parts);
    let bytes = parts.map(|part| part.bytes).fold(0, u64::saturating_add);
    let start = (0, &vec![0; files.len()][..]);
    let mut merge = KeyMerge::new(files, (keys, numbers), start, (batch_bytes, BATCH_ROWS));
    let (mut found, mut last) = (MergedKeys::default(), Vec::new());
    while merge.advance()? {
        let key = merge.key();
        fences.offer(merge.row(), key, merge.places());
        found.duplicates += u64::from(found.rows > 0 && last[..] == *key);
        last.clear();
        last.extend_from_slice(key);
        found.rows += 1;
        if found.rows % BATCH_ROWS == 0 {
            progress.advance((bytes / all.max(1)).saturating_mul(BATCH_ROWS));
            if progress.cancelled() {
                return Err(Error::Cancelled.into());
            }
        }
    }
    // A footer may count rows that are in no page.
    if found.rows != all {
        let file = files.iter().zip(merge.places()).find(|(file, read)| file.rows() != **read);
        let path = file.map(|(file, _)| file.parquet.file.path().to_owned());
        return Err(TableError::Damaged {
            file: path.unwrap_or_default(),
            place: String::new(),
            why: "has other rows than its footer says".to_owned(),
        });
    }
    Ok((fences, found))
}

/// How many rows all files have.
fn rows_of(files: &[OpenedTableFile]) -> u64 {
    files.iter().map(OpenedTableFile::rows).fold(0, u64::saturating_add)
}

/// A file that has other columns than the table.
fn refuse_other_columns(
    file: &OpenedTableFile,
    layout: &TableLayout,
    refused: impl FnOnce() -> TableError,
) -> Result<(), TableError> {
    let own = &layout.schema.own;
    let count = own.fields().len().checked_sub(file.file.of_folders.len());
    let same = count.is_some_and(|count| {
        let of_files = own.project(&(0..count).collect::<Vec<_>>()).map(Arc::new);
        of_files.is_ok_and(|of_files| TableSchema::has_columns_of(&of_files, &file.schema))
    });
    if same { Ok(()) } else { Err(refused()) }
}

/// Refuses more files than can be open, as they all are when the view is read.
fn refuse_too_many(files: u64) -> Result<(), TableError> {
    let most = descriptors::left() / 2;
    if files > most { Err(TableError::FilesAtOnce { files, most }) } else { Ok(()) }
}

/// The layout of keys alone, and the numbers of their columns.
fn key_layout(layout: &TableLayout) -> Result<(Arc<TableLayout>, Vec<usize>), TableError> {
    let (keys, numbers) = layout.with_columns(&[])?;
    Ok((Arc::new(TableLayout { stored: Vec::new(), ..keys }), numbers))
}

/// The largest batches, in bytes, that let the readers of these columns of all files fit into `room_bytes`; and how much they all
/// take.
fn readers(
    files: &[OpenedTableFile],
    columns: &[usize],
    room_bytes: u64,
) -> Result<(u64, u64), TableError> {
    let pages: u64 = files.iter().map(|file| file.page_bytes(columns)).sum();
    let count = files.len().max(1) as u64;
    let (least, most) = BATCH_BYTES;
    let takes = |batch_bytes: u64| pages + count * BATCH_COPIES * batch_bytes;
    if takes(least) > room_bytes {
        return Err(Error::Memory {
            owner: "reading all files of the view at once",
            least_bytes: takes(least) * READERS_SHARE,
            limit_bytes: room_bytes * READERS_SHARE,
        }
        .into());
    }
    let batch_bytes = ((room_bytes - pages) / count / BATCH_COPIES).min(most);
    Ok((batch_bytes, takes(batch_bytes)))
}

/// The files of a view, open, and what is known of their merge.
pub(crate) struct SortedFiles {
    view: String,
    files: Vec<OpenedTableFile>,
    fences: Fences,
    rows: u64,
    layout: Arc<TableLayout>,
    /// The layout of keys alone, and the numbers of their columns.
    keys: (Arc<TableLayout>, Vec<usize>),
    budget: Budget,
    /// What the readers of one stream may take.
    room_bytes: u64,
    _fences: Reservation,
}

/// A place in the merge of all files.
struct MergePlace {
    /// The rows of each file before it.
    places: Vec<u64>,
    /// The key of the row behind it, or its beginning; `None` at the end.
    key: Option<Vec<u8>>,
}

impl From<Fence<'_>> for MergePlace {
    fn from(fence: Fence<'_>) -> MergePlace {
        MergePlace { places: fence.places.to_vec(), key: Some(fence.key.to_vec()) }
    }
}

impl SortedFiles {
    /// Opens the files of the view in the folder `view`.
    ///
    /// # Errors
    /// A file that is not there, or not the one that was noted; too little memory for the readers of all files.
    pub(crate) fn open(
        view: &str,
        noted: &ViewFiles,
        layout: &TableLayout,
        budget: &Budget,
    ) -> Result<SortedFiles, TableError> {
        let wrong = |why| TableError::NotATableView { view: view.to_owned(), why };
        let fences = noted.fences().map_err(wrong)?;
        let memory = budget.reserve(fences.memory_bytes(), "the fences of the view")?;
        refuse_too_many(noted.count() as u64)?;
        let files = noted.open(view, layout.schema.own.fields())?;
        for file in &files {
            let path = file.parquet.file.path().to_owned();
            let view = view.to_owned();
            refuse_other_columns(file, layout, || TableError::ChangedFile { file: path, view })?;
        }
        let all: Vec<_> = (0..layout.schema.own.fields().len()).collect();
        let room_bytes = budget.free_bytes() / READERS_SHARE;
        readers(&files, &all, room_bytes)?;
        Ok(SortedFiles {
            view: view.to_owned(),
            rows: rows_of(&files),
            files,
            fences,
            keys: key_layout(layout)?,
            layout: Arc::new(layout.clone()),
            budget: budget.clone(),
            room_bytes,
            _fences: memory,
        })
    }

    /// How many rows all files have.
    pub(crate) fn rows_count(&self) -> u64 {
        self.rows
    }

    fn path(&self) -> &Path {
        Path::new(&self.view)
    }

    /// A merge of keys from a fence on, at its first row, and the memory of its readers.
    fn keys_from(&self, fence: Fence<'_>) -> Result<(KeyMerge, Reservation), TableError> {
        let (keys, numbers) = &self.keys;
        let (batch_bytes, takes) = readers(&self.files, numbers, self.room_bytes)?;
        let memory = self.budget.reserve(takes, "looking for a place in the files of the view")?;
        let (start, batch) = ((fence.row, fence.places), (batch_bytes, BATCH_ROWS_NEAR));
        let mut merge = KeyMerge::new(&self.files, (keys, numbers), start, batch);
        if !merge.advance()? || !fence.may_have(merge.key()) {
            return Err(self.wrong_fences());
        }
        Ok((merge, memory))
    }

    fn wrong_fences(&self) -> TableError {
        TableError::Damaged {
            file: self.path().to_owned(),
            place: String::new(),
            why: "its fences are not those of its files; make the view again".to_owned(),
        }
    }

    /// The number of the first row whose key is not before `key`.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn row_of_key(&self, key: &[u8]) -> Result<u64, TableError> {
        let Some(fence) = self.fences.before_key(key) else { return Ok(0) };
        let (mut merge, _memory) = self.keys_from(fence)?;
        while merge.key() < key {
            if !merge.advance()? {
                break;
            }
        }
        Ok(merge.row())
    }

    /// Where the row `row` is.
    fn place_of_row(&self, row: u64) -> Result<MergePlace, TableError> {
        let fence = self.fences.before_row(row).filter(|_| row < self.rows);
        let Some(fence) = fence else {
            let places = self.files.iter().map(OpenedTableFile::rows).collect();
            return Ok(MergePlace { places, key: None });
        };
        if fence.row == row {
            return Ok(fence.into());
        }
        let (mut merge, _memory) = self.keys_from(fence)?;
        while merge.row() < row {
            if !merge.advance()? {
                return Err(self.wrong_fences());
            }
        }
        Ok(MergePlace { places: merge.places().to_vec(), key: Some(merge.key().to_vec()) })
    }

    /// Reads all rows: their order, the fences, and a checksum of their values.
    ///
    /// # Errors
    /// Those of the files; [`Error::Cancelled`].
    pub(crate) fn verify(&self, progress: &dyn Progress) -> Result<TableSummary, TableError> {
        let mut found = TableSummary { rows: self.rows, ..TableSummary::default() };
        let columns: Vec<_> = (0..self.layout.schema.own.fields().len()).collect();
        let (batch_bytes, takes) = readers(&self.files, &columns, self.room_bytes)?;
        let memory = self.budget.reserve(takes, "checking the files of the view")?;
        let parts = self.files.iter().flat_map(|file| &file.file.parts);
        let bytes = parts.map(|part| part.bytes).fold(0, u64::saturating_add);
        progress.phase("checking the order", Some(bytes));
        let none = self.fences.at_these_distances();
        match merge_all(&self.files, &self.keys, (none, batch_bytes), progress) {
            Ok((fences, _)) if fences != self.fences => return Err(self.wrong_fences()),
            Ok((_, merged)) => found.duplicates = merged.duplicates,
            Err(TableError::Disorder { file, row }) => {
                found.disorders = 1;
                found.first_disorder = Some((file, row));
            }
            Err(error) => return Err(error),
        }
        progress.phase("checking the rows", Some(bytes));
        let mut checksum = RowsChecksum::new(&self.layout.schema)?;
        for file in &self.files {
            let (first_row, columns, batch_rows) = (0, columns.clone(), BATCH_ROWS);
            let selected = SelectedRows { first_row, columns, batch_bytes, batch_rows };
            let mut reader = file.reader(&selected);
            while let Some((_, batch)) = reader.next()? {
                let added = checksum.add(&batch).map_err(|_| null_in(&file.file))?;
                progress.advance(added);
                if progress.cancelled() {
                    return Err(Error::Cancelled.into());
                }
            }
            if !file.parquet.file.is_as_opened()? {
                let file = file.parquet.file.path().to_owned();
                return Err(TableError::ChangedWhileRead { file });
            }
        }
        drop(memory);
        found.checksum = checksum.sum;
        Ok(found)
    }

    /// These rows with the columns of the key and those with these numbers, and their layout; and the numbers of its columns in
    /// the table.
    ///
    /// # Errors
    /// Those of the files; too little memory.
    pub(crate) fn read(
        &self,
        rows: Range<u64>,
        columns: &[usize],
    ) -> Result<(SortedFileRows, TableLayout, Vec<usize>), TableError> {
        let (layout, numbers) = self.layout.with_columns(columns)?;
        let place = self.place_of_row(rows.start)?;
        let (batch_bytes, takes) = readers(&self.files, &numbers, self.room_bytes)?;
        let memory = self.budget.reserve(takes, "reading the files of the view")?;
        let shared = Arc::new(layout.clone());
        let open = |(file, first_row): (&OpenedTableFile, &u64)| {
            let (first_row, columns, batch_rows) = (*first_row, numbers.clone(), BATCH_ROWS);
            let selected = SelectedRows { first_row, columns, batch_bytes, batch_rows };
            WatchedRows::new(file, &shared, &selected)
        };
        let files = self.files.iter().zip(&place.places).map(open).collect();
        let merged = SortedFileRows {
            rows: RowTree::new(files, RowsBy::Key),
            left: rows.end.min(self.rows).saturating_sub(rows.start),
            expected: place.key,
            wrong: Some(self.wrong_fences()),
            _memory: memory,
        };
        Ok((merged, layout, numbers))
    }
}

/// Rows of a view over sorted files.
pub(crate) struct SortedFileRows {
    rows: RowTree<WatchedRows>,
    left: u64,
    /// The key of the first row, or its beginning, before that is read.
    expected: Option<Vec<u8>>,
    /// The error if the rows are others than those that were looked for.
    wrong: Option<TableError>,
    _memory: Reservation,
}

impl TableRows for SortedFileRows {
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, TableError> {
        if self.left == 0 {
            return Ok(None);
        }
        let any = self.rows.advance()?;
        let expected = self.expected.take();
        let is_first =
            expected.is_none_or(|expected| any && kept(self.rows.key()) == kept(&expected));
        if !any || !is_first {
            self.left = 0;
            return self.wrong.take().map_or(Ok(None), Err);
        }
        self.left -= 1;
        Ok(Some((self.rows.key(), self.rows.value())))
    }
}
