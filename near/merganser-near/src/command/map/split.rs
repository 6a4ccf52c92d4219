//! How the memory is divided between the map and the choice of its rows.
//!
//! ```text
//!   by key     ├──────────────────── map ────────────────────┤
//!   by value   ├───────── map ─────────┼─── second sort ─────┤
//!   --top      ├───────────────── map ─────────────────┼ top ┤
//! ```

use merganser_map::ssdlet::SsdletOutput;
use merganser_sort::Error;
use merganser_sort::budget::MemoryShare;
use merganser_sort::rows::{KeepAll, RowSorter};

use crate::config::{Choice, MapConfig};

/// The rows of `--top` may take this part of the memory.
const OF_TOP: MemoryShare = MemoryShare { share: 8, bytes_min: 0 };
/// The sort by value has this part, since it works while the map does.
const OF_SORT: MemoryShare = MemoryShare { share: 2, bytes_min: 0 };

/// The least memory in which rows are sorted, in bytes.
fn least_by_value() -> u64 {
    RowSorter::<KeepAll>::least_bytes(1)
}

/// A division of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemorySplit {
    all_bytes: u64,
    /// The part of chosen rows.
    part: Option<MemoryShare>,
    /// The least that they need.
    chosen_least_bytes: u64,
}

impl MemorySplit {
    /// The division for `config` and an SSDlet with this output.
    pub(super) fn new(config: &MapConfig, output: &SsdletOutput) -> Self {
        let (part, chosen_least_bytes) = match (output, config.choice) {
            (SsdletOutput::Ordered { .. }, _) | (_, Choice::ByKey) => (None, 0),
            (_, Choice::ByValue) => (Some(OF_SORT), least_by_value()),
            (_, Choice::Top { .. }) => (Some(OF_TOP), 0),
        };
        MemorySplit { all_bytes: config.memory_bytes, part, chosen_least_bytes }
    }

    /// Bytes for the map.
    pub(super) fn map_bytes(self) -> u64 {
        self.all_bytes - self.chosen_bytes()
    }

    /// Bytes for the rows of `--top`, or the second sort.
    pub(super) fn chosen_bytes(self) -> u64 {
        self.part.map_or(0, |part| part.of_memory(self.all_bytes))
    }

    /// The least memory of all in which the map has `bytes`, and the chosen rows what they need.
    fn least_bytes(self, bytes: u64) -> u64 {
        let Some(part) = self.part else { return bytes };
        part.least_beside(bytes).max(self.least_with_chosen(self.chosen_least_bytes))
    }

    /// The least memory of all in which the chosen rows have `bytes`.
    pub(super) fn least_with_chosen(self, bytes: u64) -> u64 {
        self.part.map_or(bytes, |part| part.least_with(bytes))
    }

    /// Refuses too little memory for a map that needs `map_least_bytes`.
    ///
    /// # Errors
    /// [`Error::Memory`] with the least of all.
    pub(super) fn check(self, map_least_bytes: u64) -> Result<(), Error> {
        let (least_bytes, limit_bytes) = (self.least_bytes(map_least_bytes), self.all_bytes);
        if limit_bytes < least_bytes {
            return Err(Error::Memory { owner: "mapping", least_bytes, limit_bytes });
        }
        Ok(())
    }

    /// An error of the map, whose memory is its part, as one of all memory.
    pub(super) fn of_map(self, error: Error) -> Error {
        match error {
            Error::Memory { owner, least_bytes, .. } => {
                let (least_bytes, limit_bytes) = (self.least_bytes(least_bytes), self.all_bytes);
                Error::Memory { owner, least_bytes, limit_bytes }
            }
            other => other,
        }
    }

    /// The same for an error of the chosen rows.
    pub(super) fn of_chosen(self, error: Error) -> Error {
        match error {
            Error::Memory { owner, least_bytes, .. } => {
                let least_bytes = self.least_with_chosen(least_bytes);
                Error::Memory { owner, least_bytes, limit_bytes: self.all_bytes }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least is enough, and one byte less is not.
    #[test]
    fn the_least_of_all_memory_is_exact() {
        for (part, chosen) in [(None, 0), (Some(OF_SORT), 5_000_003), (Some(OF_TOP), 0)] {
            for map in [1, 9_999, 4_000_000, 20_000_001] {
                let split = |all_bytes| MemorySplit { all_bytes, part, chosen_least_bytes: chosen };
                let Err(Error::Memory { least_bytes, .. }) = split(0).check(map) else {
                    panic!("nothing is too little")
                };
                assert!(split(least_bytes).check(map).is_ok());
                assert!(split(least_bytes).map_bytes() >= map);
                assert!(split(least_bytes).chosen_bytes() >= chosen);
                let less = split(least_bytes - 1);
                assert!(less.check(map).is_err());
                assert!(less.map_bytes() < map || less.chosen_bytes() < chosen);
            }
        }
    }
}
