//! Puts the records of a buffer in their places, in that buffer (TritonSort 5.2.1).
//!
//! `from[i]` is the number of the record that belongs at place `i`. A *walker* lifts one record out,
//! which leaves a hole, moves the record that belongs there into it, which leaves the next hole, and
//! so on, until the record that belongs into its hole is one that was lifted:
//!
//! ```text
//!   from  2 0 1         lifted   place 0 1 2
//!   lift 0                 C           _ B A
//!   move 2 to 0            C           A B _
//!   move 1 to 2            C           A _ B
//!   put the lifted at 1                A C B     (whoever lifted it)
//! ```
//!
//! Every record is read once and written once, 2 n bytes in all. One walker alone would wait for
//! memory at each step, because only `from` says where the next step leads. So a thread has several
//! walkers that take steps in turn, and each prefetches the memory of its next step before the
//! others move. They may walk the same cycle: a walker stops at any lifted record, its own or
//! another's. So long cycles (one takes six tenths of the records, on average) are walked by all
//! walkers at once, and by all threads.
//!
//! States of an entry of `from`:
//!
//! | entry | the record at its place | who may touch it |
//! |---|---|---|
//! | below 2^31: a source | is where it was | no walker |
//! | `BUSY` | is being lifted | the thread that set it |
//! | `LIFTED` + slot | is in that slot | no walker, until a walker takes it |
//! | `DONE` | was moved on; the place is a hole or filled | the walker that set it |
//!
//! Each change is one compare-and-swap by a walker that thereby owns the record, so memory is safe
//! whatever `from` holds: a source beyond the end panics at once, one that is named twice is found
//! `DONE` and panics then.

use std::sync::atomic::{AtomicU32, Ordering};

use merganser_storage::thread::spawn_or_run;
use parking_lot::Mutex;

use crate::activity::{Team, leave};
use merganser_storage::prefetch::prefetch_at;

/// Most records of a buffer: the rest of an entry's values are marks.
pub const RECORDS_MAX: usize = 1 << 31;

const LIFTED: u32 = 1 << 31;
const BUSY: u32 = u32::MAX - 1;
const DONE: u32 = u32::MAX;

/// Walkers of a thread: some cache misses in flight at once. With one, a whole sort of 400 MB takes 1.7
/// times as long; from 4 to 32 make no difference that could be measured.
const WALKERS: usize = 16;
/// Records that are worth a thread of their own. Miri, a thousand times slower, shows two threads with
/// fewer.
const SHARE_RECORDS: usize = if cfg!(miri) { 1 << 4 } else { 1 << 12 };
/// Bytes at the start of a record that are prefetched; the processor itself prefetches the rest of
/// a long one.
const PREFETCH_BYTES: usize = 512;

/// Moves record `from[i]` of `records` to place `i`, for every `i`, by `threads` threads. The
/// contents of `from` are lost.
///
/// # Panics
/// When `records` is not `from.len()` records of `record_bytes`, when those are more than
/// [`RECORDS_MAX`], or when `from` is not a permutation; then the records are left in disorder.
pub fn permute(records: &mut [u8], record_bytes: usize, from: &mut [u32], threads: usize) {
    assert_eq!(records.len(), from.len() * record_bytes, "one source a record");
    assert!(from.len() <= RECORDS_MAX, "{} records are too many", from.len());
    let greatest = from.iter().max().map_or(0, |source| *source as usize);
    assert!(greatest <= from.len().saturating_sub(1), "record {greatest} is beyond the end");
    let threads = threads.clamp(1, from.len().div_ceil(SHARE_RECORDS).max(1));
    // A slot for every walker, and as many that wait in the pockets of other threads.
    let slots = 2 * threads * WALKERS;
    let mut lifted = vec![0u8; slots * record_bytes];
    let spare = Mutex::new((0..slots as u32).collect());
    // SAFETY: `AtomicU32` has the layout of `u32`, and the exclusive borrow of `from` is passed on.
    let from = unsafe { &*(std::ptr::from_mut(from) as *const [AtomicU32]) };
    let places = Permutation {
        from,
        records: records.as_mut_ptr(),
        lifted: lifted.as_mut_ptr(),
        record_bytes,
        spare,
    };
    if threads == 1 {
        return places.walk(0..from.len());
    }
    let part = from.len().div_ceil(threads);
    let (team, _left) = (&Team::here(), leave());
    std::thread::scope(|scope| {
        for start in (0..from.len()).step_by(part) {
            let places = &places;
            spawn_or_run(scope, "permute", move || {
                let _member = team.join();
                places.walk(start..from.len().min(start + part));
            });
        }
    });
}

