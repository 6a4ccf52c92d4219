//! The rows of a table in the order of their keys.
//!
//! The slots are sorted in place, so this takes no memory. A key's first bytes are then big-endian
//! numbers, and most comparisons look at nothing else.

use std::cmp::Ordering;

use super::arena::KeyArena;
use super::slot::{EMPTY, INLINE_BYTES, KeyWords, TableSlot};
use super::{Table, TableKind};

/// A table that takes no more; read it with [`SortedRows::advance`].
pub struct SortedRows {
    table: Table,
    /// Rows that were read.
    next: usize,
    slot: TableSlot,
    key: [u8; INLINE_BYTES],
    number: [u8; 8],
}

impl Table {
    /// Sorts the rows by key; with [`TableKind::All`], by value then.
    pub fn into_sorted(mut self) -> SortedRows {
        self.close();
        let (arena, all) = (&self.arena, self.kind == TableKind::All);
        self.slots.sort_unstable_by(|a, b| compare_rows(a, b, arena, all));
        SortedRows::of_table(self)
    }

    /// Sorts the rows by the partition of their key, and within a partition as [`Table::into_sorted`].
    pub fn into_partitioned(mut self, partition: impl Fn(&[u8]) -> u32) -> SortedRows {
        self.close();
        let (arena, all) = (&self.arena, self.kind == TableKind::All);
        let mut short = [0; INLINE_BYTES];
        for slot in &mut self.slots {
            let of = partition(key_of(slot, arena, &mut short));
            slot.set_partition(of);
        }
        self.slots.sort_unstable_by(|a, b| {
            let partitions = a.partition().cmp(&b.partition());
            partitions.then_with(|| compare_rows(a, b, arena, all))
        });
        SortedRows::of_table(self)
    }

    /// Leaves nothing in the slots but rows, whose keys compare as numbers.
    fn close(&mut self) {
        self.sorted = true;
        if self.kind != TableKind::All {
            self.slots.retain(|slot| slot.tag != 0);
        }
        // Few, and within what the emptied places leave.
        self.slots.append(&mut self.aside);
        for slot in &mut self.slots {
            slot.words.first = slot.words.first.swap_bytes();
            if slot.len() <= INLINE_BYTES {
                slot.words.second = slot.words.second.swap_bytes();
            }
        }
    }
}

/// The order of two rows: by key, and by value if there are `all` values of a key.
#[inline]
fn compare_rows(a: &TableSlot, b: &TableSlot, arena: &KeyArena, all: bool) -> Ordering {
    let keys = compare(a, b, arena);
    if all { keys.then_with(|| arena.value(a.value).cmp(arena.value(b.value))) } else { keys }
}

/// The order of two keys.
#[inline]
fn compare(a: &TableSlot, b: &TableSlot, arena: &KeyArena) -> Ordering {
    let first = a.words.first.cmp(&b.words.first);
    if first != Ordering::Equal {
        return first;
    }
    let (len, other) = (a.len(), b.len());
    if len <= INLINE_BYTES && other <= INLINE_BYTES {
        return a.words.second.cmp(&b.words.second).then(len.cmp(&other));
    }
    let (mut mine, mut theirs) = ([0; INLINE_BYTES], [0; INLINE_BYTES]);
    key_of(a, arena, &mut mine).cmp(key_of(b, arena, &mut theirs))
}

/// The key of a slot of a sorted table.
#[inline]
fn key_of<'a>(
    slot: &TableSlot,
    arena: &'a KeyArena,
    short: &'a mut [u8; INLINE_BYTES],
) -> &'a [u8] {
    let len = slot.len();
    if len > INLINE_BYTES {
        return arena.get(slot.words.second, len);
    }
    let KeyWords { first, second } = slot.words;
    *short = KeyWords { first: first.swap_bytes(), second: second.swap_bytes() }.bytes();
    &short[..len]
}

impl SortedRows {
    fn of_table(table: Table) -> Self {
        let (key, number) = ([0; INLINE_BYTES], [0; 8]);
        SortedRows { table, next: 0, slot: EMPTY, key, number }
    }

    /// The partition of the row; only after [`Table::into_partitioned`].
    #[inline]
    pub fn partition(&self) -> u32 {
        self.slot.partition()
    }

    /// Goes to the next row, the first one at first; false after the last.
    #[inline]
    pub fn advance(&mut self) -> bool {
        let Some(slot) = self.table.slots.get(self.next) else { return false };
        self.slot = *slot;
        self.next += 1;
        key_of(slot, &self.table.arena, &mut self.key);
        self.number = slot.value.to_le_bytes();
        true
    }

    /// The key of the row.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let len = self.slot.len();
        if len > INLINE_BYTES {
            self.table.arena.get(self.slot.words.second, len)
        } else {
            &self.key[..len]
        }
    }

    /// Its value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.table.value_header { self.table.arena.value(self.slot.value) } else { &self.number }
    }
}
