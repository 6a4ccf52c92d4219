//! Rows that are pushed and pulled: against a naive model, in memory that is much too little for them, with every way to
//! combine, on disks that fail, and given up at each point.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::rows::{
    Combine, CombineWith, CombinedFor, Combiner, KeepAll, RecordOfRow, RowSorter, RowTable, Rows,
    RowsBy, RowsError, RowsReport, Type,
};
use merganser_sort::run::Compression;
use merganser_sort::view::Manifest;
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use merganser_testkit::{Random, within};

type Row = (Vec<u8>, Vec<u8>);

fn temp() -> Vec<Arc<dyn Directory>> {
    vec![MemoryDirectory::new()]
}

fn all<C: Combiner>(mut rows: Rows<C>) -> Result<Vec<Row>, C::Error> {
    let mut found = Vec::new();
    while let Some((key, value)) = rows.next()? {
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok(found)
}

/// Random rows: few or many keys, of like or different lengths, some with zeros, some long.
fn random_rows(random: &mut Random, most: u64) -> Vec<Row> {
    let count = random.below(most + 1);
    let keys = 1 + random.below(count + 2);
    let (key_len, value_len) = (random.below(24), random.below(40));
    let kind = random.below(4);
    let row = |random: &mut Random| {
        let number = random.below(keys);
        let mut key = match kind {
            0 => number.to_be_bytes().to_vec(),
            1 => number.to_string().into_bytes(),
            2 => vec![(number % 3) as u8; (number % 17) as usize],
            _ => format!("key number {number:0width$}", width = key_len as usize).into_bytes(),
        };
        if random.one_in(500) {
            key.resize(5000, b'k');
        }
        let len = if random.one_in(300) { 9000 } else { random.below(value_len + 1) };
        (key, random.bytes(len as usize))
    };
    let mut rows: Vec<Row> = (0..count).map(|_| row(random)).collect();
    if random.one_in(4) {
        rows.sort();
    }
    rows
}

/// The rows in the order of their producers; the sorter's own is the last that is made.
fn by_producer(rows: Vec<Row>, producers: usize) -> Vec<Row> {
    let mut numbered: Vec<_> = rows.into_iter().enumerate().collect();
    numbered.sort_by_key(|(at, _)| (at + producers - 1) % producers);
    numbered.into_iter().map(|(_, row)| row).collect()
}

/// Every size of memory, number of producers and threads, with keys alone and with values in the order.
#[test]
fn all_rows_come_back_in_order() {
    let mut random = Random::new(7);
    let mut spilled = 0;
    for case in 0..400 {
        let most = if random.one_in(2) { 400 } else { 12_000 };
        let rows = random_rows(&mut random, most);
        let by = if random.one_in(2) { RowsBy::Key } else { RowsBy::KeyAndValue };
        let producers = 1 + random.index(3);
        let least = RowSorter::<KeepAll>::least_bytes(producers);
        let budget = Budget::new(least + random.below(200_000));
        let threads = 1 + random.index(3);
        let mut sorter =
            RowSorter::new(by, &budget, KeepAll).temp(temp()).producers(producers).threads(threads);
        let mut others: Vec<_> = (1..producers).map(|_| sorter.producer().expect("fits")).collect();
        for (at, (key, value)) in rows.iter().enumerate() {
            match at % producers {
                0 => sorter.push(key, value).expect("taken"),
                other => others[other - 1].push(key, value).expect("taken"),
            }
        }
        // The order in which they finish does not matter.
        others.reverse();
        for other in others {
            other.finish().expect("finishes");
        }
        let sorted = sorter.finish().expect("sorts");
        let report = sorted.report();
        assert_eq!(report.rows, rows.len() as u64);
        spilled += u64::from(report.runs > 0);
        let found = all(sorted).expect("reads");
        let mut expected = rows;
        match by {
            RowsBy::KeyAndValue => expected.sort(),
            RowsBy::Key => {
                expected = by_producer(expected, producers);
                expected.sort_by(|a, b| a.0.cmp(&b.0));
            }
        }
        assert!(found == expected, "case {case}: {report:?}");
        assert_eq!(budget.free_bytes(), budget.limit_bytes());
        assert!(budget.peak_bytes() <= budget.limit_bytes());
    }
    assert!(spilled > 100, "{spilled} cases wrote runs");
}

/// Views of several producers, in memory in which some runs are temporary first.
#[test]
fn a_view_has_equal_keys_in_the_order_of_producers() {
    let mut random = Random::new(9);
    let mut most_runs = 0;
    for case in 0..60 {
        let rows = random_rows(&mut random, 30_000);
        let producers = 1 + random.index(3);
        let least = RowSorter::<KeepAll>::least_view_bytes(producers);
        let memory = least + [0, 200_000, 2 << 20, 80 << 20][random.index(4)];
        let budget = Budget::new(memory);
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let record: RecordOfRow = Arc::new(|key, value, to| {
            for part in [key, value] {
                to.extend_from_slice(&(part.len() as u32).to_le_bytes());
            }
            to.extend_from_slice(key);
            to.extend_from_slice(value);
        });
        let packed = [Compression::Off, Compression::Lz4][random.index(2)];
        let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll)
            .temp(temp())
            .into_view(Arc::clone(&folder), record, packed)
            .producers(producers);
        let mut others: Vec<_> = (1..producers).map(|_| sorter.producer().expect("fits")).collect();
        for (at, (key, value)) in rows.iter().enumerate() {
            match at % producers {
                0 => sorter.push(key, value).expect("taken"),
                other => others[other - 1].push(key, value).expect("taken"),
            }
        }
        others.reverse();
        for other in others {
            other.finish().expect("finishes");
        }
        let (segments, _) = sorter.finish_view(&merganser_sort::Silent).expect("sorts");
        most_runs = most_runs.max(segments.len());
        let order = OrderSpec::new(Format::Keyed);
        let manifest = Manifest::new("rows".to_owned(), order, Vec::new(), 0, segments);
        manifest.write(&folder).expect("written");
        let table = RowTable::open(&folder, &Budget::new(64 << 20)).expect("opens");
        let mut expected = by_producer(rows, producers);
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        let mut found = table.rows::<&[u8]>(..).expect("reads");
        for (at, (key, value)) in expected.iter().enumerate() {
            let row = found.next().expect("reads");
            assert!(row == Some((key, value)), "case {case}, row {at} of {}", expected.len());
        }
        assert!(found.next().expect("reads").is_none());
        assert_eq!(budget.free_bytes(), budget.limit_bytes());
    }
    assert!(most_runs > 3, "{most_runs} runs at most");
}

