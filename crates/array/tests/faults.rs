//! Full members, failing members, members in wrong places, and damage.

mod common;

use std::sync::Arc;

use common::unreadable::unreadable;
use common::{Build, MIB, Model, PAGE, content, copy_of, unique};
use merganser_array::{Error, Hash, Members, Migration, Settings, Volume};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Operation, Storage, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, Faulty, Plan};

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
    let [first, second] = common::shattered::pages();
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
    Volume::create("vol", &members, &Settings::new(64 * MIB), false).expect("made");
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

#[test]
fn full_data_members_are_an_error_that_passes() {
    for buffered in [true, false] {
        let directory = MemoryDirectory::new();
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.settings = Settings { size: 64 * MIB, thin: true, ..build.settings };
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        let mut random = Random::new(2);
        let mut model = Model::new((64 * MIB) as usize / PAGE);
        let mut at = 0;
        let error = loop {
            let bytes: Vec<u8> = (0..16).flat_map(|_| unique(&mut random)).collect();
            match volume.write_at(at, &bytes) {
                Ok(()) => model.write(at, &bytes, true),
                Err(error) => {
                    model.write(at, &bytes, false);
                    break error;
                }
            }
            at += bytes.len() as u64;
        };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        assert!(error.to_string().contains("the data members are full"), "{error}");
        let space = volume.space();
        assert!(space.pages_used + 64 >= space.pages, "{space:?}");
        // Everything that was acknowledged is there, now and after an opening.
        volume.sync().expect("flushed");
        model.flushed_but(at, 16);
        model.check_after_cut(&volume, "full");
        let volume = build.open(&*directory).expect("opens");
        model.check_after_cut(&volume, "opened full");
        // Trims make room again.
        volume.run(Operation::Discard { offset: 0, len: 2 * MIB }).expect("trimmed");
        model.write(0, &vec![0; 2 * MIB as usize], true);
        let bytes: Vec<u8> = (0..16).flat_map(|_| unique(&mut random)).collect();
        volume.write_at(at, &bytes).expect("there is room");
        model.write(at, &bytes, true);
        // The buffer holds more than that yet.
        while volume.migrate().unwrap_or(false) {}
        volume.run(Operation::Discard { offset: 2 * MIB, len: 4 * MIB }).expect("trimmed");
        model.write(2 * MIB, &vec![0; 4 * MIB as usize], true);
        while volume.migrate().expect("moves") {}
        model.flushed();
        model.check_after_cut(&volume, "trimmed");
        let check = volume.check(&mut |_, _| {}).expect("checks");
        assert_eq!((check.problems, check.pages_leaked), (0, 0), "{check:?}");
    }
}

#[test]
fn a_full_buffer_waits_for_the_data_members() {
    let directory = MemoryDirectory::new();
    let mut build = Build::small(true, Some(Hash::Blake3));
    build.options.high_water_percent = 100;
    build.options.migration = Migration::HighWater;
    build.create(&*directory);
    let volume = build.open(&*directory).expect("opens");
    let mut random = Random::new(4);
    let mut model = Model::new(512);
    // Several times what the buffer holds.
    for _ in 0..400 {
        let bytes = content(&mut random, 8);
        let at = random.below(504) * PAGE as u64;
        volume.write_at(at, &bytes).expect("written");
        model.write(at, &bytes, true);
        let space = volume.space();
        assert!(space.buffer_bytes_used <= space.buffer_bytes, "{space:?}");
    }
    assert!(volume.counters().log_bytes > 2 * volume.space().buffer_bytes);
    model.flushed();
    model.check_after_cut(&volume, "wrapped");
}

