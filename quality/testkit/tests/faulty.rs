//! The failing directory fails as its list says, and only so.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Operation, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use proptest::prelude::*;

const PAGE: usize = 4096;

fn faulty(faults: &[Fault], seed: u64) -> Arc<Faulty> {
    Faulty::new(MemoryDirectory::new(), FaultPlan { seed, faults: faults.to_vec() })
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

#[test]
fn only_synced_data_surely_survives_a_crash() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let directory = faulty(&[], seed);
        let run = directory.create("run").expect("create");
        run.write_at(0, &[1; 2 * PAGE]).expect("write");
        run.sync().expect("sync");
        directory.sync().expect("sync");
        run.write_at(0, &[2; 3 * PAGE]).expect("write");
        directory.crash().expect("crash");

        assert!(run.read_vec(0, 1).is_err(), "a handle from before");
        let run = directory.open("run", true).expect("its name was synced");
        let pages = run.read_vec(0, run.size() as usize).expect("read");
        let pages: Vec<u8> = pages.chunks(PAGE).map(|page| page[0]).collect();
        assert!(pages.len() >= 2 && pages[..2].iter().all(|b| [1, 2].contains(b)), "{pages:?}");
        outcomes.insert(pages);
    }
    assert!(outcomes.contains(&vec![1, 1]), "all lost");
    assert!(outcomes.contains(&vec![2, 2, 2]), "nothing lost");
    assert!(outcomes.contains(&vec![1, 2, 2]) && outcomes.contains(&vec![2, 1]), "torn");
}

#[test]
fn names_that_were_not_synced_go_from_the_end() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let directory = faulty(&[], seed);
        for (name, byte) in [("old", 1), ("kept", 2)] {
            directory.create(name).expect("create").write_at(0, &[byte]).expect("write");
            directory.open(name, true).expect("open").sync().expect("sync");
        }
        directory.sync().expect("sync");
        let new = directory.create("new").expect("create");
        new.write_at(0, &[3]).expect("write");
        new.sync().expect("sync");
        directory.rename("new", "old").expect("rename");
        directory.remove("kept").expect("remove");
        assert_eq!(directory.list().expect("list"), ["old"]);
        directory.crash().expect("crash");

        let names = directory.list().expect("list");
        let old = directory.open("old", false).expect("in any case");
        outcomes.insert((names, old.read_vec(0, 1).expect("synced")[0]));
    }
    let outcome = |names: &[&str], byte| (names.iter().map(|&n| n.to_owned()).collect(), byte);
    let wanted = [
        outcome(&["kept", "old"], 1),
        outcome(&["kept", "new", "old"], 1),
        outcome(&["kept", "old"], 3),
        outcome(&["old"], 3),
    ];
    assert_eq!(outcomes, wanted.into_iter().collect());
}

#[test]
fn each_planned_failure_comes_once_and_is_recorded() {
    let faults = [
        Fault::FailRead { nth: 2 },
        Fault::FailSync { nth: 1 },
        Fault::FailCreate { nth: 2 },
        Fault::FailRename { nth: 1 },
    ];
    let directory = faulty(&faults, 1);
    let run = directory.create("a").expect("create");
    run.write_at(0, b"x").expect("write");
    run.read_vec(0, 1).expect("the first read");
    let error = run.read_vec(0, 1).expect_err("the second read");
    assert!(error.to_string().ends_with("injected fault FailRead { nth: 2 }"), "{error}");
    run.read_vec(0, 1).expect("the third read");
    run.sync().expect_err("the first sync");
    run.sync().expect("the second sync");
    assert!(directory.create("b").is_err());
    assert_eq!(directory.list().expect("list"), ["a"]);
    directory.rename("a", "b").expect_err("the first rename");
    directory.rename("a", "b").expect("the second rename");
    assert_eq!(directory.fired().len(), 4);
    let counts = directory.counts();
    assert_eq!((counts.reads, counts.writes, counts.syncs), (3, 1, 2));
    assert_eq!((counts.creates, counts.renames, counts.changes), (2, 2, 7));
}

