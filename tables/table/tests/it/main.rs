//! Sorts of tables: in little memory, on disks that fail, cancelled, as views.

mod folders;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use merganser_random::Random;
use merganser_sort::run::Compression;
use merganser_sort::view::Manifest;
use merganser_sort::{Budget, Error, Progress, Silent};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;
use merganser_tables::{
    RowsWanted, Table, TableError, TableFormat, TableOptions, TableOrder, TableOutput, TableReport,
    TableView, ViewBatches, sort_table,
};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

/// Writes `rows` rows to files of Parquet and Arrow in turn: a name, many of them equal, and the row's number.
fn write_files(folder: &Path, rows: usize) -> Vec<PathBuf> {
    let fields =
        [Field::new("name", DataType::Utf8, true), Field::new("at", DataType::Int64, false)];
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let mut random = Random::new(5);
    let mut paths = Vec::new();
    for (number, start) in (0..rows).step_by(rows.div_ceil(3).max(1)).enumerate() {
        let end = rows.min(start + rows.div_ceil(3));
        let names: StringArray = (start..end)
            .map(|_| (!random.one_in(9)).then(|| format!("name {:04}", random.below(500))))
            .collect();
        let at = Int64Array::from_iter_values((start..end).map(|row| row as i64));
        let columns: Vec<ArrayRef> = vec![Arc::new(names), Arc::new(at)];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns");
        let path = folder.join(format!("{number}.table"));
        let file = std::fs::File::create(&path).expect("made");
        if number % 2 == 0 {
            let properties = parquet::file::properties::WriterProperties::builder()
                .set_max_row_group_row_count(Some(1000))
                .build();
            let schema = Arc::clone(&schema);
            let writer = parquet::arrow::ArrowWriter::try_new(file, schema, Some(properties));
            let mut writer = writer.expect("a writer");
            writer.write(&batch).expect("written");
            writer.close().expect("closed");
        } else {
            let writer = arrow_ipc::writer::FileWriter::try_new(file, &schema);
            let mut writer = writer.expect("a writer");
            writer.write(&batch).expect("written");
            writer.finish().expect("finished");
        }
        paths.push(path);
    }
    paths
}

fn options(memory: u64, temp: Arc<dyn Directory>, threads: usize) -> TableOptions {
    let key = "name".parse().expect("a key");
    let mut options =
        TableOptions::new(TableOrder::Keys(vec![key]), Budget::new(memory), vec![temp]);
    options.threads = threads;
    options
}

/// The result as csv, and what was done.
fn sorted(
    table: &Table,
    options: &TableOptions,
    progress: &dyn Progress,
) -> Result<(String, TableReport), TableError> {
    let mut bytes = Vec::new();
    let output = TableOutput::Bytes { to: &mut bytes, format: TableFormat::Csv };
    let report = sort_table(table, output, options, progress)?;
    Ok((String::from_utf8(bytes).expect("text"), report))
}

/// Memory and threads decide how often rows are written, and never what comes out. Equal keys keep the order of the input.
#[test]
fn any_memory_and_any_threads_give_the_same_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 60_000)).expect("opens");
    let (whole, report) =
        sorted(&table, &options(256 << 20, MemoryDirectory::new(), 1), &Silent).expect("sorts");
    assert_eq!((report.rows, report.result_rows, report.runs), (60_000, 60_000, 0));
    let mut last = (String::new(), -1);
    for line in whole.lines().skip(1) {
        let (name, at) = line.split_once(',').expect("two columns");
        let this = (name.to_owned(), at.parse::<i64>().expect("a number"));
        assert!(last < this, "{last:?} {this:?}");
        last = this;
    }
    for (memory, threads) in [(3 << 20, 1), (3 << 20, 2), (5 << 20, 3), (64 << 20, 2)] {
        let options = options(memory, MemoryDirectory::new(), threads);
        let (found, report) = sorted(&table, &options, &Silent).expect("sorts");
        assert!(found == whole, "{memory} {threads}");
        assert_eq!(report.runs > 0, memory < 10 << 20, "{memory} {threads}: {report:?}");
        assert_eq!(options.budget.free_bytes(), memory);
        assert!(options.budget.peak_bytes() <= memory);
    }
}

