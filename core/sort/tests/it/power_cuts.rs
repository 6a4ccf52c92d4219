//! The power is cut at every change in turn. A view then exists whole or not at all. A copy of one,
//! consumed or not, continues and ends with exactly the right bytes.

use std::sync::Arc;
use std::time::Duration;

use merganser_sort::journal::SortJournal;
use merganser_sort::key::OrderSpec;
use merganser_sort::output::{Materialize, forget, materialize};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::{MANIFEST_NAME, View};
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, Silent, SortOptions, SortOutput, SortReport,
    Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, StorageExt};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use merganser_testkit::{Random, within};
use parking_lot::Mutex;

use crate::consuming;

const LIMIT: Duration = Duration::from_secs(60);
const MEMORY_BYTES: u64 = 3_200_000;
/// Little enough for several windows, and so resume points, in one copy.
const COPY_MEMORY_BYTES: u64 = 2_450_000;
const FORMAT: Format = Format::Fixed { bytes: 16 };

/// Every third one is the same: a bucket of its own, which is handed out in slices.
fn records() -> Vec<u8> {
    let mut random = Random::new(5);
    let mut record = |number: usize| {
        let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
        if number.is_multiple_of(3) { [0x77; 16] } else { bits.to_be_bytes() }
    };
    (0..60_000).flat_map(&mut record).collect()
}

fn expected() -> Vec<u8> {
    let all = records();
    let mut records: Vec<&[u8]> = all.chunks(16).collect();
    records.sort();
    records.concat()
}

/// How a view is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Merged(Compression),
    Distributed,
}

const MERGED: Made = Made::Merged(Compression::Off);

fn make_view(folder: &Arc<dyn Directory>, made: Made) -> merganser_sort::Result<()> {
    let (compression, strategy) = match made {
        Made::Merged(compression) => (compression, Strategy::Merge),
        Made::Distributed => (Compression::Off, Strategy::Distribute { uniform: false }),
    };
    let options = SortOptions::new(OrderSpec::new(FORMAT))
        .memory(MEMORY_BYTES)
        .threads(1)
        .temp(vec![MemoryDirectory::new()])
        .compression(CompressionChoice::Fixed(compression))
        .strategy(strategy);
    let inputs = vec![SortInput::Storage(MemoryStorage::from_bytes("input", &records()))];
    let target = SortOutput::View { folder: Arc::clone(folder), name: "x".to_owned() };
    let report = sort(inputs, target, &options, &Silent)?;
    assert!(report.runs.max(report.buckets) >= 3, "{report:?}");
    assert_eq!(report.buckets > 0, made == Made::Distributed);
    Ok(())
}

fn copy_out(
    folder: &Arc<dyn Directory>,
    disk: &Arc<dyn Directory>,
    consume: bool,
) -> merganser_sort::Result<u64> {
    copy(folder, disk, consume, &Silent)
}

fn copy(
    folder: &Arc<dyn Directory>,
    disk: &Arc<dyn Directory>,
    consume: bool,
    progress: &dyn Progress,
) -> merganser_sort::Result<u64> {
    let what = Materialize {
        folder,
        work: disk,
        publish: &|_| consuming::publish_in(disk),
        output: consuming::text("/out"),
        view: consuming::text("/x"),
        consume,
        budget: &Budget::new(COPY_MEMORY_BYTES),
        threads: 1,
        checkpoint_bytes: Some(16 << 10),
    };
    let bytes = materialize(&what, progress)?;
    forget(disk)?;
    Ok(bytes)
}

fn read_view(folder: &Arc<dyn Directory>) -> merganser_sort::Result<Vec<u8>> {
    let view = View::open(folder, &Budget::new(MEMORY_BYTES), 1)?;
    let mut stream = view.stream(0..u64::MAX)?;
    let mut out = Vec::new();
    while let Some(bytes) = stream.next_bytes()? {
        out.extend_from_slice(bytes);
    }
    Ok(out)
}

fn read_file(directory: &Arc<dyn Directory>, name: &str) -> Vec<u8> {
    let file = directory.open(name, false).expect("is there");
    file.read_vec(0, file.size() as usize).expect("reads")
}