/// A member that fails once: its name is in the error, later writes are refused, reads continue, and what was
/// flushed is there after an opening.
#[test]
fn a_failing_member_is_named_and_nothing_flushed_is_lost() {
    for (nth_fault, member) in [
        (Fault::FailWrite { nth: 30 }, "hdd1"),
        (Fault::FailSync { nth: 8 }, "hdd1"),
        (Fault::FailWrite { nth: 40 }, "ssd1"),
        (Fault::FailSync { nth: 12 }, "ssd1"),
    ] {
        let build = Build::small(true, Some(Hash::Blake3));
        let good = MemoryDirectory::new();
        build.create(&*good);
        let plan = Plan { seed: 1, faults: vec![nth_fault] };
        let faulty = Faulty::new(copy_of(&*good), plan);
        let mut members = build.members(&*good);
        let bad = faulty.open(member, true).expect("opens");
        let place = usize::from(member.ends_with('1'));
        if member.starts_with('h') {
            members.buffer[place] = bad;
        } else {
            members.data[place] = bad;
        }
        let volume = Volume::open("vol", &members, build.options.clone()).expect("opens");
        let mut random = Random::new(5);
        let mut model = Model::new(512);
        let error = 'failed: {
            for _ in 0..2000 {
                let bytes = content(&mut random, 20);
                let at = random.below(492) * PAGE as u64;
                let result = volume.write_at(at, &bytes);
                model.write(at, &bytes, result.is_ok());
                if let Err(error) = result.and_then(|()| volume.sync()) {
                    break 'failed error;
                }
                model.flushed();
                if let Err(error) = volume.migrate() {
                    break 'failed error.to_io();
                }
            }
            panic!("{nth_fault:?} of {member} has not happened");
        };
        assert!(error.to_string().contains(member), "{nth_fault:?}: {error}");
        let error = volume.write_at(0, b"x").expect_err("refused").to_string();
        assert!(error.contains("writes are refused since an earlier one failed"), "{error}");
        assert!(volume.sync().is_err() && volume.close().is_err());
        model.check_refusing(&volume, member);
        drop(volume);
        let volume = Volume::open("vol", &members, build.options.clone()).expect("opens");
        model.check_after_cut(&volume, member);
    }
}

/// After a failed sync, the system may take the pages for written and forget them. Pages that an opening has
/// found and served must not change with the next cut, although its own sync succeeded.
#[test]
fn what_an_opening_found_after_a_failed_sync_survives_a_cut() {
    for buffered in [true, false] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let good = MemoryDirectory::new();
        build.create(&*good);
        let run = |disk: &Arc<Faulty>, model: &mut Model| -> Result<(), Error> {
            let volume = build.open(&**disk)?;
            let mut random = Random::new(5);
            for i in 0..12 {
                let bytes = content(&mut random, 20);
                let at = random.below(492) * PAGE as u64;
                let result = volume.write_at(at, &bytes);
                model.write(at, &bytes, result.is_ok());
                result?;
                if i % 2 == 0 {
                    volume.sync()?;
                    model.flushed();
                }
                if i % 5 == 4 {
                    volume.migrate()?;
                }
            }
            volume.close()
        };
        let quiet = Faulty::new(copy_of(&*good), Plan::quiet(1));
        run(&quiet, &mut Model::new(512)).expect("no fault");
        let mut accepted = 0;
        // Both members of a role are synced at once, so that the other one keeps its pages.
        for nth in 1..=quiet.counts().syncs {
            for seed in 0..2 {
                let plan = Plan { seed, faults: vec![Fault::FailSync { nth }] };
                let disk = Faulty::new(copy_of(&*good), plan);
                let mut model = Model::new(512);
                run(&disk, &mut model).expect_err("a sync fails");
                let before: Vec<_> = model.now.clone();
                let volume = build.open(&*disk).expect("opens");
                let what = format!("buffered {buffered}, sync {nth}, seed {seed}");
                model.check_after_cut(&volume, &what);
                accepted += u64::from(before == model.now);
                drop(volume);
                disk.crash().expect("crashes");
                let volume = build.open(&*disk).expect("opens");
                model.check_after_cut(&volume, &format!("{what}, after the cut"));
            }
        }
        assert!(accepted > 0, "no opening found what had not been synced");
    }
}

