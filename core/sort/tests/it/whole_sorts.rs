//! Whole sorts in memory against a naive model: every output form, budgets that force spills and
//! extra passes, and every way to read a view.

use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::plan::{RecordSample, RunPlan};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Silent, SortOptions, SortOutput, SortReport, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};
use proptest::prelude::*;

use crate::consuming;

const LINES: Format = Format::Lines { delimiter: b'\n' };

struct Case {
    order: OrderSpec,
    memory_bytes: u64,
    threads: usize,
    compression: Compression,
    top: Option<u64>,
}

impl Case {
    fn new(order: OrderSpec) -> Self {
        Case { order, memory_bytes: 12 << 20, threads: 2, compression: Compression::Off, top: None }
    }

    fn options(&self) -> SortOptions {
        SortOptions::new(self.order.clone())
            .memory(self.memory_bytes)
            .threads(self.threads)
            .temp(vec![MemoryDirectory::new()])
            .compression(CompressionChoice::Fixed(self.compression))
            .top(self.top)
            .strategy(Strategy::Merge)
    }

    fn to_storage(&self, inputs: &[Vec<u8>]) -> (Vec<u8>, SortReport) {
        let output = MemoryStorage::new("output");
        let target = SortOutput::Storage(output.clone());
        let options = self.options();
        let report = sort(as_inputs(inputs), target, &options, &Silent).expect("sorts");
        assert_eq!(options.budget.free_bytes(), self.memory_bytes, "all memory was given back");
        assert_eq!(report.output_bytes, output.size());
        (output.read_vec(0, output.size() as usize).expect("reads"), report)
    }

    fn to_writer(&self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        let streams = inputs.iter().map(|bytes| SortInput::Stream {
            name: "stream".to_owned(),
            reader: Box::new(std::io::Cursor::new(bytes.clone())),
        });
        sort(streams.collect(), SortOutput::Writer(&mut out), &self.options(), &Silent)
            .expect("sorts");
        out
    }

    fn to_view(&self, inputs: &[Vec<u8>]) -> (Arc<dyn Directory>, View) {
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let target = SortOutput::View { folder: Arc::clone(&folder), name: "sorted".to_owned() };
        sort(as_inputs(inputs), target, &self.options(), &Silent).expect("sorts");
        let budget = Budget::new(self.memory_bytes);
        let view = View::open(&folder, &budget, self.threads).expect("opens");
        (folder, view)
    }
}

fn as_inputs(inputs: &[Vec<u8>]) -> Vec<SortInput> {
    let input = |bytes: &Vec<u8>| SortInput::Storage(MemoryStorage::from_bytes("input", bytes));
    inputs.iter().map(input).collect()
}

fn records(format: Format, bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut records = Vec::new();
    while let Some(len) = format.record_len(rest) {
        records.push(&rest[..len]);
        rest = &rest[len..];
    }
    assert!(rest.is_empty());
    records
}

/// The result of a stable comparison sort of all records.
fn model(spec: &OrderSpec, inputs: &[Vec<u8>]) -> Vec<u8> {
    let order = spec.compile(None).expect("compiles");
    let mut all: Vec<&[u8]> = inputs.iter().flat_map(|i| records(spec.format, i)).collect();
    all.sort_by(|a, b| order.compare(a, b));
    if spec.unique {
        all.dedup_by(|a, b| order.compare(a, b).is_eq());
    }
    all.concat()
}

/// Pseudo-random lines from a seed: `len` bytes each at most, `kinds` different letters.
fn lines(seed: u64, count: usize, len: u64, kinds: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    let mut out = Vec::new();
    for _ in 0..count {
        for _ in 0..next() % (len + 1) {
            out.push(b'a' + (next() % kinds) as u8);
        }
        out.push(b'\n');
    }
    out
}

#[test]
fn a_file_a_stream_and_a_view_of_one_sort_are_the_same_bytes() {
    let case = Case::new(OrderSpec::new(LINES));
    let inputs = [lines(1, 300_000, 60, 26), lines(2, 1000, 9, 2)];
    let expected = model(&case.order, &inputs);
    let (file, report) = case.to_storage(&inputs);
    assert!(report.runs > 1, "9 MB do not fit into 12 MiB with their tags");
    assert!(file == expected);
    assert!(case.to_writer(&inputs) == expected);
    let (_, view) = case.to_view(&inputs);
    assert_eq!(view.size(), expected.len() as u64);
    let mut stream = view.stream(0..u64::MAX).expect("streams");
    let mut read = Vec::new();
    while let Some(bytes) = stream.next_bytes().expect("streams") {
        read.extend_from_slice(bytes);
    }
    assert!(read == expected);
}

