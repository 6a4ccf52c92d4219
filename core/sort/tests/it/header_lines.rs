//! Whole sorts of lines with a header by its prefix, against a naive model.

use std::sync::Arc;

use merganser_random::Random;
use merganser_sort::journal::JournalText;
use merganser_sort::key::OrderSpec;
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};

const MEMORY_BYTES: u64 = 12 << 20;

fn order(prefixes: &[&str]) -> OrderSpec {
    let text = |prefix: &&str| JournalText(prefix.as_bytes().to_vec());
    let header_prefixes = prefixes.iter().map(text).collect();
    OrderSpec { header_prefixes, ..OrderSpec::new(Format::Lines { delimiter: b'\n' }) }
}

fn storages(inputs: &[Vec<u8>]) -> Vec<SortInput> {
    let storage = |bytes: &Vec<u8>| SortInput::Storage(MemoryStorage::from_bytes("input", bytes));
    inputs.iter().map(storage).collect()
}

fn streams(inputs: &[Vec<u8>]) -> Vec<SortInput> {
    let stream = |bytes: &Vec<u8>| SortInput::Stream {
        name: "stream".to_owned(),
        reader: Box::new(std::io::Cursor::new(bytes.clone())),
    };
    inputs.iter().map(stream).collect()
}

/// A header of lines that begin with `#` or `track`, of about this many bytes.
fn header(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut header = Vec::new();
    while header.len() < bytes {
        header.extend_from_slice(if random.below(2) == 0 { b"#" } else { b"track" });
        header.resize(header.len() + random.below(90) as usize, b'h');
        header.push(b'\n');
    }
    header
}

/// Lines. The first one is no header, and these percent of the others begin as one.
fn body(random: &mut Random, lines: usize, marked_percent: u64) -> Vec<Vec<u8>> {
    let line = |number| {
        let prefix = if number > 0 && random.below(100) < marked_percent { "#" } else { "r" };
        format!("{prefix}{}\n", random.below(1 << 40)).into_bytes()
    };
    (0..lines).map(line).collect()
}

fn sorted(inputs: Vec<SortInput>, options: &SortOptions) -> Result<Vec<u8>, Error> {
    let output = MemoryStorage::new("output");
    sort(inputs, SortOutput::Storage(output.clone()), options, &Silent)?;
    assert_eq!(options.budget.free_bytes(), MEMORY_BYTES, "all memory was given back");
    Ok(output.read_vec(0, output.size() as usize).expect("reads"))
}

fn options(order: &OrderSpec) -> SortOptions {
    SortOptions::new(order.clone())
        .memory(MEMORY_BYTES)
        .threads(2)
        .temp(vec![MemoryDirectory::new()])
        .compression(CompressionChoice::Fixed(Compression::Off))
}

#[test]
fn the_header_stays_first_whatever_the_sort_does() {
    let order = order(&["#", "track"]);
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let random = &mut random;
        // Longer than the buffers of a merge, than a page, shorter, none.
        let header_bytes = [3 << 20, 5000, 40, 0][seed as usize % 4];
        let header = header(random, header_bytes);
        let lines = if seed < 4 { 400_000 } else { random.below(3000) as usize };
        let inputs = 1 + random.below(4) as usize;
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        for number in 0..inputs {
            let body = body(random, lines, if seed % 3 == 0 { 10 } else { 0 });
            let own = if number == 0 || random.below(10) < 7 { &header[..] } else { b"" };
            bytes.push([own, &body.concat()].concat());
            all.extend(body);
        }
        all.sort();
        let expected = [&header[..], &all.concat()].concat();
        for strategy in [Strategy::Merge, Strategy::Distribute { uniform: false }] {
            let options = options(&order).strategy(strategy);
            assert!(sorted(storages(&bytes), &options).expect("sorts") == expected, "{seed}");
            assert!(sorted(streams(&bytes), &options).expect("sorts") == expected, "{seed}");
            let folder: Arc<dyn Directory> = MemoryDirectory::new();
            let target = SortOutput::View { folder: Arc::clone(&folder), name: "v".to_owned() };
            sort(storages(&bytes), target, &options, &Silent).expect("sorts");
            let view = View::open(&folder, &Budget::new(MEMORY_BYTES), 2).expect("opens");
            assert_eq!(view.records(), all.len() as u64, "{seed}");
            assert!(view.read_vec(0, expected.len()).expect("reads") == expected, "{seed}");
        }
        // A record that begins as a header is one to a program that reads only the sorted file.
        if seed % 3 > 0 {
            let alone =
                |bytes: &Vec<u8>| sorted(storages(std::slice::from_ref(bytes)), &options(&order));
            let parts: Vec<Vec<u8>> =
                bytes.iter().map(alone).collect::<Result<_, _>>().expect("sorts");
            merges_to(&parts, &order, &expected, header_bytes > 0);
        }
    }
}

/// Merges two at a time, in as many passes as that takes.
fn merges_to(parts: &[Vec<u8>], order: &OrderSpec, expected: &[u8], has_header: bool) {
    let mut merged = Vec::new();
    let budget = Budget::new(MEMORY_BYTES);
    let temp = [MemoryDirectory::new() as Arc<dyn Directory>];
    let with =
        Merging { order, budget: &budget, temp: &temp, temp_limit_bytes: None, inputs_max: 2 };
    let done = merge_sorted(streams(parts), &with, &Silent, |piece| {
        assert_eq!(piece.is_header, merged.is_empty() && has_header);
        merged.extend_from_slice(piece.bytes);
        Ok(true)
    });
    done.expect("merges");
    assert!(merged == expected);
}

#[test]
fn another_header_is_an_error_before_anything_is_written() {
    let order = order(&["#"]);
    let inputs = [b"#a\n#b\nx\n".to_vec(), b"y\n".to_vec(), b"#a\n#c\nz\n".to_vec()];
    for made in [storages, streams] {
        let output = MemoryStorage::new("output");
        let target = SortOutput::Storage(output.clone());
        let error = sort(made(&inputs), target, &options(&order), &Silent).expect_err("another");
        assert!(matches!(error, Error::HeaderLines { line: 2, .. }), "{error}");
        assert_eq!(output.size(), 0);
    }
}

#[test]
fn prefixes_that_mean_nothing_are_refused() {
    for prefix in ["", "a\nb"] {
        order(&[prefix]).compile(None).expect_err(prefix);
    }
    let fixed = OrderSpec { format: Format::Fixed { bytes: 8 }, ..order(&["#"]) };
    fixed.compile(None).expect_err("only lines");
}
