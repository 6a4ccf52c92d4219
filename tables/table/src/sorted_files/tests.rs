//! Views over sorted files against views with runs, which the engine merges, and against a model; and files that change.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use merganser_random::Random;
use merganser_sort::{Budget, Error, Silent};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::*;
use crate::random_table::random_array;
use crate::view::manifest_of_files;
use crate::{
    ParquetOptions, RowsWanted, TableFormat, TableOptions, TableOrder, TableOutput, TableView,
    sort_table,
};

/// How a file of Parquet is written.
fn properties(group_rows: usize, page_rows: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build()
}

fn write_file(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let file = File::create(path).expect("made");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("begins");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
}

/// Numbers as a column `key`, with a column `at` that counts from `first`.
fn numbers(keys: &[Option<i64>], first: i64) -> RecordBatch {
    let fields =
        [Field::new("key", DataType::Int64, true), Field::new("at", DataType::Int64, false)];
    let at = Int64Array::from_iter_values(first..first + keys.len() as i64);
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys.to_vec())), Arc::new(at)];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).expect("columns")
}

/// Files of numbers in `folder`, one for each list of keys.
fn number_files(folder: &Path, files: &[Vec<Option<i64>>]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (number, keys) in files.iter().enumerate() {
        let path = folder.join(format!("{number}.parquet"));
        write_file(&path, &numbers(keys, 100 * number as i64), properties(4, 2));
        paths.push(path);
    }
    paths
}

fn order(keys: &[&str]) -> TableOrder {
    TableOrder::Keys(keys.iter().map(|key| key.parse().expect("a key")).collect())
}

/// Notes these files with fences at each `spacing` rows; the folder of the view.
fn noted(paths: &[PathBuf], keys: &[&str], spacing: u64) -> Result<Arc<dyn Directory>, TableError> {
    let table = Table::open(paths)?;
    let layout = Arc::new(table.layout(&order(keys), &[])?);
    let fences = Fences::with_spacing(paths.len(), spacing);
    let budget = Budget::new(64 << 20);
    let noted = note_with(fences, &table, &layout, (&budget, &Silent))?;
    assert_eq!(budget.free_bytes(), budget.limit_bytes());
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let origin = table.source.origin.as_ref();
    manifest_of_files(("t".to_owned(), 1), noted, &layout, origin).write(&folder)?;
    Ok(folder)
}

fn opened(folder: &Arc<dyn Directory>) -> Result<TableView, TableError> {
    TableView::open(folder, &Budget::new(64 << 20), 2)
}

fn view_of(paths: &[PathBuf], keys: &[&str], spacing: u64) -> TableView {
    opened(&noted(paths, keys, spacing).expect("in order")).expect("opens")
}

/// The column `at` of some rows.
fn at_of(view: &TableView, wanted: &RowsWanted) -> Result<Vec<i64>, TableError> {
    let mut found = Vec::new();
    let count = view.batches(wanted, Some(&["at".to_owned()]), |batch| {
        found.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        Ok(())
    })?;
    assert_eq!(count, found.len() as u64);
    Ok(found)
}

fn rows(start: u64, end: u64) -> RowsWanted {
    RowsWanted { start: Some(start), end: Some(end), head: None }
}

#[test]
fn two_files_are_read_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let some = |keys: &[i64]| keys.iter().map(|key| Some(*key)).collect::<Vec<_>>();
    let files = number_files(folder.path(), &[some(&[1, 3, 3, 5, 9]), some(&[2, 3, 4, 8, 8])]);
    let view = view_of(&files, &["key"], 4);
    assert_eq!((view.rows_count(), view.order()), (10, "key".to_owned()));
    // Equal keys keep the order of the files.
    let all = [0, 100, 1, 2, 101, 102, 3, 103, 104, 4];
    assert_eq!(at_of(&view, &RowsWanted::default()).expect("reads"), all);
    assert_eq!(at_of(&view, &rows(4, 7)).expect("reads"), [101, 102, 3]);
    assert_eq!(view.row_of_key("3").expect("a key"), 2);
    assert_eq!(view.row_behind_key("3").expect("a key"), 5);
    let found = view.verify_files(&Silent).expect("reads").expect("files");
    assert_eq!((found.rows, found.duplicates, found.disorders), (10, 3, 0));
}