#[test]
fn members_in_wrong_places_are_named() {
    let directory = MemoryDirectory::new();
    let build = Build::small(true, Some(Hash::Blake3));
    build.create(&*directory);
    let members = build.members(&*directory);
    let refused = |members: &Members| {
        let result = Volume::open("vol", members, build.options.clone());
        let Err(error) = result else { panic!("opens") };
        assert!(matches!(error, Error::Member { .. }), "{error:?}");
        error.to_string()
    };
    let swapped = Members { data: members.data.iter().rev().cloned().collect(), ..members.clone() };
    assert_eq!(refused(&swapped), "memory/ssd1: is data member 1 of 2, and stands at place 0");
    let crossed = Members { data: members.buffer.clone(), buffer: members.data.clone() };
    assert_eq!(
        refused(&crossed),
        "memory/hdd0: is a buffer member, and stands where a data member belongs"
    );
    let missing = Members { data: members.data[..1].to_vec(), ..members.clone() };
    assert_eq!(refused(&missing), "memory/ssd0: is one of 2 data members, and 1 are given");
    let without = Members { buffer: Vec::new(), ..members.clone() };
    assert!(refused(&without).contains("no buffer member is given"));
    let other = MemoryDirectory::new();
    build.create(&*other);
    let mut mixed = members.clone();
    mixed.data[1] = build.members(&*other).data[1].clone();
    assert_eq!(refused(&mixed), "memory/ssd1: belongs to another volume than memory/ssd0");
    mixed = Members { buffer: build.members(&*other).buffer, ..members.clone() };
    assert!(refused(&mixed).contains("belongs to another volume"));
    let blank = MemoryStorage::new("blank");
    blank.run(Operation::SetSize { size: 4 * MIB }).expect("sized");
    mixed = members.clone();
    mixed.data[0] = blank;
    assert_eq!(refused(&mixed), "blank: has no label of a volume");
    let again = Volume::create("vol", &members, &build.settings, false).expect_err("refused");
    assert_eq!(again.to_string(), "memory/ssd0: belongs to a volume already");
    // One damaged copy of a label does no harm.
    members.data[0].write_at(100, b"damage").expect("written");
    build.open(&*directory).expect("opens");
}

/// Any bit of any member may flip, of a volume that was closed or of one whose journal and log are repeated: a read then
/// gives the right bytes or an error, and a check finds what reads find.
#[test]
fn damage_is_an_error_and_never_data() {
    for (buffered, closed) in [(true, true), (true, false), (false, true), (false, false)] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let mut model = Model::new(512);
        {
            let volume = build.open(&*directory).expect("opens");
            let mut random = Random::new(6);
            for i in 0..120 {
                let bytes = content(&mut random, 8);
                let at = random.below(504) * PAGE as u64;
                volume.write_at(at, &bytes).expect("written");
                model.write(at, &bytes, true);
                if i % 40 == 39 {
                    volume.sync().expect("flushed");
                    while i < 100 && volume.migrate().expect("moves") {}
                }
            }
            if closed {
                volume.close().expect("closes");
            } else {
                // Without it, damage to the last flush looks like a write that a cut tore.
                volume.seal().expect("sealed");
            }
        }
        model.flushed();
        // Where something is, and of these places the ones with maps, transactions and records.
        let (mut places, mut maps) = (Vec::new(), Vec::new());
        for name in directory.list().expect("lists") {
            let member = directory.open(&name, false).expect("opens");
            for at in (0..member.size()).step_by(PAGE) {
                let block = member.read_vec(at, PAGE).expect("reads");
                if block.iter().any(|&byte| byte != 0) {
                    places.push((name.clone(), at));
                    if [b"MtbB", b"MtbS", b"MjrT", b"MlgR"].iter().any(|own| block[..4] == own[..])
                    {
                        maps.push((name.clone(), at));
                    }
                }
            }
        }
        let mut random = Random::new(7);
        let (mut errors, mut refused) = (0, 0);
        for i in 0..180 {
            let copy = copy_of(&*directory);
            let among = if i % 3 == 2 { &maps } else { &places };
            let (name, block) = &among[random.index(among.len())];
            let member = copy.open(name, true).expect("opens");
            let at = block + random.below(PAGE as u64);
            let byte = member.read_vec(at, 1).expect("reads")[0];
            member.write_at(at, &[byte ^ 1 << random.below(8)]).expect("written");
            let volume = match build.open(&*copy) {
                Ok(volume) => volume,
                Err(error) => {
                    assert!(error.is_damage(), "{error:?}");
                    refused += 1;
                    continue;
                }
            };
            let mut failed = 0;
            for page in 0..512 {
                match volume.read_vec(page * PAGE as u64, PAGE) {
                    Ok(read) => {
                        assert!(read == *model.now[page as usize], "{name} at {at}: page {page}");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
                        failed += 1;
                    }
                }
            }
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert!(check.problems >= failed, "{name} at {at}: {failed} pages, {check:?}");
            errors += failed;
        }
        let what = format!("buffered {buffered}, closed {closed}");
        assert!(errors > 20 && refused > 0, "{what}: {errors} errors, {refused} refused");
    }
}

