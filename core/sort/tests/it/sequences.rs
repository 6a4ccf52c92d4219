//! Whole sorts of FASTA and FASTQ against a naive model: every output, both strategies, little memory, views
//! read in parts, and inputs that are damaged.

use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::verify::{Limits, Verifier};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, SortReport, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::Random;
use proptest::prelude::*;

const DISTRIBUTE: Strategy = Strategy::Distribute { uniform: false };

#[derive(Debug, Clone)]
struct Case {
    order: OrderSpec,
    memory_bytes: u64,
    threads: usize,
    strategy: Strategy,
}

impl Case {
    fn new(format: Format, keys: &[&str]) -> Self {
        let keys = keys.iter().map(ToString::to_string).collect();
        let order = OrderSpec { keys, ..OrderSpec::new(format) };
        Case { order, memory_bytes: 8 << 20, threads: 2, strategy: Strategy::Merge }
    }

    fn options(&self) -> SortOptions {
        SortOptions::new(self.order.clone())
            .memory(self.memory_bytes)
            .threads(self.threads)
            .temp(vec![MemoryDirectory::new()])
            .compression(CompressionChoice::Fixed(Compression::Off))
            .strategy(self.strategy)
    }

    fn to_storage(&self, inputs: &[Vec<u8>]) -> merganser_sort::Result<(Vec<u8>, SortReport)> {
        let output = MemoryStorage::new("output");
        let options = self.options();
        let report =
            sort(storages(inputs), SortOutput::Storage(output.clone()), &options, &Silent)?;
        assert_eq!(options.budget.free_bytes(), self.memory_bytes, "all memory was given back");
        Ok((output.read_vec(0, output.size() as usize)?, report))
    }

    fn to_writer(&self, inputs: &[Vec<u8>]) -> merganser_sort::Result<Vec<u8>> {
        let mut out = Vec::new();
        sort(streams(inputs), SortOutput::Writer(&mut out), &self.options(), &Silent)?;
        Ok(out)
    }

    fn to_view(&self, inputs: &[Vec<u8>]) -> View {
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let target = SortOutput::View { folder: Arc::clone(&folder), name: "sorted".to_owned() };
        sort(storages(inputs), target, &self.options(), &Silent).expect("sorts");
        View::open(&folder, &Budget::new(self.memory_bytes), self.threads).expect("opens")
    }
}

fn storages(inputs: &[Vec<u8>]) -> Vec<SortInput> {
    let input = |bytes: &Vec<u8>| SortInput::Storage(MemoryStorage::from_bytes("input", bytes));
    inputs.iter().map(input).collect()
}

fn streams(inputs: &[Vec<u8>]) -> Vec<SortInput> {
    let input = |bytes: &Vec<u8>| SortInput::Stream {
        name: "input".to_owned(),
        reader: Box::new(std::io::Cursor::new(bytes.clone())),
    };
    inputs.iter().map(input).collect()
}

/// Records of whole inputs, by their marks alone: no line but a header begins with one here.
fn records(format: Format, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mark = if format == Format::Fasta { b'>' } else { b'@' };
    let mut records: Vec<Vec<u8>> = Vec::new();
    for input in inputs {
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            if line[0] == mark {
                records.push(Vec::new());
            }
            records.last_mut().expect("an input begins with a mark").extend_from_slice(line);
        }
        if let Some(last) = records.last_mut().filter(|last| last.last() != Some(&b'\n')) {
            last.push(b'\n');
        }
    }
    records
}

/// The parts of a record, read by another way than the engine's.
fn part(format: Format, key: &str, record: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(record.to_vec()).expect("letters");
    let mut lines = text.lines();
    let header = &lines.next().expect("a header")[1..];
    let sequence: String =
        lines.take_while(|line| format == Format::Fasta || !line.starts_with('+')).collect();
    match key {
        "id" => header.split_whitespace().next().unwrap_or("").as_bytes().to_vec(),
        "header" => header.as_bytes().to_vec(),
        "length" => format!("{:020}", sequence.len()).into_bytes(),
        "sequence" => sequence.into_bytes(),
        _ => unreachable!("{key}"),
    }
}