/// All ways in which up to three files have up to three rows with the keys null, 0 and 1, with fences at each row and more.
#[test]
fn every_tiny_input_is_right() {
    let mut lists: Vec<Vec<Option<i64>>> = Vec::new();
    for nulls in 0..3_usize {
        for zeros in 0..3_usize {
            for ones in 0..3_usize {
                if nulls + zeros + ones <= 3 {
                    let list = [(None, nulls), (Some(0), zeros), (Some(1), ones)];
                    lists.push(list.iter().flat_map(|(key, n)| vec![*key; *n]).collect());
                }
            }
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    // A file of each list at each place, which are written once.
    let path = |place: usize, list: usize| folder.path().join(format!("{place}-{list}.parquet"));
    for place in 0..3 {
        for (list, keys) in lists.iter().enumerate() {
            let batch = numbers(keys, 100 * place as i64);
            write_file(&path(place, list), &batch, properties(2, 1));
        }
    }
    let count = lists.len();
    let mut random = Random::new(7);
    let pairs = (0..count * count).map(|case| vec![case / count, case % count]);
    let threes = (0..150).map(|_| (0..3).map(|_| random.index(count)).collect());
    for case in (0..count).map(|case| vec![case]).chain(pairs).chain(threes.collect::<Vec<_>>()) {
        let files: Vec<_> =
            case.iter().enumerate().map(|(place, list)| path(place, *list)).collect();
        let mut model: Vec<(Option<i64>, i64)> = Vec::new();
        for (place, list) in case.iter().enumerate() {
            model.extend(lists[*list].iter().zip(100 * place as i64..).map(|(key, at)| (*key, at)));
        }
        // Stable, and nulls are first.
        model.sort_by_key(|(key, _)| *key);
        let all: Vec<_> = model.iter().map(|(_, at)| *at).collect();
        let view = view_of(&files, &["key"], 1 + case[0] as u64 % 4);
        assert_eq!(view.rows_count(), all.len() as u64);
        for start in 0..=all.len() {
            for end in [start, start + 1, all.len()] {
                let end = end.min(all.len());
                let found = at_of(&view, &rows(start as u64, end as u64)).expect("reads");
                assert_eq!(found, all[start..end], "{case:?} {start}..{end}");
            }
        }
        for value in -1..=2 {
            let before = |limit: i64| {
                model.iter().filter(|(key, _)| key.is_none_or(|key| key < limit)).count()
            };
            let text = value.to_string();
            assert_eq!(view.row_of_key(&text).expect("a key"), before(value) as u64, "{case:?}");
            let behind = view.row_behind_key(&text).expect("a key");
            assert_eq!(behind, before(value + 1) as u64, "{case:?}");
        }
        let nulls = model.iter().filter(|(key, _)| key.is_none()).count() as u64;
        assert_eq!(view.rows_with_a_value().expect("reads"), nulls..all.len() as u64);
    }
}

/// Types of keys and of other columns.
fn types() -> Vec<DataType> {
    let item = |of| Arc::new(Field::new("item", of, true));
    let fields =
        vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)];
    vec![
        DataType::Utf8,
        DataType::Int32,
        DataType::Float64,
        DataType::Boolean,
        DataType::Binary,
        DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8)),
        DataType::FixedSizeBinary(2),
        DataType::List(item(DataType::Utf8)),
        DataType::Struct(fields.into()),
    ]
}

/// How many of these types have an order.
const WITH_ORDER: usize = 7;

/// The bytes of a stream of Arrow with some rows and columns.
fn stream_of(view: &TableView, wanted: &RowsWanted, columns: Option<&[String]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (to, how) = ((&mut bytes as _, TableFormat::ArrowStream), (&ParquetOptions::default(), 1));
    view.write(wanted, columns, to, how, &Silent).expect("written");
    bytes
}

