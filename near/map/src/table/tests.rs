use std::collections::BTreeMap;

use merganser_random::Random;

use super::slot::{INLINE_BYTES, KeyWords, Seeds};
use super::*;

const ROOM: u64 = 64 << 20;

fn table(kind: TableKind) -> Table {
    Table::new(kind, &Budget::new(ROOM), ROOM).expect("there is memory")
}

fn rows(table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut sorted = table.into_sorted();
    let mut rows = Vec::new();
    while sorted.advance() {
        rows.push((sorted.key().to_vec(), sorted.value().to_vec()));
    }
    rows
}

fn counted(keys: &BTreeMap<Vec<u8>, u64>) -> Vec<(Vec<u8>, Vec<u8>)> {
    keys.iter().map(|(key, n)| (key.clone(), n.to_le_bytes().to_vec())).collect()
}

#[test]
fn words_hold_every_key_of_up_to_16_bytes() {
    let bytes: Vec<u8> = (1..=40).collect();
    for len in 0..=INLINE_BYTES {
        let words = KeyWords::of_short(&bytes[..len]);
        assert_eq!(words.bytes()[..len], bytes[..len]);
        assert!(words.bytes()[len..].iter().all(|byte| *byte == 0));
        assert_eq!(KeyWords::of_first(bytes.first_chunk().expect("16"), len), words, "{len}");
    }
}

#[test]
fn keys_are_counted_in_the_order_of_their_bytes() {
    let mut random = Random::new(7);
    let (mut table, mut expected) = (table(TableKind::Sum), BTreeMap::new());
    for _ in 0..200_000 {
        // Few letters, and NULs: many keys begin with another one.
        let most = if random.one_in(3) { 40 } else { 6 };
        let len = random.index(most);
        let key: Vec<u8> = (0..len).map(|_| [0, 1, b'a', 0xff][random.index(4)]).collect();
        let text = [&key[..], b" and what follows a key"].concat();
        if random.one_in(2) {
            table.add(&key, 1).expect("room");
        } else {
            table.add_within(&text, 0, len, 1).expect("room");
        }
        *expected.entry(key).or_insert(0u64) += 1;
    }
    assert_eq!(table.len(), expected.len());
    let mut unordered = Vec::new();
    let each = table.each(|key, value| {
        unordered.push((key.to_vec(), value.to_vec()));
        Ok::<(), ()>(())
    });
    each.expect("no error");
    unordered.sort();
    assert_eq!(unordered, counted(&expected));
    assert_eq!(rows(table), counted(&expected));
}

/// Keys that a simple hash brings to few places: each is found at once all the same.
#[test]
fn keys_with_a_pattern_do_not_crowd() {
    let seeds = Seeds::first();
    let patterns: [fn(u64) -> [u64; 2]; 8] = [
        |n| [n, 0],
        |n| [n << 32, 0],
        |n| [n << 48, n >> 16],
        |n| [0, n],
        |n| [n, n],
        |n| [n, !n],
        |n| [n.wrapping_mul(0x0101_0101_0101_0101), 0],
        |n| [0x243f_6a88_85a3_08d3, n << 20],
    ];
    for (number, pattern) in patterns.into_iter().enumerate() {
        let mut table = table(TableKind::Sum);
        let keys = 100_000u64;
        for n in 0..keys {
            let [first, second] = pattern(n);
            let mut key = first.to_le_bytes().to_vec();
            key.extend_from_slice(&second.to_le_bytes());
            table.add(&key, 1).expect("room");
        }
        assert_eq!(table.len() as u64, keys, "pattern {number}");
        let mask = table.slots.len() - 1;
        let probes: usize = (table.slots.iter().enumerate())
            .filter(|(_, slot)| slot.tag != 0)
            .map(|(at, slot)| {
                let hash = table.seeds.hash(slot.words, slot.len());
                at.wrapping_sub(hash as usize & mask) & mask
            })
            .sum();
        assert!(probes < 4 * keys as usize, "pattern {number}: {probes} probes");
        assert_eq!(
            table.seeds.hash(KeyWords::of_short(b"x"), 1),
            seeds.hash(KeyWords::of_short(b"x"), 1)
        );
    }
}

/// Keys of one hash: the table takes other seeds, and ends.
#[test]
fn keys_that_were_chosen_to_crowd_are_spread_with_other_seeds() {
    let mut table = table(TableKind::Sum);
    // All of one place in a table of this size.
    let mask = (1 << 18) - 1;
    let mut random = Random::new(1);
    let mut keys = Vec::new();
    while keys.len() < 600 {
        let key = random.bits().to_le_bytes();
        if table.seeds.hash(KeyWords::of_short(&key), 8) & mask < 64 {
            keys.push(key);
        }
    }
    for key in &keys {
        table.add(key, 1).expect("room");
        table.add(key, 1).expect("room");
    }
    assert_eq!(table.len(), keys.len());
    let first = Seeds::first();
    assert_ne!(
        table.seeds.hash(KeyWords::of_short(b"x"), 1),
        first.hash(KeyWords::of_short(b"x"), 1),
        "other seeds"
    );
    assert!(rows(table).iter().all(|(_, n)| n[..] == 2u64.to_le_bytes()));
}

