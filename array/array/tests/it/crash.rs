//! Power cuts at chosen places: each cut point of a short run, blocks that a cut left from another
//! session, and damage that must not be taken for a torn write.

use std::sync::Arc;

use crate::common::{Build, MIB, Model, PAGE, at, unique};
use merganser_array::{Error, Hash, Migration, Volume, VolumeSettings};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Operation, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

/// A volume whose data members are full, and what it holds.
fn full_volume(build: &Build) -> (Arc<MemoryDirectory>, Model) {
    let directory = MemoryDirectory::new();
    build.create(&*directory);
    let mut model = Model::new((build.settings.size / PAGE as u64) as usize);
    let volume = build.open(&*directory).expect("opens");
    let mut random = Random::new(1);
    for page in 0.. {
        let bytes = unique(&mut random);
        if volume.write_at(at(page), &bytes).is_err() {
            break;
        }
        model.write(at(page), &bytes, true);
        // With a buffer, the page that has no room stays there.
        if volume.migrate().is_err() {
            break;
        }
    }
    let space = volume.space();
    assert_eq!(space.pages_used, space.pages, "full");
    volume.close().expect("closes");
    model.flushed();
    (directory, model)
}

/// Pages that were freed hold the old content until the commit that frees them is durable: when all
/// others are in use, a cut at any point of the next writes shows it.
#[test]
fn freed_pages_wait_for_the_commit_that_frees_them() {
    for buffered in [false, true] {
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.settings = VolumeSettings { size: 12 * MIB, thin: true, ..build.settings };
        let (members, model) = full_volume(&build);
        let run = |disk: &Arc<Faulty>, model: &mut Model| -> std::io::Result<()> {
            let volume = build.open(&**disk).map_err(|error| error.to_io())?;
            let mut random = Random::new(2);
            for page in 0..4 {
                // Trimmed in the same commit as the page is needed for another one.
                let len = at(2);
                let result = volume.run(Operation::Discard { offset: at(3 * page), len });
                model.write(at(3 * page), &vec![0; len as usize], result.is_ok());
                result?;
                let bytes = unique(&mut random);
                let result = volume.write_at(at(100 + page), &bytes);
                model.write(at(100 + page), &bytes, result.is_ok());
                result?;
                volume.migrate().map_err(|error| error.to_io())?;
            }
            volume.sync()?;
            model.flushed();
            volume.migrate().map(|_| ()).map_err(|error| error.to_io())
        };
        let quiet = Faulty::new(members.copy(), FaultPlan::quiet(1));
        run(&quiet, &mut model.clone()).expect("no fault");
        for nth in 1..=quiet.counts().changes {
            let plan = FaultPlan { seed: nth, faults: vec![Fault::PowerCut { nth }] };
            let disk = Faulty::new(members.copy(), plan);
            let mut model = model.clone();
            run(&disk, &mut model).expect_err("the power goes");
            disk.crash().expect("crashes");
            let volume = build.open(&*disk).expect("opens");
            model.check_after_cut(&volume, &format!("buffered {buffered}, cut {nth}"));
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert_eq!((check.problems, check.pages_leaked), (0, 0), "{check:?}");
        }
    }
}

/// All pages are in use, so that a page takes the place of trimmed ones. The map block of these is damaged after a cut:
/// the opening gives it up, and finds their places in use when it repeats the write.
#[test]
fn a_damaged_map_block_keeps_no_full_volume_closed() {
    let mut build = Build::small(false, None);
    build.settings = VolumeSettings { size: 12 * MIB, thin: true, ..build.settings };
    let (members, mut model) = full_volume(&build);
    let volume = build.open(&*members).expect("opens");
    volume.run(Operation::Discard { offset: 0, len: at(2) }).expect("trimmed");
    volume.sync().expect("flushed");
    let bytes = unique(&mut Random::new(2));
    volume.write_at(at(3000), &bytes).expect("there is room");
    model.write(at(3000), &bytes, true);
    volume.sync().expect("flushed");
    model.flushed();
    drop(volume);
    let mut slots = 0;
    for name in ["ssd0", "ssd1"] {
        let member = members.open(name, true).expect("opens");
        for at in (0..member.size()).step_by(PAGE) {
            let head = member.read_vec(at, 16).expect("reads");
            if head[..4] == *b"MtbB" && head[8..] == [0; 8] {
                member.write_at(at + 40, b"damage").expect("written");
                slots += 1;
            }
        }
    }
    assert!(slots > 0);
    let volume = build.open(&*members).expect("opens");
    model.check_pages_after_cut(&volume, |page| page >= 508, "map block 0 is damaged");
}