fn model(order: &OrderSpec, inputs: &[Vec<u8>]) -> Vec<u8> {
    let keys: Vec<(&str, bool)> = order
        .keys
        .iter()
        .map(|key| key.strip_suffix(":r").map_or((&**key, false), |name| (name, true)))
        .collect();
    let with_keys = |record: Vec<u8>| {
        let parts = keys.iter().map(|(name, _)| part(order.format, name, &record));
        (parts.collect::<Vec<_>>(), record)
    };
    let mut all: Vec<_> = records(order.format, inputs).into_iter().map(with_keys).collect();
    all.sort_by(|(a, record), (b, other)| {
        let mut compared = keys
            .iter()
            .zip(a.iter().zip(b))
            .map(|((_, descending), (x, y))| if *descending { y.cmp(x) } else { x.cmp(y) });
        compared.find(|order| order.is_ne()).unwrap_or_else(|| {
            if keys.is_empty() { record.cmp(other) } else { std::cmp::Ordering::Equal }
        })
    });
    all.into_iter().flat_map(|(_, record)| record).collect()
}

/// `count` sequences of up to `letters` letters; ids and sequences come more than once.
fn made(format: Format, seed: u64, count: usize, letters: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::new();
    for _ in 0..count {
        let end = if random.one_in(9) { &b"\r\n"[..] } else { b"\n" };
        let (id, number) = (random.below(1 + count as u64 / 2), random.below(100));
        let mut line = |text: &[u8]| out.extend([text, end].concat());
        let sequence: Vec<u8> =
            (0..random.index(letters + 1)).map(|_| b"ACGT"[random.index(4)]).collect();
        let width = 1 + random.index(80);
        if format == Format::Fasta {
            line(format!(">s{id} no. {number}").as_bytes());
            sequence.chunks(width).for_each(&mut line);
            if random.one_in(20) {
                line(b"");
            }
        } else {
            line(format!("@s{id} no. {number}").as_bytes());
            sequence.chunks(width).for_each(&mut line);
            line(b"+");
            vec![b'I'; sequence.len()].chunks(width + 3).for_each(&mut line);
        }
    }
    out
}

#[test]
fn a_file_a_stream_and_a_view_are_the_records_in_order() {
    for format in [Format::Fasta, Format::Fastq] {
        let mut inputs = [made(format, 1, 45_000, 200), made(format, 2, 30, 9)];
        // The last record lacks its newline.
        inputs[0].pop();
        for keys in [&["id"][..], &["length:r", "header"], &["sequence"], &[]] {
            let case = Case::new(format, keys);
            let expected = model(&case.order, &inputs);
            let (file, report) = case.to_storage(&inputs).expect("sorts");
            assert!(report.runs > 1, "{keys:?} {report:?}");
            assert!(file == expected, "{format:?} {keys:?}");
            assert_eq!(report.records as usize, records(format, &inputs).len());
            assert!(case.to_writer(&inputs).expect("sorts") == expected, "{format:?} {keys:?}");
            let view = case.to_view(&inputs);
            let read = view.read_vec(0, expected.len()).expect("reads");
            assert!(read == expected, "{format:?} {keys:?}");
        }
    }
}

/// All of it in one chunk, whose tags are split while it is read, and records of it that are longer than a
/// tag can say.
#[test]
fn sequences_that_fit_into_memory_are_sorted_in_one_pass() {
    for keys in [&["id"][..], &["length"]] {
        let mut case = Case::new(Format::Fasta, keys);
        case.memory_bytes = 512 << 20;
        let mut inputs = vec![made(Format::Fasta, 3, 20_000, 300)];
        for (number, letters) in [(7, 17 << 20), (8, 19 << 20)] {
            let mut long = format!(">s{number} long\n").into_bytes();
            long.extend(vec![b'A'; letters].chunks(60).flat_map(|line| [line, b"\n"].concat()));
            inputs.push(long);
        }
        let expected = model(&case.order, &inputs);
        for strategy in [Strategy::Auto, Strategy::Merge] {
            case.strategy = strategy;
            let (file, report) = case.to_storage(&inputs).expect("sorts");
            assert_eq!(report.runs, 0, "{report:?}");
            assert!(file == expected, "{keys:?} {strategy:?}");
        }
        let view = case.to_view(&inputs);
        assert!(view.read_vec(0, expected.len()).expect("reads") == expected, "{keys:?}");
    }
}

#[test]
fn a_distribution_gives_the_same_bytes() {
    for format in [Format::Fasta, Format::Fastq] {
        let inputs = [made(format, 4, 60_000, 150)];
        for keys in [&["id"][..], &["length"]] {
            let case = Case { strategy: DISTRIBUTE, ..Case::new(format, keys) };
            let expected = model(&case.order, &inputs);
            let (file, report) = case.to_storage(&inputs).expect("sorts");
            assert!(report.buckets > 1, "{report:?}");
            assert!(file == expected, "{format:?} {keys:?}");
            let view = case.to_view(&inputs);
            assert!(view.read_vec(0, expected.len()).expect("reads") == expected);
            check_places(&view, format, &expected);
        }
    }
}

