//! What a program may get wrong: each mistake is an error with one clear sentence, never a panic.
//!
//! `legal_values` combines settings of [`sort()`]; here are the other doors.

use std::sync::Arc;

use merganser_sort::key::{OrderSpec, key_of, value_of};
use merganser_sort::record::Format;
use merganser_sort::rows::{KeepAll, RowSorter, RowsBy};
use merganser_sort::run::SortInput;
use merganser_sort::verify::{Limits, Verifier};
use merganser_sort::view::View;
use merganser_sort::{Budget, Error, Silent, SortOptions, SortOutput, sort};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};

const MEMORY_BYTES: u64 = 8 << 20;

fn sorter(memory_bytes: u64) -> RowSorter<KeepAll> {
    RowSorter::new(RowsBy::Key, &Budget::new(memory_bytes), KeepAll)
}

/// The sentence of an error that is expected.
fn sentence<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("it worked"),
        Err(error) => error.to_string(),
    }
}

fn sorted(options: &SortOptions, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut sorted = Vec::new();
    let input = SortInput::Storage(MemoryStorage::from_bytes("fruit", bytes));
    sort(vec![input], SortOutput::Writer(&mut sorted), options, &Silent)?;
    Ok(sorted)
}

#[test]
fn the_defaults_sort_lines() {
    let options = SortOptions::default();
    assert_eq!((options.budget.limit_bytes(), options.temp.len()), (1 << 30, 1));
    assert!(options.threads > 0);
    assert_eq!(sorted(&options, b"pear\nfig").expect("sorted"), b"fig\npear\n");
    assert_eq!(sorted(&options.threads(0), b"b\na\n").expect("sorted"), b"a\nb\n");
    assert_eq!(sorted(&SortOptions::default(), b"").expect("sorted"), b"");
}

#[test]
fn settings_that_can_not_work_name_the_least_that_does() {
    let small = SortOptions::default().memory(1000).threads(1);
    let Err(Error::Memory { least_bytes, .. }) = sorted(&small, b"b\na\n") else {
        panic!("1000 bytes are enough")
    };
    let enough = SortOptions::default().memory(least_bytes).threads(1);
    assert_eq!(sorted(&enough, b"b\na\n").expect("sorted"), b"a\nb\n");
    let text = sentence(sorted(&small, b"b\na\n"));
    assert!(text.starts_with("a memory of 1000 bytes is too small for "), "{text}");

    let many = vec![b'\n'; 20 << 20];
    let homeless = SortOptions::default().memory(MEMORY_BYTES).temp(Vec::new());
    let text = sentence(sorted(&homeless, &many));
    assert_eq!(
        text,
        "the data does not fit into the memory, and there is no folder for temporary runs"
    );
    let gone = merganser_sort::files::LazyDirectory::new("/no such folder");
    let text = sentence(sorted(&homeless.clone().temp(vec![gone]), &many));
    assert!(text.starts_with("/no such folder: "), "{text}");

    let no_key = SortOptions::new(OrderSpec::new(Format::Fixed { bytes: 4 }).key("2:3"));
    let text = sentence(sorted(&no_key, b"aaaabbbb"));
    assert!(text.contains("the key ends outside the record, which has 4 bytes"), "{text}");
    let none = SortOptions::new(OrderSpec::new(Format::Fixed { bytes: 0 }));
    let text = sentence(sorted(&none, b"aaaabbbb"));
    assert!(text.contains("a record has at least one byte"), "{text}");
}

#[test]
fn rows_that_do_not_fit_say_so() {
    let mut rows = sorter(1000);
    let text = sentence(rows.push(b"a", b"b"));
    assert!(text.starts_with("a memory of 1000 bytes is too small for "), "{text}");

    let mut rows = sorter(RowSorter::<KeepAll>::least_bytes(1));
    let pushed = (0..1_000_000_u64).try_for_each(|n| rows.push_key(&n, &[0; 90]));
    assert!(matches!(pushed, Err(Error::NoTemp)), "{pushed:?}");
    let after = rows.finish();
    assert!(after.is_err(), "rows are lost without an error");
}