/// A move applies a trim, and then puts a page that was written after it. When the data members become
/// full later in the same move, the trims that make room early must not be that one.
#[test]
fn a_page_written_after_its_trim_survives_a_move_that_becomes_full() {
    for dedup in [Some(Hash::Blake3), None] {
        let mut build = Build::small(true, dedup);
        build.settings = VolumeSettings { size: 12 * MIB, thin: true, ..build.settings };
        let (members, mut model) = full_volume(&build);
        let volume = build.open(&*members).expect("opens");
        let mut random = Random::new(3);
        let trim = |model: &mut Model, page: u64| {
            volume.run(Operation::Discard { offset: at(page), len: at(1) }).expect("trimmed");
            model.write(at(page), &[0; PAGE], true);
        };
        // The page that had no room takes the place of this one, and the log is empty.
        trim(&mut model, 50);
        while volume.migrate().expect("moves") {}
        let space = volume.space();
        assert_eq!((space.pages_used, space.buffer_bytes_used), (space.pages, 0));
        // The second page takes the place of the first, and nothing is left for the third.
        trim(&mut model, 0);
        for page in [0, 3000] {
            let bytes = unique(&mut random);
            volume.write_at(at(page), &bytes).expect("the log has room");
            model.write(at(page), &bytes, true);
        }
        volume.sync().expect("flushed");
        model.flushed();
        let error = volume.migrate().expect_err("full");
        assert!(matches!(error, Error::Full { .. }), "{error}");
        model.check_after_cut(&volume, "full");
        // A later trim makes room.
        trim(&mut model, 1);
        model.flushed();
        while volume.migrate().expect("moves") {}
        assert_eq!(volume.space().buffer_bytes_used, 0);
        model.check_after_cut(&volume, "moved");
        volume.sync().expect("flushed");
        drop(volume);
        let volume = build.open(&*members).expect("opens");
        model.check_after_cut(&volume, "opened");
        let check = volume.check(&mut |_, _| {}).expect("checks");
        assert_eq!((check.problems, check.pages_leaked), (0, 0), "{check:?}");
    }
}