/// The state that all walkers share.
struct Permutation<'a> {
    from: &'a [AtomicU32],
    /// `from.len()` records.
    records: *mut u8,
    /// One record a slot.
    lifted: *mut u8,
    record_bytes: usize,
    /// Free slots that no thread has in its pocket.
    spare: Mutex<Vec<u32>>,
}

// SAFETY: a record or slot is only touched by the thread that owns it by its entry in `from`; see
// the table of states.
unsafe impl Sync for Permutation<'_> {}

/// Between two steps: the place to fill, and the record that belongs there.
struct Walker {
    hole: usize,
    source: usize,
}

impl Permutation<'_> {
    /// Walks until every record of `starts` is where it belongs, and some others are.
    fn walk(&self, mut starts: std::ops::Range<usize>) {
        let mut pocket = Vec::with_capacity(WALKERS + 1);
        let mut walkers: Vec<Walker> =
            (0..WALKERS).map_while(|_| self.start(&mut starts, &mut pocket)).collect();
        while !walkers.is_empty() {
            let mut turn = 0;
            while let Some(walker) = walkers.get_mut(turn) {
                if self.step(walker, &mut pocket) {
                    turn += 1;
                } else if let Some(next) = self.start(&mut starts, &mut pocket) {
                    *walker = next;
                    turn += 1;
                } else {
                    walkers.swap_remove(turn);
                }
            }
        }
    }

    /// Lifts the first record of `starts` that is neither moved nor where it belongs.
    fn start(&self, starts: &mut std::ops::Range<usize>, pocket: &mut Vec<u32>) -> Option<Walker> {
        for hole in starts {
            let entry = &self.from[hole];
            let source = entry.load(Ordering::Relaxed);
            if source >= LIFTED || source as usize == hole {
                continue;
            }
            if entry.compare_exchange(source, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            let slot = pocket.pop().unwrap_or_else(|| {
                // There are twice as many slots as walkers, each walker has lifted one record that
                // is not taken yet, and no pocket holds more than one for each of its walkers.
                self.spare.lock().pop().expect("slots for all walkers")
            });
            // SAFETY: `hole` was a source and is ours since (see the table); the slot is free.
            unsafe { self.copy(self.record(hole), self.slot(slot)) };
            entry.store(LIFTED | slot, Ordering::Release);
            self.prefetch(source as usize);
            return Some(Walker { hole, source: source as usize });
        }
        None
    }

    /// Fills the walker's hole; false when that ended its walk.
    #[inline]
    fn step(&self, walker: &mut Walker, pocket: &mut Vec<u32>) -> bool {
        let Walker { hole, source } = *walker;
        let found = self.claim(source);
        if found < LIFTED {
            // SAFETY: both records are ours: the walker claimed `hole` a step ago and `source` now,
            // so they differ.
            unsafe { self.copy(self.record(source), self.record(hole)) };
            *walker = Walker { hole: source, source: found as usize };
            self.prefetch(found as usize);
            return true;
        }
        let slot = found & !LIFTED;
        // SAFETY: as above; the slot was given to us with the entry that named it.
        unsafe { self.copy(self.slot(slot), self.record(hole)) };
        if pocket.len() < WALKERS {
            pocket.push(slot);
        } else {
            self.spare.lock().push(slot);
        }
        false
    }

    /// Takes the record at `at`. Returns its source, or the slot with the record. The locked
    /// instruction has no cost that could be measured with one thread, because the thread waits for
    /// memory.
    #[inline]
    fn claim(&self, at: usize) -> u32 {
        let entry = &self.from[at];
        loop {
            let found = entry.load(Ordering::Acquire);
            assert_ne!(found, DONE, "record {at} belongs at two places");
            if found == BUSY {
                std::hint::spin_loop();
            } else if entry
                .compare_exchange_weak(found, DONE, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return found;
            }
        }
    }

    /// # Safety
    /// Both must be records or slots that are owned by the caller, and not the same.
    #[inline]
    unsafe fn copy(&self, from: *const u8, to: *mut u8) {
        // SAFETY: records and slots are `record_bytes` long and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, self.record_bytes) };
    }

    #[inline]
    fn record(&self, at: usize) -> *mut u8 {
        assert!(at < self.from.len());
        // SAFETY: there are as many records as entries.
        unsafe { self.records.add(at * self.record_bytes) }
    }

    #[inline]
    fn slot(&self, slot: u32) -> *mut u8 {
        // SAFETY: slot numbers come from `spare`, which held those that there are.
        unsafe { self.lifted.add(slot as usize * self.record_bytes) }
    }

    #[inline]
    fn prefetch(&self, at: usize) {
        prefetch_at(self.from.as_ptr().wrapping_add(at).cast());
        prefetch_record(self.records.wrapping_add(at * self.record_bytes), self.record_bytes);
    }
}