#[test]
fn a_view_is_read_by_rows_and_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 20_000)).expect("opens");
    let mut options = options(16 << 20, MemoryDirectory::new(), 2);
    let (whole, _) = sorted(&table, &options, &Silent).expect("sorts");
    let names: Vec<_> = whole.lines().skip(1).map(str::to_owned).collect();
    for packed in [Compression::Off, Compression::Lz4] {
        options.packed = packed;
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let output = TableOutput::View { folder: Arc::clone(&folder), name: "t".to_owned() };
        sort_table(&table, output, &options, &Silent).expect("sorts");
        let budget = Budget::new(64 << 20);
        let view = TableView::open(&folder, &budget, 2).expect("opens");
        assert_eq!((view.rows_count(), view.order()), (20_000, "name".to_owned()));
        let numbers = |wanted: &RowsWanted| {
            let mut found = Vec::new();
            let count = view.batches(wanted, Some(&["at".to_owned()]), |batch| {
                found.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
                Ok(())
            });
            assert_eq!(count.expect("reads"), found.len() as u64);
            found
        };
        let at = |line: &String| line.split_once(',').expect("two").1.parse::<i64>().expect("one");
        let expected: Vec<_> = names.iter().map(at).collect();
        assert!(numbers(&RowsWanted::default()) == expected);
        let part = RowsWanted { start: Some(777), end: Some(9000), head: Some(5) };
        assert_eq!(numbers(&part), expected[777..782]);
        let from = view.row_of_key("name 0250").expect("a key");
        let behind = view.row_behind_key("name 0250").expect("a key");
        let is_one = |line: &&String| line.starts_with("name 0250,");
        assert_eq!(names.iter().position(|line| is_one(&line)), usize::try_from(from).ok());
        assert_eq!(behind - from, names.iter().filter(is_one).count() as u64);
        // Columns that a later version may have are refused.
        let manifest = Manifest::read(&folder).expect("reads");
        let mut columns = manifest.table.clone().expect("of a table");
        columns["encoding"] = 2.into();
        manifest.of_table(columns).write(&folder).expect("written");
        let refused = TableView::open(&folder, &budget, 1).err().expect("refused").to_string();
        assert!(refused.contains("version 2") && refused.contains("reads version 1"), "{refused}");
    }
}

/// The names and numbers of the rows that [`write_files`] writes, as a view in memory.
fn view_of(table: &Table, key: &str, budget: &Budget) -> Arc<TableView> {
    let mut options = options(16 << 20, MemoryDirectory::new(), 2);
    options.order = TableOrder::Keys(vec![key.parse().expect("a key")]);
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let output = TableOutput::View { folder: Arc::clone(&folder), name: "t".to_owned() };
    sort_table(table, output, &options, &Silent).expect("sorts");
    Arc::new(TableView::open(&folder, budget, 2).expect("opens"))
}

/// Readers that are made and not read hold nothing, and several are read at once. One that is dropped gives all back.
#[test]
fn readers_of_a_view_begin_with_their_first_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 60_000)).expect("opens");
    let budget = Budget::new(64 << 20);
    let view = view_of(&table, "name", &budget);
    let reader = || ViewBatches::new(&view, RowsWanted::default(), Some(vec!["at".to_owned()]));
    let free = budget.free_bytes();
    let made: Vec<_> = (0..100).map(|_| reader()).collect();
    // A thread that began to read would have taken memory by now.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(budget.free_bytes(), free);
    drop(made);
    let mut three: Vec<_> = (0..3).map(|_| reader().expect("a column")).collect();
    assert_eq!(three[0].schema().fields().len(), 1);
    let mut rows = [0; 3];
    while let Some(firsts) = three.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>() {
        for (rows, batch) in rows.iter_mut().zip(firsts) {
            *rows += batch.expect("a batch").num_rows();
        }
    }
    assert_eq!(rows, [60_000; 3]);
    for _ in 0..50 {
        let mut reader = reader().expect("a column");
        assert!(reader.next().expect("one").is_ok());
    }
    drop(three);
    assert_eq!(budget.free_bytes(), free);
    let no_column = ViewBatches::new(&view, RowsWanted::default(), Some(vec!["x".to_owned()]));
    assert!(matches!(no_column, Err(TableError::NoColumn { .. })));
}

/// Nulls are at one end, and the values next to them are found by their type.
#[test]
fn values_and_nulls_of_the_first_key_are_ranges() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 20_000)).expect("opens");
    for (key, first) in
        [("name", true), ("name:last", false), ("name:r", true), ("name:r:last", false)]
    {
        let view = view_of(&table, key, &Budget::new(64 << 20));
        let mut names: Vec<Option<String>> = Vec::new();
        let all = view.batches(&RowsWanted::default(), None, |batch| {
            let column = batch.column(0).as_string::<i32>();
            names.extend(column.iter().map(|name| name.map(str::to_owned)));
            Ok(())
        });
        assert_eq!(all.expect("reads"), 20_000);
        let nulls = names.iter().filter(|name| name.is_none()).count() as u64;
        let values = view.rows_with_a_value().expect("reads");
        assert_eq!(values, if first { nulls..20_000 } else { 0..20_000 - nulls }, "{key}");
        assert_eq!(view.first_key(), Some(("name", key.contains(":r"))));
        let value: ArrayRef = Arc::new(StringArray::from(vec!["name 0250"]));
        assert_eq!(view.key_type(), Some(value.data_type()));
        let is_one = |name: &Option<String>| name.as_deref() == Some("name 0250");
        let start = names.iter().position(is_one).expect("one") as u64;
        let end = names.iter().rposition(is_one).expect("one") as u64 + 1;
        assert_eq!(view.row_of_value(&value).expect("a value"), start, "{key}");
        assert_eq!(view.row_behind_value(&value).expect("a value"), end, "{key}");
        let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(matches!(view.row_of_value(&number), Err(TableError::NoValue { .. })));
    }
}

