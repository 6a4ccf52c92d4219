//! The page map: the place of each unit.

use std::io;

use merganser_storage::Buffer;
use merganser_storage::prefetch::prefetch;

use crate::ssd::nand::{LogicalUnit, PhysicalUnit};

const ENTRY_BYTES: usize = size_of::<u32>();

/// The place of the latest copy of each unit. All entries are in one mapping, which takes memory where it is written:
/// of huge pages from 4 MiB on, where the system gives them and they are not slower. With small ones, a third of the time of a read at random was
/// the wait for the address of the memory.
#[derive(Debug)]
pub(super) struct PageMap {
    /// The place of each unit, plus 1; 0 is not mapped.
    entries: Buffer,
}

impl PageMap {
    /// A map of `units` units without a place.
    ///
    /// # Errors
    /// When the system refuses that much address space.
    pub(super) fn new(units: u64) -> io::Result<PageMap> {
        Ok(PageMap { entries: Buffer::try_new(units as usize * ENTRY_BYTES)? })
    }

    fn range(unit: LogicalUnit) -> std::ops::Range<usize> {
        let at = unit.0 as usize * ENTRY_BYTES;
        at..at + ENTRY_BYTES
    }

    pub(super) fn get(&self, unit: LogicalUnit) -> Option<PhysicalUnit> {
        let entry = self.entries[PageMap::range(unit)].try_into().expect("the bytes of an entry");
        u32::from_ne_bytes(entry).checked_sub(1).map(PhysicalUnit)
    }

    pub(super) fn set(&mut self, unit: LogicalUnit, place: Option<PhysicalUnit>) {
        let entry = place.map_or(0, |place| place.0 + 1);
        self.entries[PageMap::range(unit)].copy_from_slice(&entry.to_ne_bytes());
    }

    /// Asks for the memory of the entry of unit `number`, if there is one: it is looked up soon.
    pub(super) fn expect(&self, number: u64) {
        prefetch(
            &self.entries,
            usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(ENTRY_BYTES),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_has_the_place_that_it_was_given_last() {
        let (unit, other) = (LogicalUnit(1_234_567), LogicalUnit(0));
        let mut map = PageMap::new(1_234_568).expect("5 MB");
        assert_eq!((map.get(unit), map.get(other)), (None, None));
        map.set(unit, Some(PhysicalUnit(0)));
        map.set(other, Some(PhysicalUnit(u32::MAX - 1)));
        assert_eq!(map.get(unit), Some(PhysicalUnit(0)));
        assert_eq!(map.get(other), Some(PhysicalUnit(u32::MAX - 1)));
        map.set(unit, None);
        assert_eq!(map.get(unit), None);
        // Requests beyond the end of a device are refused later.
        for number in [1_234_567, 1_234_568, u64::MAX] {
            map.expect(number);
        }
    }
}
