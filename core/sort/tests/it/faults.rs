//! Every operation of small sorts fails in turn. The result is an error that names the place,
//! inputs stay as they are, all memory comes back, and without the fault the same call succeeds.
//! Bad inputs and too little memory have errors of their own.

use std::sync::Arc;
use std::time::Duration;

use merganser_sort::key::OrderSpec;
use merganser_sort::output::{Materialize, forget, materialize};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, Silent, SortOptions, SortOutput, SortReport,
    Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Clock, Completions, Directory, Storage, StorageExt};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty, OperationCounts};
use merganser_testkit::{Random, within};
use parking_lot::Mutex;

use crate::consuming;

const LINES: Format = Format::Lines { delimiter: b'\n' };
const FIXED: Format = Format::Fixed { bytes: 16 };
const CSV: Format = Format::csv_rows(b',', true);
/// Little more than a sort with one thread needs at least.
const MEMORY_BYTES: u64 = 2_700_000;
/// No call takes a hundredth of this.
const LIMIT: Duration = Duration::from_secs(60);
const INPUT_BYTES: usize = 320_000;
/// Records whose tags take most of the memory, so that runs are short and many.
const SHORT_BYTES: usize = 4;
const PASSES_INPUT_BYTES: usize = 650_000;
const PASSES_MEMORY_BYTES: u64 = 3_120_000;

fn options(order: OrderSpec, budget: &Budget, temp: Arc<dyn Directory>) -> SortOptions {
    SortOptions::new(order)
        .budget(budget)
        .threads(1)
        .temp(vec![temp])
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(Strategy::Merge)
}

fn fixed_records(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    std::iter::repeat_with(|| random.bits().to_be_bytes()).take(bytes / 8).flatten().collect()
}

/// The three directories of a sort, where one fails: inputs and output are on `disk`, runs of
/// views in `folder`, others in `temp`.
#[derive(Clone)]
struct World {
    disk: Arc<dyn Directory>,
    temp: Arc<dyn Directory>,
    folder: Arc<dyn Directory>,
    budget: Budget,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Disk,
    Temp,
    Folder,
}

/// The call that is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    ToStorage,
    ToWriter,
    ToView,
    ToViewInPasses,
    Materialize,
    Consume,
    MaterializeBuckets,
    ConsumeBuckets,
    ToStorageInPasses,
}

impl Call {
    fn run(self, world: &World) -> merganser_sort::Result<()> {
        match self {
            Call::ToStorage => to_storage(world),
            Call::ToWriter => to_writer(world),
            Call::ToView => to_view(world),
            Call::ToViewInPasses => to_view_in_passes(world),
            Call::ToStorageInPasses => to_storage_in_passes(world),
            Call::Materialize | Call::MaterializeBuckets => copy_out(world, false),
            Call::Consume | Call::ConsumeBuckets => copy_out(world, true),
        }
    }

    /// The length of a record, and of each of the two inputs.
    fn sizes(self) -> (usize, usize) {
        if matches!(self, Call::ToViewInPasses | Call::ToStorageInPasses) {
            (SHORT_BYTES, PASSES_INPUT_BYTES)
        } else {
            (16, INPUT_BYTES)
        }
    }

    fn memory_bytes(self) -> u64 {
        if self.sizes().0 == SHORT_BYTES || self.copies_buckets() {
            PASSES_MEMORY_BYTES
        } else {
            MEMORY_BYTES
        }
    }

    /// Every `stride`-th operation fails, because calls with many records take long.
    fn stride(self) -> usize {
        if self.sizes().0 == SHORT_BYTES { 13 } else { 1 }
    }

    fn makes_view(self) -> bool {
        matches!(self, Call::ToView | Call::ToViewInPasses)
    }

    /// Whether it begins with a view, and continues where it was interrupted.
    fn copies(self) -> bool {
        matches!(self, Call::Materialize | Call::Consume) || self.copies_buckets()
    }

