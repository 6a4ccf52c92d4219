//! Pages on their way to the data members. They are gathered into batches; one is written while the
//! next is filled.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use merganser_storage::{Buffer, Storage};

use crate::bytes::{PAGE, PageBytes};
use crate::flights::{BufferPart, Flights};
use crate::settings::BATCH_PAGES;

/// Batches that are written at once, in addition to the one that is filled.
const UNDER_WAY: usize = 2;

/// The batch that is filled, and those that are written.
pub(super) struct Staged {
    flights: Flights,
    /// The pages of the batch.
    buffer: Buffer,
    /// Where each of them goes; `None` for one that was released.
    places: Vec<Option<u64>>,
    /// The page of the batch that goes to a place.
    slots: HashMap<u64, usize>,
    /// Places of batches that were written since all writes had ended.
    under_way: HashSet<u64>,
}

impl Staged {
    /// Nothing staged.
    pub(super) fn new(array: Arc<dyn Storage>) -> Staged {
        let flights = Flights::new(array, BATCH_PAGES * PAGE, UNDER_WAY);
        Staged {
            flights,
            buffer: Buffer::empty(),
            places: Vec::new(),
            slots: HashMap::default(),
            under_way: HashSet::default(),
        }
    }

    /// Whether no further page has room.
    pub(super) fn is_full(&self) -> bool {
        self.places.len() == BATCH_PAGES
    }

    /// Adds a page, for which there is room.
    pub(super) fn insert(&mut self, place: u64, content: &PageBytes) -> io::Result<()> {
        if self.buffer.is_empty() {
            self.buffer = self.flights.take()?;
        }
        let at = self.places.len();
        self.buffer[at * PAGE..(at + 1) * PAGE].copy_from_slice(content);
        self.places.push(Some(place));
        self.slots.insert(place, at);
        Ok(())
    }

    /// The bytes of a page of the batch that is filled.
    pub(super) fn get(&self, place: u64) -> Option<&PageBytes> {
        let at = *self.slots.get(&place)?;
        Some(self.buffer[at * PAGE..(at + 1) * PAGE].try_into().expect("a whole page"))
    }

    /// Whether a page of the batch, or of one that is being written, goes to a place.
    pub(super) fn is_on_its_way(&self, place: u64) -> bool {
        self.slots.contains_key(&place) || self.under_way.contains(&place)
    }

    /// Releases a page: it is not written.
    pub(super) fn remove(&mut self, place: u64) {
        if let Some(at) = self.slots.remove(&place) {
            self.places[at] = None;
        }
    }

    /// Begins to write the batch, neighbours in one transfer. `at` says where a page is. Returns whether
    /// there was something to write.
    pub(super) fn write(&mut self, at: impl Fn(u64) -> u64) -> io::Result<bool> {
        let is_needed = !self.slots.is_empty();
        self.slots.clear();
        let places = std::mem::take(&mut self.places);
        if places.is_empty() {
            return Ok(false);
        }
        let mut parts: Vec<BufferPart> = Vec::new();
        let (mut next, mut last) = (None, None);
        for place in places.iter().copied().chain((places.len()..BATCH_PAGES).map(|_| None)) {
            match parts.last_mut() {
                Some(part) if place.is_none() && last == Some(None) => part.0 += PAGE,
                Some(part) if place.is_some() && place == next => part.0 += PAGE,
                _ => parts.push((PAGE, place.map(&at))),
            }
            (next, last) = (place.map(|place| place + 1), Some(place));
        }
        self.under_way.extend(places.iter().flatten());
        let buffer = std::mem::replace(&mut self.buffer, Buffer::empty());
        self.flights.write(buffer, &parts)?;
        Ok(is_needed)
    }

    /// Waits until no page is on its way to one of these places, whatever becomes of it.
    pub(super) fn land_at(&mut self, mut places: Range<u64>) {
        if places.any(|place| self.under_way.contains(&place)) {
            self.flights.land();
            self.under_way.clear();
        }
    }

    /// Waits for the batches that are written.
    pub(super) fn wait_for_all(&mut self) -> io::Result<()> {
        self.under_way.clear();
        self.flights.wait_for_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_storage::memory::MemoryStorage;
    use merganser_storage::{Operation, StorageExt};
    use merganser_testkit::Random;

    /// Random places, some released before they are written, against a model.
    #[test]
    fn each_page_reaches_its_place_unless_it_was_released() {
        let disk = MemoryStorage::new("disk");
        let pages = 1000_u64;
        disk.run(Operation::SetSize { size: pages * PAGE as u64 }).expect("sized");
        let mut staged = Staged::new(Arc::clone(&disk) as Arc<dyn Storage>);
        let mut random = Random::new(1);
        let mut model = vec![0_u8; pages as usize];
        for round in 1..20 {
            let first = random.below(400);
            let mut released = Vec::new();
            let mut count = 0;
            for place in first..first + 600 {
                if staged.is_full() {
                    break;
                }
                if random.one_in(8) {
                    continue;
                }
                staged.insert(place, &[round; PAGE]).expect("memory");
                count += 1;
                if random.one_in(10) {
                    staged.remove(place);
                    released.push(place);
                    assert!(staged.get(place).is_none());
                } else {
                    assert_eq!(staged.get(place).expect("staged")[0], round);
                    model[place as usize] = round;
                }
            }
            assert!(count > 400);
            assert!(staged.write(|place| place * PAGE as u64).expect("begun"));
            assert!(!staged.write(|_| unreachable!()).expect("nothing"));
        }
        staged.wait_for_all().expect("written");
        for (place, byte) in (0..).zip(&model) {
            let read = disk.read_vec(place * PAGE as u64, PAGE).expect("reads");
            assert!(read.iter().all(|found| found == byte), "page {place}");
        }
    }
}
