//! Any text as what a manifest says of the files of a view, which are there: the view opens or is refused, its readers give rows
//! or an error, and never panic. Rows are never in another order than that of the view, nor fewer than were asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use merganser_sort::view::Manifest;
use merganser_sort::{Budget, Silent};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;
use merganser_tables::{ParquetOptions, RowsWanted, TableFormat, TableView};
use serde_json::Value;

/// Two files of Parquet, in hexadecimal digits, each in the order of its column `id`: `0` has 0, 2, ... 18, and `1` has 0, 1, 3,
/// ... 17. DuckDB made them.
const FILES: &str = include_str!("sorted_files.parquets");
/// Their columns, as a manifest has them.
const SCHEMA: &str = include_str!("sorted_files.schema");
/// The true text about them, with fences at each fourth row.
const TRUE: &str = include_str!("sorted_files.json");

/// The files in a folder of their own, which is removed with it.
struct Placed(PathBuf);

impl Placed {
    fn new() -> Placed {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("merganser-fuzz-{}-{number}", std::process::id());
        let placed = Placed(std::env::temp_dir().join(name));
        std::fs::create_dir(&placed.0).expect("a folder");
        for (number, digits) in FILES.lines().enumerate() {
            let digits: Vec<_> = digits.chars().map(|c| c.to_digit(16).expect("a digit")).collect();
            let bytes: Vec<_> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
            let path = placed.0.join(number.to_string());
            std::fs::write(&path, bytes).expect("written");
            let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).expect("set");
        }
        placed
    }

    /// The same files with their names in this folder. Other files of the machine are not opened.
    fn name_in(&self, files: &mut Value) {
        let list = files.get_mut("list").and_then(Value::as_array_mut);
        for file in list.into_iter().flatten() {
            if let Some(Value::String(name)) = file.get_mut("path") {
                *name = self.0.join(name.replace('/', "_")).display().to_string();
            } else if let Value::Object(fields) = file {
                fields.remove("path");
            }
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The ids of some rows, if they can be read.
fn ids(view: &TableView, start: u64, end: u64) -> Option<Vec<u64>> {
    let wanted = RowsWanted { start: Some(start), end: Some(end), head: None };
    let mut csv = Vec::new();
    let (to, how) = ((&mut csv as _, TableFormat::Csv), (&ParquetOptions::default(), 1));
    let count = view.write(&wanted, Some(&["id".to_owned()]), to, how, &Silent).ok()?;
    let text = String::from_utf8(csv).expect("text");
    let ids: Vec<u64> = text.lines().skip(1).map(|id| id.parse().expect("a number")).collect();
    assert_eq!((count, ids.len() as u64), (end - start, end - start));
    assert!(ids.is_sorted(), "{ids:?}");
    Some(ids)
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(mut files) = serde_json::from_slice::<Value>(bytes) else { return };
    let placed = Placed::new();
    placed.name_in(&mut files);
    let columns = serde_json::json!({
        "encoding": 1,
        "keys": [{ "column": "id", "nulls": "first", "nullable": false }],
        "schema": SCHEMA.trim(),
        "files": files,
    });
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let manifest = Manifest::of_table_in_files("t".to_owned(), 20, 1, columns);
    manifest.write(&folder).expect("memory takes all");
    let is_true = bytes == TRUE.as_bytes();
    let Ok(view) = TableView::open(&folder, &Budget::new(64 << 20), 1) else {
        assert!(!is_true, "the files are as they were");
        return;
    };
    let count = view.rows_count();
    let all = ids(&view, 0, count);
    for start in 0..=count {
        let part = ids(&view, start, count.min(start + 3));
        let found = view.row_of_key(&start.to_string());
        if is_true {
            let all = all.as_ref().expect("they are read");
            let end = count.min(start + 3) as usize;
            assert_eq!(part.as_deref(), Some(&all[start as usize..end]));
            let first = all.iter().position(|id| *id >= start).unwrap_or(all.len());
            assert_eq!(found.expect("a number"), first as u64);
        }
    }
    let verified = view.verify_files(&Silent);
    assert!(!is_true || verified.is_ok_and(|found| found.is_some_and(|found| found.rows == 20)));
}

/// The true text.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    vec![TRUE.as_bytes().to_vec()]
}
