//! Equal pages are stored once, and damaged ones are shared by none.

use std::sync::Arc;

use merganser_array::{Hash, Members, Volume, VolumeSettings};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Operation, Storage, StorageExt};
use merganser_testkit::Random;

use crate::common::{Build, MIB, PAGE, shattered, unique};

#[test]
fn duplicates_are_stored_once_and_counted() {
    let directory = MemoryDirectory::new();
    let build = Build::small(true, Some(Hash::Blake3));
    build.create(&*directory);
    let volume = build.open(&*directory).expect("opens");
    let mut random = Random::new(1);
    let page = unique(&mut random);
    for i in 0..100 {
        volume.write_at(i * 2 * PAGE as u64, &page).expect("written");
        volume.write_at((i * 2 + 1) * PAGE as u64, &unique(&mut random)).expect("written");
    }
    while volume.migrate().expect("moves") {}
    let counters = volume.counters();
    assert_eq!((counters.pages_fingerprinted, counters.pages_duplicate), (200, 99));
    assert_eq!((counters.pages_stored, volume.space().pages_used), (101, 101));
    assert!((counters.dedup_rate() - 0.495).abs() < 1e-9);
    // A new opening knows all fingerprints.
    volume.close().expect("closes");
    let volume = build.open(&*directory).expect("opens");
    volume.write_at(300 * PAGE as u64, &page).expect("written");
    while volume.migrate().expect("moves") {}
    assert_eq!(volume.counters().pages_stored, 101);
    // The last volume page that leaves a stored page frees it.
    volume.run(Operation::Discard { offset: 0, len: 200 * PAGE as u64 }).expect("trimmed");
    while volume.migrate().expect("moves") {}
    assert_eq!(volume.space().pages_used, 1);
    assert_eq!(volume.read_vec(300 * PAGE as u64, PAGE).expect("reads"), page);
    assert_eq!(volume.read_vec(0, PAGE).expect("reads"), vec![0; PAGE]);
}

/// Damages the pages of a directory's members that have these bytes; returns how many.
fn damage_pages(directory: &dyn Directory, prefix: &str, bytes: &[u8]) -> usize {
    let mut count = 0;
    for name in directory.list().expect("lists") {
        let member = directory.open(&name, true).expect("opens");
        for at in (0..member.size()).step_by(PAGE).filter(|_| name.starts_with(prefix)) {
            if member.read_vec(at, PAGE).expect("reads") == bytes {
                member.write_at(at + 1000, b"damage").expect("written");
                count += 1;
            }
        }
    }
    count
}

/// A stored page is damaged, whether a read has found it or not. Its bytes are written again, to the same page of the
/// volume and to another one: they are not lost with it.
#[test]
fn a_damaged_page_is_shared_by_no_later_write() {
    for (buffered, found) in [(true, false), (true, true), (false, false), (false, true)] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        let bytes = unique(&mut Random::new(1));
        let move_all = || {
            volume.sync().expect("flushed");
            while volume.migrate().expect("moves") {}
        };
        for page in 0..3 {
            volume.write_at(page * PAGE as u64, &bytes).expect("written");
        }
        move_all();
        assert_eq!(damage_pages(&*directory, "ssd", &bytes), 1);
        if found {
            let why = volume.read_vec(0, PAGE).expect_err("damaged").to_string();
            assert!(why.contains("page 0 is damaged"), "{why}");
        }
        for page in [0, 7] {
            volume.write_at(page * PAGE as u64, &bytes).expect("written");
        }
        move_all();
        let check = |volume: &Volume| {
            for page in [0, 7] {
                let read = volume.read_vec(page * PAGE as u64, PAGE).expect("was written again");
                assert!(read == bytes);
            }
            // Nobody has written these again.
            for page in [1, 2] {
                volume.read_vec(page * PAGE as u64, PAGE).expect_err("damaged");
            }
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert_eq!((check.problems, check.pages_leaked), (2, 0), "{check:?}");
        };
        check(&volume);
        let counters = volume.counters();
        assert_eq!((counters.pages_stored, counters.pages_collided), (2, 0), "{counters:?}");
        drop(volume);
        check(&build.open(&*directory).expect("opens"));
    }
}