#[test]
fn one_pass_is_right_for_every_form_of_input() {
    let inputs = [lines(3, 300_000, 40, 4), lines(4, 400_000, 60, 20)];
    assert!(inputs.concat().len() > 16 << 20, "from there on, one pass splits tags while it reads");
    let case = Case { memory_bytes: 128 << 20, ..Case::new(OrderSpec::new(LINES)) };
    let expected = model(&case.order, &inputs);
    let (file, report) = case.to_storage(&inputs);
    assert!(file == expected);
    assert_eq!((report.runs, report.records), (0, 700_000));
    let (_folder, view) = case.to_view(&inputs);
    assert!(view.read_vec(0, expected.len()).expect("reads") == expected);
}

#[test]
fn inputs_that_fit_never_touch_temporary_storage() {
    let case = Case::new(OrderSpec::new(LINES));
    let inputs = [lines(3, 10_000, 40, 26)];
    let (file, report) = case.to_storage(&inputs);
    assert_eq!((report.runs, report.run_bytes), (0, 0));
    assert!(file == model(&case.order, &inputs));
}

#[test]
fn tiny_and_odd_inputs() {
    let case = Case::new(OrderSpec::new(LINES));
    for (input, expected) in [
        (&b""[..], &b""[..]),
        (b"\n", b"\n"),
        (b"a", b"a\n"),
        (b"b\na", b"a\nb\n"),
        (b"\n\n\na\n", b"\n\n\na\n"),
        (b"a\0\na\n", b"a\na\0\n"),
    ] {
        let inputs = [input.to_vec()];
        assert_eq!(case.to_storage(&inputs).0, expected);
        assert_eq!(case.to_writer(&inputs), expected);
        let (_, view) = case.to_view(&inputs);
        assert_eq!(view.read_vec(0, view.size() as usize).expect("reads"), expected);
    }
    assert_eq!(case.to_writer(&[]), b"");
    assert_eq!(case.to_writer(&[b"b".to_vec(), b"a".to_vec()]), b"a\nb\n");
}

#[test]
fn long_records_and_long_equal_prefixes() {
    let mut case = Case::new(OrderSpec::new(LINES));
    case.memory_bytes = 16 << 20;
    let mut input = Vec::new();
    for i in 0..300u32 {
        // Keys that agree far beyond what a fence holds, records longer than several blocks.
        let len = if i % 7 == 0 { 150_000 } else { 700 };
        input.extend(std::iter::repeat_n(b'x', len));
        input.extend_from_slice(format!("{:05}\n", i * 7919 % 300).as_bytes());
    }
    let inputs = [input];
    let expected = model(&case.order, &inputs);
    assert!(case.to_storage(&inputs).0 == expected);
    let (_, view) = case.to_view(&inputs);
    for offset in (0..expected.len()).step_by(99_991) {
        let end = (offset + 70_000).min(expected.len());
        let read = view.read_vec(offset as u64, end - offset).expect("reads");
        assert!(read == expected[offset..end], "at {offset}");
    }
}

#[test]
fn equal_keys_keep_input_order_across_runs() {
    let spec =
        OrderSpec { keys: vec!["0:2".to_owned()], ..OrderSpec::new(Format::Fixed { bytes: 16 }) };
    let case = Case::new(spec);
    let mut input = Vec::new();
    for i in 0..900_000u64 {
        input.extend_from_slice(&[b'a', b'b' - u8::from(i % 3 == 0)]);
        input.extend_from_slice(&[0; 6]);
        input.extend_from_slice(&i.to_be_bytes());
    }
    let inputs = [input];
    let (file, report) = case.to_storage(&inputs);
    assert!(report.runs > 1);
    assert!(file == model(&case.order, &inputs));
}

#[test]
fn top_takes_no_more_memory_than_it_keeps() {
    let mut case = Case::new(OrderSpec::new(LINES));
    let inputs = [lines(5, 400_000, 50, 26)];
    let all = model(&case.order, &inputs);
    case.top = Some(1000);
    let expected: Vec<u8> = records(LINES, &all)[..1000].concat();
    let (file, report) = case.to_storage(&inputs);
    assert!(file == expected);
    assert_eq!(report.records, 1000);
    assert!(report.run_bytes < 1 << 20, "{} bytes of runs for 1000 records", report.run_bytes);
}