    fn consumes(self) -> bool {
        matches!(self, Call::Consume | Call::ConsumeBuckets)
    }

    fn copies_buckets(self) -> bool {
        matches!(self, Call::MaterializeBuckets | Call::ConsumeBuckets)
    }
}

fn inputs(world: &World) -> merganser_sort::Result<Vec<SortInput>> {
    let (a, b) = (world.disk.open("a", false)?, world.disk.open("b", false)?);
    Ok(vec![SortInput::Storage(a), SortInput::Storage(b)])
}

fn to_storage(world: &World) -> merganser_sort::Result<()> {
    let storage = world.disk.create("out")?;
    let options = options(OrderSpec::new(FIXED), &world.budget, Arc::clone(&world.temp));
    let report = sort(inputs(world)?, SortOutput::Storage(storage), &options, &Silent)?;
    assert!(report.runs >= 3, "{} runs", report.runs);
    Ok(())
}

fn to_writer(world: &World) -> merganser_sort::Result<()> {
    let mut out = Vec::new();
    let options = options(OrderSpec::new(FIXED), &world.budget, Arc::clone(&world.temp));
    let report = sort(inputs(world)?, SortOutput::Writer(&mut out), &options, &Silent)?;
    assert!(report.runs >= 3, "{} runs", report.runs);
    // A wrong answer differs from this one.
    world.disk.create("out")?.write_at(0, &out)?;
    Ok(())
}

fn to_view(world: &World) -> merganser_sort::Result<()> {
    let target = SortOutput::View { folder: Arc::clone(&world.folder), name: "x".to_owned() };
    let options = options(OrderSpec::new(FIXED), &world.budget, Arc::clone(&world.temp));
    let report = sort(inputs(world)?, target, &options, &Silent)?;
    assert!(report.runs >= 3, "{} runs", report.runs);
    Ok(())
}

fn to_buckets(world: &World) -> merganser_sort::Result<()> {
    let target = SortOutput::View { folder: Arc::clone(&world.folder), name: "x".to_owned() };
    let mut options = options(OrderSpec::new(FIXED), &world.budget, Arc::clone(&world.temp));
    options.strategy = Strategy::Distribute { uniform: false };
    let report = sort(inputs(world)?, target, &options, &Silent)?;
    assert!(report.buckets >= 3, "{} buckets", report.buckets);
    Ok(())
}

/// Many short runs, more than the memory allows to merge at once: some are merged before.
fn in_passes(world: &World, target: SortOutput<'_>) -> merganser_sort::Result<()> {
    let order = OrderSpec::new(Format::Fixed { bytes: SHORT_BYTES });
    let mut options = options(order, &world.budget, Arc::clone(&world.temp));
    // Packed windows are twice in memory: fewer runs are too many.
    options.compression = CompressionChoice::Fixed(Compression::Lz4);
    let report = sort(inputs(world)?, target, &options, &Silent)?;
    assert!(report.extra_passes >= 1, "{report:?}");
    assert!(report.memory_peak_bytes <= PASSES_MEMORY_BYTES);
    Ok(())
}

fn to_view_in_passes(world: &World) -> merganser_sort::Result<()> {
    let folder = Arc::clone(&world.folder);
    in_passes(world, SortOutput::View { folder, name: "x".to_owned() })?;
    // The runs that were merged before the view was made are gone.
    let view = View::open(&world.folder, &Budget::new(PASSES_MEMORY_BYTES), 1)?;
    assert_eq!(world.folder.list()?.len(), view.storages().len() + 1);
    Ok(())
}

fn to_storage_in_passes(world: &World) -> merganser_sort::Result<()> {
    in_passes(world, SortOutput::Storage(world.disk.create("out")?))
}

