//! What the manifest of a view says of its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use merganser_sort::journal::JournalText;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fences::Fences;
use crate::TableError;
use crate::hex::{from_hex, hex};
use crate::source::{FolderValue, OpenedTableFile, OuterSigns};

/// The version of what is said of files, fences included.
const FILES_VERSION: u32 = 1;

/// The files of a view, and the fences of their merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewFiles {
    version: u32,
    /// In the order in which rows with equal keys come.
    list: Vec<ViewFile>,
    /// Rows between two fences.
    spacing: u64,
    /// The bytes of the fences, in hexadecimal digits.
    fences: String,
}

/// A file as it was when the view was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ViewFile {
    path: JournalText,
    size_bytes: u64,
    modified_unix_ns: i64,
    /// The CRC32 of its footer, which says where its pages are.
    footer_crc32: u32,
    rows: u64,
    /// The values of the columns that its folders named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    folders: Vec<Value>,
}

impl ViewFiles {
    /// Notes these files, which are open.
    ///
    /// # Errors
    /// The system's own.
    pub(super) fn new(files: &[OpenedTableFile], fences: &Fences) -> Result<ViewFiles, TableError> {
        let note = |file: &OpenedTableFile| {
            let opened = &file.parquet.file;
            let OuterSigns { size_bytes, modified_unix_ns } = opened.outer();
            let value = |value: &FolderValue| match value {
                FolderValue::Integer(value) => serde_json::json!(value),
                FolderValue::Text(value) => serde_json::json!(value.as_deref()),
            };
            Ok(ViewFile {
                path: JournalText::from(opened.path().as_os_str()),
                size_bytes,
                modified_unix_ns,
                footer_crc32: opened.footer_crc()?,
                rows: file.rows(),
                folders: file.file.of_folders.iter().map(value).collect(),
            })
        };
        let list = files.iter().map(note).collect::<Result<_, TableError>>()?;
        let (spacing, fences) = (fences.spacing(), hex(&fences.to_bytes()));
        Ok(ViewFiles { version: FILES_VERSION, list, spacing, fences })
    }

    /// Why these are no files of a view that this program reads, or the fences.
    pub(super) fn fences(&self) -> Result<Fences, String> {
        if self.version != FILES_VERSION {
            return Err(format!(
                "its files are of version {}, and this program reads version {FILES_VERSION}",
                self.version
            ));
        }
        let rows: Vec<_> = self.list.iter().map(|file| file.rows).collect();
        let bytes = from_hex(&self.fences);
        let fences = bytes.and_then(|bytes| Fences::from_bytes(&bytes, self.spacing, &rows));
        fences.ok_or_else(|| "its fences are not those of its files".to_owned())
    }

    /// How many files there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// The paths and rows of the files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        self.list.iter().map(|file| (file.path.as_os_str().into(), file.rows))
    }

    /// Opens the files of the view in the folder `view`, which are as they were. The last columns of `fields` are those that
    /// folders named.
    ///
    /// # Errors
    /// A file that is not there, or another one.
    pub(super) fn open(
        &self,
        view: &str,
        fields: &[Arc<Field>],
    ) -> Result<Vec<OpenedTableFile>, TableError> {
        self.list.iter().map(|noted| noted.open(view, fields)).collect()
    }
}

impl ViewFile {
    fn open(&self, view: &str, fields: &[Arc<Field>]) -> Result<OpenedTableFile, TableError> {
        let path = Path::new(self.path.as_os_str());
        let view = || view.to_owned();
        let changed = || TableError::ChangedFile { file: path.to_owned(), view: view() };
        // A file that can be opened and is no Parquet any more was replaced.
        let outer = std::fs::metadata(path);
        let outer = outer.and_then(|_| std::fs::File::open(path));
        if let Err(error) = outer {
            return Err(TableError::LostFile { file: path.to_owned(), view: view(), error });
        }
        let mut opened = match OpenedTableFile::open(path) {
            Ok(opened) => opened,
            Err(TableError::Damaged { .. }) => return Err(changed()),
            Err(error) => return Err(error),
        };
        let file = &opened.parquet.file;
        let OuterSigns { size_bytes, modified_unix_ns } = file.outer();
        if (size_bytes, modified_unix_ns) != (self.size_bytes, self.modified_unix_ns)
            || file.footer_crc()? != self.footer_crc32
            || opened.rows() != self.rows
        {
            return Err(changed());
        }
        let of_folders = fields[fields.len().saturating_sub(self.folders.len())..].iter();
        let values = of_folders.zip(&self.folders).map(|(field, value)| match field.data_type() {
            DataType::Int64 => Some(FolderValue::Integer(match value {
                Value::Null => None,
                value => Some(value.as_i64()?),
            })),
            DataType::Utf8 => Some(FolderValue::Text(match value {
                Value::Null => None,
                value => Some(Arc::from(value.as_str()?)),
            })),
            _ => None,
        });
        opened.file.of_folders = values.collect::<Option<_>>().ok_or_else(changed)?;
        Ok(opened)
    }
}