/// Values of a few bytes, combined in each way, against a map. Sums leave 64 bits on the way.
#[test]
fn every_combine_is_that_of_a_map() {
    let mut random = Random::new(11);
    for case in 0..10_000 {
        let combine = [Combine::Sum, Combine::Min, Combine::Max, Combine::Count, Combine::None]
            [random.index(5)];
        let of = match combine {
            Combine::Sum | Combine::Count => Type::I64,
            _ => [Type::I64, Type::Bytes, Type::F64][random.index(3)],
        };
        let most = if random.one_in(50) { 8000 } else { 60 };
        let count = random.below(most);
        let keys = 1 + random.below(most);
        let number = |random: &mut Random| match random.below(20) {
            0 => i64::MAX - random.below(3) as i64,
            1 => i64::MIN + random.below(3) as i64,
            _ => random.below(100) as i64 - 50,
        };
        let rows: Vec<(Vec<u8>, [u8; 8])> = (0..count)
            .map(|_| {
                let key = random.below(keys).to_string().into_bytes();
                (key, number(&mut random).to_le_bytes())
            })
            .collect();
        let combiner = CombinedFor::<Error>::new(combine, combine.result_type(of));
        let by = if combine == Combine::None { RowsBy::KeyAndValue } else { RowsBy::Key };
        let budget = Budget::new(RowSorter::<KeepAll>::least_bytes(1) + random.below(300_000));
        let threads = 1 + random.index(2);
        let mut sorter = RowSorter::new(by, &budget, combiner).temp(temp()).threads(threads);
        let count_of = 1_i64.to_le_bytes();
        for (key, value) in &rows {
            let value = if combine == Combine::Count { &count_of } else { value };
            sorter.push(key, value).expect("taken");
        }
        let found = sorter.finish().and_then(all);
        let expected = modelled(combine, of, &rows);
        match (found, expected) {
            (Ok(found), Some(expected)) => assert!(found == expected, "case {case}"),
            (Err(Error::Rows(RowsError::Overflow { .. })), None) => {}
            (found, expected) => panic!("case {case}: {found:?} and {expected:?}"),
        }
    }
}

