//! The faults, and the operations that they hit.

use std::fmt;

use crate::Random;

/// One thing that goes wrong. Counts begin at 1 and run over all storages of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the table at the top of the file")]
pub enum Fault {
    FailRead { nth: u64 },
    FailWrite { nth: u64 },
    FailSync { nth: u64 },
    FailCreate { nth: u64 },
    FailRename { nth: u64 },
    ShortRead { nth: u64 },
    FlipRead { nth: u64 },
    FlipWrite { nth: u64 },
    Full { bytes: u64 },
    PowerCut { nth: u64 },
}

/// The faults, and the seed for everything that is left to chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlan {
    /// Decides how much of a torn write arrives and which changes a crash forgets.
    pub seed: u64,
    /// Each happens once, except that a full disk stays full.
    pub faults: Vec<Fault>,
}

impl FaultPlan {
    /// Nothing goes wrong before a crash.
    #[must_use]
    pub fn quiet(seed: u64) -> FaultPlan {
        FaultPlan { seed, faults: Vec::new() }
    }

    /// The size of a disk that is full.
    pub(super) fn full_bytes(&self) -> Option<u64> {
        self.faults.iter().find_map(|&fault| match fault {
            Fault::Full { bytes } => Some(bytes),
            _ => None,
        })
    }

    /// One to three faults drawn from `seed`, without a full disk, each within the first `span`
    /// operations of its kind. [`Faulty::counts`](super::Faulty::counts) of a quiet run gives a good span.
    ///
    /// # Panics
    /// When `span` is 0.
    #[must_use]
    pub fn draw(seed: u64, span: u64) -> FaultPlan {
        let mut random = Random::new(seed);
        let mut draw = || {
            let nth = 1 + random.below(span);
            match random.below(9) {
                0 => Fault::FailRead { nth },
                1 => Fault::FailWrite { nth },
                2 => Fault::FailSync { nth },
                3 => Fault::FailCreate { nth },
                4 => Fault::FailRename { nth },
                5 => Fault::ShortRead { nth },
                6 => Fault::FlipRead { nth },
                7 => Fault::FlipWrite { nth },
                _ => Fault::PowerCut { nth },
            }
        };
        let first = draw();
        let more = std::iter::repeat_with(&mut draw).take((seed % 3) as usize);
        let faults = std::iter::once(first).chain(more).collect();
        FaultPlan { seed, faults }
    }
}

/// A long test plans more faults than anybody reads.
const SHOWN: usize = 20;

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.faults.len().min(SHOWN);
        write!(f, "faults {:?}", &self.faults[..shown])?;
        match self.faults.len() - shown {
            0 => write!(f, ", seed {:#x}", self.seed),
            more => write!(f, " and {more} more, seed {:#x}", self.seed),
        }
    }
}

/// How many operations of each kind there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Syncs of storages and of the directory.
    pub syncs: u64,
    /// Creates, unnamed ones too.
    pub creates: u64,
    /// Renames.
    pub renames: u64,
    /// All that is not a read: writes, discards, allocations, size changes, syncs, creates,
    /// renames, removes. What [`Fault::PowerCut`] counts.
    pub changes: u64,
}