#[test]
fn a_table_keeps_within_its_memory_and_says_when_it_is_full() {
    for kind in [TableKind::Sum, TableKind::LeastBytes, TableKind::All] {
        let budget = Budget::new(ROOM);
        for room in [100 << 10, 300 << 10, 1 << 20] {
            let mut table = Table::new(kind, &budget, room).expect("there is memory");
            let mut random = Random::new(3);
            let mut spilled = 0;
            for n in 0..60_000u64 {
                let long = [n.to_le_bytes(), n.to_be_bytes(), [7; 8]].concat();
                let key = &long[..if random.one_in(3) { 24 } else { 8 }];
                let put = |table: &mut Table| match kind {
                    TableKind::Sum => table.add(key, 1),
                    _ => table.put(key, &[&long[..5], &long[..n as usize % 20]]),
                };
                if put(&mut table) == Err(Full) {
                    spilled += table.len();
                    table.clear();
                    put(&mut table).expect("an empty table has room");
                }
                assert!(table.reserved_bytes() <= room);
            }
            assert_eq!(spilled + table.len(), 60_000);
            assert!(spilled > 0);
        }
        assert_eq!(budget.free_bytes(), ROOM);
        assert!(budget.peak_bytes() <= 1 << 20);
    }
    assert!(Table::new(TableKind::Sum, &Budget::new(100), ROOM).is_err());
    let mut table =
        Table::new(TableKind::LeastBytes, &Budget::new(ROOM), 64 << 10).expect("memory");
    assert_eq!(table.put(b"k", &[&[0; 100_000]]), Err(Full), "larger than the table");
}

#[test]
fn the_least_and_the_greatest_bytes_stay() {
    for (kind, least) in [(TableKind::LeastBytes, true), (TableKind::GreatestBytes, false)] {
        let mut table = table(kind);
        let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut random = Random::new(5);
        for _ in 0..20_000 {
            let key = random.below(50).to_string().into_bytes();
            let len = random.index(30);
            let value = random.bytes(len);
            let at = random.index(value.len() + 1);
            table.put(&key, &[&value[..at], &value[at..]]).expect("room");
            let kept = expected.entry(key).or_insert_with(|| value.clone());
            if (value < *kept) == least {
                *kept = value;
            }
        }
        assert_eq!(rows(table), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn sums_that_leave_64_bits_are_there_twice() {
    let mut table = table(TableKind::Sum);
    for _ in 0..3 {
        table.add(b"k", i64::MAX.cast_unsigned()).expect("room");
    }
    let row = (b"k".to_vec(), i64::MAX.to_le_bytes().to_vec());
    assert_eq!(rows(table), [row.clone(), row.clone(), row]);
    let mut table = Table::new(TableKind::Sum, &Budget::new(ROOM), ROOM).expect("memory");
    let mut full = 0;
    for _ in 0..1000 {
        if table.add(b"k", i64::MIN.cast_unsigned()) == Err(Full) {
            full += 1;
            table.clear();
        }
    }
    assert!(full > 0, "they take memory, too");
}

#[test]
fn rows_are_sorted_by_partition_and_then_by_key() {
    let of = |key: &[u8]| {
        key.iter().fold(3, |sum: u32, byte| sum.wrapping_mul(31) ^ u32::from(*byte)) % 7
    };
    let mut random = Random::new(11);
    for kind in [TableKind::Sum, TableKind::All] {
        let (mut table, mut expected) = (table(kind), Vec::new());
        for n in 0..20_000_u64 {
            let key: Vec<u8> =
                (0..random.index(30)).map(|_| [0, b'a', 0xff][random.index(3)]).collect();
            if kind == TableKind::All {
                table.put(&key, &[&n.to_le_bytes()]).expect("room");
                expected.push((of(&key), key, n.to_le_bytes().to_vec()));
            } else {
                table.add(&key, 1).expect("room");
                expected.push((of(&key), key, 1_u64.to_le_bytes().to_vec()));
            }
        }
        expected.sort();
        if kind == TableKind::Sum {
            // Keys are there once, with their number.
            let counted = expected.chunk_by(|a, b| a.1 == b.1);
            expected = counted
                .map(|equal| {
                    (equal[0].0, equal[0].1.clone(), (equal.len() as u64).to_le_bytes().to_vec())
                })
                .collect();
        }
        let mut rows = table.into_partitioned(of);
        let mut found = Vec::new();
        while rows.advance() {
            found.push((rows.partition(), rows.key().to_vec(), rows.value().to_vec()));
        }
        assert!(found == expected, "{kind:?}");
    }
}