/// What a map of keys gives; `None` if a sum leaves 64 bits.
fn modelled(combine: Combine, of: Type, rows: &[(Vec<u8>, [u8; 8])]) -> Option<Vec<Row>> {
    let mut map: BTreeMap<&[u8], Vec<[u8; 8]>> = BTreeMap::new();
    for (key, value) in rows {
        map.entry(key).or_default().push(*value);
    }
    let number = |value: &[u8; 8]| i64::from_le_bytes(*value);
    let mut found = Vec::new();
    for (key, mut values) in map {
        values.sort_by(|a, b| match of {
            Type::I64 => number(a).cmp(&number(b)),
            Type::F64 => f64::from_le_bytes(*a).total_cmp(&f64::from_le_bytes(*b)),
            _ => a.cmp(b),
        });
        let one = match combine {
            Combine::Sum => {
                let sum: i128 = values.iter().map(|value| i128::from(number(value))).sum();
                i64::try_from(sum).ok()?.to_le_bytes()
            }
            Combine::Count => (values.len() as i64).to_le_bytes(),
            Combine::Min => *values.first().expect("one at least"),
            Combine::Max => *values.last().expect("one at least"),
            _ => {
                values.sort_unstable();
                found.extend(values.iter().map(|value| (key.to_vec(), value.to_vec())));
                continue;
            }
        };
        found.push((key.to_vec(), one.to_vec()));
    }
    Some(found)
}

/// Rows in order make one run, however many they are, and it is as good as the input.
#[test]
fn rows_that_come_in_order_are_one_run() {
    let budget = Budget::new(1 << 20);
    let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp());
    for number in 0..100_000_u64 {
        sorter.push(&number.to_be_bytes(), b"a value").expect("taken");
    }
    let rows = sorter.finish().expect("sorts");
    assert_eq!((rows.report().runs, rows.report().merges), (1, 0));
    let found = all(rows).expect("reads");
    assert!(found.iter().zip(0_u64..).all(|((key, _), number)| *key == number.to_be_bytes()));
    assert_eq!(found.len(), 100_000);
}

/// Far more runs than are merged at once, in the least memory; and so many that some are merged while others come.
#[test]
fn any_number_of_runs_is_merged_in_fixed_memory() {
    let mut random = Random::new(3);
    let least = RowSorter::<KeepAll>::least_bytes(1);
    for (count, most_runs) in [(200_000, 100), (2_400_000, 2048)] {
        let budget = Budget::new(least);
        let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp()).threads(1);
        let (mut sum, mut xor) = (0_u64, 0);
        for _ in 0..count {
            let key = random.bits();
            sum = sum.wrapping_add(key);
            xor ^= key.rotate_left(7);
            sorter.push(&key.to_be_bytes(), &[b'v'; 100]).expect("taken");
        }
        let mut rows = sorter.finish().expect("sorts");
        let RowsReport { runs, merges, .. } = rows.report();
        assert!(runs > most_runs && merges > 0, "{runs} runs, {merges} merges");
        let mut last = 0;
        let mut found = 0;
        while let Some((key, _)) = rows.next().expect("reads") {
            let key = u64::from_be_bytes(key.try_into().expect("8 bytes"));
            assert!(key >= last);
            (last, found) = (key, found + 1);
            sum = sum.wrapping_sub(key);
            xor ^= key.rotate_left(7);
        }
        assert_eq!((found, sum, xor), (count, 0, 0));
        assert!(budget.peak_bytes() <= least);
    }
}

/// An error of a program that sorts.
#[derive(Debug)]
enum Failed {
    Engine(#[expect(dead_code, reason = "printed when the test fails")] Error),
    Refused(u8),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Engine(error)
    }
}