#[test]
fn unique_across_runs() {
    let case = Case::new(OrderSpec { unique: true, ..OrderSpec::new(LINES) });
    let inputs = [lines(6, 600_000, 8, 4), lines(7, 600_000, 9, 4)];
    let (file, report) = case.to_storage(&inputs);
    assert!(report.runs > 1);
    assert!(file == model(&case.order, &inputs));
    assert!(case.to_writer(&inputs) == file);
}

#[test]
fn sorted_and_reversed_inputs() {
    let case = Case::new(OrderSpec::new(LINES));
    let sorted = model(&case.order, &[lines(8, 300_000, 60, 26)]);
    let reversed: Vec<u8> = records(LINES, &sorted).into_iter().rev().collect::<Vec<_>>().concat();
    for input in [sorted.clone(), reversed] {
        assert!(case.to_storage(&[input]).0 == sorted);
    }
}

#[test]
fn many_runs_take_an_extra_pass() {
    let mut case = Case::new(OrderSpec::new(LINES));
    case.memory_bytes = 3 << 20;
    case.threads = 1;
    let inputs = [lines(9, 1_000_000, 60, 26)];
    let (file, report) = case.to_storage(&inputs);
    assert!(report.extra_passes > 0, "{} runs were merged at once", report.runs);
    assert!(file == model(&case.order, &inputs));
}

/// As much of a stream as the plan says is merged at once, and several times as much is not.
#[test]
fn a_stream_of_the_planned_length_takes_no_extra_pass() {
    for (memory_bytes, threads) in [(3 << 20, 1), (6 << 20, 1), (8 << 20, 2)] {
        for compression in [Compression::Off, Compression::Lz4] {
            let all = lines(11, 1_200_000, 60, 26);
            let mean = all.len() as f64 / 1_200_000.0;
            let sample = RecordSample {
                record_bytes: mean,
                key_bytes: 0.0,
                fence_key_bytes: mean,
                in_order: false,
            };
            let most = RunPlan::stream_bytes_at_once(memory_bytes, sample, threads) as usize;
            assert!(most > memory_bytes as usize / 8, "{most} in {memory_bytes}");
            let case =
                Case { memory_bytes, threads, compression, ..Case::new(OrderSpec::new(LINES)) };
            let extra_passes = |bytes: usize| {
                let bytes = all[..bytes].to_vec();
                let reader = Box::new(std::io::Cursor::new(bytes));
                let input = SortInput::Stream { name: "stream".to_owned(), reader };
                let output = SortOutput::Writer(&mut std::io::sink());
                let report = sort(vec![input], output, &case.options(), &Silent).expect("sorts");
                assert!(report.runs > 1);
                report.extra_passes
            };
            assert_eq!(extra_passes(most), 0, "{most} in {memory_bytes}");
            assert!(extra_passes(4 * most) > 0, "4 times {most} in {memory_bytes}");
        }
    }
}