/// Places of records in a view, the last one and that behind it among them.
fn check_places(view: &View, format: Format, expected: &[u8]) {
    let all = records(format, &[expected.to_vec()]);
    let ends: Vec<u64> = all
        .iter()
        .scan(0, |end, record| {
            *end += record.len() as u64;
            Some(*end)
        })
        .collect();
    assert_eq!(view.records(), all.len() as u64);
    let last = all.len() as u64;
    for number in [0, 1, 2, last / 3, last / 2, last - 2, last - 1, last, last + 5] {
        let place = number.checked_sub(1).map_or(0, |before| {
            ends.get(before as usize).copied().unwrap_or(expected.len() as u64)
        });
        assert_eq!(view.offset_of_record(number).expect("found"), place, "record {number}");
    }
}

#[test]
fn a_view_knows_where_its_records_and_keys_are() {
    let inputs = [made(Format::Fasta, 5, 30_000, 250)];
    for keys in [&["id"][..], &["length"], &["length:r"], &["sequence"], &["header"]] {
        let case = Case::new(Format::Fasta, keys);
        let expected = model(&case.order, &inputs);
        let view = case.to_view(&inputs);
        check_places(&view, Format::Fasta, &expected);
        let all = records(Format::Fasta, &[expected]);
        let key = keys[0].strip_suffix(":r");
        let name = key.unwrap_or(keys[0]);
        for number in [0, all.len() / 2, all.len() - 1] {
            let own = part(Format::Fasta, name, &all[number]);
            let first = all.iter().position(|record| part(Format::Fasta, name, record) == own);
            let place: usize = all[..first.expect("itself")].iter().map(Vec::len).sum();
            let key = view.typed_key(&own).expect("a key");
            let found = view.offset_of_key(&key).expect("found");
            assert_eq!(found, place as u64, "{keys:?} {}", own.escape_ascii());
        }
    }
    let view = Case::new(Format::Fasta, &["length"]).to_view(&inputs);
    let told = view.typed_key(b"long").expect_err("no number").to_string();
    assert_eq!(told, "a length is a number");
}

#[test]
fn sorted_inputs_are_merged() {
    let parts: Vec<Vec<u8>> = (0..5).map(|seed| made(Format::Fasta, seed, 3000, 90)).collect();
    let case = Case::new(Format::Fasta, &["id"]);
    let sorted: Vec<Vec<u8>> =
        parts.iter().map(|part| model(&case.order, std::slice::from_ref(part))).collect();
    for unique in [false, true] {
        let order = OrderSpec { unique, ..case.order.clone() };
        let with = Merging {
            order: &order,
            budget: &Budget::new(16 << 20),
            temp: &[],
            temp_limit_bytes: None,
            inputs_max: 100,
        };
        let mut out = Vec::new();
        let count = merge_sorted(storages(&sorted), &with, &Silent, |piece| {
            out.extend_from_slice(piece.bytes);
            Ok(true)
        });
        let mut expected = records(Format::Fasta, &[model(&order, &sorted)]);
        if unique {
            expected.dedup_by_key(|record| part(Format::Fasta, "id", record));
        }
        assert_eq!(count.expect("merges"), expected.len() as u64);
        assert!(out == expected.concat());
    }
}

#[test]
fn of_equal_keys_the_first_is_kept() {
    let inputs = [made(Format::Fasta, 6, 30_000, 40)];
    for strategy in [Strategy::Merge, DISTRIBUTE] {
        let mut case = Case { strategy, ..Case::new(Format::Fasta, &["sequence"]) };
        case.order.unique = true;
        let mut expected = records(Format::Fasta, &[model(&case.order, &inputs)]);
        expected.dedup_by_key(|record| part(Format::Fasta, "sequence", record));
        let (file, report) = case.to_storage(&inputs).expect("sorts");
        assert!(file == expected.concat(), "{strategy:?}");
        assert_eq!(report.records, expected.len() as u64);
    }
}