/// The typed error of a combiner comes out of the call that meets it, wherever rows are combined.
#[test]
fn errors_of_a_combiner_come_back_as_they_are() {
    for memory_bytes in [RowSorter::<KeepAll>::least_bytes(1), 64 << 20] {
        for threads in [1, 2] {
            let budget = Budget::new(memory_bytes);
            let combine = CombineWith::new(|value: &mut Vec<u8>, more: &[u8]| {
                value[0] = value[0].wrapping_add(more[0]);
                if value[0] == 3 { Err(Failed::Refused(more[0])) } else { Ok(()) }
            });
            let mut sorter =
                RowSorter::new(RowsBy::Key, &budget, combine).temp(temp()).threads(threads);
            let pushed = (0..200_000_u32)
                .try_for_each(|number| sorter.push(&(number % 50_000).to_be_bytes(), &[1]));
            let ended = pushed.and_then(|()| sorter.finish()).and_then(all);
            assert!(matches!(ended, Err(Failed::Refused(1))), "{:?}", ended.map(|_| ()));
            assert_eq!(budget.free_bytes(), budget.limit_bytes());
        }
    }
}

#[test]
fn without_a_folder_all_rows_have_to_fit() {
    let budget = Budget::new(1 << 20);
    let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll);
    let pushed = (0..100_000_u32).try_for_each(|number| sorter.push(&number.to_be_bytes(), b""));
    assert!(matches!(pushed, Err(Error::NoTemp)), "{pushed:?}");
    assert!(matches!(sorter.finish().map(|_| ()), Err(Error::Cancelled)));
    assert_eq!(budget.free_bytes(), budget.limit_bytes());
    let little = Budget::new(1000);
    let refused = RowSorter::new(RowsBy::Key, &little, KeepAll).push(b"a", b"b");
    let Err(Error::Memory { least_bytes, .. }) = refused else { panic!("{refused:?}") };
    let enough = Budget::new(least_bytes);
    RowSorter::new(RowsBy::Key, &enough, KeepAll).push(b"a", b"b").expect("the least is enough");
}

/// A row that is longer than a buffer's share, and one that is longer than the memory.
#[test]
fn long_rows_take_what_is_left_or_are_refused() {
    let budget = Budget::new(8 << 20);
    let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp());
    for (key, len) in [("c", 10), ("a", 3_000_000), ("b", 5)] {
        sorter.push(key.as_bytes(), &vec![b'v'; len]).expect("taken");
    }
    let lens: Vec<_> = all(sorter.finish().expect("sorts")).expect("reads");
    let lens: Vec<_> = lens.iter().map(|(_, value)| value.len()).collect();
    assert_eq!(lens, [3_000_000, 5, 10]);
    // One long row is being written when the next one comes.
    for threads in [1, 2] {
        let mut sorter =
            RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp()).threads(threads);
        for number in 0..20_u8 {
            let len = if number % 3 == 0 { 10 } else { 5_000_000 };
            sorter.push(&[20 - number], &vec![number; len]).expect("taken");
        }
        drop(sorter);
    }
    let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp());
    sorter.push(b"a", b"short").expect("taken");
    let refused = sorter.push(b"b", &vec![0; 9 << 20]);
    assert!(matches!(refused, Err(Error::Memory { .. })), "{refused:?}");
    drop(sorter);
    assert_eq!(budget.free_bytes(), budget.limit_bytes());
}

/// The copies of a long row that is combined are reserved.
#[test]
fn copies_of_long_rows_are_reserved() {
    const LONG: usize = 1 << 20;
    let budget = Budget::new(16 << 20);
    let longest = CombineWith::new(|value: &mut Vec<u8>, more: &[u8]| -> Result<(), Error> {
        if more.len() > value.len() {
            value.clear();
            value.extend_from_slice(more);
        }
        Ok(())
    });
    let mut sorter = RowSorter::new(RowsBy::Key, &budget, longest).temp(temp());
    for number in 0..400_000_u32 {
        let long = number == 200_000;
        let value = vec![b'v'; if long { LONG } else { 20 }];
        sorter.push(&(number % 100).to_be_bytes(), &value).expect("taken");
    }
    let found = all(sorter.finish().expect("sorts")).expect("reads");
    assert_eq!((found.len(), found[0].1.len(), found[1].1.len()), (100, LONG, 20));
    let peaks = budget.owner_peaks();
    let of = |owner| peaks.iter().find(|peak| peak.owner == owner).map(|peak| peak.peak_bytes);
    assert!(of("combining rows") >= Some(4 * LONG as u64), "{peaks:?}");
}