/// A page that was damaged in the buffer stays an error when it moves, and is good again when it is
/// written.
#[test]
fn a_page_damaged_in_the_buffer_is_lost_until_it_is_written() {
    let directory = MemoryDirectory::new();
    let build = Build::small(true, Some(Hash::Blake3));
    build.create(&*directory);
    let volume = build.open(&*directory).expect("opens");
    volume.write_at(0, &vec![7; 2 * PAGE]).expect("written");
    volume.sync().expect("flushed");
    // Label, first block of the record, first page.
    let member = directory.open("hdd0", true).expect("opens");
    member.write_at(MIB + PAGE as u64 + 5, b"damage").expect("written");
    let why = volume.read_vec(0, PAGE).expect_err("damaged").to_string();
    assert!(why.contains("page 0 is damaged") && why.contains("buffer"), "{why}");
    while volume.migrate().expect("moves") {}
    let why = volume.read_vec(0, PAGE).expect_err("lost").to_string();
    assert!(why.contains("page 0 (byte 0) was lost to damage; write it again"), "{why}");
    assert_eq!(volume.read_vec(PAGE as u64, PAGE).expect("reads"), vec![7; PAGE]);
    volume.close().expect("closes");
    let volume = build.open(&*directory).expect("opens");
    assert!(volume.read_vec(0, 1).is_err());
    assert_eq!(volume.check(&mut |_, _| {}).expect("checks").problems, 1);
    volume.write_at(0, &vec![8; PAGE]).expect("written");
    assert_eq!(volume.read_vec(0, PAGE).expect("reads"), vec![8; PAGE]);
}

fn at(page: u64) -> u64 {
    page * PAGE as u64
}

/// Pages 0 to 7 of a volume, written as one record of the log, and its members.
fn eight_pages(
    build: &Build,
    directory: &dyn Directory,
) -> (Volume, Model, Vec<Arc<common::unreadable::Unreadable>>) {
    build.create(directory);
    let (members, all) = unreadable(build.members(directory));
    let volume = Volume::open("vol", &members, build.options.clone()).expect("opens");
    let mut model = Model::new(512);
    let mut random = Random::new(1);
    let bytes: Vec<u8> = (0..8).flat_map(|_| unique(&mut random)).collect();
    volume.write_at(0, &bytes).expect("written");
    model.write(0, &bytes, true);
    volume.sync().expect("flushed");
    model.flushed();
    (volume, model, all)
}

