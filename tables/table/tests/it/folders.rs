//! Results in folders: partitions, sizes of files, disks that fail.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use merganser_random::Random;
use merganser_sort::{Budget, Error, Progress, Silent};
use merganser_storage::memory::MemoryDirectory;
use merganser_tables::{
    FolderFile, FolderFiles, ParquetCompression, Table, TableError, TableFolder, TableOptions,
    TableOrder, TableOutput, TableReport, sort_table,
};
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::Ended;

/// A row: a country, a year, and its number.
type Row = (Option<String>, Option<i64>, i64);

/// Writes rows to a file of Parquet, and opens it.
fn table_of(folder: &Path, rows: &[Row]) -> Table {
    let fields = [
        Field::new("country", DataType::Utf8, true),
        Field::new("year", DataType::Int64, true),
        Field::new("at", DataType::Int64, false),
    ];
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let countries: StringArray = rows.iter().map(|row| row.0.as_deref()).collect();
    let years: Int64Array = rows.iter().map(|row| row.1).collect();
    let at = Int64Array::from_iter_values(rows.iter().map(|row| row.2));
    let columns: Vec<ArrayRef> = vec![Arc::new(countries), Arc::new(years), Arc::new(at)];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns");
    let path = folder.join("in.parquet");
    let file = std::fs::File::create(&path).expect("made");
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
    Table::open(&[path]).expect("opens")
}

/// A folder in memory, whose Nth operation fails.
#[derive(Clone, Default)]
struct MemoryFolder(Arc<Mutex<MemoryFiles>>);

#[derive(Default)]
struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
    synced: Vec<String>,
    open: usize,
    open_most: usize,
    operations: u64,
    fails_at: Option<u64>,
}

impl MemoryFiles {
    fn operate(&mut self) -> io::Result<()> {
        self.operations += 1;
        match self.fails_at {
            Some(at) if at <= self.operations => Err(io::Error::other("the disk fails")),
            _ => Ok(()),
        }
    }
}

struct MemoryFile(MemoryFolder, String);

impl TableFolder for MemoryFolder {
    fn create(&self, folders: &[String], name: &str) -> io::Result<Box<dyn FolderFile>> {
        let mut files = self.0.lock();
        files.operate()?;
        let mut path = folders.join("/");
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        assert!(files.files.insert(path.clone(), Vec::new()).is_none(), "{path} again");
        files.open += 1;
        files.open_most = files.open_most.max(files.open);
        Ok(Box::new(MemoryFile(self.clone(), path)))
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.0.0.lock();
        files.operate()?;
        files.files.get_mut(&self.1).expect("there").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FolderFile for MemoryFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut files = self.0.0.lock();
        files.operate()?;
        files.synced.push(self.1.clone());
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.0.0.lock().open -= 1;
    }
}

/// The names of the columns of a file, the number of its row groups, and the numbers of its rows.
fn read(bytes: &[u8]) -> (Vec<String>, usize, Vec<i64>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes));
    let builder = builder.expect("a file of Parquet");
    let names = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let groups = builder.metadata().num_row_groups();
    let mut numbers = Vec::new();
    for batch in builder.build().expect("a reader") {
        let batch = batch.expect("a batch");
        let at = batch.column_by_name("at").expect("at").as_primitive::<Int64Type>().clone();
        assert_eq!(at.null_count(), 0);
        numbers.extend_from_slice(at.values());
    }
    (names, groups, numbers)
}

fn options(keys: &[&str]) -> TableOptions {
    let keys = keys.iter().map(|key| key.parse().expect("a key")).collect();
    TableOptions::new(TableOrder::Keys(keys), Budget::new(32 << 20), vec![MemoryDirectory::new()])
}

fn files(partition_by: &[&str], file_bytes: Option<u64>) -> FolderFiles {
    let partition_by = partition_by.iter().map(|name| (*name).to_owned()).collect();
    FolderFiles { partition_by, file_bytes }
}

fn sort_to(
    folder: &MemoryFolder,
    table: &Table,
    options: &TableOptions,
    files: FolderFiles,
    progress: &dyn Progress,
) -> Result<TableReport, TableError> {
    let done = sort_table(table, TableOutput::Folder { folder, files }, options, progress);
    assert_eq!(options.budget.free_bytes(), options.budget.limit_bytes());
    let memory = folder.0.lock();
    assert_eq!(memory.open, 0);
    assert!(memory.open_most <= options.threads + 1, "{} files", memory.open_most);
    done
}

