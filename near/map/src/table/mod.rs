//! Keys and values of a map, combined in memory: what a worker hands out goes into a table of its own.
//!
//! ```text
//!                hash of the key
//!                     │           32 bytes a slot                          arena
//!   slots  ┌─────┬────▼─────┬─────┬─────┐     ┌──────┬─────┬──────┬───────┐  ┌────────────────────┐
//!          │     │   slot   │     │     │  =  │ hash │ len │ key  │ value │  │ longer keys, values │
//!          └─────┴──────────┴─────┴─────┘     └──────┴─────┴──────┴───────┘  └────────────────────┘
//!                                              4      4     16     8
//! ```
//!
//! A key of up to 16 bytes is in its slot, as two numbers that are compared at once; of a longer one the
//! first 8 bytes are there, and all of it is in the arena. A number is in the slot, too. So counting a
//! word touches one half of a cache line.
//!
//! ```text
//!   slot    a key as two numbers, its hash        arena    bytes that stay where they are
//!   kind    how values are combined               sorted   the rows in the order of their keys
//! ```
//!
//! All memory is reserved before it is allocated. A table that may not grow any more says [`Full`]; the
//! caller spills it, clears it and tries again.
//!
//! The hash has no secret, so that a run can be repeated. If keys crowd in spite of it, because chance or
//! an enemy chose them so, the table takes another seed when it next grows or is cleared; the result does
//! not show it.

mod arena;
mod kind;
mod slot;
mod sorted;
#[cfg(test)]
mod tests;

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;

use arena::KeyArena;
use kind::Folded;
pub use kind::TableKind;
use slot::{EMPTY, INLINE_BYTES, KeyWords, Seeds, TableSlot};
pub use sorted::SortedRows;

/// Slots of a table at its beginning.
const SLOTS_MIN: usize = 1 << 10;
/// A table is full when more than 3 of 4 slots are taken: then a look-up still takes 2.5 probes or so.
const LOAD: (usize, usize) = (3, 4);
/// More probes than this, in a table that is not full, are no chance.
const PROBES_MAX: usize = 512;
/// Sums that left 64 bits and are kept aside, at most: they fit into the slots that a full table leaves
/// empty.
const ASIDE_MAX: usize = SLOTS_MIN / 4;

/// There is no room for one more. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// A table of keys with combined values, or ([`TableKind::All`]) a list of keys with values.
pub struct Table {
    kind: TableKind,
    slots: Vec<TableSlot>,
    /// Slots in use.
    len: usize,
    /// More slots in use than this ask for growth.
    len_max: usize,
    seeds: Seeds,
    /// Keys crowd with these seeds.
    crowded: bool,
    arena: KeyArena,
    /// Partial sums of keys whose sum left 64 bits: equal keys twice. A reader of the rows sums with more bits.
    aside: Vec<TableSlot>,
    budget: Budget,
    memory: Reservation,
    /// Bytes of slots and arena, at most.
    bytes_max: u64,
    value_header: bool,
    sorted: bool,
}

impl Table {
    /// An empty table that takes up to `bytes_max` bytes of `budget`.
    ///
    /// # Errors
    /// When the budget does not give the least that a table takes.
    pub fn new(kind: TableKind, budget: &Budget, bytes_max: u64) -> merganser_sort::Result<Self> {
        let slots = if kind == TableKind::All { 0 } else { SLOTS_MIN };
        let memory = budget.reserve((slots * size_of::<TableSlot>()) as u64, "combining")?;
        let mut table = Table {
            kind,
            slots: vec![EMPTY; slots],
            len: 0,
            len_max: 0,
            seeds: Seeds::first(),
            crowded: false,
            arena: KeyArena::new(budget),
            aside: Vec::new(),
            budget: budget.clone(),
            memory,
            bytes_max,
            value_header: !kind.is_number(),
            sorted: false,
        };
        table.len_max = table.load();
        Ok(table)
    }

    fn load(&self) -> usize {
        self.slots.len() / LOAD.1 * LOAD.0
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len + self.aside.len()
    }

    /// Whether it has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it has reserved.
    #[cfg(test)]
    pub fn reserved_bytes(&self) -> u64 {
        self.memory.bytes() + self.arena.reserved_bytes()
    }

    /// Combines `number` into the value of `key`; the kind is one of numbers.
    ///
    /// # Errors
    /// [`Full`].
    #[inline]
    pub fn add(&mut self, key: &[u8], number: u64) -> Result<(), Full> {
        if key.len() <= INLINE_BYTES {
            self.add_words(KeyWords::of_short(key), key.len(), number)
        } else {
            self.add_long(key, number)
        }
    }