fn copy_of(directory: &Arc<dyn Directory>) -> Arc<dyn Directory> {
    let copy: Arc<dyn Directory> = MemoryDirectory::new();
    for name in directory.list().expect("lists") {
        let bytes = read_file(directory, &name);
        copy.create(&name).expect("new").write_at(0, &bytes).expect("writes");
    }
    copy
}

fn cut(nth: u64, seed: u64) -> FaultPlan {
    let faults = if nth == 0 { Vec::new() } else { vec![Fault::PowerCut { nth }] };
    FaultPlan { seed, faults }
}

#[test]
fn a_view_exists_whole_or_not_at_all() {
    cut_sorts(MERGED);
}

#[test]
fn a_view_of_buckets_exists_whole_or_not_at_all() {
    cut_sorts(Made::Distributed);
}

fn cut_sorts(made: Made) {
    let quiet = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(0));
    let changes = {
        let folder = Arc::clone(&quiet) as Arc<dyn Directory>;
        make_view(&folder, made).expect("sorts");
        quiet.counts().changes
    };
    assert!(changes > 20, "{changes} changes");
    let expected = expected();
    let (mut whole, mut none) = (0, 0);
    for nth in 1..=changes {
        for seed in 0..2 {
            let what = format!("cut at change {nth} of {changes}, seed {seed}");
            let faulty = Faulty::new(MemoryDirectory::new(), cut(nth, seed));
            let folder = Arc::clone(&faulty) as Arc<dyn Directory>;
            let sorting = Arc::clone(&folder);
            let sorted = within(&what, LIMIT, move || make_view(&sorting, made));
            assert!(sorted.is_err(), "{what}: nobody noticed");
            faulty.crash().expect("comes back");
            match read_view(&folder) {
                Ok(bytes) => {
                    assert!(bytes == expected, "{what}: a wrong view");
                    whole += 1;
                }
                Err(Error::NotAView { .. }) => {
                    none += 1;
                }
                Err(other) => panic!("{what}: half a view: {other}"),
            }
        }
    }
    assert!(whole > 0 && none > 0, "{whole} whole views, {none} without");
    // Once the call has returned, the view survives whatever comes.
    quiet.crash().expect("comes back");
    let folder = quiet as Arc<dyn Directory>;
    assert!(read_view(&folder).expect("reads") == expected);
}

/// Cuts the power at one change after the other while a view is copied out, and again while the
/// interrupted copy continues; then lets it end.
fn cut_copies(consume: bool, made: Made) {
    let view: Arc<dyn Directory> = MemoryDirectory::new();
    make_view(&view, made).expect("sorts");
    let expected = expected();
    let machine = |nth, seed| {
        let disk = Faulty::new(MemoryDirectory::new(), cut(nth, seed));
        let folder = disk.beside(copy_of(&view), cut(nth, seed));
        (folder, disk)
    };
    let (folder, disk) = machine(0, 0);
    copy_out(
        &(folder.clone() as Arc<dyn Directory>),
        &(disk.clone() as Arc<dyn Directory>),
        consume,
    )
    .expect("copies");
    let changes = folder.counts().changes + disk.counts().changes;
    assert!(changes > 30, "{changes} changes");
    let mut resumed = 0;
    for nth in 1..=changes {
        for seed in 0..2 {
            let what = format!("cut at change {nth} of {changes}, seed {seed}");
            let (faulty_folder, faulty_disk) = machine(nth, seed);
            let folder = Arc::clone(&faulty_folder) as Arc<dyn Directory>;
            let disk = Arc::clone(&faulty_disk) as Arc<dyn Directory>;
            let copy = || {
                let (folder, disk) = (Arc::clone(&folder), Arc::clone(&disk));
                within(&what, LIMIT, move || copy_out(&folder, &disk, consume))
            };
            let first = copy();
            faulty_folder.crash().expect("comes back");
            faulty_disk.crash().expect("comes back");
            if first.is_ok() {
                // The cut came after the last change that the call waits for.
                assert!(read_file(&disk, "out") == expected, "{what}: lost after the end");
            }
            resumed += u64::from(faulty_disk.list().expect("lists").len() > 1);
            if !consume {
                assert!(read_view(&folder).expect("a view that is only read stays") == expected);
            }
            match copy() {
                // The cut came at the last change of all, which only removes.
                Err(Error::NotAView { .. })
                    if consume && disk.list().expect("lists") == ["out"] => {}
                Ok(bytes) => assert_eq!(bytes, expected.len() as u64, "{what}"),
                Err(other) => panic!("{what}: does not continue: {other}"),
            }
            assert!(read_file(&disk, "out") == expected, "{what}: wrong bytes");
            assert_eq!(disk.list().expect("lists"), ["out"], "{what}: leftovers");
            if consume {
                assert_eq!(folder.list().expect("lists"), [""; 0], "{what}: leftovers");
            }
            // Everything is durable now.
            faulty_folder.crash().expect("comes back");
            faulty_disk.crash().expect("comes back");
            assert!(read_file(&disk, "out") == expected, "{what}: not durable");
        }
    }
    assert!(resumed > 20, "{resumed} copies went on from a resume point");
}