/// The files of a folder, and the numbers of their rows.
fn sorted(table: &Table, options: &TableOptions, wanted: FolderFiles) -> Vec<(String, Vec<i64>)> {
    let folder = MemoryFolder::default();
    let all = wanted.partition_by.clone();
    let report = sort_to(&folder, table, options, wanted, &Silent).expect("sorts");
    let memory = folder.0.lock();
    let mut synced = memory.synced.clone();
    synced.sort();
    assert_eq!(synced, memory.files.keys().cloned().collect::<Vec<_>>());
    let numbers = memory.files.iter().map(|(name, bytes)| {
        let (columns, _, numbers) = read(bytes);
        assert!(columns.iter().all(|column| !all.contains(column)), "{columns:?}");
        (name.clone(), numbers)
    });
    let numbers: Vec<_> = numbers.collect();
    let rows: usize = numbers.iter().map(|(_, numbers)| numbers.len()).sum();
    assert_eq!(report.result_rows, rows as u64);
    numbers
}

fn row(country: Option<&str>, year: Option<i64>, at: i64) -> Row {
    (country.map(str::to_owned), year, at)
}

#[test]
fn a_folder_for_each_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = [
        row(Some("FR"), Some(2024), 5),
        row(None, Some(2024), 4),
        row(Some("a/b"), None, 3),
        row(Some("FR"), Some(2023), 2),
        row(Some("FR"), Some(2024), 1),
    ];
    let table = table_of(folder.path(), &rows);
    let found = sorted(&table, &options(&["at"]), files(&["country"], None));
    let expected = [
        ("country=FR/part-00000.parquet", vec![1, 2, 5]),
        ("country=__HIVE_DEFAULT_PARTITION__/part-00000.parquet", vec![4]),
        ("country=a%2Fb/part-00000.parquet", vec![3]),
    ];
    assert_eq!(found, expected.map(|(name, rows)| (name.to_owned(), rows)));
    let found = sorted(&table, &options(&["at:r", "year"]), files(&["year", "country"], None));
    let expected = [
        ("year=2023/country=FR/part-00000.parquet", vec![2]),
        ("year=2024/country=FR/part-00000.parquet", vec![5, 1]),
        ("year=2024/country=__HIVE_DEFAULT_PARTITION__/part-00000.parquet", vec![4]),
        ("year=__HIVE_DEFAULT_PARTITION__/country=a%2Fb/part-00000.parquet", vec![3]),
    ];
    assert_eq!(found, expected.map(|(name, rows)| (name.to_owned(), rows)));
}

/// The folders that a naive sort makes, in the order of their names.
fn model(rows: &[Row], by: &[&str], at_first: bool) -> BTreeMap<String, Vec<i64>> {
    let mut folders: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    let null = || "__HIVE_DEFAULT_PARTITION__".to_owned();
    for row in rows {
        let folder = by.iter().map(|column| match *column {
            "country" => format!("country={}", row.0.clone().unwrap_or_else(null)),
            _ => format!("year={}", row.1.map_or_else(null, |year| year.to_string())),
        });
        let folder: Vec<_> = folder.collect();
        folders.entry(folder.join("/")).or_default().push(row);
    }
    let sorted = folders.into_iter().map(|(name, mut rows)| {
        rows.sort_by(|a, b| {
            let at = a.2.cmp(&b.2);
            let country = a.0.cmp(&b.0);
            if at_first { at.then(country) } else { country }
        });
        (name, rows.iter().map(|row| row.2).collect())
    });
    sorted.collect()
}