/// Writes of every kind while the buffer is above its mark: pages that are only in the store go there, and
/// pages that the log has go to the log, or an older version would come back from it. A cut at any point.
#[test]
fn writes_around_a_full_buffer_survive_a_cut_at_any_point() {
    let mut build = Build::small(true, Some(Hash::Blake3));
    build.options.high_water_percent = 1;
    let members = MemoryDirectory::new();
    build.create(&*members);
    let model = Model::new(512);
    let run = |disk: &Arc<Faulty>, model: &mut Model| -> std::io::Result<u64> {
        let volume = build.open(&**disk).map_err(|error| error.to_io())?;
        let mut random = Random::new(2);
        let mut write = |model: &mut Model, page: u64, count: usize| {
            let bytes: Vec<u8> = (0..count).flat_map(|_| unique(&mut random)).collect();
            let result = volume.write_at(at(page), &bytes);
            model.write(at(page), &bytes, result.is_ok());
            result
        };
        // Into the log, beyond the mark, and then around it.
        write(model, 0, 16)?;
        volume.sync()?;
        model.flushed();
        write(model, 100, 4)?;
        write(model, 102, 4)?;
        assert_eq!(volume.counters().pages_around, 8);
        // Some of these pages are in the log.
        write(model, 14, 4)?;
        volume.sync()?;
        model.flushed();
        // A page that went around is trimmed, and written again.
        let result = volume.run(Operation::Discard { offset: at(101), len: at(2) });
        model.write(at(101), &vec![0; at(2) as usize], result.is_ok());
        result?;
        write(model, 102, 1)?;
        write(model, 200, 2)?;
        volume.migrate().map_err(|error| error.to_io())?;
        write(model, 0, 16)?;
        write(model, 200, 1)?;
        volume.sync()?;
        model.flushed();
        write(model, 1, 1)?;
        write(model, 300, 1)?;
        Ok(volume.counters().pages_around)
    };
    let quiet = Faulty::new(members.copy(), FaultPlan::quiet(1));
    let around = run(&quiet, &mut model.clone()).expect("no fault");
    assert!(around >= 10, "{around}");
    for nth in 1..=quiet.counts().changes {
        let plan = FaultPlan { seed: nth, faults: vec![Fault::PowerCut { nth }] };
        let disk = Faulty::new(members.copy(), plan);
        let mut model = model.clone();
        // The last writes may be in memory yet when the power goes.
        let _ = run(&disk, &mut model);
        disk.crash().expect("crashes");
        let volume = build.open(&*disk).expect("opens");
        model.check_after_cut(&volume, &format!("cut {nth}"));
        while volume.migrate().expect("moves") {}
        model.check_after_cut(&volume, &format!("cut {nth}, moved"));
        let check = volume.check(&mut |_, _| {}).expect("checks");
        assert_eq!((check.problems, check.pages_leaked), (0, 0), "{check:?}");
    }
}

/// A move leaves a page that a later record has a newer version of. That record must be durable before the older one
/// leaves the log, or a cut loses both.
#[test]
fn a_page_that_a_move_leaves_keeps_a_version() {
    for trimmed in [false, true] {
        let mut build = Build::small(true, Some(Hash::Blake3));
        build.settings.size = 4 * MIB;
        build.data_bytes = 14 * MIB;
        let disk = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(1));
        build.create(&*disk);
        let volume = build.open(&*disk).expect("opens");
        let (mut random, mut model) = (Random::new(1), Model::new(1024));
        let mut write = |model: &mut Model, page: u64, count: usize| {
            let bytes: Vec<u8> = (0..count).flat_map(|_| unique(&mut random)).collect();
            volume.write_at(at(page), &bytes).expect("written");
            model.write(at(page), &bytes, true);
        };
        write(&mut model, 0, 1);
        volume.sync().expect("flushed");
        model.flushed();
        // More than one move, so that the newer version is not moved with the older one.
        for page in (1..700).step_by(10) {
            write(&mut model, page, 10);
        }
        if trimmed {
            volume.run(Operation::Discard { offset: 0, len: at(1) }).expect("trimmed");
            model.write(0, &[0; PAGE], true);
        } else {
            write(&mut model, 0, 1);
        }
        assert!(volume.migrate().expect("moves"), "some are left");
        disk.crash().expect("crashes");
        let volume = build.open(&*disk).expect("opens");
        model.check_after_cut(&volume, "cut");
    }
}

/// With writes that are durable when they are answered, all go to the log: it costs one sync and no journal, and the
/// store two syncs and a block of the journal.
#[test]
fn durable_writes_do_not_go_around_the_buffer() {
    let mut build = Build::small(true, None);
    build.options.high_water_percent = 1;
    for (migration, durable) in [(Migration::Idle, true), (Migration::HighWater, false)] {
        build.options.migration = migration;
        build.options.durable_writes = durable;
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        let mut random = Random::new(1);
        for page in 0..100 {
            volume.write_at(at(page), &unique(&mut random)).expect("written");
        }
        assert_eq!(volume.counters().pages_around, 0);
        assert_eq!(volume.counters().log_bytes, 100 * 8192);
    }
}

