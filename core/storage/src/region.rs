//! Several storages in one, one after the other: for what would otherwise need more open files than
//! a process may have.
//!
//! ```text
//!   the storage │ region 0 ······ │ region 1 ··· │ region 2 ─►
//!               0                 base           base, the end of the one before
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::completion::Collect;
use crate::numbers::{u64_of, usize_of};
use crate::{Clock, Completion, Completions, Geometry, Operation, Storage};

/// Regions begin at multiples of this many bytes, so that direct I/O needs no copy.
const ALIGNMENT_BYTES: u64 = 1 << 20;

/// A storage that is handed out in [`Region`]s.
pub struct Regions {
    storage: Arc<dyn Storage>,
    last: Mutex<Option<Arc<Region>>>,
}

impl Regions {
    /// Regions of `storage`, which is empty.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>) -> Regions {
        Regions { storage, last: Mutex::default() }
    }

    /// An empty region behind the last one, which from now on must not grow.
    #[must_use]
    pub fn next(&self) -> Arc<Region> {
        let mut last = self.last.lock();
        let base = last
            .as_ref()
            .map_or(0, |last| (last.base + last.size()).next_multiple_of(ALIGNMENT_BYTES));
        let storage = Arc::clone(&self.storage);
        let region = Arc::new(Region { storage, base, size: AtomicU64::new(0) });
        *last = Some(Arc::clone(&region));
        region
    }
}

/// A part of another storage.
pub struct Region {
    storage: Arc<dyn Storage>,
    base: u64,
    size: AtomicU64,
}

impl Region {
    fn grow(&self, end: u64) {
        self.size.fetch_max(end, Ordering::Relaxed);
    }
}

impl Storage for Region {
    fn name(&self) -> &str {
        self.storage.name()
    }

    fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    fn geometry(&self) -> Geometry {
        self.storage.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.storage.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let base = self.base;
        let operation = match operation {
            Operation::Read { offset, buffer } => {
                let left = self.size().saturating_sub(offset);
                let operation = Operation::Read { offset: base + offset, buffer };
                let Operation::Read { buffer, .. } = &operation else { unreachable!() };
                if u64_of(buffer.len()) > left {
                    // What follows belongs to another region.
                    let ends =
                        RegionReadEnd { most: usize_of(left), completions: completions.clone() };
                    let ends = Completions::collected(Arc::new(ends));
                    return self.storage.submit(token, operation, &ends);
                }
                operation
            }
            Operation::Write { offset, buffer } => {
                self.grow(offset + u64_of(buffer.len()));
                Operation::Write { offset: base + offset, buffer }
            }
            Operation::Sync => Operation::Sync,
            Operation::Discard { offset, len } => Operation::Discard { offset: base + offset, len },
            Operation::Allocate { offset, len } => {
                self.grow(offset + len);
                Operation::Allocate { offset: base + offset, len }
            }
            Operation::SetSize { size } => {
                let before = self.size.swap(size, Ordering::Relaxed);
                let end = base + size;
                if size <= before || self.storage.size() >= end {
                    // The storage is never cut: another region may follow.
                    let done = Completion { token, buffer: None, result: Ok(0) };
                    return completions.post(done);
                }
                Operation::SetSize { size: end }
            }
        };
        self.storage.submit(token, operation, completions);
    }
}

/// Ends a read where its region ends.
struct RegionReadEnd {
    most: usize,
    completions: Completions,
}

impl Collect for RegionReadEnd {
    fn arrived(&self, completion: Completion) {
        let result = completion.result.map(|bytes| bytes.min(self.most));
        self.completions.post(Completion { result, ..completion });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageExt;
    use crate::memory::MemoryStorage;

    #[test]
    fn regions_of_one_storage_are_storages_of_their_own() {
        let storage = MemoryStorage::new("all");
        let regions = Regions::new(storage.clone());
        let made: Vec<_> = (1..=3u8)
            .map(|n| {
                let region = regions.next();
                region.run(Operation::Allocate { offset: 0, len: 9000 }).expect("reserved");
                region.write_at(0, &vec![n; 2000 * usize::from(n)]).expect("written");
                region.run(Operation::SetSize { size: 2000 * u64::from(n) }).expect("cut");
                region
            })
            .collect();
        for (n, region) in (1..=3u8).zip(&made) {
            let len = 2000 * usize::from(n);
            assert_eq!(region.size(), len as u64);
            assert_eq!(region.read_vec(0, len).expect("read"), vec![n; len]);
            // A read ends where the region ends, though there are bytes behind it.
            assert_eq!(region.read_at(100, &mut vec![0; 1 << 21]).expect("read"), len - 100);
            assert_eq!(region.read_at(len as u64 + 5, &mut [0; 8]).expect("read"), 0);
        }
        made[0].run(Operation::Discard { offset: 0, len: 2000 }).expect("given back");
        assert_eq!(made[0].read_vec(0, 2000).expect("read"), vec![0; 2000]);
        assert_eq!(made[1].read_vec(0, 4000).expect("read"), vec![2; 4000]);
        assert_eq!(storage.size(), 2 * ALIGNMENT_BYTES + 9000);
    }
}