/// All tables of up to three rows with these values, by all lists of columns.
#[test]
fn every_small_table_is_partitioned_as_a_naive_sort_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let countries = [None, Some(""), Some("a"), Some("ab")];
    let kinds: Vec<_> = countries
        .iter()
        .flat_map(|country| [None, Some(-1)].map(|year| (*country, year)))
        .collect();
    let mut tables = vec![Vec::new()];
    for _ in 0..3 {
        let longer = tables.iter().flat_map(|table: &Vec<_>| {
            kinds.iter().map(move |kind| {
                let mut longer = table.clone();
                longer.push(*kind);
                longer
            })
        });
        tables = longer.collect();
        for (number, kinds) in tables.iter().enumerate() {
            // Numbers that are not in the order of the rows.
            let row = |(at, kind): (usize, &(Option<&str>, Option<i64>))| {
                row(kind.0, kind.1, (at as i64 * 2 + number as i64) % 3)
            };
            let rows: Vec<_> = kinds.iter().enumerate().map(row).collect();
            let table = table_of(folder.path(), &rows);
            let lists: [&[&str]; 4] =
                [&["country"], &["year"], &["country", "year"], &["year", "country"]];
            let by = lists[number % 4];
            let at_first = number % 3 > 0;
            let keys: &[&str] = if at_first { &["at", "country"] } else { &["country"] };
            let mut options = options(keys);
            options.threads = 1 + number % 2;
            let found = sorted(&table, &options, files(by, None));
            let found: BTreeMap<_, _> = found
                .into_iter()
                .map(|(name, rows)| {
                    let folder = name.strip_suffix("/part-00000.parquet").expect("one file");
                    (folder.to_owned(), rows)
                })
                .collect();
            assert_eq!(found, model(&rows, by, at_first), "{rows:?} by {by:?}");
        }
    }
}

/// A table of columns of several kinds, with lists and long texts. The column `at` is the number of the row.
fn wide_table(folder: &Path, random: &mut Random, rows: usize) -> Table {
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let fields = [
        Field::new("country", DataType::Utf8, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("list", DataType::List(Arc::clone(&item)), true),
        Field::new("same", DataType::Int64, false),
        Field::new("at", DataType::Int64, false),
    ];
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let countries: StringArray =
        (0..rows).map(|_| (!random.one_in(9)).then(|| format!("c{}", random.below(4)))).collect();
    let longest = [8, 300][random.below(2) as usize];
    let mut text = || -> String {
        let len = random.below(longest);
        (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    let texts: StringArray = (0..rows).map(|_| Some(text())).collect();
    let mut lists =
        arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new())
            .with_field(item);
    for row in 0..rows {
        for _ in 0..row % 3 {
            lists.values().append_value(text());
        }
        lists.append(row % 7 > 0);
    }
    let at = Int64Array::from_iter_values(0..rows as i64);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(countries),
        Arc::new(texts),
        Arc::new(lists.finish()),
        Arc::new(Int64Array::from(vec![7; rows])),
        Arc::new(at),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns");
    let path = folder.join("wide.parquet");
    let file = std::fs::File::create(&path).expect("made");
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
    Table::open(&[path]).expect("opens")
}

/// A file is at most as large as was asked for, unless it has one row group; and is not ended much earlier than it has to be.
#[test]
fn files_have_at_most_the_size_and_keep_the_order() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let rows = random.below(9000) as usize;
        let table = wide_table(folder.path(), &mut random, rows);
        let limit = [4_000, 20_000, 64 << 10, 300_000, 10 << 20][random.below(5) as usize];
        let mut options = options(&["text"]);
        options.threads = 1 + random.below(3) as usize;
        options.parquet.group_rows = [50, 1000, 1 << 17][random.below(3) as usize];
        options.parquet.compression =
            [None, Some(ParquetCompression::None), Some(ParquetCompression::Zstd)]
                [random.below(3) as usize];
        let by: &[&str] = if random.one_in(2) { &["country"] } else { &[] };
        let shown = format!("seed {seed}: {rows} rows, {limit} bytes, by {by:?}");
        let mut all: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let memory = MemoryFolder::default();
        sort_to(&memory, &table, &options, files(by, Some(limit)), &Silent).expect("sorts");
        let memory = memory.0.lock();
        for (name, bytes) in &memory.files {
            let (_, groups, numbers) = read(bytes);
            let size = bytes.len() as u64;
            assert!(size <= limit || groups == 1, "{shown}: {name} has {size}, {groups} groups");
            let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
            let before = memory.files.keys().filter(|name| {
                name.starts_with(folder)
                    && name.rsplit_once('/').map_or("", |name| name.0) == folder
            });
            let number = before.take_while(|other| *other != name).count();
            assert_eq!(file, format!("part-{number:05}.parquet"), "{shown}");
            all.entry(folder.to_owned()).or_default().extend(numbers);
        }
        // The same folders in one file each.
        let whole = sorted(&table, &options, files(by, None));
        let whole: BTreeMap<_, _> = whole
            .into_iter()
            .map(|(name, rows)| (name.rsplit_once('/').map_or("", |name| name.0).to_owned(), rows))
            .collect();
        assert!(all == whole, "{shown}");
    }
}