/// Byte `block` of the log on its first member.
fn log_block(block: u64) -> u64 {
    MIB + block * PAGE as u64
}

/// A cut tears record 1 of a session: its first block is there, its page isn't. The next session
/// writes the same bytes to another page, into the same place of the log; a cut leaves the page of that
/// record and the first block of the old one. Together they look whole.
#[test]
fn a_record_that_an_opening_dropped_never_comes_back() {
    let build = Build::small(true, Some(Hash::Blake3));
    let directory = MemoryDirectory::new();
    build.create(&*directory);
    let bytes = unique(&mut Random::new(1));
    let log = directory.open("hdd0", true).expect("opens");
    let volume = build.open(&*directory).expect("opens");
    volume.write_at(at(5), &bytes).expect("written");
    drop(volume);
    let first_block = log.read_vec(log_block(0), PAGE).expect("reads");
    log.write_at(log_block(1), &[0; PAGE]).expect("torn");

    let volume = build.open(&*directory).expect("opens");
    assert_eq!(volume.space().records_dropped, 1);
    assert_eq!(volume.read_vec(at(5), PAGE).expect("reads"), [0; PAGE]);
    volume.write_at(at(7), &bytes).expect("written");
    drop(volume);
    log.write_at(log_block(0), &first_block).expect("torn");

    let volume = build.open(&*directory).expect("opens");
    assert_eq!(volume.read_vec(at(5), PAGE).expect("reads"), [0; PAGE], "it was gone already");
    assert_eq!(volume.read_vec(at(7), PAGE).expect("reads"), [0; PAGE]);
}

/// Three flushed records, and damage to one of them after a cut.
fn damaged_after_cut(seal: bool, blocks: &[u64]) -> merganser_array::Result<Volume> {
    let build = Build::small(true, None);
    let directory = MemoryDirectory::new();
    build.create(&*directory);
    let volume = build.open(&*directory).expect("opens");
    let mut random = Random::new(1);
    for page in 0..3 {
        volume.write_at(at(page), &unique(&mut random)).expect("written");
        volume.sync().expect("flushed");
    }
    if seal {
        volume.seal().expect("sealed");
    }
    drop(volume);
    let log = directory.open("hdd0", true).expect("opens");
    for &block in blocks {
        log.write_at(log_block(block), b"damage").expect("written");
    }
    build.open(&*directory)
}

/// Record `n` is in blocks `2 n` and `2 n + 1`, and the seal in block 6. The first block of each is in the next one, too.
#[test]
fn damage_to_flushed_records_is_no_torn_write() {
    for seal in [false, true] {
        for block in [0, 2] {
            let volume = damaged_after_cut(seal, &[block]).expect("opens with the other copy");
            assert!((0..3).all(|page| volume.read_vec(at(page), 1).is_ok()));
            assert_eq!(volume.space().records_dropped, 0);
            while volume.migrate().expect("moves with the other copy") {}
            let check = volume.check(&mut |_, _| {}).expect("checks");
            assert_eq!((check.problems, check.pages_mapped), (0, 3));
        }
        // The third record shows that the first two were durable.
        let error = damaged_after_cut(seal, &[0, 2]).err().expect("refused");
        assert!(error.is_damage(), "{error:?}");
        assert!(error.to_string().contains("it was durable"), "{error}");
        let volume = damaged_after_cut(seal, &[3]).expect("opens");
        assert!(volume.read_vec(at(1), 1).is_err(), "its page is damaged");
        assert!(volume.read_vec(at(2), 1).is_ok());
        assert_eq!(volume.space().records_dropped, 0);
    }
    // Nothing but the seal shows that the last one was, and the seal has the other copy.
    let volume = damaged_after_cut(true, &[4]).expect("opens");
    assert!(volume.read_vec(at(2), PAGE).expect("reads") != [0; PAGE]);
    assert!(damaged_after_cut(true, &[4, 6]).err().expect("refused").is_damage());
    assert!(damaged_after_cut(true, &[5]).expect("opens").read_vec(at(2), 1).is_err());
    for block in [4, 5] {
        let volume = damaged_after_cut(false, &[block]).expect("opens");
        assert_eq!(volume.read_vec(at(2), PAGE).expect("reads"), [0; PAGE], "documented");
        assert_eq!(volume.space().records_dropped, u64::from(block == 5));
    }
}

