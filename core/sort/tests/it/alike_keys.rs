//! Records whose keys begin alike, with more bytes in common than a fence holds. The index of a run can't tell then where a
//! place in the order is, and what a merge has passed may be gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use merganser_sort::key::OrderSpec;
use merganser_sort::output::{Materialize, forget, materialize};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, Silent, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::Random;

use crate::consuming;

const MEMORY_BYTES: u64 = 3_200_000;
const LINES: Format = Format::Lines { delimiter: b'\n' };

/// Lines of one of `stems` stems, a number, and up to `more` bytes.
fn lines(stems: usize, more: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(11);
    let mut all = Vec::new();
    while all.len() < bytes {
        let (stem, bits) = (random.index(stems), random.bits());
        let rest = random.index(more + 1);
        all.extend(format!("{}{stem:03} {bits:020} ", "s".repeat(300)).bytes());
        all.extend(std::iter::repeat_n(b'x', rest));
        all.push(b'\n');
    }
    all
}

/// Lines that differ in their length alone, up to `longest` bytes: each begins all longer ones.
fn nested(longest: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(12);
    let mut all = Vec::new();
    while all.len() < bytes {
        let len = (longest as f64).powf(random.fraction()) as usize;
        all.extend(std::iter::repeat_n(b'n', len));
        all.push(b'\n');
    }
    all
}

fn sorted(lines: &[u8]) -> Vec<u8> {
    let mut all: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    all.sort();
    all.concat()
}

/// About `bytes` of each kind.
fn inputs(bytes: usize) -> [(&'static str, Vec<u8>); 4] {
    [
        ("one stem", lines(1, 0, bytes)),
        ("one stem and long lines", lines(1, 20_000, bytes)),
        ("a few stems", lines(5, 300, bytes)),
        ("nested", nested(30_000, bytes)),
    ]
}

fn options(compression: Compression, threads: usize) -> SortOptions {
    SortOptions::new(OrderSpec::new(LINES))
        .memory(MEMORY_BYTES * (threads as u64).div_ceil(2))
        .threads(threads)
        .temp(vec![MemoryDirectory::new()])
        .compression(CompressionChoice::Fixed(compression))
        .strategy(Strategy::Merge)
}

/// The temporary runs of a sort are given back behind its merge.
#[test]
fn a_sort_reads_nothing_that_it_has_given_back() {
    for (what, input) in inputs(12_000_000) {
        for compression in [Compression::Off, Compression::Lz4] {
            for threads in [1, 3] {
                let output = MemoryStorage::from_bytes("output", b"");
                let target = SortOutput::Storage(Arc::clone(&output) as _);
                let from = vec![SortInput::Storage(MemoryStorage::from_bytes("input", &input))];
                let report = sort(from, target, &options(compression, threads), &Silent)
                    .unwrap_or_else(|error| panic!("{what}, {threads} threads: {error}"));
                assert!(report.runs >= 2, "{what}: {report:?}");
                let bytes = output.read_vec(0, output.size() as usize).expect("reads");
                assert!(bytes == sorted(&input), "{what}, {threads} threads: wrong bytes");
            }
        }
    }
}

/// Asks for the end at the `nth` step.
struct Interrupt {
    nth: u32,
    steps: AtomicU32,
}

impl Progress for Interrupt {
    fn advance(&self, _: u64) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.nth
    }
}

/// A view that is given back while it is copied, interrupted at each step and continued.
#[test]
fn a_consumed_view_continues_wherever_it_was_interrupted() {
    for (what, input) in inputs(3_000_000) {
        let expected = sorted(&input);
        for compression in [Compression::Off, Compression::Lz4] {
            let mut interrupted = 0;
            for nth in 1.. {
                let folder: Arc<dyn Directory> = MemoryDirectory::new();
                let target = SortOutput::View { folder: Arc::clone(&folder), name: "x".into() };
                let from = vec![SortInput::Storage(MemoryStorage::from_bytes("input", &input))];
                sort(from, target, &options(compression, 1), &Silent).expect("sorts");
                let disk: Arc<dyn Directory> = MemoryDirectory::new();
                let copy = |progress: &dyn Progress| {
                    let copying = Materialize {
                        folder: &folder,
                        work: &disk,
                        publish: &|_| consuming::publish_in(&disk),
                        output: consuming::text("/out"),
                        view: consuming::text("/x"),
                        consume: true,
                        budget: &Budget::new(MEMORY_BYTES),
                        threads: 1,
                        checkpoint_bytes: Some(64 << 10),
                    };
                    materialize(&copying, progress)?;
                    forget(&disk)
                };
                let first = copy(&Interrupt { nth, steps: AtomicU32::new(0) });
                let ended = match first {
                    Ok(()) => true,
                    Err(Error::Cancelled) => {
                        interrupted += 1;
                        copy(&Silent).unwrap_or_else(|error| panic!("{what}, step {nth}: {error}"));
                        false
                    }
                    Err(error) => panic!("{what}, step {nth}: {error}"),
                };
                let out = disk.open("out", false).expect("is there");
                let bytes = out.read_vec(0, out.size() as usize).expect("reads");
                assert!(bytes == expected, "{what}, step {nth}: wrong bytes");
                if ended {
                    break;
                }
            }
            assert!(interrupted > 3, "{what}: interrupted at {interrupted} steps");
        }
    }
}
