//! Sorts by distribution against a naive model and against the merge: whatever the keys are, how
//! little memory there is, and what fails on the way.

use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Conflict, Error, Silent, SortOptions, SortOutput, SortReport,
    Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::metered::{Meter, Metered, MeteredDirectory, Transfer};
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{FaultPlan, Faulty};
use merganser_testkit::oracle::check_sample;
use merganser_testkit::patterns::{Pattern, RecordLayout, SampleInput};

const LINES: Format = Format::Lines { delimiter: b'\n' };
const DISTRIBUTE: Strategy = Strategy::Distribute { uniform: false };

struct Case {
    order: OrderSpec,
    memory_bytes: u64,
    threads: usize,
    disks: usize,
    strategy: Strategy,
}

impl Case {
    fn new(order: OrderSpec) -> Self {
        Case { order, memory_bytes: 4 << 20, threads: 2, disks: 1, strategy: DISTRIBUTE }
    }

    fn options(&self) -> SortOptions {
        SortOptions::new(self.order.clone())
            .memory(self.memory_bytes)
            .threads(self.threads)
            .temp((0..self.disks).map(|_| MemoryDirectory::new() as Arc<dyn Directory>).collect())
            .compression(CompressionChoice::Fixed(Compression::Off))
            .strategy(self.strategy)
    }

    fn to_storage(&self, input: &[u8]) -> (Vec<u8>, SortReport) {
        let output = MemoryStorage::new("output");
        let options = self.options();
        let target = SortOutput::Storage(output.clone());
        let report = sort(vec![seekable(input)], target, &options, &Silent).expect("sorts");
        assert_eq!(options.budget.free_bytes(), self.memory_bytes, "all memory was given back");
        assert_eq!(report.output_bytes, output.size());
        (output.read_vec(0, output.size() as usize).expect("reads"), report)
    }

    /// A view, and its folder.
    fn to_view(&self, input: &[u8]) -> (View, Arc<dyn Directory>) {
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let output = SortOutput::View { folder: Arc::clone(&folder), name: "sorted".to_owned() };
        sort(vec![seekable(input)], output, &self.options(), &Silent).expect("sorts");
        (self.open(&folder), folder)
    }

    fn open(&self, folder: &Arc<dyn Directory>) -> View {
        View::open(folder, &Budget::new(self.memory_bytes), self.threads).expect("opens")
    }

    fn to_writer(&self, input: &[u8]) -> (Vec<u8>, SortReport) {
        let mut out = Vec::new();
        let reader = Box::new(std::io::Cursor::new(input.to_vec()));
        let input = SortInput::Stream { name: "stream".to_owned(), reader };
        let output = SortOutput::Writer(&mut out);
        let report = sort(vec![input], output, &self.options(), &Silent).expect("sorts");
        (out, report)
    }
}

fn seekable(bytes: &[u8]) -> SortInput {
    SortInput::Storage(MemoryStorage::from_bytes("input", bytes))
}

fn model(spec: &OrderSpec, input: &[u8]) -> Vec<u8> {
    let order = spec.compile(None).expect("compiles");
    let mut all = Vec::new();
    let mut rest = input;
    while let Some(len) = spec.format.record_len(rest) {
        all.push(&rest[..len]);
        rest = &rest[len..];
    }
    all.sort_by(|a, b| order.compare(a, b));
    if spec.unique {
        all.dedup_by(|a, b| order.compare(a, b).is_eq());
    }
    all.concat()
}

fn random_lines(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::new();
    while out.len() < bytes {
        let len = random.index(60);
        out.extend((0..len).map(|_| b'a' + random.below(26) as u8));
        out.push(b'\n');
    }
    out
}