/// Tables of many types, whose sorted files are read as the runs of a view that the engine sorts from the same files.
#[test]
fn random_tables_are_read_as_the_engine_reads_their_runs() {
    let cases = std::env::var("TABLE_CASES").map_or(60, |cases| cases.parse().expect("a number"));
    for case in 0..cases {
        let mut random = Random::of_record(11, case);
        let folder = tempfile::tempdir().expect("a folder");
        let (types, nullable) = (types(), !random.one_in(4));
        let field = |(number, of): (usize, &DataType)| {
            Field::new(format!("c{number}"), of.clone(), nullable)
        };
        let schema = Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()));
        let mut keys: Vec<String> = Vec::new();
        while keys.is_empty() || keys.len() < 3 && random.one_in(2) {
            let name = format!("c{}", random.index(WITH_ORDER));
            if !keys.iter().any(|key| key.starts_with(&name)) {
                let descending = if random.one_in(3) { ":r" } else { "" };
                keys.push(name + descending + if random.one_in(3) { ":last" } else { "" });
            }
        }
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        let options = |budget: u64| {
            TableOptions::new(order(&keys), Budget::new(budget), vec![MemoryDirectory::new()])
        };
        let mut paths = Vec::new();
        for number in 0..1 + random.index(5) {
            let count = [0, 1, 7, 40, 200][random.index(5)];
            let columns = types.iter().map(|of| random_array(&mut random, of, nullable, count));
            let batch =
                RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("columns");
            let unsorted = folder.path().join("unsorted");
            write_file(&unsorted, &batch, properties(1000, 100));
            let path = folder
                .path()
                .join(format!("country=C{}", number % 2))
                .join(format!("{number}.parquet"));
            fs::create_dir_all(path.parent().expect("one")).expect("made");
            let mut file = File::create(&path).expect("made");
            let mut options = options(64 << 20);
            options.parquet.group_rows = 1 + random.below(90);
            let table = Table::open(&[unsorted]).expect("opens");
            let output = TableOutput::Bytes { to: &mut file, format: TableFormat::Parquet };
            sort_table(&table, output, &options, &Silent).expect("sorts");
            paths.push(path);
        }
        let table = Table::open(&paths).expect("opens");
        let runs: Arc<dyn Directory> = MemoryDirectory::new();
        let output = TableOutput::View { folder: Arc::clone(&runs), name: "t".to_owned() };
        sort_table(&table, output, &options(64 << 20), &Silent).expect("sorts");
        let (runs, files) =
            (opened(&runs).expect("opens"), view_of(&paths, &keys, 1 + random.below(60)));
        assert_eq!((files.schema(), files.order()), (runs.schema(), runs.order()));
        let count = runs.rows_count();
        assert_eq!(files.rows_count(), count);
        let all: Vec<_> =
            files.schema().fields().iter().map(|field| field.name().clone()).collect();
        for _ in 0..12 {
            let (a, b) = (random.below(count + 1), random.below(count + 2));
            let wanted =
                if random.one_in(4) { RowsWanted::default() } else { rows(a.min(b), a.max(b)) };
            let mut some: Vec<_> = all.iter().filter(|_| random.one_in(2)).cloned().collect();
            some.reverse();
            let columns = (!random.one_in(3)).then_some(&some[..]);
            let (found, expected) =
                (stream_of(&files, &wanted, columns), stream_of(&runs, &wanted, columns));
            assert!(found == expected, "case {case}: {keys:?} {wanted:?} {columns:?}");
        }
        assert_eq!(
            files.rows_with_a_value().expect("reads"),
            runs.rows_with_a_value().expect("reads")
        );
        for value in ["", "a", "ab", "b", "0", "1", "-1", "true", "NaN", "00"] {
            let both = (files.row_of_key(value), runs.row_of_key(value));
            let both = (both.0.ok(), both.1.ok());
            assert_eq!(both.0, both.1, "case {case}: {keys:?} {value}");
            let both = (files.row_behind_key(value), runs.row_behind_key(value));
            assert_eq!(both.0.ok(), both.1.ok(), "case {case}: {keys:?} {value}");
        }
        let found = files.verify_files(&Silent).expect("reads").expect("files");
        let of_files =
            crate::verify_table(&table, &TableOrder::Keys(Vec::new()), &Silent).expect("reads");
        assert_eq!((found.rows, found.checksum), (count, of_files.checksum), "case {case}");
    }
}

