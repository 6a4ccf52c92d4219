//! Every operation of a small sort by distribution fails in turn. The result is one error that
//! names the place, nothing hangs, all memory comes back, and without the fault the same call
//! succeeds. Stages (reading, splitting, storing on two disks, splitting again, sorting buckets,
//! writing) work at the same time, so an error in one of them must end the others, even when the
//! input has no end. A sort that is cancelled ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, Silent, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty, OperationCounts};
use merganser_testkit::{Random, within};

const FIXED: Format = Format::Fixed { bytes: 16 };
const MEMORY_BYTES: u64 = 3 << 20;
/// No call takes a hundredth of this.
const LIMIT: Duration = Duration::from_secs(60);

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Input,
    Temp,
    /// The second of two disks, with two threads at work.
    SecondDisk,
    /// The temporary storage of a sort that trusts a lying key and has to part a bucket again.
    TempTwice,
    Output,
    Folder,
    /// The folder of a view whose buckets were split again.
    FolderTwice,
    /// The folder, while the view in it is read.
    Reading,
}

impl Place {
    fn splits_again(self) -> bool {
        matches!(self, Place::TempTwice | Place::FolderTwice)
    }

    /// Two threads need more than one, and must not be able to sort all in memory.
    fn memory_bytes(self) -> u64 {
        if self == Place::SecondDisk { 4 << 20 } else { MEMORY_BYTES }
    }

    /// A single bucket of all records must not fit, even if it is sorted in place.
    fn input_bytes(self) -> usize {
        match self {
            Place::SecondDisk => 4_800_000,
            Place::TempTwice | Place::FolderTwice => 2_400_000,
            _ => 1_200_000,
        }
    }

    fn makes_view(self) -> bool {
        matches!(self, Place::Folder | Place::FolderTwice)
    }
}

/// Random records. Where a bucket is to be split again, their first byte is the same.
fn input(place: Place) -> Vec<u8> {
    let mut random = Random::new(1);
    let bytes =
        std::iter::repeat_with(|| random.bits().to_be_bytes()).take(place.input_bytes() / 8);
    let mut bytes: Vec<u8> = bytes.flatten().collect();
    if place.splits_again() {
        bytes.iter_mut().step_by(16).for_each(|first| *first = 7);
    }
    bytes
}

fn expected(place: Place) -> Vec<u8> {
    let all = input(place);
    let mut records: Vec<&[u8]> = all.chunks(16).collect();
    records.sort();
    records.concat()
}

fn options(place: Place, temp: Arc<dyn Directory>, budget: &Budget) -> SortOptions {
    let mut disks: Vec<Arc<dyn Directory>> = vec![temp];
    if place == Place::SecondDisk {
        disks.insert(0, MemoryDirectory::new());
    }
    SortOptions::new(OrderSpec::new(FIXED))
        .budget(budget)
        .threads(disks.len())
        .temp(disks)
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(Strategy::Distribute { uniform: place.splits_again() })
}

fn read_view(folder: &Arc<dyn Directory>, budget: &Budget) -> merganser_sort::Result<Vec<u8>> {
    let view = View::open(folder, budget, 1)?;
    let mut out = Vec::new();
    {
        let mut stream = view.stream(0..u64::MAX)?;
        while let Some(bytes) = stream.next_bytes()? {
            out.extend_from_slice(bytes);
        }
    }
    // The cached way gives the same.
    let mut random = vec![0; out.len()];
    view.read_random(0, &mut random)?;
    assert!(random == out);
    Ok(out)
}