    /// As [`Table::add`] for a key that is `bytes[start..start + len]`; what follows it may be looked at.
    ///
    /// # Errors
    /// [`Full`].
    #[inline]
    pub fn add_within(
        &mut self,
        bytes: &[u8],
        start: usize,
        len: usize,
        number: u64,
    ) -> Result<(), Full> {
        if len <= INLINE_BYTES
            && let Some(sixteen) = bytes.get(start..).and_then(|rest| rest.first_chunk())
        {
            return self.add_words(KeyWords::of_first(sixteen, len), len, number);
        }
        self.add(&bytes[start..start + len], number)
    }

    #[inline]
    fn add_words(&mut self, words: KeyWords, len: usize, number: u64) -> Result<(), Full> {
        let hash = self.seeds.hash(words, len);
        let tag = TableSlot::tag(hash, len);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.tag == tag && slot.words == words {
                match self.kind.fold(&mut slot.value, number) {
                    Folded::Done => return Ok(()),
                    Folded::Overflow => return self.put_aside(at, number),
                }
            }
            if slot.tag == 0 {
                return self.insert(at, TableSlot { tag, words, value: number }, hash);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    #[inline(never)]
    fn add_long(&mut self, key: &[u8], number: u64) -> Result<(), Full> {
        let (place, hash) = self.find_long(key);
        match place {
            Ok(at) => match self.kind.fold(&mut self.slots[at].value, number) {
                Folded::Done => Ok(()),
                Folded::Overflow => self.put_aside(at, number),
            },
            Err(at) => {
                let moved = self.grow_for(hash, at)?;
                let hash = if moved { self.seeds.hash_long(key) } else { hash };
                let words = self.store_key(key)?;
                self.insert_grown(
                    hash,
                    TableSlot { tag: TableSlot::tag(hash, key.len()), words, value: number },
                );
                Ok(())
            }
        }
    }

    /// Where a key of more than [`INLINE_BYTES`] is (`Ok`), or would be, and its hash.
    fn find_long(&self, key: &[u8]) -> (Result<usize, usize>, u64) {
        let hash = self.seeds.hash_long(key);
        let tag = TableSlot::tag(hash, key.len());
        let first = KeyWords::first_of_long(key);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.tag == tag
                && slot.words.first == first
                && self.arena.get(slot.words.second, key.len()) == key
            {
                return (Ok(at), hash);
            }
            if slot.tag == 0 {
                return (Err(at), hash);
            }
            at = (at + 1) & mask;
        }
    }

    /// The place of any key, as [`Table::find_long`].
    fn find(&self, key: &[u8]) -> (Result<usize, usize>, u64) {
        if key.len() > INLINE_BYTES {
            return self.find_long(key);
        }
        let words = KeyWords::of_short(key);
        let hash = self.seeds.hash(words, key.len());
        let tag = TableSlot::tag(hash, key.len());
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.tag == tag && slot.words == words {
                return (Ok(at), hash);
            }
            if slot.tag == 0 {
                return (Err(at), hash);
            }
            at = (at + 1) & mask;
        }
    }

    fn store_key(&mut self, key: &[u8]) -> Result<KeyWords, Full> {
        if key.len() <= INLINE_BYTES {
            return Ok(KeyWords::of_short(key));
        }
        let second = self.arena.push(&[key], self.arena_max()).ok_or(Full)?;
        Ok(KeyWords { first: KeyWords::first_of_long(key), second })
    }

    /// Puts a slot where a probe has found the end of its chain.
    #[cold]
    #[inline(never)]
    fn insert(&mut self, at: usize, slot: TableSlot, hash: u64) -> Result<(), Full> {
        if self.grow_for(hash, at)? {
            // Places and, perhaps, hashes are others now.
            let hash = self.seeds.hash(slot.words, slot.len());
            let tag = TableSlot::tag(hash, slot.len());
            self.insert_grown(hash, TableSlot { tag, ..slot });
        } else {
            self.slots[at] = slot;
            self.len += 1;
        }
        Ok(())
    }

    /// Puts a slot of a new key into a table that has room.
    fn insert_grown(&mut self, hash: u64, slot: TableSlot) {
        place(&mut self.slots, hash, slot);
        self.len += 1;
    }

    /// Makes room for one more, whose chain ends at `at`; says whether slots have moved.
    fn grow_for(&mut self, hash: u64, at: usize) -> Result<bool, Full> {
        let mask = self.slots.len() - 1;
        let probes = at.wrapping_sub(hash as usize & mask) & mask;
        if probes > PROBES_MAX && !self.crowded {
            self.crowded = true;
            // Once for each size: with another seed the table is like any other.
            self.grow()?;
            return Ok(true);
        }
        if self.len < self.len_max {
            return Ok(false);
        }
        self.grow()?;
        Ok(true)
    }