#[test]
fn a_file_and_a_stream_are_the_sorted_bytes() {
    let case = Case::new(OrderSpec::new(LINES));
    let input = random_lines(1, 12 << 20);
    let expected = model(&case.order, &input);
    let (file, report) = case.to_storage(&input);
    assert!(file == expected);
    assert!(report.buckets > 4 && report.runs == 0, "{report:?}");
    assert!(report.run_bytes < 13 << 20, "{report:?}");
    assert!(case.to_writer(&input).0 == expected);
}

/// The size of a stream is known at its end: one that ends soon needs no temporary files.
#[test]
fn a_short_stream_is_sorted_in_memory() {
    let case = Case { memory_bytes: 16 << 20, ..Case::new(OrderSpec::new(LINES)) };
    for (bytes, creates) in [(0, 0), (1, 0), (1 << 20, 0), (3 << 20, 1), (40 << 20, 1)] {
        let input = random_lines(5, bytes);
        let temp = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(0));
        let mut options = case.options();
        options.temp = vec![Arc::clone(&temp) as Arc<dyn Directory>];
        let reader = Box::new(std::io::Cursor::new(input.clone()));
        let stream = SortInput::Stream { name: "stream".to_owned(), reader };
        let mut out = Vec::new();
        let report = sort(vec![stream], SortOutput::Writer(&mut out), &options, &Silent);
        let report = report.expect("sorts");
        assert!(out == model(&case.order, &input), "{bytes} bytes");
        assert_eq!(report.input_bytes, input.len() as u64);
        assert_eq!(temp.counts().creates, creates, "{bytes} bytes: {report:?}");
        assert_eq!(options.budget.free_bytes(), case.memory_bytes, "all memory was given back");
        assert!(report.memory_peak_bytes <= case.memory_bytes);
    }
}

#[test]
fn every_pattern_of_keys_in_every_layout() {
    let fixed = RecordLayout::Fixed { bytes: 100, key_bytes: 10 };
    let layouts = [
        (
            fixed,
            OrderSpec {
                keys: vec!["0:10".to_owned()],
                ..OrderSpec::new(Format::Fixed { bytes: 100 })
            },
        ),
        (RecordLayout::Keyed, OrderSpec::new(Format::Keyed)),
        (
            RecordLayout::Numbered { delimiter: b'\n' },
            OrderSpec {
                keys: vec!["1,1".to_owned()],
                separator: Some(b'\t'),
                stable: true,
                ..OrderSpec::new(LINES)
            },
        ),
    ];
    for (layout, order) in layouts {
        for pattern in Pattern::ALL {
            let count = match (layout, pattern) {
                (_, Pattern::Lengths) => 4_000,
                (RecordLayout::Fixed { .. }, _) => 40_000,
                _ => 130_000,
            };
            let sample = SampleInput::new(pattern, layout, count, 7);
            let input = sample.records.concat();
            let case = Case { memory_bytes: 3_400_000, threads: 1, ..Case::new(order.clone()) };
            let (file, report) = case.to_storage(&input);
            assert!(
                report.buckets > 0 || input.len() < 3 << 20,
                "{pattern:?} {layout:?} {report:?}"
            );
            check_sample(&sample, &file);
            assert!(case.to_writer(&input).0 == file, "{pattern:?} {layout:?}");
        }
    }
}

#[test]
fn unique_encoded_and_descending_orders() {
    let input = {
        let mut random = Random::new(3);
        let line = |_| format!("{} x{}\n", random.below(3000), random.below(2)).into_bytes();
        (0..300_000).map(line).collect::<Vec<_>>().concat()
    };
    let orders = [
        OrderSpec { unique: true, ..OrderSpec::new(LINES) },
        OrderSpec { keys: vec!["1,1n".to_owned()], ..OrderSpec::new(LINES) },
        OrderSpec { keys: vec!["1,1nr".to_owned()], stable: true, ..OrderSpec::new(LINES) },
        OrderSpec { options: "r".to_owned(), ..OrderSpec::new(LINES) },
        OrderSpec { keys: vec!["1,1n".to_owned()], unique: true, ..OrderSpec::new(LINES) },
    ];
    for order in orders {
        let case = Case { memory_bytes: 3_400_000, threads: 1, ..Case::new(order) };
        let (file, report) = case.to_storage(&input);
        assert!(file == model(&case.order, &input), "{:?}", case.order);
        assert!(report.buckets > 0);
        assert!(case.to_writer(&input).0 == file);
    }
}