#[test]
fn damage_to_a_sealed_transaction_is_no_torn_write() {
    for seal in [false, true] {
        let build = Build::small(false, None);
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        volume.write_at(0, &[7; PAGE]).expect("written");
        volume.sync().expect("flushed");
        if seal {
            volume.seal().expect("sealed");
            let journal_bytes = volume.counters().journal_bytes;
            volume.seal().expect("sealed");
            assert_eq!(volume.counters().journal_bytes, journal_bytes, "once is enough");
        }
        drop(volume);
        let mut found = Vec::new();
        for name in ["ssd0", "ssd1"] {
            let member = directory.open(name, true).expect("opens");
            for at in (MIB..member.size()).step_by(PAGE) {
                if member.read_vec(at, 4).expect("reads") == *b"MjrT" {
                    let number = member.read_vec(at + 16, 8).expect("reads");
                    found.push((number[0], Arc::clone(&member), at));
                }
            }
        }
        assert_eq!(found.len(), 1 + usize::from(seal));
        let (_, member, at) = found.iter().min_by_key(|found| found.0).expect("not empty");
        member.write_at(at + 100, b"damage").expect("written");
        match build.open(&*directory) {
            Ok(volume) => {
                assert!(!seal);
                let read = volume.read_vec(0, PAGE).expect("reads");
                assert_eq!(read, [0; PAGE], "documented");
            }
            Err(error) => assert!(seal && error.is_damage(), "{error}"),
        }
    }
}

/// The data members are those of an older copy: the log and the journal know of later sessions.
#[test]
fn data_members_that_are_older_than_the_buffer_are_refused() {
    let build = Build::small(true, None);
    let directory = MemoryDirectory::new();
    build.create(&*directory);
    let old = directory.copy();
    let volume = build.open(&*directory).expect("opens");
    volume.write_at(0, &[1; PAGE]).expect("written");
    volume.sync().expect("flushed");
    drop(volume);
    let mut members = build.members(&*directory);
    members.data = build.members(&*old).data;
    let error = Volume::open("vol", &members, build.options.clone()).err().expect("refused");
    assert!(matches!(error, Error::Old { .. }), "{error}");
    assert!(error.to_string().contains("hdd0 knows session 2"), "{error}");
}

#[test]
fn a_reservation_is_kept_or_refused() {
    for thin in [false, true] {
        let mut build = Build::small(true, None);
        build.settings.thin = thin;
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let volume = build.open(&*directory).expect("opens");
        let reserved = volume.run(Operation::Allocate { offset: 0, len: MIB });
        assert_eq!(reserved.is_ok(), !thin);
        if let Err(error) = reserved {
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
        }
        let beyond = volume.run(Operation::Allocate { offset: 0, len: 3 * MIB });
        assert!(beyond.expect_err("refused").to_string().contains("passes its end"));
    }
}

