//! The bytes of each format, pinned. A change of one shows as a change of a file in tests/golden, and
//! needs a new version in docs/array/array.md. `MERGANSER_UPDATE_GOLDEN=1` writes the files.

use std::fmt::Write as _;
use std::path::Path;

use crate::bytes::{put_u32, put_u64};
use crate::counters::VolumeCounters;
use crate::fingerprint;
use crate::journal::{MapChange, Transaction};
use crate::label::{MemberLabel, Role, SessionStep, Sitting};
use crate::layout::{Kinds, VolumeLayout};
use crate::log::RingPlace;
use crate::log::record::{RecordEntry, RecordFacts, RecordHeader};
use crate::settings::Hash;
use crate::states::BlockStates;
use crate::store::Stored;
use crate::superblock::{RunPlace, Superblock, VERSION};

const VOLUME: [u8; 16] = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";

/// Lines of sixteen bytes; those of zeros are left out.
fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (i, line) in bytes.chunks(16).enumerate() {
        if line.iter().any(|&byte| byte != 0) {
            write!(out, "{:04x} ", i * 16).expect("a string takes all");
            line.iter().for_each(|byte| write!(out, " {byte:02x}").expect("a string takes all"));
            out.push('\n');
        }
    }
    out
}

fn pinned(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let found = dump(bytes);
    if std::env::var_os("MERGANSER_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let expected = std::fs::read_to_string(&path).expect("a golden file");
    assert_eq!(found, expected, "{name}");
}

/// The block of a golden file of an earlier version, which nothing writes any more.
fn read_dump(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let mut block = vec![0; 4096];
    for line in std::fs::read_to_string(path).expect("a golden file").lines() {
        let (at, bytes) = line.split_once("  ").expect("a place and bytes");
        let at = usize::from_str_radix(at, 16).expect("hexadecimal");
        for (byte, text) in block[at..].iter_mut().zip(bytes.split(' ')) {
            *byte = u8::from_str_radix(text, 16).expect("hexadecimal");
        }
    }
    block
}

fn place(n: u64) -> RingPlace {
    RingPlace { seq: n, at: n + 1, chain: 0x0102_0304 }
}

#[test]
fn a_label_is_these_bytes() {
    let (role, index, count) = (Role::Buffer, 1, 2);
    let sitting = Some(Sitting { session: 3, step: SessionStep::Closed, checkpoint: 7 });
    let (chunk_bytes, array_bytes) = (1 << 20, 5 << 30);
    let label = MemberLabel {
        volume: VOLUME,
        role,
        index,
        count,
        chunk_bytes,
        array_bytes,
        volume_pages: 8192,
        sitting,
    };
    pinned("label.txt", &label.encode()[..]);
    assert_eq!(MemberLabel::decode(&label.encode()[..]), Ok(label));
    let old = MemberLabel { sitting: None, volume_pages: 0, ..label };
    pinned("label-1.txt", &old.encode()[..]);
    assert_eq!(MemberLabel::decode(&old.encode()[..]), Ok(old));
}

#[test]
fn a_superblock_is_these_bytes() {
    let superblock = Superblock {
        version: VERSION,
        volume: VOLUME,
        checkpoint: 7,
        session: 3,
        volume_pages: 8192,
        segments: 80,
        journal_blocks: 64,
        dedup: true,
        sha1: false,
        compare: true,
        buffered: true,
        thin: false,
        clean: true,
        states_copy: 1,
        sums: true,
        states_sum: 0x0506_0708,
        chunk_bytes: (512 << 10, 1 << 20),
        journal: place(10),
        log_tail: place(20),
        log_synced: 30,
        log_opened: 25,
        counters: VolumeCounters::from_values(|i| 0x100 + i as u64),
        runs: vec![RunPlace { at: 5, entries: 300, number: 9 }],
    };
    pinned("superblock.txt", &superblock.encode()[..]);
    assert_eq!(Superblock::decode(&superblock.encode()[..]), Ok(superblock.clone()));
    let old = Superblock { sums: false, states_sum: 0, chunk_bytes: (0, 0), ..superblock };
    for version in [1, 2] {
        let old = Superblock { version, ..old.clone() };
        assert_eq!(Superblock::decode(&old.encode()[..]), Ok(old));
    }
    let bytes = read_dump("superblock-2.txt");
    assert_eq!(Superblock::decode(&bytes), Ok(Superblock { version: 2, ..old }));
}

#[test]
fn a_transaction_is_these_bytes() {
    let changes = [
        MapChange::New { page: 1, place: 2, crc: 3, fingerprint: [4; 20] },
        MapChange::Map { page: 5, place: 6 },
        MapChange::Unmap { page: 7, count: 8 },
        MapChange::Lost { page: 9 },
    ];
    let mut encoded = Vec::new();
    changes.iter().for_each(|change| change.encode(&mut encoded));
    let mut rest = &encoded[..];
    let again: Vec<MapChange> = std::iter::from_fn(|| MapChange::decode(&mut rest)).collect();
    assert_eq!((again, rest), (changes.to_vec(), &[][..]));
    let transaction = Transaction {
        volume: VOLUME,
        session: 3,
        checkpoint: 7,
        log_tail: place(20),
        log_synced: 30,
        changes: encoded,
    };
    let bytes = transaction.encode(place(10));
    pinned("transaction.txt", &bytes);
    assert_eq!(Transaction::blocks(&bytes, 10, 0x0102_0304), Some(1));
    assert_eq!(Transaction::decode(&bytes), Some(transaction));
}

#[test]
fn a_record_is_these_bytes() {
    let entries =
        vec![RecordEntry::Page { page: 1, crc: 2 }, RecordEntry::Trim { page: 3, count: 4 }];
    let facts = RecordFacts { session: 3, checkpoint: 7, chain: 0x0102_0304, synced: 19, entries };
    let alone = RecordHeader { volume: VOLUME, seq: 20, facts: facts.clone(), before: None };
    assert_eq!(RecordHeader::decode(&alone.encode()[..]), Some(alone.clone()));
    let entries = vec![RecordEntry::Trim { page: 6, count: 5 }];
    let before = RecordFacts { session: 2, checkpoint: 6, chain: 0x0a0b_0c0d, synced: 18, entries };
    let header = RecordHeader { before: Some(before), ..alone.clone() };
    pinned("record.txt", &header.encode()[..]);
    assert_eq!(RecordHeader::decode(&header.encode()[..]), Some(header));
    let old = RecordHeader { facts: RecordFacts { checkpoint: 0, ..facts }, ..alone };
    assert_eq!(RecordHeader::decode(&read_dump("record-2.txt")), Some(old));
}

#[test]
fn table_blocks_are_these_bytes() {
    let mut map = crate::bytes::zeroed();
    put_u64(&mut *map, crate::layout::HEAD + 8, 43);
    crate::table::seal_block(&mut map, 5, 7);
    pinned("map-block.txt", &map[..]);
    assert_eq!(crate::table::check_block(&map, 5, 7), Ok(()));
    assert!(crate::table::check_block(&map, 5, 6).is_err(), "newer than what counts");
    assert!(crate::table::check_block(&map, 6, 7).is_err(), "another block");

    let mut segment = crate::bytes::zeroed();
    let stored = Stored { references: 2, crc: 0x0a0b_0c0d, fingerprint: [9; 20] };
    stored.encode(&mut segment[crate::layout::HEAD..], 128 * 3 + 1);
    crate::table::seal_block(&mut segment, 8, 7);
    pinned("segment-block.txt", &segment[..]);

    // Two map blocks and one segment.
    let kinds = Kinds { dedup: false, sums: true };
    let layout = VolumeLayout::of_sizes(509, 1, 16, kinds, 4096);
    let states = BlockStates { slots: vec![1, 2, 0], used: vec![128], sums: vec![5, 6, 0] };
    let blocks = states.encode(7);
    pinned("states.txt", &blocks[0][..]);
    let payload = crate::states::states_of(&blocks[0][..], 0, 7).expect("sound");
    assert_eq!(BlockStates::decode(&layout, payload), states);
    let old = VolumeLayout::of_sizes(509, 1, 16, Kinds { sums: false, ..kinds }, 4096);
    let bytes = read_dump("states-2.txt");
    let payload = crate::states::states_of(&bytes, 0, 7).expect("sound");
    assert_eq!(BlockStates::decode(&old, payload), BlockStates { sums: Vec::new(), ..states });
}

#[test]
fn an_index_block_is_these_bytes() {
    let entries = [(0x1111_2222_3333_4444, 5), (u64::MAX, 6)];
    let block = crate::index::run::encode(9, 1, &entries);
    pinned("index-block.txt", &block[..]);
    assert_eq!(crate::index::run::decode(&block[..], 9, 1), Some(entries.to_vec()));
    assert_eq!(crate::index::run::decode(&block[..], 9, 2), None);
}

/// The SHA-1 is that of `printf 'a%.0s' {1..4096} | sha1sum`.
#[test]
fn fingerprints_are_those_of_other_programs() {
    let page = [b'a'; 4096];
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sha1 = hex(&fingerprint::of_page(Hash::Sha1, &page));
    assert_eq!(sha1, "8c51fb6a0b587ec95ca74acfa43df7539b486297");
    let zeros = hex(&fingerprint::of_page(Hash::Sha1, &[0; 4096]));
    assert_eq!(zeros, "1ceaf73df40e531df3bfb26b4fb7cd95fb7bff1d");
    let mut put = [0; 8];
    put_u32(&mut put, 2, 0x0102_0304);
    assert_eq!(put, [0, 0, 4, 3, 2, 1, 0, 0]);
    let blake3 = hex(&fingerprint::of_page(Hash::Blake3, &page));
    assert_eq!(blake3, hex(&blake3::hash(&page).as_bytes()[..20]));
    assert!(blake3.starts_with(&format!("{:032x}", crate::content_hash(&page))));
    // lab/bench/traces/record.py gives it the number 0.
    assert_eq!(crate::content_hash(&[0; 4096]), 0xb6fb_73fc_4693_8c98_1e2b_0b4b_1ef2_82ad);
}