/// Three files of numbers, of some hundred rows, and a view of them.
fn three(folder: &Path) -> (Vec<PathBuf>, Arc<dyn Directory>) {
    let keys = |first: i64| (0..400).map(|row| Some((first + 7 * row) / 5)).collect::<Vec<_>>();
    let mut paths = Vec::new();
    for number in 0..3 {
        let path = folder.join(format!("{number}.parquet"));
        write_file(&path, &numbers(&keys(number), 1000 * number), properties(100, 20));
        paths.push(path);
    }
    let view = noted(&paths, &["key"], 64).expect("in order");
    (paths, view)
}

/// The error of a view one of whose files is not as it was.
fn refused(view: &Arc<dyn Directory>) -> String {
    opened(view).err().expect("refused").to_string()
}

#[test]
fn a_file_that_is_another_one_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, view) = three(folder.path());
    let (path, kept) = (&paths[1], fs::read(&paths[1]).expect("reads"));
    let modified = fs::metadata(path).and_then(|found| found.modified()).expect("a time");
    let put = |bytes: &[u8], time: SystemTime| {
        let mut file = File::create(path).expect("made");
        std::io::Write::write_all(&mut file, bytes).expect("written");
        file.set_modified(time).expect("set");
    };
    let changed = format!(
        "{}: was changed or replaced since the view {} was made, whose rows are in it; make the view again",
        path.display(),
        view.name()
    );
    opened(&view).expect("it is as it was");
    // The time alone.
    put(&kept, modified + Duration::from_secs(1));
    assert_eq!(refused(&view), changed);
    // Size, with the same time: more, and less.
    put(&[&kept[..], b"x"].concat(), modified);
    assert_eq!(refused(&view), changed);
    for end in [0, 3, 8, 100, kept.len() - 1] {
        put(&kept[..end], modified);
        assert_eq!(refused(&view), changed);
    }
    // The same size and time, and another footer.
    let mut other = kept.clone();
    let at = other.len() - 20;
    other[at] ^= 1;
    put(&other, modified);
    assert_eq!(refused(&view), changed);
    // A file of others, of the same size.
    put(&vec![b'a'; kept.len()], modified);
    assert_eq!(refused(&view), changed);
    // The same bytes at the same time are the same file, wherever they are on the disk.
    put(&kept, modified);
    let whole = at_of(&opened(&view).expect("as it was"), &RowsWanted::default()).expect("reads");
    assert_eq!(whole.len(), 1200);
    fs::remove_file(path).expect("removed");
    let lost = format!(
        "{}: No such file or directory (os error 2); the rows of the view {} are in it",
        path.display(),
        view.name()
    );
    assert_eq!(refused(&view), lost);
    fs::create_dir(path).expect("made");
    assert!(refused(&view).starts_with(&path.display().to_string()));
}