/// Small records fill the memory of the directory before they fill the buffer.
#[test]
fn the_directory_of_the_buffer_is_bounded() {
    let mut build = Build::small(true, None);
    build.settings.size = 24 * MIB;
    build.options.high_water_percent = 100;
    let directory = MemoryDirectory::new();
    for (name, bytes) in [("ssd0", 24), ("ssd1", 24), ("hdd0", 20), ("hdd1", 20)] {
        let member = directory.create(name).expect("made");
        member.run(Operation::SetSize { size: bytes * MIB }).expect("sized");
    }
    Volume::create("vol", &build.members(&*directory), &build.settings, false).expect("made");
    let volume = build.open(&*directory).expect("opens");
    for page in 0..4000 {
        volume.write_at(at(page), &[page as u8; PAGE]).expect("written");
        // 64 bytes for the page and 64 for the record, of a quarter of 1 MiB.
        assert!(volume.space().buffer_bytes_used <= 2048 * 8192, "page {page}");
    }
    for page in 0..4000 {
        let read = volume.read_vec(at(page), PAGE).expect("reads");
        assert!(read == [page as u8; PAGE], "page {page}");
    }
}

/// Flushed writes, which move to the data members: with or without a buffer, each is a transaction.
fn write_and_move(volume: &Volume, model: &mut Model, random: &mut Random, count: u64) {
    for page in 0..count {
        let bytes = unique(random);
        volume.write_at(at(page), &bytes).expect("written");
        model.write(at(page), &bytes, true);
        volume.sync().expect("flushed");
        volume.migrate().expect("moves");
    }
    model.flushed();
}

/// Two volumes on the same members, one after the other, both in their first session: transactions that the first
/// one left behind the end of the second one's journal say nothing about the second one.
#[test]
fn a_volume_on_used_members_opens_after_a_kill() {
    for buffered in [false, true] {
        let build = Build::small(buffered, None);
        let directory = MemoryDirectory::new();
        build.create(&*directory);
        let mut random = Random::new(1);
        let volume = build.open(&*directory).expect("opens");
        write_and_move(&volume, &mut Model::new(512), &mut random, 100);
        drop(volume);
        for count in [1, 2, 5, 12, 30] {
            let members = build.members(&*directory);
            Volume::create("vol", &members, &build.settings, true).expect("replaced");
            let mut model = Model::new(512);
            let volume = build.open(&*directory).expect("opens");
            write_and_move(&volume, &mut model, &mut random, count);
            drop(volume);
            let volume = build.open(&*directory).expect("opens");
            model.check_after_cut(&volume, &format!("buffered {buffered}, {count} writes"));
        }
    }
}

/// A cut while members get a new volume: they hold the old one whole, or the new one, or none.
#[test]
fn a_cut_of_a_replacement_leaves_no_part_of_the_old_volume() {
    for buffered in [false, true] {
        let build = Build::small(buffered, None);
        let members = MemoryDirectory::new();
        build.create(&*members);
        let mut model = Model::new(512);
        let volume = build.open(&*members).expect("opens");
        write_and_move(&volume, &mut model, &mut Random::new(1), 60);
        drop(volume);
        let replace = |disk: &Arc<Faulty>| {
            Volume::create("vol", &build.members(&**disk), &build.settings, true)
        };
        let quiet = Faulty::new(members.copy(), FaultPlan::quiet(1));
        replace(&quiet).expect("no fault");
        let (mut old, mut refused) = (0, 0);
        for nth in 1..=quiet.counts().changes {
            let plan = FaultPlan { seed: nth, faults: vec![Fault::PowerCut { nth }] };
            let disk = Faulty::new(members.copy(), plan);
            replace(&disk).expect_err("the power goes");
            disk.crash().expect("crashes");
            let volume = match build.open(&*disk) {
                Ok(volume) => volume,
                Err(error) => {
                    assert!(matches!(error, Error::Member { .. }), "cut {nth}: {error}");
                    refused += 1;
                    continue;
                }
            };
            if volume.read_vec(0, PAGE).expect("reads") == [0; PAGE] {
                Model::new(512).check_after_cut(&volume, &format!("cut {nth}, new"));
            } else {
                model.clone().check_after_cut(&volume, &format!("cut {nth}, old"));
                old += 1;
            }
        }
        assert!(old > 0 && refused > 10, "{old} old, {refused} refused");
    }
}