#[test]
fn every_record_and_key_of_a_view_can_be_found() {
    let case = Case::new(OrderSpec::new(LINES));
    let inputs = [lines(10, 250_000, 70, 26)];
    let expected = model(&case.order, &inputs);
    let all = records(LINES, &expected);
    let (_, view) = case.to_view(&inputs);
    assert_eq!(view.records(), all.len() as u64);
    let mut offsets = vec![0];
    for record in &all {
        offsets.push(offsets.last().expect("one") + record.len() as u64);
    }
    for number in (0..all.len()).step_by(9973).chain([0, all.len() - 1, all.len(), all.len() + 5]) {
        let expected = offsets[number.min(all.len())];
        assert_eq!(view.offset_of_record(number as u64).expect("finds"), expected);
    }
    for number in (0..all.len()).step_by(9973) {
        let mut key = Vec::new();
        view.order().encode_full(all[number], &mut key);
        let first = all.partition_point(|r| *r < all[number]);
        assert_eq!(view.offset_of_key(&key).expect("finds"), offsets[first]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_sort_read_in_any_way(
        seed in any::<u64>(),
        count in 0usize..200_000,
        len in 1u64..40,
        kinds in 1u64..27,
        packed in 0usize..3,
        reads in prop::collection::vec((any::<u64>(), 0usize..200_000), 8),
        keyed in any::<bool>(),
    ) {
        let spec = if keyed {
            OrderSpec { keys: vec!["1.2,1.4".to_owned(), "1.1r".to_owned()], ..OrderSpec::new(LINES) }
        } else {
            OrderSpec::new(LINES)
        };
        let mut case = Case::new(spec);
        case.compression = [Compression::Off, Compression::Lz4, Compression::Zstd][packed];
        case.memory_bytes = 8 << 20;
        let inputs = [lines(seed, count, len, kinds), lines(seed ^ 1, count / 3, len, kinds)];
        let expected = model(&case.order, &inputs);
        prop_assert!(case.to_storage(&inputs).0 == expected);
        let (_, view) = case.to_view(&inputs);
        prop_assert_eq!(view.size(), expected.len() as u64);
        for (at, len) in reads {
            let at = at as usize % (expected.len() + 1);
            let end = (at + len).min(expected.len());
            let mut out = vec![0; len];
            let n = view.read_at(at as u64, &mut out).expect("reads");
            prop_assert!(out[..n] == expected[at..end], "{} bytes at {}", len, at);
        }
        // Front to back in small steps: the read-ahead path.
        let mut at = 0;
        while at < expected.len().min(3_000_000) {
            let mut out = vec![0; 100_000];
            let n = view.read_at(at as u64, &mut out).expect("reads");
            prop_assert!(out[..n] == expected[at..at + n]);
            at += n;
        }
    }
}

#[test]
fn sorted_inputs_are_merged_without_being_sorted_again() {
    for unique in [false, true] {
        let spec = OrderSpec { unique, ..OrderSpec::new(LINES) };
        let parts: Vec<Vec<u8>> =
            (0..5).map(|seed| model(&spec, &[lines(seed, 40_000, 5 + seed * 30, 3)])).collect();
        let mut merged = Vec::new();
        let budget = Budget::new(16 << 20);
        let with = Merging {
            order: &spec,
            budget: &budget,
            temp: &[],
            temp_limit_bytes: None,
            inputs_max: usize::MAX,
        };
        let records = merge_sorted(as_inputs(&parts), &with, &Silent, |piece| {
            merged.extend_from_slice(piece.bytes);
            Ok(true)
        });
        let expected = model(&spec, &parts);
        assert_eq!(records.expect("merges"), records_in(&expected));
        assert!(merged == expected);
    }
}

/// SAFETY finding F18: whatever number of inputs may be open, equal keys keep input order.
#[test]
fn f18_more_sorted_inputs_than_may_be_open_are_merged_in_passes() {
    let csv = Format::csv_rows(b',', true);
    let by_first =
        |format| OrderSpec { keys: vec!["1".to_owned()], stable: true, ..OrderSpec::new(format) };
    let table = |number: u64, rows: Vec<u8>| {
        let mut out = Vec::new();
        for (row, line) in rows.split_inclusive(|b| *b == b'\n').enumerate() {
            // The number and the row tell equal keys apart.
            let key = char::from(line[0].max(b'a'));
            out.extend_from_slice(format!("{key},{number},{row}\n").as_bytes());
        }
        out
    };
    for count in [2u64, 3, 4, 5, 16, 17, 64, 65, 100] {
        let parts: Vec<Vec<u8>> = (0..count)
            .map(|number| {
                let mut rows = table(number, lines(number, 300 * (number % 4) as usize, 3, 5));
                let mut sorted: Vec<&[u8]> = rows.split_inclusive(|b| *b == b'\n').collect();
                sorted.sort_by_key(|row| row[0]);
                rows = sorted.concat();
                rows
            })
            .collect();
        let mut all: Vec<&[u8]> =
            parts.iter().flat_map(|p| p.split_inclusive(|b| *b == b'\n')).collect();
        all.sort_by_key(|row| row[0]);
        let expected = all.concat();
        for (spec, header) in [
            (OrderSpec { separator: Some(b','), ..by_first(LINES) }, &b""[..]),
            (by_first(csv), b"key,number,row\n"),
        ] {
            let spec = match spec.format {
                Format::Lines { .. } => OrderSpec { keys: vec!["1,1".to_owned()], ..spec },
                _ => spec,
            };
            // An empty part of a csv input has no header row either.
            let with_header = |part: &Vec<u8>| match part.is_empty() {
                true => Vec::new(),
                false => [header, part].concat(),
            };
            let inputs: Vec<Vec<u8>> = parts.iter().map(with_header).collect();
            for inputs_max in [2, 3, 16] {
                let (mut merged, budget) = (Vec::new(), Budget::new(16 << 20));
                let with = Merging {
                    order: &spec,
                    budget: &budget,
                    temp: &[MemoryDirectory::new() as Arc<dyn Directory>],
                    temp_limit_bytes: None,
                    inputs_max,
                };
                let records = merge_sorted(as_inputs(&inputs), &with, &Silent, |piece| {
                    merged.extend_from_slice(piece.bytes);
                    Ok(true)
                });
                let what = format!("{count} inputs, {inputs_max} at once");
                records.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(merged == [header, &expected].concat(), "{what}");
                assert_eq!(budget.free_bytes(), budget.limit_bytes(), "{what}");
            }
        }
    }
}

fn records_in(bytes: &[u8]) -> u64 {
    records(LINES, bytes).len() as u64
}

/// Stops a sort after this many bytes were read.
struct StopAfter(std::sync::atomic::AtomicU64);

impl merganser_sort::Progress for StopAfter {
    fn advance(&self, bytes: u64) {
        use std::sync::atomic::Ordering;
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(bytes), Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) == 0
    }
}

#[test]
fn a_stopped_consuming_sort_continues_and_loses_nothing() {
    let case = Case { memory_bytes: 8 << 20, ..Case::new(OrderSpec::new(LINES)) };
    let inputs = [lines(20, 200_000, 60, 26), lines(21, 100_000, 50, 26)];
    let expected = model(&case.order, &inputs);
    let storages: Vec<Arc<MemoryStorage>> = (0..)
        .zip(&inputs)
        .map(|(i, bytes)| MemoryStorage::from_bytes(&format!("input{i}"), bytes))
        .collect();
    let as_storages: Vec<Arc<dyn Storage>> =
        storages.iter().map(|s| Arc::clone(s) as Arc<dyn Storage>).collect();
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let sorting = |stop: u64| {
        let stop = StopAfter(stop.into());
        consuming::consume(&as_storages, &folder, &case.options(), &stop)
    };
    let mut stops = 0;
    for stop in [3 << 20, 5 << 20, 7 << 20] {
        stops += u32::from(matches!(sorting(stop), Err(merganser_sort::Error::Cancelled)));
        assert!(consuming::is_interrupted(&folder) || stops == 0);
    }
    assert!(stops > 1, "the sort was stopped on its way");
    sorting(u64::MAX).expect("goes on");
    let left: u64 = storages.iter().map(|s| s.allocated_bytes()).sum();
    assert!(left < 64 << 10, "{left} bytes of the inputs are still there");
    let view = View::open(&folder, &Budget::new(8 << 20), 2).expect("opens");
    assert!(view.read_vec(0, expected.len()).expect("reads") == expected);
}

#[test]
fn long_records_fill_chunks_as_short_ones_do() {
    let key = vec!["0:8".to_owned()];
    for bytes in [16, 100, 4096] {
        let spec = OrderSpec { keys: key.clone(), ..OrderSpec::new(Format::Fixed { bytes }) };
        let case = Case { memory_bytes: 12 << 20, ..Case::new(spec) };
        let mut input = lines(30, 1 << 19, 60, 26);
        input.truncate(input.len() / bytes * bytes);
        let inputs = [input];
        let (file, report) = case.to_storage(&inputs);
        assert!(file == model(&case.order, &inputs));
        let least = report.input_bytes.div_ceil(report.chunk_bytes);
        assert!(report.runs <= least, "{} runs of {bytes}-byte records, not {least}", report.runs);
    }
}

#[test]
fn a_view_opens_in_the_memory_that_made_it() {
    for memory_bytes in [2_700_000, 3 << 20, 4 << 20] {
        let mut case = Case { memory_bytes, threads: 1, ..Case::new(OrderSpec::new(LINES)) };
        case.order.stable = true;
        let inputs = [lines(40, 300_000, 60, 26)];
        let (_, view) = case.to_view(&inputs);
        let expected = model(&case.order, &inputs);
        assert!(view.read_vec(0, expected.len()).expect("reads") == expected);
    }
}