/// A sector of the buffer that can't be read costs its page, or nothing where it is the first block of a record. Other
/// writes, and the moves, continue.
#[test]
fn an_unreadable_page_of_the_buffer_is_lost_alone() {
    // The first block of the record, and the block of page 2. Each chunk has eight blocks.
    for (block, lost) in [(0, None), (3, Some(2))] {
        let build = Build::small(true, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        let (volume, mut model, members) = eight_pages(&build, &*directory);
        members[2].spoil(MIB + at(block));
        if let Some(page) = lost {
            let why = volume.read_vec(at(page), PAGE).expect_err("can't be read").to_string();
            assert!(why.contains("hdd0: a sector can't be read"), "{why}");
            // The rest of the page has to be read for it.
            let why = volume.write_at(at(page) + 5, b"x").expect_err("can't be read").to_string();
            assert!(why.contains("hdd0: a sector can't be read"), "{why}");
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert_eq!(check.problems, 1, "{check:?}");
        }
        let write = |model: &mut Model, page: u64, byte: u8| {
            volume.write_at(at(page), &[byte; PAGE]).expect("not refused");
            model.write(at(page), &[byte; PAGE], true);
        };
        write(&mut model, 100, 1);
        write(&mut model, 7, 2);
        volume.sync().expect("not refused");
        model.flushed();
        while volume.migrate().expect("moves") {}
        model.check_pages_after_cut(&volume, |page| Some(page) != lost, "moved");
        if let Some(page) = lost {
            let why = volume.read_vec(at(page), PAGE).expect_err("lost").to_string();
            assert!(why.contains("page 2 (byte 8192) was lost to damage"), "{why}");
            write(&mut model, page, 3);
        }
        volume.sync().expect("flushed");
        drop(volume);
        let volume = build.open(&*directory).expect("opens");
        model.check_after_cut(&volume, "opened");
    }
}

/// A buffer member that can't be read at all may come back: nothing that is in it is given up.
#[test]
fn a_buffer_that_is_away_loses_nothing() {
    let build = Build::small(true, Some(Hash::Blake3));
    let directory = MemoryDirectory::new();
    let (volume, mut model, members) = eight_pages(&build, &*directory);
    for member in [2, 3] {
        members[member].set_away(true);
        let error = volume.migrate().expect_err("away");
        assert!(matches!(error, Error::Unreadable(_)), "{error:?}");
        members[member].set_away(false);
    }
    model.check_after_cut(&volume, "back");
    while volume.migrate().expect("moves") {}
    model.check_after_cut(&volume, "moved");
}

/// A sector of the data members that can't be read costs the pages that it has. Other writes continue.
#[test]
fn an_unreadable_page_of_the_data_members_is_an_error_alone() {
    for buffered in [true, false] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        let (volume, mut model, members) = eight_pages(&build, &*directory);
        let move_all = |volume: &Volume| {
            volume.sync().expect("not refused");
            while volume.migrate().expect("moves") {}
        };
        move_all(&volume);
        let content = model.now[3].to_vec();
        let mut spoiled = 0;
        for (member, name) in members.iter().zip(["ssd0", "ssd1"]) {
            let bytes = directory.open(name, false).expect("opens");
            for at in (MIB..bytes.size()).step_by(PAGE) {
                if bytes.read_vec(at, PAGE).expect("reads") == content {
                    member.spoil(at);
                    spoiled += 1;
                }
            }
        }
        assert_eq!(spoiled, 1);
        let why = volume.read_vec(at(3), PAGE).expect_err("can't be read").to_string();
        assert!(why.contains("a sector can't be read"), "{why}");
        volume.write_at(at(3) + 5, b"x").expect_err("the rest of the page can't be read");
        // An equal page can't share it.
        for page in [9, 100] {
            let bytes = if page == 9 { content.clone() } else { vec![1; PAGE] };
            volume.write_at(at(page), &bytes).expect("not refused");
            model.write(at(page), &bytes, true);
        }
        move_all(&volume);
        model.flushed();
        model.check_pages_after_cut(&volume, |page| page != 3, "moved");
        let check = volume.check(&mut |_, _| {}).expect("checks");
        assert_eq!((check.problems, check.pages_leaked), (1, 0), "{check:?}");
        volume.write_at(at(3), &content).expect("not refused");
        model.write(at(3), &content, true);
        move_all(&volume);
        model.check_after_cut(&volume, "written again");
    }
}

/// Where the slots of table block `number` are: member and byte.
fn table_slots(directory: &dyn Directory, number: u64) -> Vec<(usize, u64)> {
    let mut found = Vec::new();
    for (member, name) in ["ssd0", "ssd1"].into_iter().enumerate() {
        let bytes = directory.open(name, false).expect("opens");
        for at in (MIB..bytes.size()).step_by(PAGE) {
            let block = bytes.read_vec(at, 16).expect("reads");
            if block[..4] == *b"MtbB" && block[8..] == number.to_le_bytes() {
                found.push((member, at));
            }
        }
    }
    found
}

/// A map block that can't be read keeps its 508 pages from being read and written, and no others.
#[test]
fn an_unreadable_map_block_stops_its_own_pages() {
    let build = Build::small(false, None);
    let directory = MemoryDirectory::new();
    let (volume, mut model, _) = eight_pages(&build, &*directory);
    volume.close().expect("closes");
    let (members, all) = unreadable(build.members(&*directory));
    let slots = table_slots(&*directory, 0);
    assert!(!slots.is_empty());
    for (member, at) in slots {
        all[member].spoil(at);
    }
    let volume = Volume::open("vol", &members, build.options.clone()).expect("opens");
    let why = volume.read_vec(0, PAGE).expect_err("can't be read").to_string();
    assert!(why.contains("map block 0 can't be read: memory/ssd"), "{why}");
    volume.write_at(0, &[1; PAGE]).expect_err("can't be read");
    volume.write_at(at(509), &[1; PAGE]).expect("not refused");
    model.write(at(509), &[1; PAGE], true);
    volume.sync().expect("not refused");
    drop(volume);
    // It was the cable.
    let volume = build.open(&*directory).expect("opens");
    model.flushed();
    model.check_after_cut(&volume, "readable again");
}

