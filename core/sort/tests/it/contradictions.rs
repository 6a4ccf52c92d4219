//! Runs whose checksums are all right, but whose records are not those of their index. A view of
//! them gives an error that says so, or bytes, and never panics.

use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::builder::RunBuilder;
use merganser_sort::run::{Compression, RunWriter};
use merganser_sort::view::{Manifest, Segment, View};
use merganser_sort::{Budget, Error};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Storage};
use merganser_testkit::Random;

const LINES: Format = Format::Lines { delimiter: b'\n' };
const BYTES: usize = 40_000;

/// A run of `records`, in blocks of a page, with fences as `format` sees them.
fn run(folder: &Arc<dyn Directory>, name: &str, format: Format, records: &[u8]) -> Segment {
    let storage = folder.create(name).expect("creates");
    let memory = Budget::new(1 << 30).reserve(0, "fences").expect("fits");
    let writer = RunWriter::new(storage, 4096, Compression::Off, None, memory).expect("begins");
    let order = OrderSpec::new(format).compile(None).expect("an order");
    let mut builder = RunBuilder::new(writer, order).expect("there is memory");
    builder.append(records).expect("whole records");
    Segment::of_run(&builder.finish("{}", true).expect("ends"))
}

/// A view of records of `format` over runs that were made as if they were of `made`.
fn view(format: Format, made: Format, runs: &[Vec<u8>]) -> View {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let segments = runs.iter().enumerate();
    let segments =
        segments.map(|(i, records)| run(&folder, &format!("{i:06}.run"), made, records)).collect();
    let order = OrderSpec::new(format);
    Manifest::new("x".to_owned(), order, Vec::new(), 0, segments).write(&folder).expect("written");
    View::open(&folder, &Budget::new(64 << 20), 2).expect("opens: all checksums are right")
}

/// Reads `view` in every way; what went wrong.
fn errors(view: &View) -> Vec<Error> {
    let mut errors = Vec::new();
    let whole = view.stream(0..view.size()).and_then(|mut stream| {
        while stream.next_bytes()?.is_some() {}
        Ok(())
    });
    errors.extend(whole.err());
    let mut out = [0; 300];
    for at in (0..view.size()).step_by(777) {
        errors.extend(view.read_random(at, &mut out).err());
        errors.extend(view.offset_of_key(&at.to_be_bytes()).err());
    }
    for record in (0..view.records()).step_by(7) {
        errors.extend(view.offset_of_record(record).err());
    }
    errors
}

/// Random bytes. Every `line`th ends a line; with 0 there are no lines.
fn bytes(seed: u64, line: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let end = |i: usize| line > 0 && i % line == line - 1;
    (0..BYTES).map(|i| if end(i) { b'\n' } else { b'a' + (random.bits() % 26) as u8 }).collect()
}

fn check(what: &str, format: Format, made: Format, runs: &[Vec<u8>]) {
    let view = view(format, made, runs);
    let errors = errors(&view);
    assert!(!errors.is_empty(), "{what}: nothing was noticed");
    for error in errors {
        let Error::Corrupt { detail, .. } = &error else { panic!("{what}: {error}") };
        assert!(detail.contains("contradict each other"), "{what}: {error}");
    }
}

#[test]
fn fences_in_the_middle_of_records_are_an_error() {
    let two = |line| [bytes(1, line), bytes(2, line)];
    let wide = Format::Fixed { bytes: 100 };
    let narrow = Format::Fixed { bytes: 16 };
    check("records of another length", wide, narrow, &two(0));
    check("lines at other places", LINES, narrow, &two(37));
    check("lines longer than a block", LINES, narrow, &two(9999));
    check("one line without an end", LINES, narrow, &two(0));
    check("lengths out of letters", Format::Keyed, narrow, &two(0));
}

#[test]
fn fences_out_of_order_are_an_error_or_harmless() {
    // The writer takes records as they come: here in no order.
    let narrow = Format::Fixed { bytes: 16 };
    let view = view(narrow, narrow, &[bytes(1, 0), bytes(2, 0), bytes(3, 0)]);
    for error in errors(&view) {
        let text = error.to_string();
        assert!(text.contains("contradict each other"), "{text}");
    }
}