/// With rows that are alike, all files of a folder but the last one are nearly as large as was asked for.
#[test]
fn files_are_nearly_as_large_as_they_may_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = wide_table(folder.path(), &mut Random::new(3), 40_000);
    let limit = 256 << 10;
    let memory = MemoryFolder::default();
    sort_to(&memory, &table, &options(&["at"]), files(&[], Some(limit)), &Silent).expect("sorts");
    let sizes: Vec<_> = memory.0.lock().files.values().map(|bytes| bytes.len() as u64).collect();
    assert!(sizes.len() > 5, "{sizes:?}");
    for size in &sizes[..sizes.len() - 1] {
        assert!((limit * 7 / 10..=limit).contains(size), "{sizes:?}");
    }
}

#[test]
fn a_shuffle_has_partitions_and_files_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: Vec<_> =
        (0..3000).map(|at| row(Some(["FR", "DE"][at as usize % 2]), None, at)).collect();
    let table = table_of(folder.path(), &rows);
    let mut options = options(&[]);
    options.order = TableOrder::Shuffled { seed: 7 };
    let found = sorted(&table, &options, files(&["country"], None));
    assert_eq!(found.len(), 2);
    for (name, numbers) in &found {
        let rest = i64::from(name.starts_with("country=DE"));
        assert!(numbers.iter().all(|at| at % 2 == rest) && numbers.len() == 1500, "{name}");
        assert!(!numbers.is_sorted());
    }
    let mixed = sorted(&table, &options, files(&[], Some(8000)));
    assert!(mixed.len() > 2, "{} files", mixed.len());
    let mut numbers: Vec<_> = mixed.into_iter().flat_map(|(_, numbers)| numbers).collect();
    assert!(!numbers.is_sorted());
    numbers.sort();
    assert!(numbers.into_iter().eq(0..3000));
}

#[test]
fn a_table_without_rows_has_a_file_with_its_columns_or_no_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = table_of(folder.path(), &[]);
    let found = sorted(&table, &options(&["at"]), files(&[], Some(1 << 20)));
    assert_eq!(found, [("part-00000.parquet".to_owned(), Vec::new())]);
    assert!(sorted(&table, &options(&["at"]), files(&["country"], None)).is_empty());
}

#[test]
fn columns_that_name_no_folders_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = wide_table(folder.path(), &mut Random::new(1), 10);
    let refused = |by: &[&str]| {
        let memory = MemoryFolder::default();
        let ended = sort_to(&memory, &table, &options(&["at"]), files(by, None), &Silent);
        assert_eq!(memory.0.lock().operations, 0);
        ended.expect_err("refused").to_string()
    };
    assert!(
        refused(&["none"]).ends_with("has no column none; it has country, text, list, same, at")
    );
    assert!(refused(&["list"]).contains("column list is of type List"));
    assert!(refused(&["text", "text"]).ends_with("column text is twice a key"));
}

/// Each operation on the files fails in turn, and the end is asked for in every phase: an error comes out, and no file is
/// open.
#[test]
fn every_operation_on_the_files_fails_in_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = wide_table(folder.path(), &mut Random::new(2), 3000);
    let wanted = || files(&["country"], Some(30_000));
    let mut options = options(&["text"]);
    options.parquet.group_rows = 100;
    let quiet = MemoryFolder::default();
    sort_to(&quiet, &table, &options, wanted(), &Silent).expect("sorts");
    let operations = quiet.0.lock().operations;
    assert!(operations > 50, "{operations} operations");
    for at in 1..=operations {
        let memory = MemoryFolder::default();
        memory.0.lock().fails_at = Some(at);
        match sort_to(&memory, &table, &options, wanted(), &Silent) {
            Err(TableError::Engine(Error::Io(error))) => {
                assert!(error.to_string().contains("the disk fails"), "{error}");
            }
            other => panic!("{at}: {other:?}"),
        }
    }
    let mut cancelled = 0;
    for looks in 1..1000 {
        let ended = Ended(looks.into());
        match sort_to(&MemoryFolder::default(), &table, &options, wanted(), &ended) {
            Ok(_) => break,
            Err(TableError::Engine(Error::Cancelled)) => cancelled += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(cancelled > 0, "{cancelled} times");
}