fn copy_out(world: &World, consume: bool) -> merganser_sort::Result<()> {
    let what = Materialize {
        folder: &world.folder,
        work: &world.disk,
        publish: &|_| consuming::publish_in(&world.disk),
        output: consuming::text("/out"),
        view: consuming::text("/x"),
        consume,
        budget: &world.budget,
        threads: 1,
        checkpoint_bytes: Some(128 << 10),
    };
    materialize(&what, &Silent)?;
    forget(&world.disk)
}

/// Of a command that is cancelled as soon as it begins.
struct CancelledAtOnce;

impl Progress for CancelledAtOnce {
    fn cancelled(&self) -> bool {
        true
    }
}

/// The view is whole, so what a killed copy has written goes, as in any copy that is cancelled before it gives bytes back.
#[test]
fn a_copy_that_is_cancelled_while_it_checks_what_was_written_leaves_nothing() {
    for consume in [false, true] {
        let world = before(Call::Materialize);
        let view_before = names_and_bytes(&world.folder);
        let killed = Mutex::new(None);
        let what = Materialize {
            folder: &world.folder,
            work: &world.disk,
            publish: &|_| {
                *killed.lock() = Some(copy_of(&world.disk));
                Err(std::io::Error::other("killed"))
            },
            output: consuming::text("/out"),
            view: consuming::text("/x"),
            consume: false,
            budget: &world.budget,
            threads: 1,
            checkpoint_bytes: Some(128 << 10),
        };
        materialize(&what, &Silent).expect_err("killed");
        let work = killed.lock().take().expect("it was complete");
        let left = work.list().expect("lists").len();
        let what = Materialize { work: &work, publish: &|_| Ok(()), consume, ..what };
        let error = materialize(&what, &CancelledAtOnce).expect_err("cancelled");
        assert!(matches!(error, Error::Cancelled), "{error}");
        assert_eq!(left - work.list().expect("lists").len(), 2, "{:?}", work.list());
        assert!(names_and_bytes(&world.folder) == view_before, "the view is whole");
    }
}

fn names_and_bytes(directory: &Arc<dyn Directory>) -> Vec<(String, Vec<u8>)> {
    let names = directory.list().expect("lists");
    let read = |name: &String| read_storage(&*directory.open(name, false).expect("opens"));
    names.iter().map(|name| (name.clone(), read(name))).collect()
}

fn read_storage(storage: &dyn Storage) -> Vec<u8> {
    storage.read_vec(0, storage.size() as usize).expect("reads")
}

fn read_view(folder: &Arc<dyn Directory>) -> merganser_sort::Result<Vec<u8>> {
    let view = View::open(folder, &Budget::new(PASSES_MEMORY_BYTES), 1)?;
    let mut stream = view.stream(0..u64::MAX)?;
    let mut out = Vec::new();
    while let Some(bytes) = stream.next_bytes()? {
        out.extend_from_slice(bytes);
    }
    Ok(out)
}

fn copy_of(directory: &Arc<dyn Directory>) -> Arc<dyn Directory> {
    let copy: Arc<dyn Directory> = MemoryDirectory::new();
    for name in directory.list().expect("lists") {
        let bytes = read_storage(&*directory.open(&name, false).expect("opens"));
        copy.create(&name).expect("new").write_at(0, &bytes).expect("writes");
    }
    copy
}

fn remove(directory: &Arc<dyn Directory>, name: &str) {
    if directory.list().expect("lists").iter().any(|n| n == name) {
        directory.remove(name).expect("removes");
    }
}

/// Before the call: inputs, and a view where one is copied out.
fn before(call: Call) -> World {
    let disk: Arc<dyn Directory> = MemoryDirectory::new();
    for (seed, name) in [(1, "a"), (2, "b")] {
        let bytes = fixed_records(seed, call.sizes().1);
        disk.create(name).expect("new").write_at(0, &bytes).expect("writes");
    }
    let world = World {
        disk,
        temp: MemoryDirectory::new(),
        folder: MemoryDirectory::new(),
        budget: Budget::new(call.memory_bytes()),
    };
    if call.copies_buckets() {
        to_buckets(&world).expect("makes the view");
    } else if call.copies() {
        to_view(&world).expect("makes the view");
    }
    world
}