#[test]
fn a_sorted_stream_is_split_again_until_it_fits() {
    let mut case = Case::new(OrderSpec::new(LINES));
    (case.memory_bytes, case.threads) = (3_400_000, 1);
    let sorted = model(&case.order, &random_lines(5, 16 << 20));
    // A stream shows only its beginning, which holds the least keys alone.
    let (out, report) = case.to_writer(&sorted);
    assert!(out == sorted);
    assert!(report.buckets_split_again > 0, "{report:?}");
    // Of a file a sample is taken everywhere.
    let (out, report) = case.to_storage(&sorted);
    assert!(out == sorted);
    assert_eq!(report.buckets_split_again, 0, "{report:?}");
}

#[test]
fn trusting_uniform_keys_is_right_even_where_they_are_not() {
    let spec =
        OrderSpec { keys: vec!["0:4".to_owned()], ..OrderSpec::new(Format::Fixed { bytes: 16 }) };
    let mut random = Random::new(8);
    for mask in [u64::MAX, 0x0000_00ff_ffff_ffff] {
        let record = |_| [(random.bits() & mask).to_be_bytes(), random.bits().to_be_bytes()];
        let input = (0..300_000).flat_map(record).flatten().collect::<Vec<u8>>();
        let strategy = Strategy::Distribute { uniform: true };
        let case =
            Case { strategy, memory_bytes: 3_400_000, threads: 1, ..Case::new(spec.clone()) };
        let (out, report) = case.to_storage(&input);
        assert!(out == model(&spec, &input));
        assert_eq!(report.buckets_split_again > 0, mask != u64::MAX, "{report:?}");
    }
    let case = Case {
        strategy: Strategy::Distribute { uniform: true },
        ..Case::new(OrderSpec::new(LINES))
    };
    let input = vec![seekable(&random_lines(1, 4 << 20))];
    let output = SortOutput::Storage(MemoryStorage::new("output"));
    let refused = sort(input, output, &case.options(), &Silent);
    assert!(matches!(refused, Err(Error::Conflict(Conflict::UniformKeys))));
}

#[test]
fn several_disks_share_the_buckets() {
    let case = Case { disks: 3, ..Case::new(OrderSpec::new(LINES)) };
    let input = random_lines(9, 8 << 20);
    assert!(case.to_storage(&input).0 == model(&case.order, &input));
}

#[test]
fn one_long_record_among_short_ones() {
    let mut case = Case::new(OrderSpec::new(LINES));
    case.memory_bytes = 8 << 20;
    let mut input = random_lines(11, 9 << 20);
    input.extend(vec![b'm'; 150_000]);
    input.push(b'\n');
    input.extend(random_lines(12, 1 << 20));
    assert!(case.to_storage(&input).0 == model(&case.order, &input));
}

fn streamed(view: &View, range: std::ops::Range<u64>) -> Vec<u8> {
    let mut stream = view.stream(range).expect("streams");
    let mut out = Vec::new();
    while let Some(bytes) = stream.next_bytes().expect("streams") {
        out.extend_from_slice(bytes);
    }
    out
}

