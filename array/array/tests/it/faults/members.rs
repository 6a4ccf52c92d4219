//! Members that are full, fail, or are in wrong places, and settings that no volume can have.

use std::sync::Arc;

use merganser_array::{Error, Hash, Members, Migration, Volume, VolumeSettings};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Operation, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

use crate::common::{Build, MIB, Model, PAGE, at, content, unique};

#[test]
fn full_data_members_are_an_error_that_passes() {
    for buffered in [true, false] {
        let directory = MemoryDirectory::new();
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.settings = VolumeSettings { size: 64 * MIB, thin: true, ..build.settings };
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
        let plan = FaultPlan { seed: 1, faults: vec![nth_fault] };
        let faulty = Faulty::new(good.copy(), plan);
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
        let quiet = Faulty::new(good.copy(), FaultPlan::quiet(1));
        run(&quiet, &mut Model::new(512)).expect("no fault");
        let mut accepted = 0;
        // Both members of a role are synced at once, so that the other one keeps its pages.
        for nth in 1..=quiet.counts().syncs {
            for seed in 0..2 {
                let plan = FaultPlan { seed, faults: vec![Fault::FailSync { nth }] };
                let disk = Faulty::new(good.copy(), plan);
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

/// Members that are files on a file system that becomes full. The error says so, and nothing that was flushed is lost.
#[test]
fn members_without_space_are_named_and_nothing_flushed_is_lost() {
    for buffered in [true, false] {
        let build = Build::small(buffered, Some(Hash::Blake3));
        let empty = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(1));
        build.create(&*empty);
        for pages in [5, 40, 150, 300] {
            let bytes = empty.used_bytes() + at(pages);
            let members = MemoryDirectory::new();
            let plan = FaultPlan { seed: pages, faults: vec![Fault::Full { bytes }] };
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