/// Sorts, to a file or to a view that is read; the bytes.
fn call(
    place: Place,
    faulty: &Arc<dyn Directory>,
    made: &Arc<dyn Directory>,
    budget: &Budget,
    progress: &dyn Progress,
) -> merganser_sort::Result<Vec<u8>> {
    if place == Place::Reading {
        return read_view(faulty, budget);
    }
    let quiet: Arc<dyn Directory> = MemoryDirectory::new();
    let at = |here: bool| if here { Arc::clone(faulty) } else { Arc::clone(&quiet) };
    let source = match place {
        Place::Input => faulty.open("in", false)?,
        _ => MemoryStorage::from_bytes("in", &input(place)) as Arc<dyn Storage>,
    };
    let inputs = vec![SortInput::Storage(source)];
    let temp = matches!(place, Place::Temp | Place::SecondDisk | Place::TempTwice);
    let options = options(place, at(temp), budget);
    if place.makes_view() {
        let output = SortOutput::View { folder: Arc::clone(faulty), name: "x".to_owned() };
        let report = sort(inputs, output, &options, progress)?;
        assert_eq!(report.buckets_split_again > 0, place.splits_again(), "{report:?}");
        return read_view(made, budget);
    }
    let output = at(place == Place::Output).create("out")?;
    let report = sort(inputs, SortOutput::Storage(Arc::clone(&output)), &options, progress)?;
    assert!(report.buckets >= 3, "{report:?}");
    assert_eq!(report.buckets_split_again > 0, place.splits_again(), "{report:?}");
    // The bytes that arrived, not those that a failing directory shows.
    let written = if place == Place::Output { made.open("out", false)? } else { output };
    Ok(written.read_vec(0, written.size() as usize)?)
}

fn call_with(place: Place, fault: Option<Fault>) -> (bool, bool, OperationCounts) {
    let base: Arc<dyn Directory> = MemoryDirectory::new();
    match place {
        Place::Input => {
            let file = base.create("in").expect("new");
            file.write_at(0, &input(place)).expect("writes");
        }
        Place::Reading => {
            let folder = SortOutput::View { folder: Arc::clone(&base), name: "x".to_owned() };
            let from = SortInput::Storage(MemoryStorage::from_bytes("in", &input(place)));
            let options =
                options(place, MemoryDirectory::new(), &Budget::new(place.memory_bytes()));
            sort(vec![from], folder, &options, &Silent).expect("makes the view");
        }
        _ => {}
    }
    let plan = FaultPlan { seed: 1, faults: fault.into_iter().collect() };
    let what = format!("{place:?}, {plan}");
    let faulty = Faulty::new(Arc::clone(&base), plan);
    let budget = Budget::new(place.memory_bytes());
    let (failing, made, of_call) = (Arc::clone(&faulty), Arc::clone(&base), budget.clone());
    let done = within(&what, LIMIT, move || {
        let failing: Arc<dyn Directory> = failing;
        call(place, &failing, &made, &of_call, &Silent)
    });
    assert_eq!(budget.free_bytes(), place.memory_bytes(), "{what}: all memory was given back");
    let fired = !faulty.fired().is_empty();
    match &done {
        Ok(bytes) => assert!(*bytes == expected(place), "{what}: wrong bytes"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("memory") && fired, "{what}: '{text}'");
        }
    }
    (fired, done.is_err(), faulty.counts())
}

/// The fault of the n-th operation of a kind.
type Nth = fn(u64) -> Fault;

/// Every operation in one place fails in turn; how many calls failed.
fn sweep(place: Place) -> u64 {
    let (_, _, quiet) = call_with(place, None);
    let mut failures = 0;
    // A sample that came up short is only smaller.
    let kinds: [(u64, Nth, bool); 6] = [
        (quiet.reads, |nth| Fault::FailRead { nth }, true),
        (quiet.reads, |nth| Fault::ShortRead { nth }, false),
        (quiet.writes, |nth| Fault::FailWrite { nth }, true),
        (quiet.syncs, |nth| Fault::FailSync { nth }, true),
        (quiet.creates, |nth| Fault::FailCreate { nth }, true),
        (quiet.renames, |nth| Fault::FailRename { nth }, true),
    ];
    // Two passes have many operations of the same kind.
    let stride = if place.splits_again() { 3 } else { 1 };
    for (count, fault, surely) in kinds {
        for nth in (1..=count).step_by(stride) {
            let (fired, failed, _) = call_with(place, Some(fault(nth)));
            assert!(!surely || !fired || failed, "{:?} went unnoticed", fault(nth));
            failures += u64::from(failed);
        }
    }
    if quiet.writes > 0 {
        for bytes in (0..).step_by(250_000) {
            let (fired, failed, _) = call_with(place, Some(Fault::Full { bytes }));
            assert_eq!(fired, failed, "a disk full after {bytes} bytes");
            failures += u64::from(failed);
            if !fired {
                break;
            }
        }
    }
    failures
}