/// Reads a view in every way there is.
fn check_view(view: &View, expected: &[u8], seed: u64) {
    assert_eq!(view.size(), expected.len() as u64);
    assert!(streamed(view, 0..u64::MAX) == expected);
    let mut random = Random::new(seed);
    for _ in 0..12 {
        let at = random.index(expected.len() + 1);
        let end = (at + random.index(300_000)).min(expected.len());
        let mut out = vec![0; end - at];
        assert_eq!(view.read_random(at as u64, &mut out).expect("reads"), end - at);
        assert!(out == expected[at..end], "{} bytes at {at}", end - at);
        assert!(streamed(view, at as u64..end as u64) == expected[at..end]);
    }
    // Front to back in small steps: the next buckets are sorted ahead.
    let mut at = 0;
    while at < expected.len() {
        let mut out = vec![0; 70_000];
        let n = view.read_at(at as u64, &mut out).expect("reads");
        assert!(out[..n] == expected[at..at + n], "at {at}");
        at += n;
    }
    view.verify_all(|_| Ok(())).expect("undamaged");
}

#[test]
fn a_view_of_buckets_reads_like_the_file() {
    let case = Case::new(OrderSpec::new(LINES));
    let input = random_lines(1, 12 << 20);
    let (view, _) = case.to_view(&input);
    assert!(view.buckets() > 4);
    check_view(&view, &model(&case.order, &input), 1);
}

#[test]
fn views_of_every_pattern_are_those_of_the_merge() {
    let layout = RecordLayout::Numbered { delimiter: b'\n' };
    let order = OrderSpec {
        keys: vec!["1,1".to_owned()],
        separator: Some(b'\t'),
        stable: true,
        ..OrderSpec::new(LINES)
    };
    for pattern in Pattern::ALL {
        let count = if pattern == Pattern::Lengths { 3000 } else { 70_000 };
        let sample = SampleInput::new(pattern, layout, count, 5);
        let input = sample.records.concat();
        let case = Case { memory_bytes: 3_400_000, threads: 1, ..Case::new(order.clone()) };
        let (view, _) = case.to_view(&input);
        let merged = Case { strategy: Strategy::Merge, ..case };
        check_view(&view, &streamed(&merged.to_view(&input).0, 0..u64::MAX), 3);
    }
}

#[test]
fn tiny_views() {
    let case = Case { memory_bytes: 8 << 20, ..Case::new(OrderSpec::new(LINES)) };
    for input in [&b""[..], b"\n", b"one\n", b"b\na\n", b"a\na\na\n"] {
        let (view, _) = case.to_view(input);
        check_view(&view, &model(&case.order, input), 2);
    }
}

#[test]
fn every_record_and_key_of_a_view_of_buckets_can_be_found() {
    for keys in [vec![], vec!["1.1,1.1".to_owned()]] {
        let order = OrderSpec { keys, stable: true, ..OrderSpec::new(LINES) };
        let case = Case::new(order);
        let input = random_lines(21, 3 << 20);
        let expected = model(&case.order, &input);
        let all: Vec<&[u8]> = expected.split_inclusive(|b| *b == b'\n').collect();
        let (view, _) = case.to_view(&input);
        let mut offsets = vec![0];
        for record in &all {
            offsets.push(offsets.last().expect("one") + record.len() as u64);
        }
        let some = (0..all.len()).step_by(9973).chain([0, all.len() - 1, all.len(), all.len() + 5]);
        for number in some {
            let expected = offsets[number.min(all.len())];
            assert_eq!(view.offset_of_record(number as u64).expect("finds"), expected);
        }
        let full = |record: &[u8]| {
            let mut key = Vec::new();
            view.order().encode_full(record, &mut key);
            key
        };
        for number in (0..all.len()).step_by(9973) {
            let key = full(all[number]);
            let first = all.partition_point(|record| full(record) < key);
            assert_eq!(view.offset_of_key(&key).expect("finds"), offsets[first]);
        }
        assert_eq!(view.offset_of_key(&[0xff; 3]).expect("finds"), view.size());
    }
}

