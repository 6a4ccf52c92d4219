//! Files whose checksums are all right, but whose numbers no writer wrote: numbers that readers
//! divide by, add up and continue from. They give an error that says so, in bounded time and
//! memory, and never a panic.

use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::output::{Materialize, PARTIAL_NAME, RESUME_NAME, materialize};
use merganser_sort::record::Format;
use merganser_sort::run::format::{Footer, HEADER_BYTES, encode_footer, encode_header};
use merganser_sort::run::{Compression, Run, SortInput};
use merganser_sort::view::{MANIFEST_NAME, Manifest, Segment, View};
use merganser_sort::{
    Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Operation, Storage, StorageExt};
use merganser_testkit::{Random, within};

use crate::consuming;

const RECORD_BYTES: usize = 16;
const FORMAT: Format = Format::Fixed { bytes: RECORD_BYTES };
const MEMORY_BYTES: u64 = 4_000_000;
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// A view of `count` records, of runs or of buckets, and its bytes.
fn view(count: usize, strategy: Strategy) -> (Arc<dyn Directory>, Vec<u8>) {
    let mut random = Random::new(7);
    let mut record = |_| [random.bits().to_be_bytes(), random.bits().to_be_bytes()].concat();
    let mut records: Vec<Vec<u8>> = (0..count).map(&mut record).collect();
    let input = MemoryStorage::from_bytes("input", &records.concat());
    let options = SortOptions::new(OrderSpec::new(FORMAT))
        .memory(MEMORY_BYTES)
        .threads(2)
        .temp(Vec::new())
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(strategy);
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let output = SortOutput::View { folder: Arc::clone(&folder), name: "x".to_owned() };
    sort(vec![SortInput::Storage(input)], output, &options, &Silent).expect("sorts");
    records.sort();
    (folder, records.concat())
}

const BUCKETS: Strategy = Strategy::Distribute { uniform: false };

/// Reads `folder`'s view in every way that there is; the first error.
fn read(folder: &Arc<dyn Directory>) -> Result<(), Error> {
    let view = View::open(folder, &Budget::new(MEMORY_BYTES), 2)?;
    let mut stream = view.stream(0..view.size())?;
    while stream.next_bytes()?.is_some() {}
    drop(stream);
    view.read_random(view.size() / 2, &mut [0; 100])?;
    view.offset_of_record(view.records() / 2)?;
    view.offset_of_key(&[0x80])?;
    view.verify_all(|_| Ok(()))
}

fn change(folder: &Arc<dyn Directory>, change: impl FnOnce(&mut Manifest)) {
    let mut manifest = Manifest::read(folder).expect("it is one");
    change(&mut manifest);
    folder.remove(MANIFEST_NAME).expect("removed");
    manifest.write(folder).expect("written");
}