    /// Twice as many slots.
    fn grow(&mut self) -> Result<(), Full> {
        let count = self.slots.len() * 2;
        let bytes = (count * size_of::<TableSlot>()) as u64;
        // The old slots stay until all are moved.
        let both = self.memory.bytes() + bytes;
        if both + self.arena.reserved_bytes() > self.bytes_max {
            return Err(Full);
        }
        let memory = self.budget.reserve(bytes, "combining").map_err(|_| Full)?;
        if std::mem::take(&mut self.crowded) {
            self.seeds = self.seeds.next();
        }
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; count]);
        for slot in &old {
            if slot.tag != 0 {
                let len = slot.len();
                let hash = if len <= INLINE_BYTES {
                    self.seeds.hash(slot.words, len)
                } else {
                    self.seeds.hash_long(self.arena.get(slot.words.second, len))
                };
                place(&mut self.slots, hash, TableSlot { tag: TableSlot::tag(hash, len), ..*slot });
            }
        }
        drop(old);
        self.memory = memory;
        self.len_max = self.load();
        Ok(())
    }

    /// A sum that would leave 64 bits: the sum so far goes aside, and a new one begins.
    #[cold]
    fn put_aside(&mut self, at: usize, number: u64) -> Result<(), Full> {
        if self.aside.len() == ASIDE_MAX {
            return Err(Full);
        }
        let slot = &mut self.slots[at];
        self.aside.push(*slot);
        slot.value = number;
        Ok(())
    }

    fn arena_max(&self) -> u64 {
        self.bytes_max.saturating_sub(self.memory.bytes())
    }

    /// Combines `value` (its parts, end to end) into that of `key`; the kind is one of bytes.
    ///
    /// # Errors
    /// [`Full`].
    pub fn put(&mut self, key: &[u8], value: &[&[u8]]) -> Result<(), Full> {
        if self.kind == TableKind::All {
            return self.append(key, value);
        }
        let (place, hash) = self.find(key);
        match place {
            Ok(at) => {
                let old = self.slots[at].value;
                if self.kind.replaces(self.arena.value(old), value) {
                    self.slots[at].value =
                        self.arena.replace_value(old, value, self.arena_max()).ok_or(Full)?;
                }
                Ok(())
            }
            Err(at) => {
                let moved = self.grow_for(hash, at)?;
                let value = self.arena.push_value(value, self.arena_max()).ok_or(Full)?;
                let words = self.store_key(key)?;
                let hash = if moved { self.find(key).1 } else { hash };
                self.insert_grown(
                    hash,
                    TableSlot { tag: TableSlot::tag(hash, key.len()), words, value },
                );
                Ok(())
            }
        }
    }

    fn append(&mut self, key: &[u8], value: &[&[u8]]) -> Result<(), Full> {
        if self.slots.len() == self.slots.capacity() {
            let count = (self.slots.len() * 2).max(SLOTS_MIN);
            let bytes = (count * size_of::<TableSlot>()) as u64;
            let both = self.memory.bytes() + bytes + self.arena.reserved_bytes();
            if both > self.bytes_max {
                return Err(Full);
            }
            let memory = self.budget.reserve(bytes, "combining").map_err(|_| Full)?;
            self.slots.reserve_exact(count - self.slots.len());
            self.memory = memory;
        }
        let value = self.arena.push_value(value, self.arena_max()).ok_or(Full)?;
        let words = self.store_key(key)?;
        self.slots.push(TableSlot { tag: TableSlot::tag(1 << 63, key.len()), words, value });
        self.len += 1;
        Ok(())
    }

    /// Hands out every row, in no order: key, value.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each<E>(&self, mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        assert!(!self.sorted, "the slots of a sorted table have another form");
        for slot in self.slots.iter().chain(&self.aside).filter(|slot| slot.tag != 0) {
            let len = slot.len();
            let short = slot.words.bytes();
            let key = if len <= INLINE_BYTES {
                &short[..len]
            } else {
                self.arena.get(slot.words.second, len)
            };
            if self.value_header {
                take(key, self.arena.value(slot.value))?;
            } else {
                take(key, &slot.value.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Removes all rows; the memory stays. It was full, so it grows if it can do that alone, without the old
    /// slots next to the new ones.
    pub fn clear(&mut self) {
        self.aside.clear();
        self.arena.clear();
        if std::mem::take(&mut self.crowded) {
            self.seeds = self.seeds.next();
        }
        if self.kind == TableKind::All {
            self.slots.clear();
            self.len = 0;
            return;
        }
        let bytes = self.memory.bytes() * 2;
        let fits = self.len >= self.len_max
            && bytes + self.arena.reserved_bytes() <= self.bytes_max
            && self.memory.grow_to(bytes).is_ok();
        self.len = 0;
        if !fits {
            return self.slots.fill(EMPTY);
        }
        let count = self.slots.len() * 2;
        self.slots = Vec::new();
        self.slots = vec![EMPTY; count];
        self.len_max = self.load();
    }
}

/// Puts a slot into the first empty place of its chain.
#[inline]
fn place(slots: &mut [TableSlot], hash: u64, slot: TableSlot) {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while slots[at].tag != 0 {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}