#[test]
fn a_copy_continues_after_a_power_cut() {
    cut_copies(false, MERGED);
}

#[test]
fn a_consumed_view_and_its_output_together_are_always_whole() {
    cut_copies(true, MERGED);
}

#[test]
fn a_consumed_packed_view_continues_too() {
    cut_copies(true, Made::Merged(Compression::Lz4));
}

#[test]
fn a_copy_of_buckets_continues_after_a_power_cut() {
    cut_copies(false, Made::Distributed);
}

#[test]
fn consumed_buckets_and_their_output_together_are_always_whole() {
    cut_copies(true, Made::Distributed);
}

fn sort_away(
    disk: &Arc<dyn Directory>,
    folder: &Arc<dyn Directory>,
) -> merganser_sort::Result<u64> {
    sort_away_as(disk, folder, FORMAT).map(|report| report.records)
}

fn sort_away_as(
    disk: &Arc<dyn Directory>,
    folder: &Arc<dyn Directory>,
    format: Format,
) -> merganser_sort::Result<SortReport> {
    let options = SortOptions::new(OrderSpec::new(format))
        .memory(MEMORY_BYTES)
        .threads(1)
        .temp(vec![MemoryDirectory::new()])
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(Strategy::Merge);
    let inputs = [disk.open("a", true)?, disk.open("b", true)?];
    if !consuming::is_interrupted(folder) && folder.list()?.iter().any(|n| n == MANIFEST_NAME) {
        // A sort that has ended.
        return consuming::report_of_view(folder);
    }
    let report = consuming::consume(&inputs, folder, &options, &Silent)?;
    assert!(consuming::is_interrupted(folder), "its inputs were not removed yet");
    SortJournal::remove(folder)?;
    Ok(report)
}

/// Records whose tags take most of the memory, so that runs are short, and more than can be merged
/// at once.
const SHORT: Format = Format::Fixed { bytes: 4 };

#[test]
fn extra_passes_lose_nothing_of_inputs_that_are_given_back() {
    let mut random = Random::new(6);
    let all: Vec<u8> =
        std::iter::repeat_with(|| random.bits().to_be_bytes()).take(135_000).flatten().collect();
    let mut expected: Vec<&[u8]> = all.chunks(4).collect();
    expected.sort();
    let expected = expected.concat();
    let machine = |nth, seed| {
        let disk: Arc<dyn Directory> = MemoryDirectory::new();
        for (name, bytes) in [("a", &all[..500_000]), ("b", &all[500_000..])] {
            disk.create(name).expect("new").write_at(0, bytes).expect("writes");
        }
        let disk = Faulty::new(disk, cut(nth, seed));
        let folder = disk.beside(MemoryDirectory::new(), cut(nth, seed));
        (disk, folder)
    };
    let (disk, folder) = machine(0, 0);
    let started = folder.clone() as Arc<dyn Directory>;
    let report =
        sort_away_as(&(disk.clone() as Arc<dyn Directory>), &started, SHORT).expect("sorts");
    assert!(report.extra_passes >= 1, "{report:?}");
    let changes = disk.counts().changes + folder.counts().changes;
    let mut went_on = 0;
    for nth in (1..=changes).step_by(2) {
        let what = format!("cut at change {nth} of {changes}");
        let (faulty_disk, faulty_folder) = machine(nth, nth);
        let disk = Arc::clone(&faulty_disk) as Arc<dyn Directory>;
        let folder = Arc::clone(&faulty_folder) as Arc<dyn Directory>;
        let sort = || {
            let (disk, folder) = (Arc::clone(&disk), Arc::clone(&folder));
            within(&what, LIMIT, move || sort_away_as(&disk, &folder, SHORT))
        };
        assert!(sort().is_err(), "{what}: nobody noticed");
        faulty_disk.crash().expect("comes back");
        faulty_folder.crash().expect("comes back");
        went_on += u64::from(consuming::is_interrupted(&folder));
        match sort() {
            Ok(report) => assert_eq!(report.records, expected.len() as u64 / 4, "{what}"),
            Err(error) => panic!("{what}: does not continue: {error}"),
        }
        assert!(read_view(&folder).expect("reads") == expected, "{what}: wrong bytes");
        let view = View::open(&folder, &Budget::new(MEMORY_BYTES), 1).expect("opens");
        let names = folder.list().expect("lists");
        assert_eq!(names.len(), view.storages().len() + 1, "{what}: leftovers: {names:?}");
    }
    assert!(went_on > 20, "{went_on} sorts went on");
}