#[test]
fn f17_a_record_length_of_zero_is_an_error() {
    for strategy in [Strategy::Merge, BUCKETS] {
        for count in [0, 40_000] {
            for bytes in [0, 1, 7, 15, 17, 32, 1 << 31, 1 << 60, usize::MAX] {
                let (folder, _) = view(count, strategy);
                change(&folder, |manifest| manifest.order.format = Format::Fixed { bytes });
                let what = format!("{strategy:?}, {count} records, fixed:{bytes}");
                let result = within(&what, LIMIT, move || read(&folder));
                match result {
                    Err(Error::Corrupt { .. }) => {}
                    // A merge may find no contradiction in some other length.
                    Ok(()) if bytes > 0 && (count == 0 || strategy == Strategy::Merge) => {}
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
    }
    let spec = OrderSpec::new(Format::Fixed { bytes: 0 });
    let error = spec.compile(None).expect_err("no length").to_string();
    assert_eq!(error, "format 'fixed:0': a record has at least one byte");
}

#[test]
fn f17_counts_of_records_that_cannot_be_are_an_error() {
    let lines = OrderSpec::new(Format::Lines { delimiter: b'\n' });
    for (bytes, records) in [(10, 11), (0, 1), (1 << 57, 1), (u64::MAX, u64::MAX)] {
        let segment = Segment { run: "r".to_owned(), bytes, records, index_crc: 0, bucket: None };
        let manifest = Manifest::new("x".to_owned(), lines.clone(), Vec::new(), 0, vec![segment]);
        let error = Manifest::decode("manifest", &manifest.encode()).expect_err("it cannot be");
        assert!(error.to_string().contains("contradict each other"), "{error}");
    }
}

/// A sparse run whose ends are right, and whose index of `index_bytes` is a hole.
fn sparse_run(folder: &Arc<dyn Directory>, name: &str, footer: &Footer) -> Arc<dyn Storage> {
    let run = folder.create(name).expect("new");
    let at = footer.index_offset + footer.index_bytes;
    let bytes = encode_footer(footer);
    run.run(Operation::SetSize { size: at + bytes.len() as u64 }).expect("sparse");
    run.write_at(0, &encode_header(footer.block_bytes)).expect("written");
    run.write_at(at, &bytes).expect("written");
    run
}

/// The largest index in a run of `2^size_log2` bytes: full of blocks, or of keys alone.
fn footer(size_log2: u32, blocks: bool) -> Footer {
    let index_bytes = (1 << size_log2) - HEADER_BYTES as u64 - 64;
    let blocks = if blocks { (index_bytes / 32).min(1 << 30) } else { 1 };
    Footer {
        index_offset: HEADER_BYTES as u64,
        index_bytes,
        blocks,
        records: blocks,
        data_bytes: blocks * 4096,
        index_crc: 0,
        block_bytes: 4096,
        compression: Compression::Lz4,
    }
}

#[test]
fn sums_over_footers_do_not_wrap() {
    for size_log2 in [40, 50, 55, 56, 57, 62] {
        for blocks in [false, true] {
            // Enough runs that the memory of their indexes adds up to a little more than 2^64.
            let runs = 1 << (64 - size_log2).min(10);
            for count in [1, runs - 1, runs, runs + 1] {
                let folder: Arc<dyn Directory> = MemoryDirectory::new();
                let footer = footer(size_log2, blocks);
                let mut segments = Vec::new();
                for number in 0..count {
                    let name = format!("{number:06}.run");
                    let run = sparse_run(&folder, &name, &footer);
                    let alone = Run::open_within(run, &Budget::new(MEMORY_BYTES));
                    assert!(alone.is_err(), "2^{size_log2} bytes");
                    segments.push(Segment {
                        run: name,
                        bytes: footer.data_bytes,
                        records: footer.records,
                        index_crc: 0,
                        bucket: None,
                    });
                }
                let order = OrderSpec::new(Format::Lines { delimiter: b'\n' });
                let name = "x".to_owned();
                Manifest::new(name, order, Vec::new(), 0, segments).write(&folder).expect("writes");
                let opened = View::open(&folder, &Budget::new(64 << 20), 2).map(|_| ());
                let told = matches!(opened, Err(Error::Memory { .. } | Error::Corrupt { .. }));
                assert!(told, "{count} runs of 2^{size_log2} bytes: {opened:?}");
            }
        }
    }
}

#[test]
fn a_budget_is_not_exceeded_by_numbers_that_wrap() {
    let budget = Budget::new(100);
    let _held = budget.reserve(60, "one").expect("fits");
    for bytes in [41, u64::MAX - 59, u64::MAX] {
        assert!(budget.reserve(bytes, "another").is_err(), "{bytes}");
        assert!(budget.reserve_parts(&[("a", bytes), ("b", 1)], "both").is_err(), "{bytes}");
        let patience = std::time::Duration::ZERO;
        assert!(budget.reserve_within(patience, bytes, "another").is_err(), "{bytes}");
    }
    assert_eq!(budget.free_bytes(), 40);
}

#[test]
fn a_forged_resume_point_is_damage_or_does_no_harm() {
    let (folder, sorted) = view(60_000, Strategy::Merge);
    let manifest = Manifest::read(&folder).expect("it is one");
    let runs = manifest.buckets[0].segments.len();
    assert!(runs > 1, "{runs} runs to tie");
    let run_bytes = manifest.buckets[0].segments[0].bytes;
    let total = sorted.len() as u64;
    let mut random = Random::new(11);
    let (mut refused, mut right) = (0, 0);
    for case in 0..400 {
        let mut below = |bound: u64| random.bits() % bound;
        let record = (below(60_000) as usize) * RECORD_BYTES;
        let key = match case % 4 {
            0 => Vec::new(),
            1 => vec![0xff; 40],
            2 => vec![below(256) as u8],
            _ => sorted[record..record + RECORD_BYTES].to_vec(),
        };
        let tie = match case % 7 {
            0 => None,
            1 => Some((runs, below(run_bytes))),
            2 => Some((usize::MAX, 0)),
            3 => Some((0, [u64::MAX, run_bytes, run_bytes + 1, 1 << 40][below(4) as usize])),
            4 => Some((0, below(run_bytes) / 4096 * 4096)),
            _ => Some((below(runs as u64) as usize, below(run_bytes))),
        };
        let written = match case % 5 {
            0 => total,
            1 => below(total),
            2 => below(total) / 16 * 16,
            3 => tie.map_or(16, |(_, position)| position.min(total)),
            _ => record as u64,
        };
        let output: Arc<dyn Directory> = MemoryDirectory::new();
        let resume = serde_json::json!({
            "format": "merganser-resume", "version": 1, "view_crc": crc32c::crc32c(&manifest.encode()),
            "view": "/x", "output": "/out", "consume": false, "written": written, "total": total,
            "key": key, "tie": tie, "complete": false,
        });
        let mut bytes = serde_json::to_vec(&resume).expect("plain data");
        bytes.push(b'\n');
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(format!("crc32c {crc:08x}\n").as_bytes());
        let file = output.create(RESUME_NAME).expect("new");
        file.write_at(0, &bytes).expect("written");
        let partial = output.create(PARTIAL_NAME).expect("new");
        partial.write_at(0, &sorted[..written as usize]).expect("written");
        let what = format!("written {written}, tie {tie:?}, key {key:x?}");
        let (folder, result_in) = (Arc::clone(&folder), Arc::clone(&output));
        let result = within(&what, LIMIT, move || {
            let what = Materialize {
                folder: &folder,
                work: &result_in,
                publish: &|_| consuming::publish_in(&result_in),
                output: consuming::text("/out"),
                view: consuming::text("/x"),
                consume: false,
                budget: &Budget::new(MEMORY_BYTES),
                threads: 2,
                checkpoint_bytes: None,
            };
            materialize(&what, &Silent)
        });
        match result {
            Ok(_) => {
                let out = output.open("out", false).expect("there");
                assert!(out.read_vec(0, sorted.len()).expect("whole") == sorted, "{what}");
                right += 1;
            }
            Err(Error::Corrupt { .. }) => refused += 1,
            Err(other) => panic!("{what}: {other}"),
        }
    }
    assert!(refused > 200, "{refused} refused, {right} right");
}