/// The ordered bytes that a finished call left.
fn result(call: Call, world: &World) -> Vec<u8> {
    if call.makes_view() {
        return read_view(&world.folder).expect("reads");
    }
    read_storage(&*world.disk.open("out", false).expect("the output is there"))
}

/// Calls with `fault` in one place. Returns the error, and the counts of the failing directory.
fn call_with(
    call: Call,
    start: &World,
    place: Place,
    fault: Option<Fault>,
) -> (bool, bool, OperationCounts) {
    let plan = FaultPlan { seed: 1, faults: fault.into_iter().collect() };
    let what = format!("{place:?}, {plan}");
    // The directories below the faults.
    let base = World {
        disk: copy_of(&start.disk),
        temp: copy_of(&start.temp),
        folder: copy_of(&start.folder),
        budget: Budget::new(call.memory_bytes()),
    };
    let mut world = base.clone();
    let failing = match place {
        Place::Disk => &mut world.disk,
        Place::Temp => &mut world.temp,
        Place::Folder => &mut world.folder,
    };
    let faulty = Faulty::new(Arc::clone(failing), plan);
    *failing = Arc::clone(&faulty) as Arc<dyn Directory>;
    let done = within(&what, LIMIT, move || call.run(&world));
    let (fired, counts) = (!faulty.fired().is_empty(), faulty.counts());
    assert_eq!(base.budget.free_bytes(), call.memory_bytes(), "{what}: all memory was given back");
    for name in ["a", "b"] {
        let (now, then) = (base.disk.open(name, false), start.disk.open(name, false));
        let same = read_storage(&*now.expect("opens")) == read_storage(&*then.expect("opens"));
        assert!(same, "{what}: input {name} was changed");
    }
    let expected = expected(call);
    match &done {
        Ok(()) => assert!(result(call, &base) == expected, "{what}: wrong bytes"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("memory"), "{what}: '{text}' names nothing");
            assert!(fired, "{what}: {text}");
            // As a caller does whose call has failed.
            if !call.copies() {
                remove(&base.disk, "out");
                for name in base.folder.list().expect("lists") {
                    base.folder.remove(&name).expect("removes");
                }
            }
            let again = base.clone();
            match within(&what, LIMIT, move || call.run(&again)) {
                // The last sync failed: the copy has ended and the view is gone.
                Err(Error::NotAView { .. }) if call.consumes() => {}
                done => done.expect("succeeds without the fault"),
            }
            assert!(result(call, &base) == expected, "{what}: wrong bytes the second time");
        }
    }
    (fired, done.is_err(), counts)
}

fn expected(call: Call) -> Vec<u8> {
    let (record, input) = call.sizes();
    let all = [fixed_records(1, input), fixed_records(2, input)].concat();
    let mut records: Vec<&[u8]> = all.chunks(record).collect();
    records.sort();
    records.concat()
}

/// The fault of the n-th operation of a kind.
type Nth = fn(u64) -> Fault;