#[test]
fn a_failed_write_leaves_some_of_its_first_pages() {
    let mut arrived = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let directory = faulty(&[Fault::FailWrite { nth: 1 }], seed);
        let run = directory.create("run").expect("create");
        run.write_at(10, &[7; 3 * PAGE]).expect_err("planned");
        arrived.insert(run.size());
        let content = run.read_vec(0, run.size() as usize).expect("read");
        assert!(content.iter().skip(10).all(|&b| b == 7));
        run.write_at(10, &[8; 3 * PAGE]).expect("the second one");
    }
    assert_eq!(arrived.into_iter().collect::<Vec<_>>(), [0, 4096, 8192, 12288]);
}

#[test]
fn data_of_a_failed_sync_stays_in_doubt() {
    let lost = (0..20).any(|seed| {
        let directory = faulty(&[Fault::FailSync { nth: 3 }], seed);
        let run = directory.create("run").expect("create");
        run.write_at(0, &[9; 2 * PAGE]).expect("write");
        run.sync().expect("sync");
        directory.sync().expect("sync");
        run.write_at(0, &[1; 2 * PAGE]).expect("write");
        run.sync().expect_err("planned");
        run.write_at(PAGE as u64, &[2; PAGE]).expect("write");
        run.sync().expect("this one works");
        directory.crash().expect("crash");
        let run = directory.open("run", false).expect("open");
        assert_eq!(run.read_vec(PAGE as u64, PAGE).expect("read"), [2; PAGE]);
        let first = run.read_vec(0, PAGE).expect("read");
        assert!(first == [1; PAGE] || first == [9; PAGE]);
        first[0] == 9
    });
    assert!(lost, "the first page must be lost at times");
}

#[test]
fn wrong_bits_and_short_reads() {
    let faults =
        [Fault::FlipWrite { nth: 2 }, Fault::FlipRead { nth: 2 }, Fault::ShortRead { nth: 4 }];
    let directory = faulty(&faults, 5);
    let run = directory.create("run").expect("create");
    let wrong = |bytes: Vec<u8>| bytes.iter().map(|b| b.count_ones()).sum::<u32>();
    run.write_at(0, &[0; 100]).expect("write");
    assert_eq!(wrong(run.read_vec(0, 100).expect("read")), 0);
    assert_eq!(wrong(run.read_vec(0, 100).expect("read")), 1, "once");
    assert_eq!(wrong(run.read_vec(0, 100).expect("read")), 0);
    assert_eq!(kind(run.read_vec(0, 100)), ErrorKind::UnexpectedEof);
    let mut buffer = merganser_storage::Buffer::new(100);
    buffer.fill(0);
    let (buffer, _) = run.run(Operation::Write { offset: 0, buffer }).expect("write");
    assert_eq!(wrong(buffer.expect("comes back").to_vec()), 0, "the caller's bytes are right");
    for _ in 0..2 {
        assert_eq!(wrong(run.read_vec(0, 100).expect("read")), 1, "for good");
    }
    assert_eq!(directory.fired().len(), 3);
}

#[test]
fn a_disk_is_full_until_space_is_given_back() {
    let directory = faulty(&[Fault::Full { bytes: 4 * PAGE as u64 }], 1);
    let a = directory.create("a").expect("create");
    a.write_at(0, &[1; 3 * PAGE]).expect("fits");
    let b = directory.create_unnamed().expect("create");
    assert_eq!(kind(b.write_at(0, &[2; 2 * PAGE])), ErrorKind::StorageFull);
    assert_eq!((b.size(), directory.used_bytes()), (4096, 4 * 4096), "its first page arrived");
    a.write_at(0, &[3; 3 * PAGE]).expect("what is there can be overwritten");
    assert_eq!(kind(a.run(Operation::Allocate { offset: 0, len: 16_384 })), ErrorKind::StorageFull);
    a.run(Operation::Discard { offset: 100, len: 8192 }).expect("discard");
    b.write_at(0, &[2; 2 * PAGE]).expect("one page was given back");
    drop(b);
    assert_eq!(directory.used_bytes(), 2 * 4096);
    directory.remove("a").expect("remove");
    assert_eq!(directory.used_bytes(), 2 * 4096, "still open");
    drop(a);
    assert_eq!(directory.used_bytes(), 0);
}