/// Where a sort is given up.
#[derive(Debug, Clone, Copy)]
enum GivenUp {
    WhilePushing,
    BeforeFinish,
    WithAProducerLeft,
    AfterFinish,
    WhilePulling,
    WithARowOfATable,
}

/// Dropped at each point: memory, files and threads are given back.
#[test]
fn nothing_is_left_of_a_sort_that_is_given_up() {
    for at in [
        GivenUp::WhilePushing,
        GivenUp::BeforeFinish,
        GivenUp::WithAProducerLeft,
        GivenUp::AfterFinish,
        GivenUp::WhilePulling,
        GivenUp::WithARowOfATable,
    ] {
        for threads in [1, 2] {
            let disk = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(1));
            let budget = Budget::new(1 << 20);
            give_up(at, threads, &disk, &budget);
            assert_eq!(budget.free_bytes(), budget.limit_bytes(), "{at:?}");
            assert_eq!(disk.used_bytes(), 0, "{at:?}");
            assert_eq!(Arc::strong_count(&disk), 1, "a thread of {at:?} has it");
        }
    }
}

fn give_up(at: GivenUp, threads: usize, disk: &Arc<Faulty>, budget: &Budget) {
    let temp: Vec<Arc<dyn Directory>> = vec![disk.clone()];
    let producers = if matches!(at, GivenUp::WithAProducerLeft) { 2 } else { 1 };
    let mut sorter = RowSorter::new(RowsBy::Key, budget, KeepAll)
        .temp(temp)
        .threads(threads)
        .producers(producers);
    let other = (producers == 2).then(|| sorter.producer().expect("fits"));
    let count = if matches!(at, GivenUp::WhilePushing) { 20_001 } else { 60_000 };
    let mut random = Random::new(5);
    for _ in 0..count {
        sorter.push(&random.bits().to_be_bytes(), &[7; 30]).expect("taken");
    }
    if matches!(at, GivenUp::WhilePushing | GivenUp::BeforeFinish) {
        return;
    }
    let finished = sorter.finish();
    if let Some(other) = other {
        assert!(matches!(finished.map(|_| ()), Err(Error::Cancelled)));
        drop(other);
        return;
    }
    let mut rows = finished.expect("sorts");
    if matches!(at, GivenUp::AfterFinish) {
        return;
    }
    rows.next().expect("reads").expect("a row");
    if matches!(at, GivenUp::WithARowOfATable) {
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let memory = Budget::new(16 << 20);
        let table = rows.into_table(&folder, "rest", &memory).expect("written");
        assert_eq!(table.rows_count(), 59_999);
        let mut rows = table.rows_at(0..1).expect("reads");
        rows.next().expect("reads").expect("a row");
    }
}

/// Every operation of a sort on a disk fails in turn: it is an error, nothing stays, and no row is lost in silence.
#[test]
fn every_operation_fails_in_turn() {
    let sort = |disk: &Arc<Faulty>, threads| -> Result<Vec<Row>, Error> {
        let temp: Vec<Arc<dyn Directory>> = vec![disk.clone()];
        let budget = Budget::new(RowSorter::<KeepAll>::least_bytes(1));
        let sum = CombinedFor::<Error>::new(Combine::Count, Type::I64);
        let mut sorter = RowSorter::new(RowsBy::Key, &budget, sum).temp(temp).threads(threads);
        let mut random = Random::new(9);
        let pushed = (0..60_000).try_for_each(|_| {
            sorter.push(&random.below(40_000).to_be_bytes(), &1_i64.to_le_bytes())
        });
        let ended = pushed.and_then(|()| sorter.finish()).and_then(all);
        assert_eq!(budget.free_bytes(), budget.limit_bytes());
        ended
    };
    for threads in [1, 2] {
        let quiet = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(1));
        let expected = sort(&quiet, threads).expect("sorts");
        assert!(expected.len() > 20_000 && quiet.used_bytes() == 0);
        let counts = quiet.counts();
        type Planned = (u64, fn(u64) -> Fault, bool);
        let kinds: [Planned; 6] = [
            (counts.reads, |nth| Fault::FailRead { nth }, true),
            (counts.reads, |nth| Fault::ShortRead { nth }, false),
            (counts.reads, |nth| Fault::FlipRead { nth }, true),
            (counts.writes, |nth| Fault::FailWrite { nth }, true),
            (counts.writes, |nth| Fault::FlipWrite { nth }, true),
            (counts.creates, |nth| Fault::FailCreate { nth }, true),
        ];
        for (count, fault, fails) in kinds {
            assert!(count > 0);
            let step = (count / 25).max(1) as usize;
            for nth in (1..=count).step_by(step) {
                let plan = FaultPlan { seed: 1, faults: vec![fault(nth)] };
                let disk = Faulty::new(MemoryDirectory::new(), plan);
                let ended = {
                    let disk = Arc::clone(&disk);
                    within(&format!("{:?}", fault(nth)), Duration::from_secs(60), move || {
                        sort(&disk, threads)
                    })
                };
                assert_eq!(disk.used_bytes(), 0);
                match ended {
                    Ok(found) => {
                        assert!(!fails || disk.fired().is_empty(), "{:?} was missed", fault(nth));
                        assert!(found == expected);
                    }
                    Err(error) => {
                        let named = matches!(error, Error::Io(_) | Error::Corrupt { .. });
                        assert!(named, "{error}");
                    }
                }
            }
        }
        let full = FaultPlan { seed: 1, faults: vec![Fault::Full { bytes: 100_000 }] };
        let disk = Faulty::new(MemoryDirectory::new(), full);
        assert!(matches!(sort(&disk, threads), Err(Error::Io(_))));
    }
}