#[test]
fn producers_beyond_those_that_were_announced_are_an_error() {
    let mut rows = sorter(MEMORY_BYTES).producers(2);
    let first = rows.producer().expect("the first");
    let second = rows.producer().expect("the second");
    let text = sentence(rows.producer());
    assert_eq!(text, "there are 2 producers already, as many as were announced");
    let text = sentence(rows.push(b"a", b"b"));
    assert_eq!(text, "there are 2 producers already, as many as were announced");
    drop((first, second));
}

#[test]
fn rows_without_a_folder_do_not_become_a_view() {
    let mut rows = sorter(MEMORY_BYTES);
    rows.push(b"a", b"b").expect("pushed");
    let text = sentence(rows.finish_view(&Silent));
    assert_eq!(text, "the rows have no folder for a view");
}

#[test]
fn keys_of_another_type_are_an_error() {
    let mut rows = sorter(MEMORY_BYTES);
    rows.push_key(&("pear", 3_u32), b"").expect("pushed");
    let mut rows = rows.finish().expect("sorted");
    let text = sentence(rows.next_as::<(String, u64)>());
    assert_eq!(text, "the key of a row is not of the type that was asked for");
    assert_eq!(value_of::<u64>(&key_of("pear")), None);
}

#[test]
fn places_that_a_view_does_not_have_are_at_its_end() {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let missing = View::open(&folder, &Budget::default(), 1);
    assert!(matches!(missing, Err(Error::NotAView { .. })));
    let options = SortOptions::default().memory(MEMORY_BYTES).threads(1);
    let input = SortInput::Storage(MemoryStorage::from_bytes("fruit", b"pear\nfig\n"));
    let output = SortOutput::View { folder: Arc::clone(&folder), name: "fruit".to_owned() };
    sort(vec![input], output, &options, &Silent).expect("sorted");
    let text = sentence(View::open(&folder, &Budget::new(10), 1));
    assert!(text.starts_with("a memory of 10 bytes is too small for "), "{text}");

    for threads in [0, 1, 100] {
        let view = View::open(&folder, &Budget::new(MEMORY_BYTES), threads).expect("opened");
        assert_eq!(view.offset_of_record(u64::MAX).expect("the end"), 9);
        assert_eq!(view.offset_of_key(b"zebra").expect("the end"), 9);
        let upside_down = view.range_of_keys(Some(b"p"), Some(b"a")).expect("empty");
        assert_eq!(upside_down, 4..4);
        #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
        for range in [5..2, 9..9, 20..30, u64::MAX..u64::MAX, 3..0, u64::MAX..0] {
            let mut stream = view.stream(range.clone()).expect("a stream");
            assert_eq!(stream.next_bytes().expect("empty"), None, "{range:?}");
        }
        let mut out = [0; 4];
        assert_eq!(view.read_random(u64::MAX, &mut out).expect("the end"), 0);
        assert_eq!(view.read_vec(7, 2).expect("read"), b"r\n");
        assert!(view.write_at(0, b"x").is_err());
        assert_eq!(view.size(), 9);
    }
}

#[test]
fn a_check_of_records_that_can_not_be_is_an_error() {
    let order = OrderSpec::new(Format::Fixed { bytes: 0 }).compile(None);
    assert!(order.is_err(), "records of no bytes");
    let order = OrderSpec::default().compile(None).expect("an order");
    let limits = Limits { record_bytes_max: 2, stop_at_disorder: false };
    let mut verifier = Verifier::new("lines", &order, limits);
    let checked = verifier.feed(b"a line that does not end").and_then(|()| verifier.finish());
    assert!(matches!(checked, Err(Error::RecordTooLong { .. })), "{checked:?}");
}