#[test]
fn a_power_cut_stops_everything_until_the_crash() {
    // Changes: create, write, sync, directory sync, write.
    for nth in 1..=5 {
        let directory = faulty(&[Fault::PowerCut { nth }], nth);
        let work = || -> io::Result<()> {
            let run = directory.create("run")?;
            run.write_at(0, &[1; PAGE])?;
            run.sync()?;
            directory.sync()?;
            run.write_at(PAGE as u64, &[2; PAGE])
        };
        work().expect_err("cut");
        directory.list().expect_err("no power");
        assert_eq!((directory.counts().changes, directory.fired().len()), (nth, 1));
        directory.crash().expect("crash");
        match directory.open("run", false) {
            Ok(run) if nth >= 4 => {
                assert_eq!(run.read_vec(0, PAGE).expect("synced"), [1; PAGE]);
            }
            Ok(_) => assert!(nth > 1),
            Err(e) => assert!(nth <= 4 && e.kind() == ErrorKind::NotFound),
        }
    }
}

#[test]
fn a_wrapped_input_fails_too() {
    let directory = faulty(&[Fault::FailRead { nth: 1 }], 1);
    let input = directory.wrap(MemoryStorage::from_bytes("input", b"abc"));
    input.read_vec(0, 3).expect_err("planned");
    assert_eq!(input.read_vec(0, 3).expect("read"), b"abc");
    assert_eq!(directory.used_bytes(), 0);
}

#[test]
fn plans_are_fixed_by_their_seed() {
    let plans: Vec<FaultPlan> = (0..50).map(|seed| FaultPlan::draw(seed, 10)).collect();
    assert!(plans.iter().zip(0..).all(|(plan, seed)| *plan == FaultPlan::draw(seed, 10)));
    let all = || plans.iter().flat_map(|plan| &plan.faults);
    assert!(all().any(|f| matches!(f, Fault::PowerCut { .. })));
    assert!(all().any(|f| matches!(f, Fault::FailRead { nth: 1..=10 })));
}

/// What may be in a storage after a crash.
#[derive(Clone, Default)]
struct Model {
    now: Vec<u8>,
    /// Content at each moment since the last sync, that one included.
    since_sync: Vec<Vec<u8>>,
}

