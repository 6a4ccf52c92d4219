//! Blocks that can't be read, for a while or for ever, and table blocks that are damaged while the journal needs them.

use std::sync::Arc;

use merganser_array::{Error, Hash, Volume, VolumeSettings};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

use crate::common::unreadable::{Unreadable, unreadable};
use crate::common::{Build, MIB, Model, PAGE, at, unique};

/// Pages 0 to 7 of a volume, written as one record of the log, and its members.
fn eight_pages(build: &Build, directory: &dyn Directory) -> (Volume, Model, Vec<Arc<Unreadable>>) {
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
        let quiet = Faulty::new(directory.copy(), FaultPlan::quiet(1));
        run(&quiet, &mut model.clone()).expect("no fault");
        let cuts = quiet.counts().changes;
        // The last time without a cut before the end.
        for nth in 1..=cuts + 1 {
            let cut = (nth <= cuts).then_some(Fault::PowerCut { nth });
            let plan = FaultPlan { seed: nth, faults: cut.into_iter().collect() };
            let disk = Faulty::new(directory.copy(), plan);
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
    build.settings = VolumeSettings { size: 512 * MIB, thin: true, ..build.settings };
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
        let copy = directory.copy();
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