#[test]
fn csv_keeps_its_header_in_front() {
    let format = Format::csv_rows(b',', true);
    let order = OrderSpec { keys: vec!["n:n".to_owned()], ..OrderSpec::new(format) };
    let mut random = Random::new(4);
    let rows: Vec<String> =
        (0..200_000).map(|i| format!("{},\"a\nb{i}\"\r\n", random.below(5000))).collect();
    let input = format!("n,text\r\n{}", rows.concat()).into_bytes();
    let case = Case { memory_bytes: 3_500_000, threads: 1, ..Case::new(order) };
    let merged = Case { strategy: Strategy::Merge, ..Case::new(case.order.clone()) };
    let expected = merged.to_storage(&input).0;
    let (out, report) = case.to_storage(&input);
    assert!(out == expected && out.starts_with(b"n,text\r\n") && report.buckets > 0);
    let (view, _) = case.to_view(&input);
    check_view(&view, &expected, 9);
}

#[test]
fn a_plan_is_explained_before_it_is_followed() {
    let input = random_lines(1, 12 << 20);
    let explained = |memory_bytes: u64, strategy, to_view| {
        let case = Case { memory_bytes, strategy, ..Case::new(OrderSpec::new(LINES)) };
        merganser_sort::explain(vec![seekable(&input)], to_view, &case.options()).expect("explains")
    };
    let size = input.len() as u64;
    let file = explained(4 << 20, DISTRIBUTE, false);
    assert_eq!((file.strategy, file.input_bytes), ("distribute", size));
    let buckets = file.distribute.as_ref().expect("it can be distributed");
    assert!(buckets.pieces > 4 && file.merge.pieces > 4, "{file}");
    assert_eq!((buckets.written_bytes, file.merge.written_bytes), (2 * size, 2 * size));
    // The first MiB is read twice, and so are the blocks that windows share.
    let reads = 2 * size + (1 << 20);
    assert!(file.merge.read_bytes > reads, "{file}");
    assert!(buckets.read_bytes > reads, "random places, too: {file}");
    let roomy = explained(8 << 20, DISTRIBUTE, false).merge.read_bytes;
    assert!(roomy > reads && roomy < file.merge.read_bytes, "{roomy}, {file}");
    assert_eq!(explained(4 << 20, DISTRIBUTE, true).merge.written_bytes, size);
    let one_pass = explained(100 << 20, Strategy::Auto, false);
    assert_eq!((one_pass.strategy, one_pass.merge.written_bytes), ("one pass", size));
    // Records that may surprise by their length are merged.
    assert_eq!(explained(4 << 20, Strategy::Auto, false).strategy, "merge");
}

/// A merge would read a record of each run again at each border of two windows.
#[test]
fn long_records_in_little_memory_are_distributed() {
    let input = vec![7; 128 << 20];
    let explained = |record_bytes, memory_bytes| {
        let order = OrderSpec::new(Format::Fixed { bytes: record_bytes });
        let case = Case { memory_bytes, strategy: Strategy::Auto, ..Case::new(order) };
        merganser_sort::explain(vec![seekable(&input)], false, &case.options()).expect("explains")
    };
    let long = explained(1 << 20, 32 << 20);
    assert_eq!(long.strategy, "distribute", "{long}");
    assert!(long.reason.contains("times the data again"), "{long}");
    assert!(long.merge.read_bytes > 3 * long.input_bytes, "{long}");
    assert_eq!(explained(1 << 10, 32 << 20).strategy, "merge");
    // Those that only a merge takes are merged.
    let longest = explained(1 << 20, 12 << 20);
    assert_eq!((longest.strategy, longest.distribute), ("merge", None));
}

