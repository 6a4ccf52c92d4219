//! Every operation of a small sort by distribution fails in turn: the answer is one error that names
//! where, nothing hangs, all memory comes back, and without the fault the same call succeeds. And
//! a sort that is cancelled ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sort::key::OrderSpec;
use sort::record::Format;
use sort::run::{Compression, Input};
use sort::view::View;
use sort::{
    Budget, CompressionChoice, Error, Progress, Silent, SortOptions, SortOutput, Strategy, sort,
};
use storage::memory::{MemoryDirectory, MemoryStorage};
use storage::{Directory, Storage, StorageExt};
use testkit::faulty::{Counts, Fault, Faulty, Plan};
use testkit::{Random, within};

const FIXED: Format = Format::Fixed { bytes: 16 };
const MEMORY_BYTES: u64 = 3 << 20;
const INPUT_BYTES: usize = 1_200_000;
/// No call takes a hundredth of this.
const LIMIT: Duration = Duration::from_secs(60);

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Input,
    Temp,
    Output,
    Folder,
    /// The folder, while the view in it is read.
    Reading,
}

fn input() -> Vec<u8> {
    let mut random = Random::new(1);
    std::iter::repeat_with(|| random.bits().to_be_bytes()).take(INPUT_BYTES / 8).flatten().collect()
}

fn expected() -> Vec<u8> {
    let all = input();
    let mut records: Vec<&[u8]> = all.chunks(16).collect();
    records.sort();
    records.concat()
}

fn options(temp: Arc<dyn Directory>, budget: &Budget) -> SortOptions {
    SortOptions {
        order: OrderSpec::new(FIXED),
        budget: budget.clone(),
        threads: 1,
        temp: vec![temp],
        temp_limit_bytes: None,
        compression: CompressionChoice::Fixed(Compression::Off),
        top: None,
        strategy: Strategy::Distribute { uniform: false },
    }
}

fn read_view(folder: &Arc<dyn Directory>, budget: &Budget) -> sort::Result<Vec<u8>> {
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
) -> sort::Result<Vec<u8>> {
    let quiet: Arc<dyn Directory> = MemoryDirectory::new();
    let at = |wanted| if place == wanted { Arc::clone(faulty) } else { Arc::clone(&quiet) };
    if place == Place::Reading {
        let _ = made;
        return read_view(faulty, budget);
    }
    let source = at(Place::Input);
    let inputs = vec![Input::Storage(source.open("in", false).or_else(|_| {
        let file = source.create("in")?;
        file.write_at(0, &input())?;
        Ok::<Arc<dyn Storage>, std::io::Error>(file)
    })?)];
    let options = options(at(Place::Temp), budget);
    if place == Place::Folder {
        let output = SortOutput::View { folder: Arc::clone(faulty), name: "x".to_owned() };
        sort(inputs, output, &options, progress)?;
        return read_view(made, budget);
    }
    let output = at(Place::Output).create("out")?;
    let report = sort(inputs, SortOutput::Storage(Arc::clone(&output)), &options, progress)?;
    assert!(report.buckets >= 3, "{report:?}");
    // What arrived, not what a failing directory shows of it.
    let written = if place == Place::Output { made.open("out", false)? } else { output };
    Ok(written.read_vec(0, written.size() as usize)?)
}

fn call_with(place: Place, fault: Option<Fault>) -> (bool, bool, Counts) {
    let base: Arc<dyn Directory> = MemoryDirectory::new();
    match place {
        Place::Input => base.create("in").expect("new").write_at(0, &input()).expect("writes"),
        Place::Reading => {
            let folder = SortOutput::View { folder: Arc::clone(&base), name: "x".to_owned() };
            let from = Input::Storage(MemoryStorage::from_bytes("in", &input()));
            let options = options(MemoryDirectory::new(), &Budget::new(MEMORY_BYTES));
            sort(vec![from], folder, &options, &Silent).expect("makes the view");
        }
        _ => {}
    }
    let plan = Plan { seed: 1, faults: fault.into_iter().collect() };
    let what = format!("{place:?}, {plan}");
    let faulty = Faulty::new(Arc::clone(&base), plan);
    let budget = Budget::new(MEMORY_BYTES);
    let (failing, made, of_call) = (Arc::clone(&faulty), Arc::clone(&base), budget.clone());
    let done = within(&what, LIMIT, move || {
        let failing: Arc<dyn Directory> = failing;
        call(place, &failing, &made, &of_call, &Silent)
    });
    assert_eq!(budget.free_bytes(), MEMORY_BYTES, "{what}: all memory was given back");
    let fired = !faulty.fired().is_empty();
    match &done {
        Ok(bytes) => assert!(*bytes == expected(), "{what}: wrong bytes"),
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
    let kinds: [(u64, Nth, bool); 5] = [
        (quiet.reads, |nth| Fault::FailRead { nth }, true),
        (quiet.reads, |nth| Fault::ShortRead { nth }, false),
        (quiet.writes, |nth| Fault::FailWrite { nth }, true),
        (quiet.syncs, |nth| Fault::FailSync { nth }, true),
        (quiet.creates, |nth| Fault::FailCreate { nth }, true),
    ];
    for (count, fault, surely) in kinds {
        for nth in 1..=count {
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
    for place in [Place::Temp, Place::Reading] {
        let (_, _, quiet) = call_with(place, None);
        for nth in 1..=quiet.reads {
            call_with(place, Some(Fault::FlipRead { nth }));
        }
        for nth in 1..=quiet.writes {
            call_with(place, Some(Fault::FlipWrite { nth }));
        }
    }
}

/// Cancels after so many questions.
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