/// Many pages in turn are written again elsewhere, so that stored pages are read together. Those that were damaged
/// are shared by none of them, whether the damage came before the first comparison or between two moves.
#[test]
fn damaged_pages_among_those_that_are_compared_together_are_not_shared() {
    const PAGES: u64 = 80;
    for buffered in [true, false] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        let mut random = Random::new(1);
        let contents: Vec<_> = (0..PAGES).map(|_| unique(&mut random)).collect();
        let write_from = |first: u64| {
            let bytes: Vec<u8> = contents.iter().flatten().copied().collect();
            volume.write_at(first * PAGE as u64, &bytes).expect("written");
            volume.sync().expect("flushed");
            while volume.migrate().expect("moves") {}
        };
        write_from(0);
        assert_eq!(damage_pages(&*directory, "ssd", &contents[40]), 1);
        write_from(PAGES);
        assert_eq!(damage_pages(&*directory, "ssd", &contents[41]), 1);
        write_from(2 * PAGES);
        // The last one was read a moment ago, with those before it.
        let last = &contents[PAGES as usize - 1];
        assert_eq!(damage_pages(&*directory, "ssd", last), 1);
        volume.write_at(4 * PAGES * PAGE as u64, last).expect("written");
        volume.sync().expect("flushed");
        while volume.migrate().expect("moves") {}
        assert!(volume.read_vec(4 * PAGES * PAGE as u64, PAGE).expect("its own") == *last);
        for (first, lost) in [(0, 3), (PAGES, 2), (2 * PAGES, 1)] {
            let reads = (0..PAGES).map(|page| volume.read_vec((first + page) * PAGE as u64, PAGE));
            let good = reads
                .zip(&contents)
                .filter(|(read, content)| read.as_ref().is_ok_and(|read| read == *content));
            assert_eq!(good.count() as u64, PAGES - lost, "{buffered}, from page {first}");
        }
        let counters = volume.counters();
        assert_eq!((counters.pages_stored, counters.pages_duplicate), (PAGES + 3, 2 * PAGES - 2));
    }
}

/// Bytes are compared, whatever the hash, unless it is trusted.
#[test]
fn pages_with_one_sha1_stay_two_pages() {
    let [first, second] = shattered::pages();
    assert!(first != second);
    for (compare, moves) in [(true, true), (true, false), (false, true)] {
        let mut build = Build::small(true, Some(Hash::Sha1));
        assert!(build.settings.compare, "the default");
        build.settings.compare = compare;
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        for (page, bytes) in [(0, &first), (5, &second)] {
            volume.write_at(page * PAGE as u64, bytes).expect("written");
            // The page that it is compared with is on the members, or in memory yet.
            while moves && volume.migrate().expect("moves") {}
        }
        while volume.migrate().expect("moves") {}
        let counters = volume.counters();
        let expected = if compare { (2, 1) } else { (1, 0) };
        assert_eq!((counters.pages_stored, counters.pages_collided), expected, "{counters:?}");
        assert_eq!(counters.pages_compared > 0, compare && moves);
        if compare {
            assert!(volume.read_vec(0, PAGE).expect("reads") == first);
            assert!(volume.read_vec(5 * PAGE as u64, PAGE).expect("reads") == second);
        }
    }
}

/// Half of what is written has been written before: with maps and index, at most 0.55 of the bytes
/// reach the data members.
#[test]
fn half_duplicates_cost_little_more_than_half_the_bytes() {
    let disk = |name: &str, bytes: u64| {
        let disk = MemoryStorage::new(name);
        disk.run(Operation::SetSize { size: bytes }).expect("sized");
        disk as Arc<dyn Storage>
    };
    let members = Members {
        data: vec![disk("s0", 80 * MIB), disk("s1", 80 * MIB)],
        buffer: vec![disk("h0", 40 * MIB)],
    };
    Volume::create("vol", &members, &VolumeSettings::new(64 * MIB), false).expect("made");
    let volume = Volume::open("vol", &members, Default::default()).expect("opens");
    let mut random = Random::new(3);
    let mut written: Vec<Vec<u8>> = Vec::new();
    for i in 0..16_000_u64 {
        let page = match i % 2 {
            0 => unique(&mut random),
            _ => written[random.index(written.len())].clone(),
        };
        volume.write_at(i * PAGE as u64, &page).expect("written");
        if i % 2 == 0 {
            written.push(page);
        }
    }
    while volume.migrate().expect("moves") {}
    volume.close().expect("closes");
    let counters = volume.counters();
    assert_eq!(counters.pages_stored, 8000);
    let amplification = counters.write_amplification();
    assert!((0.5..0.55).contains(&amplification), "{amplification}");
}
