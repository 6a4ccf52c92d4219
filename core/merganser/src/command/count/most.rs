//! Values in the order of their counts, the largest first, and then of their bytes.
//!
//! Few are kept in a heap whose top is the next to go. More than fit into memory are sorted.

use std::collections::BinaryHeap;
use std::sync::Arc;

use merganser_sort::budget::Reservation;
use merganser_sort::rows::{KeepAll, RowSorter, Rows, RowsBy};
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Directory;

use super::COUNT_BYTES;

/// Memory is reserved in steps of this many bytes.
const STEP_BYTES: u64 = 64 << 10;
/// The memory of a row beyond its bytes: a box, its header in the allocator, a place in the heap that may have grown to
/// twice its rows.
const ROW_BYTES: u64 = 64;

/// The values so far.
pub(super) struct Most {
    budget: Budget,
    top: Option<u64>,
    heap: Option<BinaryHeap<Box<[u8]>>>,
    reserved: Vec<Reservation>,
    used_bytes: u64,
    sorter: RowSorter<KeepAll>,
    rank: Vec<u8>,
}

impl Most {
    /// No values yet; at most `top` of them, in the memory of `budget`.
    pub(super) fn new(
        budget: &Budget,
        top: Option<u64>,
        temp: Vec<Arc<dyn Directory>>,
        threads: usize,
    ) -> Self {
        let sorter = RowSorter::new(RowsBy::Key, budget, KeepAll);
        Most {
            budget: budget.clone(),
            top,
            heap: top.map(|_| BinaryHeap::new()),
            reserved: Vec::new(),
            used_bytes: 0,
            sorter: sorter.temp(temp).threads(threads.max(1)),
            rank: Vec::new(),
        }
    }

    /// Takes a value, which may drive out another.
    ///
    /// # Errors
    /// Those of the sort.
    pub(super) fn take(&mut self, value: &[u8], count: u64) -> Result<(), Error> {
        self.rank.clear();
        self.rank.extend_from_slice(&(!count).to_be_bytes());
        self.rank.extend_from_slice(value);
        let (Some(heap), Some(top)) = (&mut self.heap, self.top) else {
            return self.sorter.push(&self.rank, b"");
        };
        if heap.len() as u64 >= top {
            match heap.peek() {
                Some(last) if self.rank[..] < last[..] => {}
                _ => return Ok(()),
            }
            self.used_bytes -= heap.pop().map_or(0, |row| bytes_of(&row));
        }
        heap.push(self.rank.as_slice().into());
        self.used_bytes += bytes_of(&self.rank);
        let reserved_bytes: u64 = self.reserved.iter().map(Reservation::bytes).sum();
        if self.used_bytes > reserved_bytes {
            let more_bytes = (self.used_bytes - reserved_bytes).max(STEP_BYTES.max(reserved_bytes));
            match self.budget.reserve(more_bytes, "the largest counts") {
                Ok(more) => self.reserved.push(more),
                Err(_) => return self.sort_all(),
            }
        }
        Ok(())
    }

    /// Gives the heap up: all that it has, and what comes, is sorted.
    fn sort_all(&mut self) -> Result<(), Error> {
        self.reserved.clear();
        let rows = self.heap.take().unwrap_or_default();
        rows.into_iter().try_for_each(|row| self.sorter.push(&row, b""))
    }

    /// The values in order.
    ///
    /// # Errors
    /// Those of the sort.
    pub(super) fn finish(self, progress: &dyn Progress) -> Result<MostRows, Error> {
        let left = self.top.unwrap_or(u64::MAX);
        let from = match self.heap {
            Some(heap) => {
                MostFrom::Heap(heap.into_sorted_vec().into_iter(), Box::default(), self.reserved)
            }
            None => MostFrom::Sort(Box::new(self.sorter.finish_with(progress)?)),
        };
        Ok(MostRows { from, left })
    }
}

fn bytes_of(row: &[u8]) -> u64 {
    row.len() as u64 + ROW_BYTES
}

/// Values in order. Each is lent until the next one is asked for.
pub(super) struct MostRows {
    from: MostFrom,
    left: u64,
}

enum MostFrom {
    /// The rows to come, the one that is lent, and their memory.
    Heap(
        std::vec::IntoIter<Box<[u8]>>,
        Box<[u8]>,
        #[expect(dead_code, reason = "held")] Vec<Reservation>,
    ),
    Sort(Box<Rows<KeepAll>>),
}

impl MostRows {
    /// The next value and its count.
    ///
    /// # Errors
    /// Those of the sort.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], u64)>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let row = match &mut self.from {
            MostFrom::Heap(rows, lent, _) => rows.next().map(|row| {
                *lent = row;
                &**lent
            }),
            MostFrom::Sort(rows) => rows.next()?.map(|(row, _)| row),
        };
        Ok(row.map(|row| {
            let (count, value) = row.split_at(COUNT_BYTES);
            (value, !u64::from_be_bytes(count.try_into().expect("eight bytes")))
        }))
    }
}

#[cfg(test)]
mod tests {
    use merganser_storage::memory::MemoryDirectory;

    use super::*;

    #[test]
    fn it_is_the_front_of_all_values_whatever_the_memory_is() {
        let value = |number: u64| format!("{:01$}", number * 7919 % 3001, 20);
        let mut all: Vec<_> = (0..3001).map(|n| (n * n % 17, value(n))).collect();
        for (memory_bytes, tops) in [(64 << 20, &[0, 1, 100, 5000][..]), (6 << 20, &[2900])] {
            for top in tops.iter().map(|top| Some(*top)).chain([None]) {
                let budget = Budget::new(memory_bytes);
                // Little is left for the heap.
                let held = budget.reserve(memory_bytes - (5 << 20), "a test").expect("fits");
                let held = (memory_bytes > 6 << 20).then_some(held);
                let mut most = Most::new(&budget, top, vec![MemoryDirectory::new()], 2);
                for (count, value) in &all {
                    most.take(value.as_bytes(), *count).expect("memory");
                }
                drop(held);
                let mut rows = most.finish(&merganser_sort::Silent).expect("memory");
                all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
                for (count, value) in &all[..all.len().min(top.unwrap_or(u64::MAX) as usize)] {
                    let found = rows.next().expect("memory");
                    assert_eq!(found, Some((value.as_bytes(), *count)), "{top:?}");
                }
                assert_eq!(rows.next().expect("memory"), None);
            }
        }
    }
}
