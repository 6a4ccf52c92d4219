//! Any bytes sorted in very little memory, to a stream and to a view, compared with a naive sort.

use std::io::Cursor;
use std::sync::Arc;

use arbitrary::Arbitrary;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::{Format, InputRecords, Tail};
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, sort,
};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Storage, StorageExt};

/// Less memory than any sort needs. Its error names the least, and the sort then gets exactly that.
const MEMORY_BYTES: u64 = 1 << 20;

#[derive(Debug, Arbitrary)]
struct WholeSortCase<'a> {
    kind: SortedKind,
    packed: bool,
    unique: bool,
    fold: bool,
    /// The input is this many copies of the bytes, so that it makes several runs.
    times: u16,
    offset: u16,
    bytes: &'a [u8],
}

#[derive(Debug, Arbitrary)]
enum SortedKind {
    Lines,
    Csv,
    Fixed(u8),
    Keyed,
}

fn options(order: OrderSpec, packed: bool, memory_bytes: u64) -> SortOptions {
    let compression = if packed { Compression::Lz4 } else { Compression::Off };
    SortOptions::new(order).memory(memory_bytes).threads(1).temp(vec![MemoryDirectory::new()]).compression(CompressionChoice::Fixed(compression))
}

/// The end of the last complete record.
fn whole(format: Format, bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(len) = format.record_len(&bytes[at..]) {
        at += len;
    }
    at
}

/// The result of a stable sort of all records, behind a preamble of this length.
fn naive(spec: &OrderSpec, bytes: &[u8], preamble_len: usize) -> Vec<u8> {
    let order = spec.compile(None).expect("compiles");
    let mut records = Vec::new();
    let (preamble, mut rest) = bytes.split_at(preamble_len);
    while let Some(len) = spec.format.record_len(rest) {
        let (record, after) = rest.split_at(len);
        records.push(record);
        rest = after;
    }
    records.sort_by(|a, b| order.compare(a, b));
    if spec.unique {
        records.dedup_by(|b, a| order.compare(a, b).is_eq());
    }
    [preamble, &records.concat()].concat()
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<WholeSortCase<'_>>(bytes) else { return };
    let format = match case.kind {
        SortedKind::Lines => Format::Lines { delimiter: b'\n' },
        SortedKind::Csv => Format::csv_rows(b',', false),
        SortedKind::Fixed(bytes) => Format::Fixed { bytes: usize::from(bytes) % 40 + 1 },
        SortedKind::Keyed => Format::Keyed,
    };
    let mut spec = OrderSpec::new(format);
    if case.fold && matches!(format, Format::Lines { .. }) {
        spec.options = "f".to_owned();
    }
    let times = usize::from(case.times).min(400_000 / case.bytes.len().max(1)).max(1);
    let mut bytes = case.bytes.repeat(times);
    let input = || {
        let reader = Box::new(Cursor::new(case.bytes.repeat(times)));
        vec![SortInput::Stream { name: "input".to_owned(), reader }]
    };
    let mut input_records = InputRecords::of_input(format);
    // A byte order mark. A start that is too short to tell has no such mark.
    let preamble_len = input_records.preamble_len(&bytes).expect("no strict reader").unwrap_or(0);
    let end = preamble_len + whole(format, &bytes[preamble_len..]);
    input_records.records(&bytes[preamble_len..end]).expect("no strict reader");
    let tail = (end < bytes.len()).then(|| input_records.tail(&bytes[end..]));

    let unique = OrderSpec { unique: case.unique, ..spec.clone() };
    let mut out = Vec::new();
    let mut attempt = |memory_bytes| {
        out.clear();
        let options = options(unique.clone(), case.packed, memory_bytes);
        sort(input(), SortOutput::Writer(&mut out), &options, &Silent)
    };
    let memory_bytes = match attempt(MEMORY_BYTES) {
        Err(Error::Memory { least_bytes, .. }) => least_bytes,
        other => panic!("{other:?} in {MEMORY_BYTES} bytes"),
    };
    match attempt(memory_bytes) {
        Ok(_) => assert!(!matches!(tail, Some(Tail::Damaged(_))), "a damaged record was sorted"),
        Err(Error::LastRecord { .. }) => return,
        Err(Error::RecordTooLong { offset, most_bytes, .. }) => {
            let len = format.record_len(&bytes[offset as usize..]);
            assert!(len.is_none_or(|len| len as u64 > most_bytes), "that record fits");
            return;
        }
        Err(other) => panic!("{other}"),
    }
    if let Some(Tail::Complete(terminator)) = tail {
        bytes.extend_from_slice(terminator);
    }
    assert!(
        out == naive(&unique, &bytes, preamble_len),
        "the stream is not what a naive sort gives"
    );

    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let target = SortOutput::View { folder: Arc::clone(&folder), name: "x".to_owned() };
    let options = options(spec.clone(), case.packed, memory_bytes);
    sort(input(), target, &options, &Silent).expect("sorts again");
    let all = naive(&spec, &bytes, preamble_len);
    let view = View::open(&folder, &Budget::new(16 << 20), 1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(view.size(), all.len() as u64);
    assert!(view.read_vec(0, all.len()).expect("reads") == all, "the view reads wrong");
    let from = usize::from(case.offset) % (all.len() + 1);
    let mut part = vec![0; 1000.min(all.len() - from)];
    assert_eq!(view.read_random(from as u64, &mut part).expect("reads"), part.len());
    assert!(part == all[from..from + part.len()], "a random read is wrong");
}
