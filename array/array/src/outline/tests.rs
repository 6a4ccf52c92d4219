//! The outline against the volume: the same requests, the same places and counts.

use std::sync::Arc;

use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Operation, Storage, StorageExt};
use merganser_testkit::Random;

use super::*;
use crate::bytes::PAGE;
use crate::settings::{Hash, Migration};
use crate::volume::{Members, Volume};

const MIB: u64 = 1 << 20;

fn disks(name: &str, count: usize, bytes: u64) -> Vec<Arc<dyn Storage>> {
    let make = |i| {
        let disk = MemoryStorage::new(&format!("{name}{i}"));
        disk.run(Operation::SetSize { size: bytes }).expect("sized");
        disk as Arc<dyn Storage>
    };
    (0..count).map(make).collect()
}

/// A page whose content is number `n`.
fn page_of(n: u128) -> Vec<u8> {
    let mut random = Random::new(n as u64);
    (0..PAGE / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

fn settings(size: u64, dedup: Option<Hash>, thin: bool) -> VolumeSettings {
    VolumeSettings {
        chunk_bytes: 16 << 10,
        buffer_chunk_bytes: 32 << 10,
        dedup,
        thin,
        journal_bytes: Some(512 << 10),
        ..VolumeSettings::new(size)
    }
}

/// Random requests of whole pages, moves and trims.
fn side_by_side(seed: u64, settings: &VolumeSettings, shape: &Shape) {
    let members = Members {
        data: disks("ssd", shape.data.0, shape.data.1),
        buffer: disks("hdd", shape.buffer.0, shape.buffer.1),
    };
    let migration = Migration::HighWater;
    let options = OpenOptions { migration, durable_writes: false, ..OpenOptions::default() };
    Volume::create("vol", &members, settings, false).expect("made");
    let volume = Volume::open("vol", &members, options.clone()).expect("opens");
    let mut outline = Outline::new(settings, &options, shape).expect("made");
    let mut random = Random::new(seed);
    let pages = settings.size / BLOCK;
    let mut steps = Vec::new();
    let mut fulls = 0;
    for i in 0..6000 {
        let page = random.below(pages);
        match random.below(40) {
            0..30 => {
                let count = (1 + random.below(6)).min(pages - page);
                let hashes: Vec<u128> =
                    (0..count).map(|_| u128::from(1 + random.below(2000))).collect();
                let content = match i % 2 {
                    0 => ContentHashes::Whole(hashes[0]),
                    _ => ContentHashes::Pages(&hashes),
                };
                let (at, len) = (page * BLOCK, count * BLOCK);
                if outline.room(1, count) != Room::Enough {
                    move_both(&volume, &mut outline, &mut fulls);
                }
                if outline.room(1, count) != Room::Enough {
                    continue;
                }
                let parts = (0..count).flat_map(|n| page_of(content.page(n * BLOCK)));
                let bytes: Vec<u8> = parts.collect();
                outline.write(&[Write { offset: at, len, content: Some(content) }], &mut steps);
                volume.write_at(at, &bytes).expect("written");
            }
            30..32 if outline.room(1, 1) == Room::Enough => {
                let count = (1 + random.below(60)).min(pages - page);
                let (offset, len) = (page * BLOCK, count * BLOCK);
                outline.trim(offset, len, &mut steps);
                volume.run(Operation::Discard { offset, len }).expect("trimmed");
            }
            32..36 => move_both(&volume, &mut outline, &mut fulls),
            _ => outline.read(page * BLOCK, BLOCK, &mut steps),
        }
        if i % 500 == 0 {
            compare(&volume, &outline, &format!("seed {seed}, request {i}"));
        }
    }
    while outline.has_records() && fulls == 0 {
        move_both(&volume, &mut outline, &mut fulls);
    }
    compare(&volume, &outline, "at the end");
    let counters = outline.counters();
    assert!(counters.pages_stored > 1000 && counters.pages_absorbed > 100, "{counters:?}");
    assert_eq!(settings.thin, fulls > 0);
}

fn move_both(volume: &Volume, outline: &mut Outline, fulls: &mut u64) {
    let moved = outline.begin_move(u64::MAX);
    outline.end_move();
    match (volume.migrate(), moved) {
        (Ok(_), Ok(_)) => {}
        // The volume reports it after the records that could move.
        (Err(Error::Full { .. }), _) => *fulls += 1,
        (volume, outline) => panic!("{volume:?}, {outline:?}"),
    }
}

fn compare(volume: &Volume, outline: &Outline, when: &str) {
    let mut state = volume.lock();
    let (store, log, overlay) = state.parts();
    let log = log.expect("there is one");
    assert_eq!(log.fill(), (outline.ring.blocks, outline.ring.used), "{when}: buffer");
    assert_eq!(overlay.pages.len(), outline.overlay.pages.len(), "{when}: pages in the buffer");
    assert_eq!(store.pages_used().0, outline.maps.pages_used(), "{when}: pages in use");
    for page in 0..store.layout.volume_pages {
        let place = store.place_of(page).expect("read");
        assert_eq!(outline.maps.place(page), place, "{when}: page {page}");
    }
    let (real, ours) = (store.counted(), outline.counters());
    for ((name, real), (_, ours)) in real.each().zip(ours.each()) {
        // Tables and index are in memory here, and the volume was not read.
        let skip = ["index_bytes", "table_bytes", "pages_read", "data_pages_read"];
        let skip = skip.contains(&name) || name == "buffer_pages_read";
        assert!(skip || real == ours, "{when}: {name}: {real}, outline {ours}");
    }
}

#[test]
fn an_outline_does_what_the_volume_does() {
    let shape = Shape { data: (2, 16 * MIB), buffer: (2, 8 * MIB), filled: false };
    for (seed, dedup) in [(1, Some(Hash::Blake3)), (2, None), (3, Some(Hash::Blake3))] {
        side_by_side(seed, &settings(12 * MIB, dedup, false), &shape);
    }
}

#[test]
fn a_full_outline_does_what_a_full_volume_does() {
    let shape = Shape { data: (2, 6 * MIB), buffer: (2, 8 * MIB), filled: false };
    side_by_side(4, &settings(24 * MIB, Some(Hash::Blake3), true), &shape);
}

/// Transfers of one write and its move, as an example.
#[test]
fn a_write_is_a_record_and_then_a_move() {
    let shape = Shape { data: (2, 64 * MIB), buffer: (2, 16 * MIB), filled: true };
    let options = OpenOptions::default();
    let mut outline =
        Outline::new(&settings(16 * MIB, Some(Hash::Blake3), false), &options, &shape)
            .expect("made");
    let one = |role, access, offset, len| {
        [Step::Transfer(Transfer { role, access, offset, len }), Step::Wait]
    };
    let mut steps = Vec::new();
    outline.read(BLOCK, BLOCK, &mut steps);
    let page_1 = outline.maps.layout.page_at(1);
    assert_eq!(steps, one(Role::Data, Access::Read, page_1, BLOCK));
    steps.clear();
    let writes = [
        Write { offset: BLOCK, len: BLOCK, content: Some(ContentHashes::Whole(7)) },
        Write { offset: 2 * BLOCK + 512, len: 512, content: None },
    ];
    outline.write(&writes, &mut steps);
    let record = |n: u64| one(Role::Buffer, Access::Write, 2 * n * BLOCK, 2 * BLOCK);
    let page_2 = outline.maps.layout.page_at(2);
    let read = one(Role::Data, Access::Read, page_2, BLOCK);
    let sync = || sync(Role::Buffer);
    assert_eq!(steps, [record(0), sync(), read, record(1), sync()].concat());
    steps.clear();
    outline.read(BLOCK, 2 * BLOCK, &mut steps);
    let of = |n: u64| Transfer {
        role: Role::Buffer,
        access: Access::Read,
        offset: (2 * n + 1) * BLOCK,
        len: BLOCK,
    };
    assert_eq!(steps, [Step::Transfer(of(0)), Step::Transfer(of(1)), Step::Wait]);
    let moved = outline.begin_move(u64::MAX).expect("room").expect("records");
    let fresh = outline.maps.layout.page_at(16 * MIB / BLOCK);
    let journal = outline.maps.layout.journal_at;
    assert_eq!(
        moved,
        [
            one(Role::Buffer, Access::Read, 0, 4 * BLOCK),
            [Step::Hash(2), Step::Wait],
            one(Role::Data, Access::Write, fresh, 2 * BLOCK),
            super::sync(Role::Data),
            one(Role::Data, Access::Write, journal, BLOCK),
            super::sync(Role::Data),
        ]
        .concat()
    );
    outline.end_move();
    assert_eq!(outline.begin_move(u64::MAX).expect("nothing"), None);
}
