//! Verifies a whole volume.
//!
//! ```text
//!   buffer   each page of the directory: its checksum
//!   map      each volume page: its entry, and the checksum of the stored page
//!   counts   each stored page: its references against the map, in windows that fit the memory
//!   index    each block: its checksum
//! ```

use std::ops::Range;

use merganser_storage::ALIGNMENT;
use merganser_storage::numbers::usize_of;

use crate::error::Result;
use crate::log::Log;
use crate::overlay::Overlay;
use crate::store::{PageStore, StoredContent};

/// Findings that are kept with their text; more are counted.
const FINDINGS_MAX: usize = 100;
/// The least reference counts that are compared in one pass over the map.
const WINDOW_MIN: u64 = 1 << 15;
/// Bytes of a count.
const COUNT_BYTES: u64 = 4;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeCheck {
    /// Volume pages that have content.
    pub pages_mapped: u64,
    /// Of these, pages that are in the buffer.
    pub pages_buffered: u64,
    /// Stored pages in use.
    pub pages_stored: u64,
    /// Stored pages that no volume page has, or whose count of them is too high: space that is lost
    /// until a new volume is made. No data is concerned.
    pub pages_leaked: u64,
    /// Index blocks that are damaged; they cost space alone.
    pub index_blocks_damaged: u64,
    /// Everything that is wrong with data or maps.
    pub problems: u64,
    /// The first hundred of them.
    pub findings: Vec<Finding>,
}

impl VolumeCheck {
    fn add(&mut self, text: String) {
        self.problems += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { text });
        }
    }

    /// Keeps an error that is a finding; gives others back.
    fn note<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_damage() => {
                self.add(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks the parts of a volume. `progress` gets volume pages that are done, and all of them.
pub(crate) fn run(
    store: &mut PageStore,
    log: Option<&mut Log>,
    overlay: &Overlay,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<VolumeCheck> {
    let mut check = VolumeCheck::default();
    let mut bytes = vec![0; ALIGNMENT];
    if let Some(log) = log {
        for (&page, slot) in &overlay.pages {
            check.pages_buffered += 1;
            check.note(slot.read(log, &store.name, page, &mut bytes))?;
        }
    }
    store.flush_for_check()?;
    let pages = store.layout.volume_pages;
    for page in 0..pages {
        if store.is_map_written(page) {
            check_page(store, page, &mut bytes, &mut check)?;
        }
        if page % 4096 == 0 {
            progress(page, pages);
        }
    }
    let lent = store.memory_for_check()?;
    let counted = check_counts(store, (lent / COUNT_BYTES).max(WINDOW_MIN), &mut check);
    store.end_check();
    counted?;
    check.index_blocks_damaged = store.verify_index();
    progress(pages, pages);
    Ok(check)
}

fn check_page(
    store: &mut PageStore,
    page: u64,
    bytes: &mut [u8],
    check: &mut VolumeCheck,
) -> Result<()> {
    let located = store.locate(page);
    let Some(located) = check.note(located)? else { return Ok(()) };
    if located != StoredContent::Zeros {
        check.pages_mapped += 1;
        let read = store.read(page, bytes);
        check.note(read)?;
    }
    Ok(())
}

/// Compares all reference counts with the map, `window` stored pages in each pass over the map.
fn check_counts(store: &mut PageStore, window: u64, check: &mut VolumeCheck) -> Result<()> {
    let all = store.layout.pages();
    let mut counts = vec![0_u32; usize::try_from(window.min(all)).unwrap_or(usize::MAX)];
    for from in (0..all).step_by(counts.len()) {
        counts.fill(0);
        check_window(store, from..all.min(from + window), &mut counts, check)?;
    }
    Ok(())
}

fn check_window(
    store: &mut PageStore,
    places: Range<u64>,
    counts: &mut [u32],
    check: &mut VolumeCheck,
) -> Result<()> {
    for page in 0..store.layout.volume_pages {
        if !store.is_map_written(page) {
            continue;
        }
        // Damage was noted before.
        if let Ok(Some(place)) = store.place_of(page)
            && places.contains(&place)
        {
            counts[usize_of(place - places.start)] += 1;
        }
    }
    for (place, &found) in places.zip(&*counts) {
        let references = store.references(place);
        let Some(references) = check.note(references)? else { continue };
        check.pages_stored += u64::from(references > 0);
        if references < found {
            check.add(format!(
                "{}: stored page {place} has {references} references, and {found} pages of the volume share it",
                store.name
            ));
        }
        check.pages_leaked += u64::from(references > found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use merganser_storage::memory::MemoryStorage;
    use merganser_storage::{Operation, Storage, StorageExt};

    use super::*;
    use crate::{Members, OpenOptions, Volume, VolumeSettings};

    /// Windows of any size find the same, and a wrong count in any of them.
    #[test]
    fn reference_counts_are_compared_in_windows() {
        let disk = MemoryStorage::new("ssd");
        disk.run(Operation::SetSize { size: 32 << 20 }).expect("sized");
        let members = Members { data: vec![disk as Arc<dyn Storage>], buffer: Vec::new() };
        Volume::create("vol", &members, &VolumeSettings::new(8 << 20), false).expect("made");
        let volume = Volume::open("vol", &members, OpenOptions::default()).expect("opens");
        for i in 0..300_u64 {
            let content = [(i % 150) as u8 + 1; 4096];
            volume.write_at(i * 4096, &content).expect("written");
        }
        let mut state = volume.lock();
        let (store, _, _) = state.parts();
        for window in [1, 7, 128, 1 << 20] {
            let mut check = VolumeCheck::default();
            check_counts(store, window, &mut check).expect("checks");
            assert_eq!((check.pages_stored, check.pages_leaked, check.problems), (150, 0, 0));
        }
        let (low, high) = (store.place_of(3).expect("read"), store.place_of(140).expect("read"));
        store.count_wrongly(low.expect("stored"), 1).expect("changed");
        store.count_wrongly(high.expect("stored"), 5).expect("changed");
        for window in [1, 7, 128, 1 << 20] {
            let mut check = VolumeCheck::default();
            check_counts(store, window, &mut check).expect("checks");
            assert_eq!((check.pages_leaked, check.problems), (1, 1), "{window}: {check:?}");
        }
    }
}