#[test]
fn inputs_that_are_given_back_and_their_runs_together_are_always_whole() {
    let all = records();
    let machine = |nth, seed| {
        let disk: Arc<dyn Directory> = MemoryDirectory::new();
        for (name, bytes) in [("a", &all[..500_000]), ("b", &all[500_000..])] {
            disk.create(name).expect("new").write_at(0, bytes).expect("writes");
        }
        let disk = Faulty::new(disk, cut(nth, seed));
        let folder = disk.beside(MemoryDirectory::new(), cut(nth, seed));
        (disk, folder)
    };
    let expected = expected();
    let (disk, folder) = machine(0, 0);
    let started = folder.clone() as Arc<dyn Directory>;
    sort_away(&(disk.clone() as Arc<dyn Directory>), &started).expect("sorts");
    assert!(disk.counts().changes > 3, "nothing was given back");
    let changes = disk.counts().changes + folder.counts().changes;
    let mut went_on = 0;
    for nth in 1..=changes {
        for seed in 0..2 {
            let what = format!("cut at change {nth} of {changes}, seed {seed}");
            let (faulty_disk, faulty_folder) = machine(nth, seed);
            let disk = Arc::clone(&faulty_disk) as Arc<dyn Directory>;
            let folder = Arc::clone(&faulty_folder) as Arc<dyn Directory>;
            let sort = || {
                let (disk, folder) = (Arc::clone(&disk), Arc::clone(&folder));
                within(&what, LIMIT, move || sort_away(&disk, &folder))
            };
            assert!(sort().is_err(), "{what}: nobody noticed");
            faulty_disk.crash().expect("comes back");
            faulty_folder.crash().expect("comes back");
            went_on += u64::from(consuming::is_interrupted(&folder));
            match sort() {
                Ok(records) => assert_eq!(records, expected.len() as u64 / 16, "{what}"),
                Err(error) => panic!("{what}: does not continue: {error}"),
            }
            assert!(read_view(&folder).expect("reads") == expected, "{what}: wrong bytes");
            assert!(!consuming::is_interrupted(&folder), "{what}: a journal is left");
        }
    }
    assert!(went_on > 20, "{went_on} sorts went on");
}

/// Keeps the space that a view takes while it is consumed.
struct Watch(Arc<Faulty>, Mutex<Vec<u64>>);

impl Progress for Watch {
    fn advance(&self, _bytes: u64) {
        self.1.lock().push(self.0.used_bytes());
    }
}

#[test]
fn consuming_gives_space_back_during_the_copy() {
    consume_watched(MERGED);
}

/// Within the bucket of one key, too.
#[test]
fn consuming_buckets_gives_space_back_during_the_copy() {
    consume_watched(Made::Distributed);
}

fn consume_watched(made: Made) {
    let faulty = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(0));
    let folder = Arc::clone(&faulty) as Arc<dyn Directory>;
    make_view(&folder, made).expect("sorts");
    let before = faulty.used_bytes();
    let disk: Arc<dyn Directory> = MemoryDirectory::new();
    let watch = Watch(faulty, Mutex::default());
    copy(&folder, &disk, true, &watch).expect("copies");
    let used = watch.1.into_inner();
    assert!(used.len() > 3 && used.is_sorted_by(|a, b| a >= b), "{used:?}");
    let last = *used.last().expect("some");
    assert!(last < before / 2, "{last} of {before} bytes were left before the last window");
}
