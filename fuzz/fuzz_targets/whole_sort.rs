//! Any bytes sorted in next to no memory, to a stream and to a view, against a naive sort.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sort::key::OrderSpec;
use sort::record::{Format, Tail};
use sort::run::{Compression, Input};
use sort::view::View;
use sort::{Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, sort};
use storage::memory::MemoryDirectory;
use storage::{Directory, Storage, StorageExt};

const MEMORY_BYTES: u64 = 6 << 20;

#[derive(Debug, Arbitrary)]
struct Case<'a> {
    kind: Kind,
    packed: bool,
    unique: bool,
    fold: bool,
    /// The bytes are sorted this often end to end: several runs come of it.
    times: u16,
    offset: u16,
    bytes: &'a [u8],
}

#[derive(Debug, Arbitrary)]
enum Kind {
    Lines,
    Csv,
    Fixed(u8),
    Keyed,
}

fn options(order: OrderSpec, packed: bool) -> SortOptions {
    SortOptions {
        order,
        budget: Budget::new(MEMORY_BYTES),
        threads: 1,
        temp: vec![MemoryDirectory::new()],
        temp_limit_bytes: None,
        compression: CompressionChoice::Fixed(if packed {
            Compression::Lz4
        } else {
            Compression::Off
        }),
        top: None,
    }
}

fuzz_target!(|case: Case<'_>| {
    let format = match case.kind {
        Kind::Lines => Format::Lines { delimiter: b'\n' },
        Kind::Csv => Format::Csv { separator: b',', header: false },
        Kind::Fixed(bytes) => Format::Fixed { bytes: usize::from(bytes) % 40 + 1 },
        Kind::Keyed => Format::Keyed,
    };
    let mut spec = OrderSpec::new(format);
    if case.fold && matches!(format, Format::Lines { .. }) {
        spec.options = "f".to_owned();
    }
    let times = usize::from(case.times).min(400_000 / case.bytes.len().max(1)).max(1);
    let mut bytes = case.bytes.repeat(times);
    let input =
        || Input::Stream { name: "input".to_owned(), reader: Box::new(Cursor::new(bytes.clone())) };

    // What a stable sort of all records gives, or that there is a damaged one.
    let mut at = 0;
    while let Some(len) = format.record_len(&bytes[at..]) {
        at += len;
    }
    let damaged = at < bytes.len() && matches!(format.tail(&bytes[at..]), Tail::Damaged(_));
    let mut out = Vec::new();
    let unique = OrderSpec { unique: case.unique, ..spec.clone() };
    let sorted =
        sort(vec![input()], SortOutput::Writer(&mut out), &options(unique, case.packed), &Silent);
    match sorted {
        Ok(_) => assert!(!damaged, "a damaged record was sorted"),
        Err(Error::Input { .. } | Error::Memory { .. }) => return,
        Err(other) => panic!("{other}"),
    }
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let target = SortOutput::View { folder: Arc::clone(&folder), name: "x".to_owned() };
    sort(vec![input()], target, &options(spec.clone(), case.packed), &Silent).expect("sorts again");
    if at < bytes.len()
        && let Tail::Complete(terminator) = format.tail(&bytes[at..])
    {
        bytes.push(terminator);
    }
    let order = spec.compile(None).expect("compiles");
    let mut records = Vec::new();
    let mut rest = &bytes[..];
    while let Some(len) = format.record_len(rest) {
        let (record, after) = rest.split_at(len);
        records.push(record);
        rest = after;
    }
    records.sort_by(|a, b| order.compare(a, b));
    let all = records.concat();
    if case.unique {
        let order = OrderSpec { unique: true, ..spec }.compile(None).expect("compiles");
        // Equal for `unique` is equal in keys: the first in input order stays.
        let mut records = Vec::new();
        let mut rest = &bytes[..];
        while let Some(len) = format.record_len(rest) {
            let (record, after) = rest.split_at(len);
            records.push(record);
            rest = after;
        }
        records.sort_by(|a, b| order.compare(a, b));
        records.dedup_by(|b, a| order.compare(a, b).is_eq());
        assert!(out == records.concat(), "the stream is not what a naive sort gives");
    } else {
        assert!(out == all, "the stream is not what a naive sort gives");
    }
    let view = match View::open(&folder, &Budget::new(2 * MEMORY_BYTES), 1) {
        Ok(view) => view,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(view.size(), all.len() as u64);
    assert!(
        view.read_vec(0, all.len()).expect("reads") == all,
        "the view is not what it should be"
    );
    let from = usize::from(case.offset) % (all.len() + 1);
    let len = 1000.min(all.len() - from);
    let mut part = vec![0; len];
    assert_eq!(view.read_random(from as u64, &mut part).expect("reads"), len);
    assert!(part == all[from..from + len], "a random read differs");
});
