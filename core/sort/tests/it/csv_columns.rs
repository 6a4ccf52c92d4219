//! Csv rows without a header, and a key whose column no row has: an error before anything is written or given back.

use std::sync::Arc;

use merganser_sort::key::{KeyError, OrderSpec};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::{CompressionChoice, Error, Silent, SortOptions, SortOutput, Strategy, sort};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};

use crate::consuming;

fn options(key: &str, strategy: Strategy) -> SortOptions {
    SortOptions::new(OrderSpec {
        keys: vec![key.to_owned()],
        ..OrderSpec::new(Format::csv_rows(b',', false))
    })
    .memory(5 << 20)
    .threads(2)
    .temp(vec![MemoryDirectory::new() as _])
    .compression(CompressionChoice::Fixed(Compression::Off))
    .strategy(strategy)
}

/// Rows with two columns, of this many bytes.
fn rows(bytes: usize) -> Vec<u8> {
    let row = |n: usize| format!("{},{}\n", n * 7919 % 100_003, "x".repeat(80)).into_bytes();
    (0..bytes / 87).flat_map(row).collect()
}

fn is_unseen(error: &Error) -> bool {
    error.to_string().contains("no row has so many columns")
        && matches!(error, Error::Key(KeyError::Value { value, .. }) if value == "3")
}

/// In one chunk, in runs, in buckets; a stream, which can't take anything back, gets no byte.
#[test]
fn nothing_is_written_for_a_column_beyond_every_row() {
    for strategy in [Strategy::Auto, Strategy::Merge, Strategy::Distribute { uniform: false }] {
        for bytes in [200, 8 << 20] {
            let input = || vec![SortInput::Storage(MemoryStorage::from_bytes("in", &rows(bytes)))];
            let mut stream = Vec::new();
            let told =
                sort(input(), SortOutput::Writer(&mut stream), &options("3", strategy), &Silent);
            assert!(told.is_err_and(|error| is_unseen(&error)), "{strategy:?}, {bytes}");
            assert!(stream.is_empty(), "{strategy:?}, {bytes}");
            let file = MemoryStorage::new("out");
            let output = SortOutput::Storage(Arc::clone(&file) as _);
            let told = sort(input(), output, &options("3", strategy), &Silent);
            assert!(told.is_err_and(|error| is_unseen(&error)), "{strategy:?}, {bytes}");
            assert_eq!(file.size(), 0, "{strategy:?}, {bytes}");
            let folder: Arc<dyn Directory> = MemoryDirectory::new();
            let view = SortOutput::View { folder: Arc::clone(&folder), name: "v".to_owned() };
            let told = sort(input(), view, &options("3", strategy), &Silent);
            assert!(told.is_err_and(|error| is_unseen(&error)), "{strategy:?}, {bytes}");
            let names = folder.list().expect("lists");
            assert!(!names.iter().any(|name| name == "manifest.json"), "{names:?}");
            stream.clear();
            sort(input(), SortOutput::Writer(&mut stream), &options("2", strategy), &Silent)
                .expect("there is a second column");
            assert_eq!(stream.len(), rows(bytes).len(), "{strategy:?}, {bytes}");
        }
    }
}

/// Not even what an earlier chunk held is given back before the column was in a row. The last row may be the one.
#[test]
fn a_consuming_sort_looks_for_its_columns_first() {
    for (last, has_it) in [("9,9\n", false), ("9,9,9\n", true)] {
        let all = [rows(8 << 20), last.as_bytes().to_vec()].concat();
        let input: Arc<dyn Storage> = MemoryStorage::from_bytes("in", &all);
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let options = options("3", Strategy::Auto);
        let told = consuming::consume(&[Arc::clone(&input)], &folder, &options, &Silent);
        let mut left = vec![0; all.len()];
        input.read_at(0, &mut left).expect("reads");
        match told {
            Ok(report) => {
                assert!(has_it);
                assert_eq!(
                    report.records,
                    all.iter().filter(|byte| **byte == b'\n').count() as u64
                );
                assert!(left != all, "it was given back");
            }
            Err(error) => {
                assert!(!has_it && is_unseen(&error), "{error}");
                assert!(left == all, "nothing was given back");
            }
        }
        assert_eq!(options.budget.free_bytes(), 5 << 20, "all memory was given back");
    }
}

/// A header was promised, and an empty input has none. A number needs no header.
#[test]
fn an_empty_input_has_no_named_column() {
    for (header, told) in [
        (true, "there is no column 'a', because the input is empty and has no header row"),
        (false, "a column is a number from 1 where there is no header"),
    ] {
        let format = Format::csv_rows(b',', header);
        let of = |key: &str| OrderSpec { keys: vec![key.to_owned()], ..OrderSpec::new(format) };
        let error = of("a:n").compile(None).expect_err("no such name").to_string();
        assert!(error.contains(told), "{error}");
        of("2:n").compile(None).expect("a number");
    }
}