/// A merge before the last one ends when it is cancelled.
#[test]
fn a_merge_is_cancelled() {
    struct Cancelled;
    impl Progress for Cancelled {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let budget = Budget::new(RowSorter::<KeepAll>::least_bytes(1));
    let mut sorter = RowSorter::new(RowsBy::Key, &budget, KeepAll).temp(temp());
    let mut random = Random::new(1);
    for _ in 0..400_000 {
        sorter.push(&random.bits().to_be_bytes(), b"some value").expect("taken");
    }
    let ended = sorter.finish_with(&Cancelled);
    assert!(matches!(ended.map(|_| ()), Err(Error::Cancelled)));
    assert_eq!(budget.free_bytes(), budget.limit_bytes());
}

/// Ranges of keys and of row numbers, all of a small table and random ones of a large one.
#[test]
fn ranges_of_a_table_are_those_of_a_list() {
    let mut random = Random::new(21);
    for count in [0, 1, 2, 5, 30_000] {
        let memory = Budget::new(64 << 20);
        let mut sorter = RowSorter::new(RowsBy::KeyAndValue, &memory, KeepAll).temp(temp());
        let mut list: Vec<Row> = (0..count)
            .map(|_| {
                let key = random.below(count / 2 + 1).to_string().into_bytes();
                (key, random.bytes(9))
            })
            .collect();
        for (key, value) in &list {
            sorter.push(key, value).expect("taken");
        }
        list.sort();
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let rows = sorter.finish().expect("sorts");
        rows.into_table(&folder, "list", &memory).expect("written");
        let table = RowTable::open(&folder, &memory).expect("opens");
        assert_eq!(table.rows_count(), count);
        let found = |mut rows: merganser_sort::rows::TableRows<'_>| {
            let mut found = Vec::new();
            while let Some((key, value)) = rows.next().expect("reads") {
                found.push((key.to_vec(), value.to_vec()));
            }
            found
        };
        for _ in 0..if count > 100 { 60 } else { 200 } {
            let (a, b) = (random.below(count + 2), random.below(count + 2));
            let listed: Vec<_> =
                list[(a.min(count) as usize)..(b.min(count).max(a.min(count)) as usize)].to_vec();
            assert_eq!(found(table.rows_at(a..b).expect("reads")), listed, "{a}..{b} of {count}");
            let (a, b) = (a.to_string().into_bytes(), b.to_string().into_bytes());
            let between = |row: &&Row| row.0 >= a && row.0 < b;
            let listed: Vec<_> = list.iter().filter(between).cloned().collect();
            assert_eq!(found(table.rows(&a[..]..&b[..]).expect("reads")), listed);
            let within = |row: &&Row| row.0 >= a && row.0 <= b;
            let listed: Vec<_> = list.iter().filter(within).cloned().collect();
            assert_eq!(found(table.rows(&a[..]..=&b[..]).expect("reads")), listed);
        }
        assert_eq!(found(table.rows::<&[u8]>(..).expect("reads")), list);
    }
}