/// A fault is named with its place, whoever finds it, wherever it is.
#[test]
fn damaged_inputs_are_refused_with_the_place() {
    let good = made(Format::Fastq, 7, 4000, 100);
    let place = good.len() as u64;
    let first = good.iter().position(|byte| *byte == b'\n').expect("lines") as u64;
    for (tail, at, last) in [
        (&b"@x\nACGT\n+\nIII"[..], 0, true),
        (b"@x\nACGT\n+\n", 0, true),
        (b"@x\nACGT", 0, true),
        (b"@x\nACGT\n@y\nA\n+\nI\n", 8, false),
        (b"@x\nACGT\n+\nIIIII\n@y\nA\n+\nI\n", 10, false),
        (b"x\n@y\nA\n+\nI\n", 0, false),
    ] {
        let bytes = [&good[..], tail].concat();
        let case = Case::new(Format::Fastq, &["id"]);
        let inputs = [good.clone(), bytes.clone()];
        for error in [
            case.to_storage(&inputs).expect_err("damaged"),
            case.to_writer(&inputs).expect_err("damaged"),
            verified(&case.order, &bytes).expect_err("damaged"),
        ] {
            let offset = match (&error, last) {
                (Error::LastRecord { offset, .. } | Error::Input { offset, .. }, true)
                | (Error::Input { offset, .. }, false) => *offset,
                _ => panic!("{error}"),
            };
            assert_eq!(offset, place + at, "{error} of {}", tail.escape_ascii());
            assert!(error.to_string().starts_with("input: at byte "), "{error}");
        }
    }
    // Nothing but headers: the first line that isn't one is no header of a sequence.
    let error = Case::new(Format::Fasta, &["id"]).to_storage(&[good]).expect_err("FASTQ");
    assert!(matches!(error, Error::Input { offset: 0, .. }), "{error} after {first}");
}

fn verified(order: &OrderSpec, bytes: &[u8]) -> merganser_sort::Result<(u64, u64)> {
    let order = order.compile(None)?;
    let limits = Limits { record_bytes_max: 1 << 20, stop_at_disorder: false };
    let mut verifier = Verifier::new("input", &order, limits);
    for piece in bytes.chunks(997) {
        verifier.feed(piece)?;
    }
    let found = verifier.finish()?;
    Ok((found.records, found.disorders))
}

#[test]
fn a_check_counts_records_and_disorders() {
    for format in [Format::Fasta, Format::Fastq] {
        let case = Case::new(format, &["length"]);
        let input = made(format, 8, 5000, 80);
        let sorted = model(&case.order, std::slice::from_ref(&input));
        assert_eq!(verified(&case.order, &sorted).expect("checks"), (5000, 0));
        let lengths: Vec<Vec<u8>> = records(format, std::slice::from_ref(&input))
            .iter()
            .map(|r| part(format, "length", r))
            .collect();
        let disorders = lengths.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
        assert_eq!(verified(&case.order, &input).expect("checks"), (5000, disorders));
    }
}

#[test]
fn a_sequence_longer_than_memory_is_refused() {
    let mut long = b">a\nA\n>b\n".to_vec();
    long.resize(20 << 20, b'A');
    let error = Case::new(Format::Fasta, &["id"]).to_writer(&[long]).expect_err("too long");
    assert!(matches!(error, Error::RecordTooLong { offset: 5, .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn random_sequences_are_sorted_like_the_model(
        fastq: bool,
        seeds in prop::collection::vec((0..1000_u64, 0..40_usize, 0..70_usize), 1..4),
        keys in prop::collection::vec(
            prop::sample::select(vec!["id", "id:r", "header", "length", "length:r", "sequence"]), 0..3),
        cut in 0..3_usize,
        distribute: bool,
    ) {
        let format = if fastq { Format::Fastq } else { Format::Fasta };
        let mut inputs: Vec<Vec<u8>> =
            seeds.iter().map(|(seed, count, letters)| made(format, *seed, *count, *letters)).collect();
        for input in &mut inputs {
            if input.len() > cut && input.ends_with(b"I\n") | input.ends_with(b"A\n") && cut == 1 {
                input.pop();
            }
        }
        let mut case = Case::new(format, &keys);
        if distribute {
            case.strategy = DISTRIBUTE;
        }
        let expected = model(&case.order, &inputs);
        prop_assert!(case.to_storage(&inputs).expect("sorts").0 == expected);
        prop_assert!(case.to_writer(&inputs).expect("sorts") == expected);
        let view = case.to_view(&inputs);
        prop_assert!(view.read_vec(0, expected.len()).expect("reads") == expected);
        prop_assert_eq!(view.records() as usize, records(format, &inputs).len());
    }
}