#[test]
fn a_failing_input() {
    assert!(sweep(Place::Input) > 5);
}

#[test]
fn failing_temporary_storage() {
    assert!(sweep(Place::Temp) > 15);
}

#[test]
fn a_failing_disk_next_to_a_good_one() {
    assert!(sweep(Place::SecondDisk) > 10);
}

#[test]
fn failing_temporary_storage_while_buckets_are_split_again() {
    assert!(sweep(Place::TempTwice) > 15);
}

#[test]
fn a_failing_view_folder_while_buckets_are_split_again() {
    assert!(sweep(Place::FolderTwice) > 15);
}

#[test]
fn a_failing_output() {
    assert!(sweep(Place::Output) > 2);
}

#[test]
fn a_failing_view_folder() {
    assert!(sweep(Place::Folder) > 10);
}

#[test]
fn a_view_that_fails_while_it_is_read() {
    assert!(sweep(Place::Reading) > 10);
}

#[test]
fn a_flipped_bit_is_never_handed_on() {
    for place in [Place::Temp, Place::SecondDisk, Place::Reading] {
        let (_, _, quiet) = call_with(place, None);
        for nth in 1..=quiet.reads {
            call_with(place, Some(Fault::FlipRead { nth }));
        }
        for nth in 1..=quiet.writes {
            call_with(place, Some(Fault::FlipWrite { nth }));
        }
    }
}

/// Random bytes without end; counts them.
struct Endless(Random, Arc<AtomicU64>);

impl std::io::Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = out.len().min(64 << 10);
        out[..n].copy_from_slice(&self.0.bytes(n));
        self.1.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A failure stops all threads that read, split or store; a thread that continued would never end.
#[test]
fn a_disk_that_fails_ends_a_sort_of_an_endless_input() {
    for (nth, disks) in [(1, 1), (2, 2), (9, 1), (9, 2), (30, 2)] {
        let what = format!("write {nth}, {disks} disks");
        let plan = FaultPlan { seed: nth, faults: vec![Fault::FailWrite { nth }] };
        let faulty: Arc<dyn Directory> = Faulty::new(MemoryDirectory::new(), plan);
        let read = Arc::new(AtomicU64::new(0));
        let reader = Box::new(Endless(Random::new(nth), Arc::clone(&read)));
        let memory_bytes = Place::SecondDisk.memory_bytes();
        let budget = Budget::new(memory_bytes);
        let mut options = options(Place::Temp, faulty, &budget);
        options.threads = 2;
        options.temp.resize_with(disks, || MemoryDirectory::new());
        let input = SortInput::Stream { name: "endless".to_owned(), reader };
        let done = within(&what, LIMIT, move || {
            let output = SortOutput::Storage(MemoryStorage::new("out"));
            sort(vec![input], output, &options, &Silent)
        });
        let error = done.expect_err("a write failed").to_string();
        assert!(error.contains("FailWrite"), "{what}: {error}");
        assert_eq!(budget.free_bytes(), memory_bytes, "{what}: all memory was given back");
        // A block or more per write; then the rest in memory and the writes in flight.
        let read = read.load(Ordering::Relaxed);
        assert!(read < 8 * memory_bytes, "{what}: {read} bytes were read");
    }
}

/// Cancels after this many questions.
struct After(AtomicU64);

impl Progress for After {
    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0 || self.0.load(Ordering::Relaxed) > u64::MAX / 2
    }
}

#[test]
fn a_cancelled_sort_ends_and_gives_all_back() {
    let mut cancelled = 0;
    for after in 0..60 {
        let budget = Budget::new(MEMORY_BYTES);
        let of_call = budget.clone();
        let done = within(&after, LIMIT, move || {
            let nowhere: Arc<dyn Directory> = MemoryDirectory::new();
            let after = After(AtomicU64::new(after));
            call(Place::Temp, &nowhere, &nowhere, &of_call, &after).map(|_| ())
        });
        assert_eq!(budget.free_bytes(), MEMORY_BYTES);
        match done {
            Err(Error::Cancelled) => cancelled += 1,
            Ok(()) => break,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(cancelled > 3, "{cancelled} times");
}