#[test]
fn a_replaced_file_is_read_and_a_changed_one_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, noted) = three(folder.path());
    let view = opened(&noted).expect("opens");
    let whole = at_of(&view, &RowsWanted::default()).expect("reads");
    // Another file gets its name, and then none.
    let other = folder.path().join("other");
    write_file(&other, &numbers(&[Some(1)], 0), properties(4, 2));
    fs::rename(&other, &paths[0]).expect("renamed");
    fs::remove_file(&paths[1]).expect("removed");
    assert_eq!(at_of(&view, &RowsWanted::default()).expect("reads"), whole);
    assert_eq!(at_of(&view, &rows(700, 900)).expect("reads"), whole[700..900]);
    assert_eq!(refused(&noted).split(':').next(), paths[0].to_str());
    // Bytes of the third one change: what is in memory may be handed out, and nothing that is read then.
    let third = fs::OpenOptions::new().write(true).open(&paths[2]).expect("opens");
    let mut handed = 0;
    let changed = view.batches(&RowsWanted::default(), None, |batch| {
        handed += batch.num_rows();
        Ok(())
    });
    assert!(changed.is_ok() && handed == 1200);
    third.write_all_at(b"PAR1", 0).expect("written");
    let changed = format!("{}: was changed while it was read", paths[2].display());
    let error = |read: Result<Vec<i64>, TableError>| read.expect_err("changed").to_string();
    assert_eq!(error(at_of(&view, &RowsWanted::default())), changed);
    assert_eq!(view.row_of_key("200").expect_err("changed").to_string(), changed);
    // It is cut.
    third.set_len(60).expect("cut");
    assert_eq!(error(at_of(&view, &rows(600, 700))), changed);
}

/// A batch is checked when it is read, in a file that changes after the first one.
#[test]
fn a_file_that_changes_between_batches_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("0.parquet");
    let keys: Vec<_> = (0..60_000).map(Some).collect();
    write_file(&path, &numbers(&keys, 0), properties(10_000, 1000));
    let view = view_of(std::slice::from_ref(&path), &["key"], 4096);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("opens");
    let mut handed = Vec::new();
    let changed = view.batches(&RowsWanted::default(), Some(&["at".to_owned()]), |batch| {
        handed.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        // The last row group.
        let len = file.metadata().map(|found| found.len()).expect("a size");
        file.write_all_at(&[0; 64], len * 5 / 6).map_err(TableError::on(&path))
    });
    assert!(matches!(changed, Err(TableError::ChangedWhileRead { .. })), "{changed:?}");
    assert!(handed.len() < 60_000 && handed.iter().copied().eq(0..handed.len() as i64));
}

/// Bytes that are written over rows, with the time put back, are found by the order or by the fences.
#[test]
fn disorder_is_an_error_when_the_view_is_made_and_when_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let some = |keys: &[i64]| keys.iter().map(|key| Some(*key)).collect::<Vec<_>>();
    let files = number_files(folder.path(), &[some(&[1, 2, 3]), some(&[1, 5, 2, 6])]);
    let refused = noted(&files, &["key"], 4).err().expect("refused").to_string();
    assert_eq!(refused, format!("{}: row 3 is out of order", files[1].display()));
    for (order, row) in [("key:r", 2), ("key:last", 3)] {
        let Err(TableError::Disorder { row: found, .. }) = noted(&files, &[order], 4) else {
            panic!("{order}");
        };
        assert_eq!(found, row, "{order}");
    }
    // Nulls are where the order has them.
    let nulls = number_files(folder.path(), &[vec![None, Some(1)]]);
    noted(&nulls, &["key"], 4).expect("nulls are first");
    assert!(matches!(noted(&nulls, &["key:last"], 4), Err(TableError::Disorder { row: 2, .. })));

    // Rows that are not packed: each key is where it is.
    let path = folder.path().join("9.parquet");
    let mut plain = properties(100, 20).into_builder();
    plain = plain.set_dictionary_enabled(false);
    let keys: Vec<_> = (0..100).map(|key| Some(0x1122_3344_0000 + key)).collect();
    write_file(&path, &numbers(&keys, 0), plain.build());
    let view = noted(std::slice::from_ref(&path), &["key"], 16).expect("in order");
    let bytes = fs::read(&path).expect("reads");
    let put = |key: i64, instead: i64| {
        let mut bytes = bytes.clone();
        let places: Vec<_> =
            (0..bytes.len() - 8).filter(|at| bytes[*at..at + 8] == key.to_le_bytes()).collect();
        let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
        bytes[places[0]..places[0] + 8].copy_from_slice(&instead.to_le_bytes());
        fs::write(&path, bytes).expect("written");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("opens");
        file.set_modified(modified).expect("set");
    };
    put(0x1122_3344_0000 + 50, 7);
    let broken = opened(&view).expect("its outer signs are those of the file");
    let Err(TableError::Disorder { row, .. }) = at_of(&broken, &RowsWanted::default()) else {
        panic!("row 51 is out of order")
    };
    assert_eq!(row, 51);
    let found = broken.verify_files(&Silent).expect("reads").expect("files");
    assert_eq!((found.disorders, found.first_disorder), (1, Some((path.clone(), 51))));
    // Another key at a fence.
    put(0x1122_3344_0000 + 48, 0x1122_3344_0000 + 47);
    let broken = opened(&view).expect("its outer signs are those of the file");
    let wrong = at_of(&broken, &rows(48, 50)).expect_err("a wrong fence").to_string();
    assert!(
        wrong.ends_with("its fences are not those of its files; make the view again"),
        "{wrong}"
    );
    let wrong = broken.verify_files(&Silent).expect_err("a wrong fence").to_string();
    assert!(
        wrong.ends_with("its fences are not those of its files; make the view again"),
        "{wrong}"
    );
}