/// Every operation in one place fails in turn; how many calls failed.
fn sweep(call: Call, place: Place) -> u64 {
    let start = before(call);
    let (_, _, quiet) = call_with(call, &start, place, None);
    let mut failures = 0;
    let kinds: [(u64, Nth, bool); 6] = [
        (quiet.reads, |nth| Fault::FailRead { nth }, true),
        (quiet.reads, |nth| Fault::ShortRead { nth }, false),
        (quiet.writes, |nth| Fault::FailWrite { nth }, true),
        (quiet.syncs, |nth| Fault::FailSync { nth }, true),
        (quiet.creates, |nth| Fault::FailCreate { nth }, true),
        (quiet.renames, |nth| Fault::FailRename { nth }, true),
    ];
    for (count, fault, surely) in kinds {
        for nth in (1..=count).step_by(call.stride()) {
            let (fired, failed, _) = call_with(call, &start, place, Some(fault(nth)));
            assert!(!surely || !fired || failed, "{:?} went unnoticed", fault(nth));
            failures += u64::from(failed);
        }
    }
    if quiet.writes > 0 {
        for bytes in (0..).step_by(call.sizes().1 * 17 / 32) {
            let (fired, failed, _) = call_with(call, &start, place, Some(Fault::Full { bytes }));
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
fn a_sort_to_a_storage_survives_its_disk() {
    assert!(sweep(Call::ToStorage, Place::Disk) > 5);
}

#[test]
fn a_sort_to_a_storage_survives_its_temporary_storage() {
    assert!(sweep(Call::ToStorage, Place::Temp) > 30);
}

#[test]
fn a_sort_to_a_writer_survives_its_temporary_storage() {
    assert!(sweep(Call::ToWriter, Place::Temp) > 30);
}

#[test]
fn a_sort_to_a_view_survives_its_folder() {
    assert!(sweep(Call::ToView, Place::Folder) > 30);
}

#[test]
fn extra_passes_to_a_storage_survive_their_temporary_storage() {
    assert!(sweep(Call::ToStorageInPasses, Place::Temp) > 5);
}

#[test]
fn extra_passes_to_a_view_survive_its_folder() {
    assert!(sweep(Call::ToViewInPasses, Place::Folder) > 5);
}

#[test]
fn materializing_survives_a_failing_view() {
    assert!(sweep(Call::Materialize, Place::Folder) > 10);
}

#[test]
fn materializing_survives_a_failing_output() {
    assert!(sweep(Call::Materialize, Place::Disk) > 20);
}

#[test]
fn consuming_survives_a_failing_view() {
    assert!(sweep(Call::Consume, Place::Folder) > 10);
}

#[test]
fn consuming_survives_a_failing_output() {
    assert!(sweep(Call::Consume, Place::Disk) > 20);
}

#[test]
fn materializing_buckets_survives_a_failing_view() {
    assert!(sweep(Call::MaterializeBuckets, Place::Folder) > 10);
}

#[test]
fn materializing_buckets_survives_a_failing_output() {
    assert!(sweep(Call::MaterializeBuckets, Place::Disk) > 20);
}

#[test]
fn consuming_buckets_survives_a_failing_view() {
    assert!(sweep(Call::ConsumeBuckets, Place::Folder) > 10);
}

#[test]
fn consuming_buckets_survives_a_failing_output() {
    assert!(sweep(Call::ConsumeBuckets, Place::Disk) > 20);
}

#[test]
fn a_flipped_bit_in_a_view_is_never_copied_out() {
    for call in [Call::Materialize, Call::MaterializeBuckets] {
        let start = before(call);
        let (_, _, quiet) = call_with(call, &start, Place::Folder, None);
        for nth in 1..=quiet.reads {
            call_with(call, &start, Place::Folder, Some(Fault::FlipRead { nth }));
        }
    }
}

/// Sorts `input` in memory that never suffices for more than a few records at once.
fn sort_bytes(
    order: OrderSpec,
    input: SortInput,
    memory_bytes: u64,
) -> merganser_sort::Result<(Vec<u8>, SortReport)> {
    let budget = Budget::new(memory_bytes);
    let mut out = Vec::new();
    let options = options(order, &budget, MemoryDirectory::new());
    let sorted = sort(vec![input], SortOutput::Writer(&mut out), &options, &Silent);
    assert_eq!(budget.free_bytes(), memory_bytes, "all memory was given back");
    sorted.map(|report| (out, report))
}

fn stored(bytes: &[u8]) -> SortInput {
    SortInput::Storage(MemoryStorage::from_bytes("people", bytes))
}

fn streamed(bytes: &[u8]) -> SortInput {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    SortInput::Stream { name: "people".to_owned(), reader }
}

#[test]
fn damaged_records_are_named_by_file_and_offset() {
    let keyed = b"\x01\0\0\0\x01\0\0\0kv";
    let cases: [(Format, Vec<u8>, u64); 6] = [
        (FIXED, [&fixed_records(1, 1600)[..], b"15 bytes, short"].concat(), 1600),
        (FIXED, b"x".to_vec(), 0),
        (Format::Keyed, [&keyed[..], &keyed[..9]].concat(), 10),
        (Format::Keyed, [&keyed[..], b"\x01"].concat(), 10),
        (CSV, b"name,age\nann,3\nbob,\"4\nno end".to_vec(), 15),
        (CSV, b"name,\"age\nann,3\n".to_vec(), 0),
    ];
    for (format, bytes, expected) in cases {
        for input in [stored(&bytes), streamed(&bytes)] {
            match sort_bytes(OrderSpec::new(format), input, 8 << 20) {
                Err(Error::LastRecord { file, offset, .. }) => {
                    assert_eq!((file.as_str(), offset), ("people", expected), "{format:?}");
                }
                other => panic!("{format:?}: {other:?}"),
            }
        }
    }
}

/// A storage that was cut after its size was asked for.
struct Shrunk(Arc<MemoryStorage>, u64);

impl Storage for Shrunk {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn size(&self) -> u64 {
        self.1
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn submit(
        &self,
        token: u64,
        operation: merganser_storage::Operation,
        completions: &Completions,
    ) {
        self.0.submit(token, operation, completions);
    }
}

#[test]
fn an_input_that_shrinks_meanwhile_is_named() {
    for left in [0, 16, 4096, 1_200_000, 1_999_984] {
        let storage = MemoryStorage::from_bytes("people", &fixed_records(1, left));
        let input = SortInput::Storage(Arc::new(Shrunk(storage, 2_000_000)));
        let sorted = within(&left, LIMIT, || {
            sort_bytes(OrderSpec::new(FIXED), input, MEMORY_BYTES).map(|_| ())
        });
        match sorted {
            Err(Error::Input { file, offset, detail }) => {
                assert_eq!((file.as_str(), offset), ("people", left as u64), "{detail}");
                assert!(detail.contains("2000000"), "{detail}");
            }
            other => panic!("{left} bytes left: {other:?}"),
        }
    }
}

/// A storage that is cut right behind the bytes of its `nth` read.
struct CutWhileRead {
    storage: Arc<MemoryStorage>,
    reads_left: std::sync::atomic::AtomicU64,
}

impl Storage for CutWhileRead {
    fn name(&self) -> &str {
        self.storage.name()
    }

    fn size(&self) -> u64 {
        self.storage.size()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.storage.clock()
    }

    fn submit(
        &self,
        token: u64,
        operation: merganser_storage::Operation,
        completions: &Completions,
    ) {
        use std::sync::atomic::Ordering::SeqCst;
        let end = match &operation {
            merganser_storage::Operation::Read { offset, buffer } => offset + buffer.len() as u64,
            _ => u64::MAX,
        };
        self.storage.submit(token, operation, completions);
        if self.reads_left.fetch_sub(1, SeqCst) == 1 && end < self.storage.size() {
            self.storage.run(merganser_storage::Operation::SetSize { size: end }).expect("cut");
        }
    }
}

/// SAFETY finding F27: also between two chunks, where the size was asked for again.
#[test]
fn f27_an_input_that_is_cut_between_two_reads_is_named() {
    let mut cuts = 0;
    for nth in 2..30 {
        let storage = MemoryStorage::from_bytes("people", &fixed_records(1, 12_000_000));
        let cut = CutWhileRead { storage: storage.clone(), reads_left: nth.into() };
        let sorted = within(&nth, LIMIT, || {
            sort_bytes(OrderSpec::new(FIXED), SortInput::Storage(Arc::new(cut)), MEMORY_BYTES)
                .map(|_| ())
        });
        if storage.size() == 12_000_000 {
            continue;
        }
        cuts += 1;
        match sorted {
            Err(Error::Input { file, offset, detail }) => {
                assert_eq!((file.as_str(), offset), ("people", storage.size()), "{detail}");
                assert!(detail.contains("12000000"), "{detail}");
            }
            other => panic!("cut at read {nth}, to {}: {other:?}", storage.size()),
        }
    }
    assert!(cuts > 8, "{cuts}");
}

/// Lines; one of them is `longest` bytes long.
fn lines_with(longest: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(3);
    let mut out = Vec::new();
    while out.len() < bytes {
        out.extend_from_slice(format!("{:016x}\n", random.bits()).as_bytes());
    }
    out.extend(std::iter::repeat_n(b'5', longest));
    out.push(b'\n');
    for _ in 0..2000 {
        out.extend_from_slice(format!("{:016x}\n", random.bits()).as_bytes());
    }
    out
}

fn sorted_lines(bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    lines.sort_by_key(|line| &line[..line.len() - 1]);
    lines.concat()
}

#[test]
fn a_record_longer_than_memory_allows_says_how_much_more_would_do() {
    let bytes = lines_with(400_000, 700_000);
    for input in [stored(&bytes), streamed(&bytes)] {
        match sort_bytes(OrderSpec::new(LINES), input, MEMORY_BYTES) {
            Err(Error::RecordTooLong { file, factor: Some(times), .. }) => {
                assert_eq!(file, "people");
                let order = OrderSpec::new(LINES);
                let (sorted, _) = sort_bytes(order, streamed(&bytes), times * MEMORY_BYTES)
                    .expect("as much as it said does");
                assert!(sorted == sorted_lines(&bytes));
            }
            other => panic!("{:?}", other.map(|(_, report)| report)),
        }
    }
}

#[test]
fn one_key_longer_than_all_others_together_finds_room() {
    // Longer than the part of the data that is sampled, and longer than all memory for keys.
    let mut bytes = Vec::new();
    for i in 0..1500 {
        bytes.extend_from_slice(format!("{i:04}{}\n", " ".repeat(1000)).as_bytes());
    }
    bytes.extend(std::iter::repeat_n(b'0', 200_000));
    bytes.push(b'\n');
    let order = OrderSpec { keys: vec!["1,1fr".to_owned()], ..OrderSpec::new(LINES) };
    let compiled = order.compile(None).expect("compiles");
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    lines.sort_by(|a, b| compiled.compare(a, b));
    let expected = lines.concat();
    let (sorted, report) = sort_bytes(order, stored(&bytes), 8 << 20).expect("sorts");
    assert!(sorted == expected);
    assert!(report.memory_peak_bytes <= 8 << 20);
}

/// Calls with less and less memory. Where the call is refused, the least memory that the error
/// names is enough.
fn least_does<T>(what: &str, attempt: impl Fn(u64) -> merganser_sort::Result<T>) {
    let mut refused = 0;
    for memory_bytes in [0, 1, 60_000, 700_000, 1 << 20, 2_100_000, 2_400_000, 3 << 20] {
        match attempt(memory_bytes) {
            Ok(_) => {}
            Err(Error::Memory { least_bytes, limit_bytes, .. }) => {
                refused += 1;
                assert_eq!(limit_bytes, memory_bytes, "{what}");
                if let Err(e) = attempt(least_bytes) {
                    panic!("{what}: {least_bytes} bytes were to do, said {memory_bytes}, but {e}");
                }
            }
            Err(other) => panic!("{what}: {other}"),
        }
    }
    assert!(refused >= 3, "{what}: refused {refused} times");
}

#[test]
fn too_little_memory_names_the_least_that_does() {
    let bytes = lines_with(30, 500_000);
    let encoded = OrderSpec { keys: vec!["1,1f".to_owned()], ..OrderSpec::new(LINES) };
    for order in [OrderSpec::new(LINES), encoded] {
        for input in [stored, streamed] {
            let attempt = |memory_bytes| sort_bytes(order.clone(), input(&bytes), memory_bytes);
            least_does(&format!("sorting by {:?}", order.keys), attempt);
        }
        let folder = |memory_bytes| {
            let folder: Arc<dyn Directory> = MemoryDirectory::new();
            let target = SortOutput::View { folder: Arc::clone(&folder), name: "x".to_owned() };
            let budget = Budget::new(memory_bytes);
            let options = options(order.clone(), &budget, MemoryDirectory::new());
            sort(vec![stored(&bytes)], target, &options, &Silent).map(|_| folder)
        };
        least_does("sorting to a view", folder);
        let folder = folder(2_800_000).expect("sorts");
        least_does("reading a view", |memory_bytes| {
            let view = View::open(&folder, &Budget::new(memory_bytes), 2)?;
            let at_random = view.read_vec(view.size() / 2, 1000)?;
            let mut stream = view.stream(0..view.size())?;
            while stream.next_bytes()?.is_some() {}
            merganser_sort::Result::Ok(at_random)
        });
    }
}

/// Looks at the budget when all runs are formed.
struct AtMerge(Budget, Mutex<Option<u64>>);

impl Progress for AtMerge {
    fn phase(&self, name: &'static str, _bytes: Option<u64>) {
        if name == "merging" {
            let used = self.0.limit_bytes() - self.0.free_bytes();
            *self.1.lock() = Some(used);
        }
    }

    fn advance(&self, _bytes: u64) {}
}

/// Fences of keys as long as they get, in small blocks: they are a tenth of the data.
#[test]
fn fences_are_within_the_budget() {
    const LIMIT_BYTES: u64 = 4_500_000;
    let mut random = Random::new(9);
    let mut bytes = Vec::new();
    while bytes.len() < 8_000_000 {
        bytes.extend_from_slice(format!("{:016x}{}\n", random.bits(), "x".repeat(400)).as_bytes());
    }
    for input in [stored, streamed] {
        let budget = Budget::new(LIMIT_BYTES);
        let watch = AtMerge(budget.clone(), Mutex::default());
        let mut out = Vec::new();
        let options = options(OrderSpec::new(LINES), &budget, MemoryDirectory::new());
        let report = sort(vec![input(&bytes)], SortOutput::Writer(&mut out), &options, &watch)
            .expect("sorts");
        assert!(out == sorted_lines(&bytes));
        let used = watch.1.into_inner().expect("there is a merge");
        // A fence of 256 bytes for each of the largest blocks that this memory takes.
        let fences = bytes.len() as u64 / (16 << 10) * 256;
        assert!(used >= fences, "{used} bytes: fences are not reserved");
        if report.extra_passes == 0 {
            assert!(used < LIMIT_BYTES / 2, "{used} bytes: more than fences");
        }
        assert!(report.memory_peak_bytes <= LIMIT_BYTES, "{report:?}");
        assert_eq!(budget.free_bytes(), LIMIT_BYTES, "all memory was given back");
    }
}

#[test]
fn temporary_runs_stay_below_their_limit() {
    let bytes = lines_with(30, 900_000);
    let attempt = |limit_bytes| {
        let budget = Budget::new(MEMORY_BYTES);
        let mut options = options(OrderSpec::new(LINES), &budget, MemoryDirectory::new());
        options.temp_limit_bytes = Some(limit_bytes);
        let mut out = Vec::new();
        let sorted = sort(vec![stored(&bytes)], SortOutput::Writer(&mut out), &options, &Silent);
        assert_eq!(budget.free_bytes(), MEMORY_BYTES, "all memory was given back");
        sorted
    };
    for limit_bytes in [0, 100_000, 900_000] {
        match attempt(limit_bytes) {
            Err(Error::TempLimit { limit_bytes: named }) => assert_eq!(named, limit_bytes),
            other => panic!("{limit_bytes}: {other:?}"),
        }
    }
    attempt(2_000_000).expect("runs are little larger than the input");
}