/// Runs of sorted inputs do not overlap, which makes merging them cheap.
#[test]
fn short_records_in_order_are_merged() {
    let mut random = Random::new(9);
    let mut numbers: Vec<u64> = (0..1 << 20).map(|_| random.bits()).collect();
    let explained = |numbers: &[u64]| {
        let input: Vec<u8> =
            numbers.iter().flat_map(|n| [n.to_be_bytes(), [7; 8]].concat()).collect();
        let order = OrderSpec::new(Format::Fixed { bytes: 16 });
        let case = Case { memory_bytes: 8 << 20, strategy: Strategy::Auto, ..Case::new(order) };
        merganser_sort::explain(vec![seekable(&input)], false, &case.options()).expect("explains")
    };
    assert_eq!(explained(&numbers).strategy, "distribute");
    numbers.sort_unstable();
    assert_eq!(explained(&numbers).strategy, "merge");
    numbers[1000] = 0;
    assert_eq!(explained(&numbers).strategy, "distribute");
    assert_eq!(explained(&vec![3; 1 << 20]).strategy, "distribute", "all keys equal");
}

/// The reader of a view does the second half of the work: the plan says so, and counts it in the
/// choice.
#[test]
fn a_view_is_judged_with_its_reader() {
    let input = vec![7; 16 << 20];
    let explained = |record_bytes, memory_bytes, to_view| {
        let order = OrderSpec::new(Format::Fixed { bytes: record_bytes });
        let case = Case { memory_bytes, strategy: Strategy::Auto, ..Case::new(order) };
        merganser_sort::explain(vec![seekable(&input)], to_view, &case.options()).expect("explains")
    };
    for (record_bytes, strategy) in [(16, "distribute"), (128, "merge")] {
        let (file, view) =
            (explained(record_bytes, 8 << 20, false), explained(record_bytes, 8 << 20, true));
        assert_eq!((file.strategy, view.strategy), (strategy, strategy), "{file}{view}");
        let both = |explained: &merganser_sort::Explanation| {
            let distributed = explained.distribute.clone().expect("it can be distributed");
            [explained.merge.clone(), distributed]
        };
        for (file, view) in both(&file).into_iter().zip(both(&view)) {
            let (made, read) = (view.processor_seconds, view.reader_processor_seconds);
            assert!((made + read - file.processor_seconds).abs() < 1e-9 && read > 0.0);
            assert_eq!(file.reader_processor_seconds.to_bits(), 0);
        }
        assert!(view.to_string().contains("s of processors to read it all"), "{view}");
        assert!(!file.to_string().contains("to read it all"), "{file}");
    }
    let one_run = explained(16, 100 << 20, true);
    assert_eq!((one_run.strategy, one_run.merge.pieces), ("merge", 1));
    let distributed = one_run.distribute.expect("it could be");
    assert!(one_run.merge.reader_processor_seconds < distributed.reader_processor_seconds);
}

/// Counts the bytes that are read.
#[derive(Default)]
struct Reads(std::sync::atomic::AtomicU64);

impl Meter for Reads {
    fn began(&self, _transfer: Transfer) {}