/// Memory that is too little says how much is enough, and that is enough.
#[test]
fn memory_is_enough_or_the_sentence_says_how_much_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, noted) = three(folder.path());
    let table = Table::open(&paths).expect("opens");
    let layout = Arc::new(table.layout(&order(&["key"]), &[]).expect("a key"));
    let made =
        |memory: u64| note_sorted(&table, &layout, &Budget::new(memory), &Silent).map(|_| ());
    let read = |memory: u64| {
        let budget = Budget::new(memory);
        let view = TableView::open(&noted, &budget, 2)?;
        let free = budget.free_bytes();
        let all = at_of(&view, &RowsWanted::default())?;
        assert_eq!((all.len(), budget.free_bytes()), (1200, free));
        assert_eq!(at_of(&view, &rows(77, 99))?, all[77..99]);
        assert!(budget.peak_bytes() <= memory);
        Ok::<_, TableError>(())
    };
    for work in [&made as &dyn Fn(u64) -> Result<(), TableError>, &read] {
        let Err(TableError::Engine(Error::Memory { least_bytes, limit_bytes, .. })) = work(100_000)
        else {
            panic!("100,000 bytes are too few")
        };
        assert!(limit_bytes <= 100_000 && least_bytes > 100_000, "{least_bytes} {limit_bytes}");
        // The fences take some of it, too.
        work(least_bytes + 100_000).expect("enough");
    }
    read(1 << 40).expect("enough");
}

#[test]
fn a_manifest_of_others_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, view) = three(folder.path());
    let manifest = merganser_sort::view::Manifest::read(&view).expect("reads");
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut columns = manifest.table.clone().expect("of a table");
        change(&mut columns);
        manifest.clone().of_table(columns).write(&view).expect("written");
        opened(&view).map(|_| ()).expect_err("refused").to_string()
    };
    let told = with(&|columns| columns["files"]["version"] = 2.into());
    assert!(
        told.ends_with("its files are of version 2, and this program reads version 1"),
        "{told}"
    );
    let told = with(&|columns| columns["files"]["spacing"] = 65.into());
    assert!(told.ends_with("its fences are not those of its files"), "{told}");
    let told = with(&|columns| columns["files"]["fences"] = "0".into());
    assert!(told.ends_with("its fences are not those of its files"), "{told}");
    let told = with(&|columns| columns["files"]["list"][0]["rows"] = 500.into());
    assert!(told.ends_with("its fences are not those of its files"), "{told}");
    let told = with(&|columns| columns["files"]["list"][0]["folders"] = serde_json::json!([7]));
    assert!(told.contains("was changed or replaced"), "{told}");
    let told = with(&|columns| drop(columns.as_object_mut().expect("an object").remove("files")));
    assert!(told.ends_with("its manifest does not say what its columns are"), "{told}");
    let told = with(&|columns| columns["encoding"] = 2.into());
    assert!(
        told.ends_with("its rows are of version 2, and this program reads version 1"),
        "{told}"
    );
}