/// Batches of a program are sorted as those of files are, once, and its error comes out.
#[test]
fn a_table_is_given_in_batches() {
    let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
    let batch = |names: &[&str]| {
        let column: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
        RecordBatch::try_new(Arc::clone(&schema), vec![column])
    };
    let given = |last: Result<RecordBatch, ArrowError>| {
        let batches = [batch(&["pear", "fig"]), batch(&[]), last];
        Table::from_batches("a frame", Arc::clone(&schema), batches.into_iter()).expect("a table")
    };
    let options = options(16 << 20, MemoryDirectory::new(), 2);
    let table = given(batch(&["apple"]));
    assert_eq!((table.rows(), table.schema()), (None, &schema));
    let (found, report) = sorted(&table, &options, &Silent).expect("sorts");
    assert_eq!((&found[..], report.rows), ("name\napple\nfig\npear\n", 3));
    let again = sorted(&table, &options, &Silent).expect_err("read").to_string();
    assert_eq!(
        again,
        "a frame: Invalid argument error: was read before, and its batches come once"
    );
    let failed = given(Err(ArrowError::ComputeError("no more".to_owned())));
    let failed = sorted(&failed, &options, &Silent).expect_err("fails");
    assert!(matches!(&failed, TableError::Given { table, .. } if table == "a frame"), "{failed}");
}

/// Reads, writes and creates of temporary files fail in turn, and bits change: an error comes out, and nothing is held.
#[test]
fn every_operation_on_temporary_files_fails_in_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 60_000)).expect("opens");
    let sort = |plan: FaultPlan| {
        let disk = Faulty::new(MemoryDirectory::new(), plan);
        let options = options(3 << 20, Arc::clone(&disk) as Arc<dyn Directory>, 2);
        let ended = sorted(&table, &options, &Silent);
        assert_eq!(options.budget.free_bytes(), options.budget.limit_bytes());
        assert_eq!(disk.used_bytes(), 0);
        (ended, disk)
    };
    let (whole, quiet) = sort(FaultPlan::quiet(1));
    let (whole, _) = whole.expect("sorts");
    let counts = quiet.counts();
    type Planned = (u64, fn(u64) -> Fault);
    let kinds: [Planned; 5] = [
        (counts.reads, |nth| Fault::FailRead { nth }),
        (counts.reads, |nth| Fault::FlipRead { nth }),
        (counts.writes, |nth| Fault::FailWrite { nth }),
        (counts.writes, |nth| Fault::FlipWrite { nth }),
        (counts.creates, |nth| Fault::FailCreate { nth }),
    ];
    for (count, fault) in kinds {
        assert!(count > 0, "{:?}", fault(1));
        for nth in (1..=count).step_by((count / 8).max(1) as usize) {
            let (ended, disk) = sort(FaultPlan { seed: 1, faults: vec![fault(nth)] });
            match ended {
                Ok((found, _)) => assert!(disk.fired().is_empty() && found == whole, "{nth}"),
                Err(TableError::Engine(Error::Io(_) | Error::Corrupt { .. })) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
    let full = FaultPlan { seed: 1, faults: vec![Fault::Full { bytes: 100_000 }] };
    assert!(matches!(sort(full).0, Err(TableError::Engine(Error::Io(_)))));
}

/// Ends after this number of looks.
struct Ended(AtomicU64);

impl Progress for Ended {
    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) <= 1
    }
}

#[test]
fn a_sort_is_cancelled_in_every_phase() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 60_000)).expect("opens");
    let options = options(3 << 20, MemoryDirectory::new(), 2);
    let mut cancelled = 0;
    for looks in 1..1000 {
        match sorted(&table, &options, &Ended(AtomicU64::new(looks))) {
            Ok(_) => break,
            Err(TableError::Engine(Error::Cancelled)) => cancelled += 1,
            Err(other) => panic!("{other}"),
        }
        assert_eq!(options.budget.free_bytes(), options.budget.limit_bytes());
    }
    assert!(cancelled > 5, "{cancelled} times");
}

/// An output that fails ends the work of all threads, with its error.
#[test]
fn an_output_that_fails_is_the_error() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(std::io::Error::from_raw_os_error(libc::ENOSPC));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let table = Table::open(&write_files(folder.path(), 60_000)).expect("opens");
    let mut options = options(64 << 20, MemoryDirectory::new(), 3);
    options.parquet.group_rows = 1000;
    let all = [
        TableFormat::Parquet,
        TableFormat::ArrowFile,
        TableFormat::ArrowStream,
        TableFormat::Csv,
        TableFormat::JsonLines,
    ];
    for format in all {
        for room in [0, 3, 1000, 50_000] {
            let mut output = Full(room);
            let to = TableOutput::Bytes { to: &mut output, format };
            let error = sort_table(&table, to, &options, &Silent).expect_err("full");
            assert!(error.to_string().contains("No space left"), "{format:?} {room}: {error}");
            assert_eq!(options.budget.free_bytes(), options.budget.limit_bytes());
        }
    }
}