/// The number of the first segment block of a small volume: 0 and 1 are map blocks.
const FIRST_SEGMENT: u64 = 2;

/// The segment block of an overwritten page can't be read for a while, so that its stored page stays in use, and an
/// equal page shares it later. A replay of both from the journal would find the stored page free. The volume opens after
/// a cut at any point.
#[test]
fn a_block_that_could_not_be_read_for_a_while_keeps_no_volume_closed() {
    for (buffered, at_once) in [(false, true), (false, false), (true, false)] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        let (volume, model, _) = eight_pages(&build, &*directory);
        while volume.migrate().expect("moves") {}
        volume.close().expect("closes");
        let slots = table_slots(&*directory, FIRST_SEGMENT);
        assert!(!slots.is_empty());
        let run = |disk: &Arc<Faulty>, model: &mut Model| -> std::io::Result<()> {
            let (members, all) = unreadable(build.members(&**disk));
            let volume = Volume::open("vol", &members, build.options.clone());
            let volume = volume.map_err(|error| error.to_io())?;
            let write = |model: &mut Model, page: u64, bytes: &[u8]| {
                let result = volume.write_at(at(page), bytes);
                model.write(at(page), bytes, result.is_ok());
                result
            };
            let flush = |model: &mut Model| {
                volume.sync()?;
                model.flushed();
                while volume.migrate().map_err(|error| error.to_io())? {}
                Ok(())
            };
            let old = model.now[0].to_vec();
            slots.iter().for_each(|&(member, at)| all[member].spoil(at));
            write(model, 0, &unique(&mut Random::new(2)))?;
            if !at_once {
                flush(model)?;
            }
            all.iter().for_each(|member| member.unspoil());
            write(model, 300, &old)?;
            flush(model)
        };
        let quiet = Faulty::new(copy_of(&*directory), Plan::quiet(1));
        run(&quiet, &mut model.clone()).expect("no fault");
        let cuts = quiet.counts().changes;
        // The last time without a cut before the end.
        for nth in 1..=cuts + 1 {
            let cut = (nth <= cuts).then_some(Fault::PowerCut { nth });
            let plan = Plan { seed: nth, faults: cut.into_iter().collect() };
            let disk = Faulty::new(copy_of(&*directory), plan);
            let mut model = model.clone();
            assert_eq!(run(&disk, &mut model).is_ok(), nth > cuts);
            disk.crash().expect("crashes");
            let volume = build.open(&*disk).expect("opens");
            model.check_after_cut(&volume, &format!("buffered {buffered}, cut {nth} of {cuts}"));
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert!(check.problems == 0 && check.pages_leaked <= 1, "{check:?}");
            assert!(nth <= cuts || check.pages_leaked == 1, "it was not released: {check:?}");
        }
    }
}

