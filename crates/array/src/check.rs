//! Verifies a whole volume.

use std::collections::HashMap;

use merganser_storage::ALIGNMENT;

use crate::error::{Error, Result};
use crate::store::Store;
use crate::volume::VolumeState;

/// Findings that are kept with their text; more are counted.
const FINDINGS_MAX: usize = 100;
/// Reference counts that are compared in one pass over the map: 4 bytes each.
const COUNTS_AT_ONCE: u64 = 4 << 20;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
}

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Volume pages that have content.
    pub pages_mapped: u64,
    /// Of these, pages that are in the buffer.
    pub pages_buffered: u64,
    /// Stored pages in use.
    pub pages_stored: u64,
    /// Stored pages that no volume page has, or whose count of them is too high: space that is lost
    /// until the volume is made anew. No data is concerned.
    pub pages_leaked: u64,
    /// Index blocks that are damaged; they cost space alone.
    pub index_blocks_damaged: u64,
    /// Everything that is wrong with data or maps.
    pub problems: u64,
    /// The first hundred of them.
    pub findings: Vec<Finding>,
}

impl Check {
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
            Err(error @ (Error::Damaged { .. } | Error::Lost { .. })) => {
                self.add(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks everything. `progress` gets volume pages that are done, and all of them.
pub(crate) fn run(state: &mut VolumeState, progress: &mut dyn FnMut(u64, u64)) -> Result<Check> {
    let mut check = Check::default();
    let buffered: Vec<_> = {
        let (_, _, overlay) = state.parts();
        overlay.pages.iter().map(|(&page, &slot)| (page, slot)).collect()
    };
    let mut bytes = vec![0; ALIGNMENT];
    for (page, slot) in buffered {
        check.pages_buffered += 1;
        let read = state.read_buffered(page, slot, &mut bytes);
        check.note(read)?;
    }
    let (store, _, _) = state.parts();
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
    let all = store.layout.pages();
    for from in (0..all).step_by(COUNTS_AT_ONCE as usize) {
        check_counts(store, from..all.min(from + COUNTS_AT_ONCE), &mut check)?;
    }
    check.index_blocks_damaged = store.verify_index();
    progress(pages, pages);
    Ok(check)
}

fn check_page(store: &mut Store, page: u64, bytes: &mut [u8], check: &mut Check) -> Result<()> {
    let located = store.locate(page);
    let Some(located) = check.note(located)? else { return Ok(()) };
    if located != crate::store::Content::Zeros {
        check.pages_mapped += 1;
        let read = store.read(page, bytes);
        check.note(read)?;
    }
    Ok(())
}

/// Compares the reference counts of some stored pages with the map.
fn check_counts(store: &mut Store, places: std::ops::Range<u64>, check: &mut Check) -> Result<()> {
    let mut counted: HashMap<u64, u32> = HashMap::new();
    for page in 0..store.layout.volume_pages {
        if !store.is_map_written(page) {
            continue;
        }
        // Damage was noted before.
        if let Ok(crate::store::Content::Stored { place, .. }) = store.locate(page)
            && places.contains(&place)
        {
            *counted.entry(place).or_default() += 1;
        }
    }
    for place in places {
        let references = store.references(place);
        let Some(references) = check.note(references)? else { continue };
        let found = counted.get(&place).copied().unwrap_or(0);
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