/// Prefetches a record that will be copied soon.
#[inline]
pub(super) fn prefetch_record(record: *const u8, record_bytes: usize) {
    let last = record_bytes.min(PREFETCH_BYTES).saturating_sub(1);
    for line in (0..last).step_by(64) {
        prefetch_at(record.wrapping_add(line));
    }
    prefetch_at(record.wrapping_add(last));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records that tell their number.
    fn records(count: usize, record_bytes: usize) -> Vec<u8> {
        let byte = |i: usize| (i / record_bytes * 31 + i % record_bytes * 7 + i / 7919) as u8;
        (0..count * record_bytes).map(byte).collect()
    }

    fn check(from: &[u32], record_bytes: usize, threads: usize) {
        let mut found = records(from.len(), record_bytes);
        let expected: Vec<u8> = from
            .iter()
            .flat_map(|s| &found[*s as usize * record_bytes..][..record_bytes])
            .copied()
            .collect();
        permute(&mut found, record_bytes, &mut from.to_vec(), threads);
        assert!(found == expected, "{} records of {record_bytes} bytes", from.len());
    }

    fn shuffled(count: usize, seed: u64) -> Vec<u32> {
        let mut from: Vec<u32> = (0..count as u32).collect();
        let mut x = seed | 1;
        for i in (1..count).rev() {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            from.swap(i, (x % (i as u64 + 1)) as usize);
        }
        from
    }

    #[test]
    fn the_example_of_the_paper() {
        let mut tuples = *b"CBA";
        permute(&mut tuples, 1, &mut [2, 1, 0], 1);
        assert_eq!(&tuples, b"ABC");
    }

    #[test]
    fn sanitized_threads_share_cycles() {
        for threads in 1..=2 {
            check(&shuffled(60, threads as u64), 5, threads);
            check(&(0..60).map(|i| (i + 1) % 60).collect::<Vec<_>>(), 9, threads);
        }
    }

    #[test]
    fn every_permutation_of_up_to_seven() {
        fn all(from: &mut Vec<u32>, at: usize) {
            if at == from.len() {
                check(from, 3, 1);
            }
            for i in at..from.len() {
                from.swap(at, i);
                all(from, at + 1);
                from.swap(at, i);
            }
        }
        for count in 0..=7 {
            all(&mut (0..count).collect(), 0);
        }
    }

    #[test]
    fn one_cycle_pairs_and_fixed_points_on_any_threads() {
        let count = 50_000u32;
        for threads in 1..=4 {
            check(&(0..count).map(|i| (i + 1) % count).collect::<Vec<_>>(), 9, threads);
            check(&(0..count).rev().collect::<Vec<_>>(), 9, threads);
            check(&(0..count).map(|i| (i + count / 2) % count).collect::<Vec<_>>(), 9, threads);
            check(&(0..count).collect::<Vec<_>>(), 9, threads);
        }
    }

    #[test]
    fn every_record_length() {
        for record_bytes in 1..=300 {
            check(&shuffled(200, record_bytes as u64), record_bytes, 1);
        }
        check(&shuffled(9000, 5), 5000, 2);
    }

    #[test]
    #[should_panic = "belongs at two places"]
    fn a_source_named_twice_is_found() {
        permute(&mut records(4, 8), 8, &mut [1, 2, 1, 3], 1);
    }

    #[test]
    #[should_panic = "record 3 is beyond the end"]
    fn a_source_beyond_the_end_is_found() {
        permute(&mut records(3, 8), 8, &mut [1, 3, 0], 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_a_copy(
            seed in any::<u64>(), count in 0usize..30_000, record_bytes in 1usize..40,
            threads in 1usize..5,
        ) {
            check(&shuffled(count, seed), record_bytes, threads);
        }
    }
}