/// A map block is changed, leaves the cache, and is damaged where it was written. Writes give up its entries, so that
/// their stored pages stay in use, and an equal page shares one. A replay of the journal begins with the map block of the
/// last checkpoint, which is sound, and would release that stored page.
#[test]
fn a_damaged_newer_slot_of_a_map_block_keeps_no_volume_closed() {
    let mut build = Build::small(false, Some(Hash::Blake3));
    // More map blocks than are cached.
    build.settings = Settings { size: 512 * MIB, thin: true, ..build.settings };
    let directory = MemoryDirectory::new();
    let (volume, mut model, _) = eight_pages(&build, &*directory);
    volume.close().expect("closes");
    let volume = build.open(&*directory).expect("opens");
    let mut random = Random::new(2);
    let shared = model.now[1].to_vec();
    model.now.resize(1024, Arc::new(vec![0; PAGE]));
    let mut write = |page: u64, bytes: &[u8]| {
        volume.write_at(at(page), bytes).expect("written");
        volume.sync().expect("flushed");
        model.now[page as usize] = Arc::new(bytes.to_vec());
    };
    write(0, &unique(&mut random));
    for block in 1..256 {
        volume.read_vec(at(508 * block), PAGE).expect("reads");
    }
    let checkpoint_of = |&(member, at): &(usize, u64)| {
        let member = directory.open(["ssd0", "ssd1"][member], true).expect("opens");
        member.read_vec(at + 16, 8).expect("reads")[0]
    };
    let slots = table_slots(&*directory, 0);
    assert_eq!(slots.len(), 2);
    let (member, newer) = slots.into_iter().max_by_key(checkpoint_of).expect("two");
    let member = directory.open(["ssd0", "ssd1"][member], true).expect("opens");
    member.write_at(newer + 40, b"damage").expect("written");
    write(0, &unique(&mut random));
    write(1, &unique(&mut random));
    write(600, &shared);
    drop(volume);
    let volume = build.open(&*directory).expect("opens");
    for page in [0, 1, 600, 700] {
        let read = volume.read_vec(at(page), PAGE).expect("reads");
        assert!(read == *model.now[page as usize], "page {page}");
    }
    let why = volume.read_vec(at(2), PAGE).expect_err("lost").to_string();
    assert!(why.contains("page 2 (byte 8192) was lost to damage"), "{why}");
}

/// A table block that the journal changes can't be read: the error says what keeps the volume closed. It opens when the
/// block can be read again, and with a copy of the member that has zeros there.
#[test]
fn an_unreadable_table_block_that_keeps_a_volume_closed_is_named() {
    for (number, name) in [(0, "map block 0"), (FIRST_SEGMENT, "segment block 0")] {
        let build = Build::small(false, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        let (volume, mut model, _) = eight_pages(&build, &*directory);
        volume.close().expect("closes");
        let volume = build.open(&*directory).expect("opens");
        let shared = model.now[0].to_vec();
        volume.write_at(at(300), &shared).expect("written");
        model.write(at(300), &shared, true);
        volume.sync().expect("flushed");
        model.flushed();
        drop(volume);
        let (members, all) = unreadable(build.members(&*directory));
        let slots = table_slots(&*directory, number);
        slots.iter().for_each(|&(member, at)| all[member].spoil(at));
        let opened = Volume::open("vol", &members, build.options.clone());
        let Err(error) = opened else { panic!("opens") };
        assert!(matches!(error, Error::Unreadable(_)), "{error:?}");
        let why = error.to_string();
        let of_member = format!("{name} can't be read: memory/ssd");
        assert!(why.contains(&of_member) && why.contains("a copy of the member"), "{why}");
        let copy = copy_of(&*directory);
        for (member, at) in slots {
            let member = copy.open(["ssd0", "ssd1"][member], true).expect("opens");
            member.write_at(at, &[0; PAGE]).expect("written");
        }
        let volume = build.open(&*directory).expect("it can be read again");
        model.check_after_cut(&volume, "readable again");
        let volume = build.open(&*copy).expect("opens");
        for page in 0..512 {
            if let Ok(read) = volume.read_vec(at(page), PAGE) {
                assert!(read == *model.now[page as usize], "page {page}");
            }
        }
        volume.read_vec(0, PAGE).expect_err("a page of the block");
        assert!(volume.read_vec(at(510), PAGE).is_ok(), "no page of the block");
    }
}

/// Writes whose changes are in the journal, and damage to a table block from before them: the opening costs the pages
/// of the block, and not the volume. They are good when they are written again.
#[test]
fn a_damaged_table_block_costs_its_pages_when_the_journal_is_repeated() {
    // Table blocks 0 and 1 are map blocks, the others segment blocks.
    for damaged in [0..1, 2..30] {
        let build = Build::small(false, Some(Hash::Blake3));
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let (mut model, mut random) = (Model::new(512), Random::new(1));
        let volume = build.open(&*directory).expect("opens");
        let write = |volume: &Volume, model: &mut Model, page: u64, bytes: &[u8]| {
            volume.write_at(at(page), bytes).expect("written");
            volume.sync().expect("flushed");
            model.write(at(page), bytes, true);
        };
        // More transactions than fit before the next checkpoint.
        for page in 0..12 {
            write(&volume, &mut model, page, &unique(&mut random));
        }
        let shared = model.now[0].to_vec();
        write(&volume, &mut model, 200, &shared);
        write(&volume, &mut model, 509, &unique(&mut random));
        model.flushed();
        drop(volume);
        let mut slots = 0;
        for (member, at) in damaged.clone().flat_map(|number| table_slots(&*directory, number)) {
            let member = directory.open(["ssd0", "ssd1"][member], true).expect("opens");
            member.write_at(at + 40, b"damage").expect("written");
            slots += 1;
        }
        assert!(slots > 0);
        let volume = build.open(&*directory).expect("opens");
        let mut errors = 0;
        for page in 0..512 {
            match volume.read_vec(at(page), PAGE) {
                Ok(read) => assert!(read == *model.now[page as usize], "page {page}"),
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
                    errors += 1;
                    write(&volume, &mut model, page, &unique(&mut random));
                }
            }
        }
        assert!(errors > 5, "{errors}");
        model.flushed();
        model.check_after_cut(&volume, "written again");
        let check = volume.check(&mut |_, _| {}).expect("checks");
        // The counts of a damaged segment block are not there to be compared.
        assert!(check.problems == 0 || damaged.start == 2, "{check:?}");
        drop(volume);
        let volume = build.open(&*directory).expect("opens");
        model.check_after_cut(&volume, "opened again");
    }
}

