//! How many files runs may have open: temporary runs share a file, and a view's runs are closed and
//! merged, where the system allows only few.
//!
//! ```text
//!   run 0     run 1     run 2                 own files, as long as descriptors are plenty
//!   ┌─────┐   ┌─────┐   ┌─────┬─────┬─────┐
//!   │     │   │     │   │  2  │  3  │  4  │   later runs share the last one
//!   └─────┘   └─────┘   └─────┴─────┴─────┘
//! ```
//!
//! The first runs have files of their own, because punching a hole waits for the reads of the same
//! file that are in flight: in one file, runs that are given back behind a merge would delay one
//! another.
//!
//! Inputs, and the runs of a view that is being made, are closed while others are in use
//! (`merganser_storage::closable`). `Directory::storages_left` says how many storages can be open; `sort -m` and
//! views merge no more than that at once.

use std::sync::Arc;

use merganser_storage::closable::ClosableDirectory;
use merganser_storage::region::Regions;
use merganser_storage::{Directory, Storage};
use parking_lot::Mutex;

use crate::{Error, Result, shares};

/// The share of the storages that can still be opened which temporary runs take: the others are for
/// inputs, which are opened while runs are written, and for the output.
const OWN_SHARE: u64 = 2;

/// Files for temporary runs, one on each disk for each run.
pub(super) struct TempFiles {
    disks: Vec<Arc<dyn Directory>>,
    made: Mutex<SharedTempFiles>,
}

#[derive(Default)]
struct SharedTempFiles {
    /// How many more runs may have files of their own, once that was asked.
    own: Option<u64>,
    /// For each disk, the file that later runs share.
    shared: Vec<Regions>,
}

impl TempFiles {
    pub(super) fn new(disks: &[Arc<dyn Directory>]) -> Self {
        TempFiles { disks: disks.to_vec(), made: Mutex::default() }
    }

    /// An empty storage on each disk. Storages that were handed out before must not grow any more.
    ///
    /// # Errors
    /// [`Error::NoTemp`] without disks; the disks' own.
    pub(super) fn create(&self) -> Result<Vec<Arc<dyn Storage>>> {
        if self.disks.is_empty() {
            return Err(Error::NoTemp);
        }
        let mut made = self.made.lock();
        let own = made.own.unwrap_or_else(|| {
            let left = self.disks.iter().map(|disk| disk.storages_left()).min();
            left.unwrap_or(1) / OWN_SHARE / self.disks.len().max(1) as u64
        });
        made.own = Some(own.saturating_sub(1));
        if own <= 1 && made.shared.is_empty() {
            let shared = self.disks.iter().map(|disk| disk.create_unnamed().map(Regions::new));
            made.shared = shared.collect::<std::io::Result<_>>()?;
        }
        if own <= 1 {
            return Ok(made.shared.iter().map(|disk| disk.next() as Arc<dyn Storage>).collect());
        }
        Ok(self.disks.iter().map(|disk| disk.create_unnamed()).collect::<std::io::Result<_>>()?)
    }
}

/// The folder of a view that is being made, and how many runs the view may have: a reader opens all
/// of them, and needs descriptors for other things, too.
pub(super) struct ViewFolder {
    /// In it, no more runs are open than the system allows.
    pub(super) folder: Arc<dyn Directory>,
    pub(super) runs_max: usize,
}

impl ViewFolder {
    pub(super) fn new(folder: Arc<dyn Directory>) -> Self {
        let left = folder.storages_left();
        if left == u64::MAX {
            return ViewFolder { folder, runs_max: usize::MAX };
        }
        let runs_max = usize::try_from(shares::of_open_files(left)).unwrap_or(usize::MAX).max(3);
        let folder = ClosableDirectory::closing(folder, runs_max);
        ViewFolder { folder, runs_max }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use merganser_storage::memory::MemoryDirectory;
    use merganser_storage::{Clock, StorageExt};

    use super::*;

    /// A directory of few descriptors.
    struct Scarce(Arc<MemoryDirectory>, AtomicU64);

    impl Directory for Scarce {
        fn name(&self) -> &str {
            "scarce"
        }
        fn clock(&self) -> Arc<dyn Clock> {
            self.0.clock()
        }
        fn create(&self, name: &str) -> std::io::Result<Arc<dyn Storage>> {
            self.0.create(name)
        }
        fn create_unnamed(&self) -> std::io::Result<Arc<dyn Storage>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.create_unnamed()
        }
        fn open(&self, name: &str, writable: bool) -> std::io::Result<Arc<dyn Storage>> {
            self.0.open(name, writable)
        }
        fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
            self.0.rename(from, to)
        }
        fn remove(&self, name: &str) -> std::io::Result<()> {
            self.0.remove(name)
        }
        fn list(&self) -> std::io::Result<Vec<String>> {
            self.0.list()
        }
        fn sync(&self) -> std::io::Result<()> {
            self.0.sync()
        }
        fn storages_left(&self) -> u64 {
            12
        }
    }

    /// SAFETY finding F18.
    #[test]
    fn f18_runs_share_a_file_once_descriptors_are_short() {
        let scarce = Arc::new(Scarce(MemoryDirectory::new(), AtomicU64::new(0)));
        let files = TempFiles::new(&[Arc::clone(&scarce) as _]);
        let made: Vec<_> = (0..40u8)
            .map(|n| {
                let run = files.create().expect("made").remove(0);
                run.write_at(0, &[n; 3000]).expect("written");
                run
            })
            .collect();
        assert_eq!(scarce.1.load(Ordering::Relaxed), 6);
        for (n, run) in (0..40u8).zip(&made) {
            assert_eq!((run.size(), run.read_vec(0, 3000).expect("read")), (3000, vec![n; 3000]));
        }
        let plenty = TempFiles::new(&[MemoryDirectory::new() as _]);
        for _ in 0..1000 {
            plenty.create().expect("made");
        }
    }
}
