//! The content of one storage: now, and at its last good sync.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use merganser_storage::{Operation, Storage, StorageExt};

use crate::Random;

pub(super) const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) u64);

/// A storage, whatever its name and however many handles it has.
pub(super) struct FaultyNode {
    /// To put content back after a crash; there once it was opened for writing.
    pub(super) writer: Option<Arc<dyn Storage>>,
    pub(super) handles: u32,
    /// It has a name that is not hidden.
    pub(super) named: bool,
    /// Pages that take space.
    pub(super) pages: BTreeSet<u64>,
    /// Size at the last good sync.
    pub(super) synced_size: u64,
    /// Pages changed since the last good sync, as they were then.
    pub(super) unsynced: BTreeMap<u64, OldPage>,
    /// The same for pages that a failed sync should have secured.
    pub(super) doubtful: BTreeMap<u64, OldPage>,
}

/// Content of a page; `None` for zeros.
pub(super) type OldPage = Option<Vec<u8>>;

pub(super) fn pages(offset: u64, len: u64) -> Range<u64> {
    if len == 0 { 0..0 } else { offset / PAGE..offset.saturating_add(len).div_ceil(PAGE) }
}

/// The pages that are wholly inside.
pub(super) fn whole_pages(offset: u64, len: u64) -> Range<u64> {
    offset.div_ceil(PAGE)..offset.saturating_add(len) / PAGE
}

impl FaultyNode {
    /// Keeps the pages of a stretch that is about to change as they were at the last sync.
    pub(super) fn remember(&mut self, inner: &dyn Storage, changing: Range<u64>) -> io::Result<()> {
        let size = inner.size();
        for page in changing {
            if self.unsynced.contains_key(&page) {
                continue;
            }
            let old = match self.doubtful.remove(&page) {
                Some(old) => old,
                None if page * PAGE >= size => None,
                None => {
                    let mut bytes = vec![0; PAGE as usize];
                    inner.read_at(page * PAGE, &mut bytes)?;
                    Some(bytes)
                }
            };
            self.unsynced.insert(page, old);
        }
        Ok(())
    }

    /// Puts the content into a state that a crash may leave.
    pub(super) fn forget(&mut self, random: &mut Random) -> io::Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let changed = std::mem::take(&mut self.doubtful)
            .into_iter()
            .chain(std::mem::take(&mut self.unsynced));
        // All kept and all lost are the likeliest in life and would be the rarest in a drawing.
        let fate = random.below(4);
        let size = if random.one_in(2) { writer.size() } else { self.synced_size };
        for (page, old) in changed {
            let kept = match fate {
                0 => true,
                1 => false,
                _ => random.one_in(2),
            };
            if !kept {
                let old = old.unwrap_or_else(|| vec![0; PAGE as usize]);
                writer.write_at(page * PAGE, &old)?;
                self.pages.insert(page);
            }
        }
        writer.run(Operation::SetSize { size })?;
        writer.sync()?;
        self.synced_size = size;
        self.pages.retain(|&page| page < size.div_ceil(PAGE));
        Ok(())
    }
}
