//! Volumes that earlier versions of the program made, as golden dumps of their members: they open, have all their pages,
//! and are of the present version then.

use std::sync::Arc;

use merganser_array::{Error, Members, OpenOptions, Salvage, Trust, Volume, formats};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Operation, Storage, StorageExt};

const PAGE: usize = 4096;
const LABEL_BYTES: u64 = 1 << 20;

fn page(number: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[..8].copy_from_slice(&number.to_le_bytes());
    page
}

/// The members in a dump: for each its name and size, and then its bytes but zeros.
fn members(dump: &str) -> Members {
    let mut disks: Vec<Arc<dyn Storage>> = Vec::new();
    for line in dump.lines() {
        let Some((at, bytes)) = line.split_once("  ") else {
            let (name, size) = line.split_once(' ').expect("a name and a size");
            let disk = MemoryStorage::new(name);
            let size = size.parse().expect("a number");
            disk.run(Operation::SetSize { size }).expect("sized");
            disks.push(disk);
            continue;
        };
        let at = u64::from_str_radix(at, 16).expect("hexadecimal");
        let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16));
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().expect("hexadecimal");
        disks.last().expect("a member").write_at(at, &bytes).expect("written");
    }
    let buffer = disks.split_off(2);
    Members { data: disks, buffer }
}

const CLOSED: &str = include_str!("../golden/volume-2-closed.txt");
const CUT: &str = include_str!("../golden/volume-2-cut.txt");

/// The content of `page`: pages 0 to 19 moved, 15 to 29 were in the log when it was closed; the rest came after that.
fn expected(number: u64, is_cut: bool) -> Vec<u8> {
    match number {
        0..3 if is_cut => page(0),
        28..31 if is_cut => page(300 + number),
        31..40 if is_cut => page(400 + number),
        0..15 => page(100 + number % 15),
        15..30 => page(200 + number),
        _ => page(0),
    }
}

fn open(members: &Members) -> merganser_array::Result<Volume> {
    let options = OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() };
    Volume::open("vol", members, options)
}

fn assert_pages(volume: &Volume, is_cut: bool) {
    for number in 0..256 {
        let read = volume.read_vec(number * PAGE as u64, PAGE).expect("reads");
        assert!(read == expected(number, is_cut), "page {number}");
    }
}

/// The version in the first label and superblock of data member 0.
fn versions(members: &Members) -> (u8, u8) {
    let at = |at| members.data[0].read_vec(at, 9).expect("reads")[8];
    (at(0), at(LABEL_BYTES))
}

#[test]
fn a_volume_of_version_2_opens_and_becomes_one_of_version_3() {
    for (dump, is_cut) in [(CLOSED, false), (CUT, true)] {
        let members = members(dump);
        assert_eq!(versions(&members), (1, 2));
        let mut salvage = Salvage::open("vol", &members).expect("has pages");
        for number in 0..256 {
            let mut read = vec![0; PAGE];
            assert_eq!(salvage.read(number, &mut read), Trust::Good, "page {number}");
            assert!(read == expected(number, is_cut), "page {number}");
        }
        assert_eq!(salvage.findings(), (0, &[][..]));
        assert_eq!(versions(&members), (1, 2), "nothing is written");
        let volume = open(&members).expect("opens");
        assert_eq!(versions(&members), (2, 3));
        // Its states have no room for the checksums, and it says so.
        assert!(!Volume::describe("vol", &members).expect("described").table_checksums);
        assert_pages(&volume, is_cut);
        assert_eq!(volume.check(&mut |_, _| {}).expect("checks").problems, 0);
        volume.write_at(50 * PAGE as u64, &page(7)).expect("written");
        volume.close().expect("closes");
        drop(volume);
        let volume = open(&members).expect("opens again");
        while volume.migrate().expect("moves") {}
        assert!(volume.read_vec(50 * PAGE as u64, PAGE).expect("reads") == page(7));
        assert_eq!(volume.check(&mut |_, _| {}).expect("checks").problems, 0);
    }
}

/// A cut at any point of the opening that makes a volume one of version 3 leaves one that opens.
#[test]
fn a_cut_while_a_volume_becomes_one_of_version_3_loses_nothing() {
    use merganser_storage::Directory;
    use merganser_storage::memory::MemoryDirectory;
    use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
    let mut cuts = 0;
    for nth in 1.. {
        let from = members(CUT);
        let disk = Faulty::new(
            MemoryDirectory::new(),
            FaultPlan { seed: nth, faults: vec![Fault::PowerCut { nth: 13 + nth }] },
        );
        let names = ["ssd0", "ssd1", "hdd0", "hdd1"];
        for (name, member) in names.iter().zip(from.data.iter().chain(&from.buffer)) {
            let bytes = member.read_vec(0, member.size() as usize).expect("reads");
            let copy = disk.create(name).expect("made");
            copy.write_at(0, &bytes).expect("written");
            copy.sync().expect("synced");
        }
        disk.sync().expect("synced");
        let on_disk = || {
            let open = |name: &&str| disk.open(name, true).expect("opens");
            let data = names[..2].iter().map(open).collect();
            Members { data, buffer: names[2..].iter().map(open).collect() }
        };
        let opened = open(&on_disk());
        let was_cut = opened.is_err() || disk.list().is_err();
        drop(opened);
        if !was_cut {
            break;
        }
        cuts += 1;
        disk.crash().expect("crashes");
        let volume = open(&on_disk()).expect("opens after a cut");
        assert_pages(&volume, true);
    }
    assert!(cuts > 20, "{cuts} cuts");
}

/// Gives both superblocks another version.
fn set_version(members: &Members, version: u8) {
    for copy in [LABEL_BYTES, LABEL_BYTES + PAGE as u64] {
        let mut block = members.data[0].read_vec(copy, PAGE).expect("reads");
        block[8] = version;
        formats::seal(&mut block, 12);
        members.data[0].write_at(copy, &block).expect("written");
    }
}

/// In version 1, transactions did not name their volume. A volume that was closed in order has none.
#[test]
fn a_volume_of_version_1_opens_if_it_was_closed() {
    let closed = members(CLOSED);
    set_version(&closed, 1);
    let volume = open(&closed).expect("opens");
    assert_pages(&volume, false);
    assert_eq!(versions(&closed), (2, 3));
    drop(volume);
    assert_pages(&open(&closed).expect("opens"), false);
    let cut = members(CUT);
    set_version(&cut, 1);
    let error = open(&cut).err().expect("refused").to_string();
    assert!(error.contains("version 1, and it was not closed in order"), "{error}");
    set_version(&cut, 4);
    let error = open(&cut).err().expect("refused");
    assert!(matches!(error, Error::Damaged { .. }));
    assert!(error.to_string().contains("version 4, and this program reads 1 to 3"), "{error}");
}
