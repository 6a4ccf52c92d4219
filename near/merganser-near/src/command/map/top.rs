//! The rows with the largest values, within a bounded memory.

use std::collections::BinaryHeap;
use std::io;

use merganser_map::ssdlet::{SsdletError, Type};
use merganser_sort::Budget;
use merganser_sort::budget::Reservation;

use super::rank;

/// Memory is reserved in steps of this many bytes.
const STEP_BYTES: u64 = 64 << 10;
/// Rows that don't fit.
const TOO_MANY: &str = "--top: the largest rows take more than an eighth of --memory; give more, or take the front of --order value";
/// The memory of a row beyond its bytes: two boxes, their headers in the allocator, a place in the heap
/// that may have grown to twice its rows.
const ROW_BYTES: u64 = 128;

/// The `most` rows with the largest values; among equal values, those with the smallest keys.
pub(super) struct TopRows {
    of: Type,
    most: usize,
    /// The row with the largest rank on top: it is the first to go.
    heap: BinaryHeap<TopRow>,
    rank: Vec<u8>,
    budget: Budget,
    reserved: Vec<Reservation>,
    used_bytes: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct TopRow {
    rank: Box<[u8]>,
    value: Box<[u8]>,
}

impl TopRow {
    fn bytes(&self) -> u64 {
        (self.rank.len() + self.value.len()) as u64 + ROW_BYTES
    }
}

impl TopRows {
    /// No rows yet; at most `most` of them, whose values are of type `of`, in the memory of `budget`.
    pub(super) fn new(of: Type, most: u64, budget: Budget) -> Self {
        TopRows {
            of,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            heap: BinaryHeap::new(),
            rank: Vec::new(),
            budget,
            reserved: Vec::new(),
            used_bytes: 0,
        }
    }

    /// Takes a row, which may drive out another.
    ///
    /// # Errors
    /// When the rows do not fit into memory.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), SsdletError> {
        self.rank.clear();
        rank::rank(self.of, key, value, &mut self.rank);
        if self.heap.len() >= self.most {
            match self.heap.peek() {
                Some(last) if self.rank[..] < last.rank[..] => {}
                _ => return Ok(()),
            }
            self.used_bytes -= self.heap.pop().map_or(0, |row| row.bytes());
        }
        let row = TopRow { rank: self.rank.as_slice().into(), value: value.into() };
        self.used_bytes += row.bytes();
        let reserved_bytes: u64 = self.reserved.iter().map(Reservation::bytes).sum();
        if self.used_bytes > reserved_bytes {
            // In larger and larger steps, so that there are few reservations.
            let step_bytes = STEP_BYTES.max(reserved_bytes / 8);
            let more_bytes = (self.used_bytes - reserved_bytes).max(step_bytes);
            let more_bytes = more_bytes.min(self.budget.free_bytes());
            let more_bytes = more_bytes.max(self.used_bytes - reserved_bytes);
            let more = self.budget.reserve(more_bytes, "the largest rows");
            self.reserved.push(more.map_err(|_| SsdletError::Failed(TOO_MANY.to_owned()))?);
        }
        self.heap.push(row);
        Ok(())
    }

    /// Hands out the rows, those with the largest values first, or in the order of their keys. Returns
    /// how many there are.
    ///
    /// # Errors
    /// Those of `row`.
    pub(super) fn finish(
        self,
        by_key: bool,
        mut row: impl FnMut(&[u8], &[u8]) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut rows = self.heap.into_sorted_vec();
        if by_key {
            // In place: nothing more is reserved. The key decides, then the rank.
            let of = self.of;
            rows.sort_unstable_by(|a, b| {
                let (key_a, key_b) =
                    (rank::key_of_rank(of, &a.rank), rank::key_of_rank(of, &b.rank));
                key_a.cmp(key_b).then_with(|| a.cmp(b))
            });
        }
        for found in &rows {
            row(rank::key_of_rank(self.of, &found.rank), &found.value)?;
        }
        Ok(rows.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use merganser_random::Random;

    use super::*;

    fn top(most: u64, rows: &[(String, i64)], by_key: bool) -> Vec<(String, i64)> {
        let mut top = TopRows::new(Type::I64, most, Budget::new(1 << 20));
        for (key, value) in rows {
            top.take(key.as_bytes(), &value.to_le_bytes()).expect("it fits");
        }
        let mut found = Vec::new();
        let row = |key: &[u8], value: &[u8]| {
            let key = String::from_utf8(key.to_vec()).expect("a key of this test");
            found.push((key, i64::from_le_bytes(value.try_into().expect("8 bytes"))));
            Ok(())
        };
        top.finish(by_key, row).expect("rows");
        found
    }

    #[test]
    fn it_is_the_front_of_all_rows_in_order() {
        let mut random = Random::new(7);
        for most in [0, 1, 2, 10, 99, 100, 101] {
            let rows: Vec<_> =
                (0..100).map(|n| (format!("key {n}"), random.bits() as i64 % 20)).collect();
            let mut sorted = rows.clone();
            sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            sorted.truncate(most as usize);
            assert_eq!(top(most, &rows, false), sorted);
            sorted.sort();
            assert_eq!(top(most, &rows, true), sorted);
        }
    }

    #[test]
    fn its_memory_is_bounded_and_given_back() {
        let budget = Budget::new(300 << 10);
        let mut top = TopRows::new(Type::Text, u64::MAX, budget.clone());
        let long = [b'x'; 1000];
        let taken = (0..1000).take_while(|_| top.take(&long, b"value").is_ok()).count();
        assert!((200..300).contains(&taken), "{taken} rows of 1 kB in 300 KiB");
        drop(top);
        assert_eq!(budget.free_bytes(), budget.limit_bytes());
        // Rows that go make room for rows that come.
        let mut top = TopRows::new(Type::I64, 10, budget.clone());
        for value in 0..10_000i64 {
            top.take(&long, &value.to_le_bytes()).expect("ten rows fit");
        }
        assert!(budget.free_bytes() > 200 << 10);
    }
}