    fn ended(&self, transfer: Transfer, bytes: u64) {
        if transfer == Transfer::Read {
            self.0.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// A merge of long records in little memory reads its runs several times over; `auto` and the
/// prediction go by how often.
#[test]
fn bytes_that_a_merge_reads_again_are_predicted() {
    let mut random = Random::new(7);
    let input: Vec<u8> = (0..8 << 20).flat_map(|_| random.bits().to_be_bytes()).collect();
    for (record_bytes, memory_bytes) in [(1 << 10, 16 << 20), (256 << 10, 16 << 20)] {
        let order = OrderSpec::new(Format::Fixed { bytes: record_bytes });
        let case = Case { memory_bytes, strategy: Strategy::Merge, ..Case::new(order) };
        let reads = Arc::new(Reads::default());
        let temp = MeteredDirectory::new(MemoryDirectory::new(), reads.clone());
        let options = case.options().temp(vec![temp]);
        let explained = merganser_sort::explain(vec![seekable(&input)], false, &case.options());
        let predicted = explained.expect("explains").merge.read_bytes as f64;
        let target = SortOutput::Storage(MemoryStorage::new("output"));
        let report = sort(vec![seekable(&input)], target, &options, &Silent).expect("sorts");
        assert_eq!(report.extra_passes, 0);
        let runs = reads.0.load(std::sync::atomic::Ordering::Relaxed) as f64;
        let read = input.len() as f64 + runs;
        let what = format!("records of {record_bytes}: {read} of {predicted} bytes");
        assert!((0.6..1.4).contains(&(read / predicted)), "{what}");
        let again = runs / input.len() as f64 - 1.0;
        assert!(if record_bytes > 4096 { again > 0.75 } else { again < 0.25 }, "{what}");
    }
}

/// For a view, only the inputs are read, so the predicted bytes can be counted, including samples.
#[test]
fn bytes_that_are_read_are_predicted() {
    let lines = random_lines(5, 24 << 20);
    let mut random = Random::new(6);
    let records: Vec<u8> = (0..3 << 20).flat_map(|_| random.bits().to_be_bytes()).collect();
    let uniform = Strategy::Distribute { uniform: true };
    let fixed = Format::Fixed { bytes: 16 };
    for (format, strategy, memory_bytes) in [
        (LINES, Strategy::Merge, 12 << 20),
        (LINES, DISTRIBUTE, 4 << 20),
        (fixed, uniform, 4 << 20),
        (LINES, DISTRIBUTE, 64 << 20),
        (fixed, Strategy::Merge, 200 << 20),
        (LINES, Strategy::Merge, 200 << 20),
    ] {
        let input = if format == LINES { &lines } else { &records };
        let case = Case { memory_bytes, strategy, ..Case::new(OrderSpec::new(format)) };
        let explained = merganser_sort::explain(vec![seekable(input)], true, &case.options());
        let explained = explained.expect("explains");
        let distributed = explained.distribute.filter(|_| explained.strategy == "distribute");
        let predicted = distributed.unwrap_or(explained.merge).read_bytes;
        let reads = Arc::new(Reads::default());
        let metered = Metered::new(MemoryStorage::from_bytes("input", input), reads.clone());
        let folder = MemoryDirectory::new();
        let output = SortOutput::View { folder, name: "sorted".to_owned() };
        let options = case.options();
        let report =
            sort(vec![SortInput::Storage(metered)], output, &options, &Silent).expect("sorts");
        assert_eq!((report.extra_passes, report.buckets_split_again), (0, 0));
        let read = reads.0.load(std::sync::atomic::Ordering::Relaxed);
        let what =
            format!("{format:?} by {strategy:?} in {memory_bytes}: {read} of {predicted} bytes");
        assert!(predicted > input.len() as u64, "{what}");
        // A place near the end is shorter.
        assert!(read <= predicted && predicted - read < 64 << 10, "{what}");
    }
}

#[test]
fn pieces_that_a_sequential_reader_passed_stay_in_memory() {
    let case = Case::new(OrderSpec::new(LINES));
    let input = random_lines(23, 12 << 20);
    let (_, folder) = case.to_view(&input);
    let expected = model(&case.order, &input);
    let view = View::open(&folder, &Budget::new(64 << 20), 2).expect("opens");
    let read = |at: usize, len: usize| {
        let mut out = vec![0; len.min(expected.len() - at)];
        assert_eq!(view.read_at(at as u64, &mut out).expect("reads"), out.len());
        assert!(out == expected[at..at + out.len()], "{len} bytes at {at}");
    };
    const STEP: usize = 100_000;
    (0..expected.len()).step_by(STEP).for_each(|at| read(at, STEP));
    // Nothing of the files is read again: there is nothing in them.
    for file in view.storages() {
        let file =
            folder.open(file.name().rsplit('/').next().expect("a name"), true).expect("opens");
        file.write_at(0, &vec![0; file.size() as usize]).expect("writes");
    }
    let mut random = Random::new(29);
    (0..200).for_each(|_| read(random.index(expected.len()), 1 + random.index(STEP)));
    (0..expected.len()).step_by(STEP).for_each(|at| read(at, STEP));
}