/// Members that are files on a file system that becomes full. The error says so, and nothing that was flushed is lost.
#[test]
fn members_without_space_are_named_and_nothing_flushed_is_lost() {
    for buffered in [true, false] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let empty = Faulty::new(MemoryDirectory::new(), Plan::quiet(1));
        build.create(&*empty);
        for pages in [5, 40, 150, 300] {
            let bytes = empty.used_bytes() + at(pages);
            let members = MemoryDirectory::new();
            let plan = Plan { seed: pages, faults: vec![Fault::Full { bytes }] };
            let disk = Faulty::new(Arc::clone(&members) as Arc<dyn Directory>, plan);
            build.create(&*disk);
            let mut model = Model::new(512);
            let mut random = Random::new(pages);
            let volume = build.open(&*disk).expect("opens");
            let error = loop {
                let bytes: Vec<u8> = (0..3).flat_map(|_| unique(&mut random)).collect();
                let offset = at(random.below(509));
                let result = volume.write_at(offset, &bytes);
                model.write(offset, &bytes, result.is_ok());
                if let Err(error) = result.and_then(|()| volume.sync()) {
                    break error;
                }
                model.flushed();
                if random.one_in(4)
                    && let Err(error) = volume.migrate()
                {
                    break error.to_io();
                }
            };
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
            assert!(error.to_string().contains("memory/"), "{error}");
            let error = volume.write_at(0, b"x").expect_err("refused").to_string();
            assert!(error.contains("writes are refused since an earlier one failed"), "{error}");
            model.check_refusing(&volume, "full");
            drop(volume);
            // There is room again.
            let volume = build.open(&*members).expect("opens");
            model.check_after_cut(&volume, "room");
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert_eq!((check.problems, check.pages_leaked), (0, 0), "{check:?}");
        }
    }
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |change: &dyn Fn(&mut Build)| {
        let mut build = Build::small(true, None);
        change(&mut build);
        let directory = MemoryDirectory::new();
        build.make_members(&*directory);
        let made = Volume::create("vol", &build.members(&*directory), &build.settings, false);
        made.expect_err("refused").to_string()
    };
    assert!(refused(&|build| build.settings.size = 5000).contains("pages of 4096"));
    assert!(refused(&|build| build.settings.size = 8 * MIB).contains("too large"));
    assert!(refused(&|build| build.settings.chunk_bytes = 1000).contains("a chunk has"));
    assert!(refused(&|build| build.settings.journal_bytes = Some(1)).contains("a journal has"));
    let build = Build::small(false, None);
    let directory = MemoryDirectory::new();
    build.create(&*directory);
    let volume = build.open(&*directory).expect("opens");
    let error = volume.write_at(2 * MIB - 1, b"xy").expect_err("refused").to_string();
    assert_eq!(error, "vol: a write passes its end; it has 2097152 bytes");
    assert!(volume.run(Operation::SetSize { size: 1 }).is_err());
    assert_eq!(volume.read_at(2 * MIB, &mut [0; 8]).expect("reads"), 0);
}