impl Model {
    fn allows(&self, found: &[u8]) -> bool {
        let page_of = |content: &[u8], at: usize, len: usize| {
            let mut page = content.get(at..).unwrap_or_default().to_vec();
            page.resize(page.len().max(len), 0);
            page.truncate(len);
            page
        };
        let sizes = [self.now.len(), self.since_sync.first().map_or(0, Vec::len)];
        sizes.contains(&found.len())
            && found.chunks(PAGE).enumerate().all(|(number, page)| {
                let versions = self.since_sync.iter().chain([&self.now]);
                versions.into_iter().any(|v| page_of(v, number * PAGE, page.len()) == page)
            })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Random writes, size changes, discards and syncs, then a crash, several times over.
    #[test]
    fn a_crash_leaves_old_or_new_pages_and_nothing_else(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let directory = faulty(&[], seed);
        let mut run = directory.create("run").expect("create");
        directory.sync().expect("sync");
        let mut model = Model { now: Vec::new(), since_sync: vec![Vec::new()] };
        for step in 0..60_u8 {
            let offset = random.index(5 * PAGE);
            let len = 1 + random.index(3 * PAGE);
            let before = model.now.clone();
            match random.below(12) {
                0..6 => {
                    run.write_at(offset as u64, &vec![step; len]).expect("write");
                    model.now.resize(before.len().max(offset + len), 0);
                    model.now[offset..offset + len].fill(step);
                }
                6 => {
                    run.run(Operation::SetSize { size: offset as u64 }).expect("set size");
                    model.now.resize(offset, 0);
                }
                7 => {
                    let discard = Operation::Discard { offset: offset as u64, len: len as u64 };
                    run.run(discard).expect("discard");
                    let end = before.len().min(offset + len);
                    model.now[offset.min(end)..end].fill(0);
                }
                8 | 9 => {
                    run.sync().expect("sync");
                    model.since_sync = Vec::new();
                }
                10 => {
                    let content = run.read_vec(0, run.size() as usize).expect("read");
                    prop_assert!(content == model.now);
                }
                _ => {
                    directory.crash().expect("crash");
                    run = directory.open("run", true).expect("open");
                    let found = run.read_vec(0, run.size() as usize).expect("read");
                    prop_assert!(model.allows(&found), "step {step}");
                    model = Model { now: found, since_sync: Vec::new() };
                }
            }
            model.since_sync.push(if model.since_sync.is_empty() { model.now.clone() } else { before });
        }
    }

    /// Random creates, renames, removes and directory syncs, then a crash: the names are those
    /// after some of the changes since the last sync, and each still means the same storage.
    #[test]
    fn names_after_a_crash_are_those_of_some_moment_since_the_sync(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let directory = faulty(&[], seed);
        let look = || -> BTreeMap<String, u8> {
            let names = directory.list().expect("list");
            names.into_iter().map(|name| {
                let storage = directory.open(&name, false).expect("open");
                let byte = storage.read_vec(0, 1).expect("read")[0];
                (name, byte)
            }).collect()
        };
        let mut moments: Vec<BTreeMap<String, u8>> = vec![BTreeMap::new()];
        for step in 0..60_u8 {
            let mut now = moments.last().expect("never empty").clone();
            let name = format!("f{}", random.below(4));
            let other = format!("f{}", random.below(4));
            match random.below(9) {
                0..3 => match directory.create(&name) {
                    Ok(storage) => {
                        storage.write_at(0, &[step]).expect("write");
                        storage.sync().expect("sync");
                        prop_assert!(now.insert(name, step).is_none());
                    }
                    Err(e) => prop_assert!(e.kind() == ErrorKind::AlreadyExists && now.contains_key(&name)),
                },
                3 | 4 => match directory.rename(&name, &other) {
                    Ok(()) => {
                        let byte = now.remove(&name).expect("was there");
                        now.insert(other, byte);
                    }
                    Err(e) => prop_assert!(e.kind() == ErrorKind::NotFound && !now.contains_key(&name)),
                },
                5 | 6 => match directory.remove(&name) {
                    Ok(()) => prop_assert!(now.remove(&name).is_some()),
                    Err(e) => prop_assert!(e.kind() == ErrorKind::NotFound && !now.contains_key(&name)),
                },
                7 => {
                    directory.sync().expect("sync");
                    moments.clear();
                }
                _ => {
                    directory.crash().expect("crash");
                    now = look();
                    prop_assert!(moments.contains(&now), "step {step}: {now:?} of {moments:?}");
                    moments.clear();
                }
            }
            prop_assert_eq!(&look(), &now);
            moments.push(now);
        }
    }
}

#[test]
fn directories_of_one_machine_lose_power_together() {
    let plan = FaultPlan { seed: 1, faults: vec![Fault::PowerCut { nth: 3 }] };
    let a = Faulty::new(MemoryDirectory::new(), plan.clone());
    let b = a.beside(MemoryDirectory::new(), plan);
    a.create("x").expect("the first change");
    b.create("y").expect("the second change");
    b.create("z").map(|_| ()).expect_err("the third change");
    a.create("w").map(|_| ()).expect_err("no power here either");
    a.crash().expect("comes back");
    b.crash().expect("comes back");
    b.create("after").expect("power is back");
}
