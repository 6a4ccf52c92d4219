//! The blocks of a RAID 0 of members. A member may be short or partly unreadable.

use std::sync::Arc;

use merganser_storage::Storage;
use merganser_storage::numbers::u64_of;

use crate::bytes::{BLOCK, PAGE, PageBytes, zeroed};
use crate::label::LABEL_BYTES;
use crate::raid::Striping;

/// A block of a storage, if it can be read.
pub(super) fn read(storage: &dyn Storage, at: u64) -> Option<Box<PageBytes>> {
    use merganser_storage::StorageExt;
    let mut block = zeroed();
    let count = storage.read_at(at, &mut block[..]).ok()?;
    (count == PAGE).then_some(block)
}

/// The members of a role.
#[derive(Clone)]
pub(super) struct Blocks {
    name: String,
    members: Vec<Arc<dyn Storage>>,
    striping: Striping,
}

impl Blocks {
    /// `members` in chunks of `chunk_bytes`.
    pub(super) fn new(name: &str, members: &[Arc<dyn Storage>], chunk_bytes: u32) -> Blocks {
        let chunk_bytes = u64::from(chunk_bytes).max(BLOCK);
        let striping = Striping { members: members.len(), chunk_bytes, base_bytes: LABEL_BYTES };
        Blocks { name: name.to_owned(), members: members.to_vec(), striping }
    }

    /// The name of all members together.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a stripe.
    pub(super) fn stripe(&self) -> u64 {
        self.striping.chunk_bytes * u64_of(self.members.len())
    }

    /// Bytes that the members have together now.
    pub(super) fn size(&self) -> u64 {
        let least = self.members.iter().map(|member| member.size()).min();
        self.striping.size(least.unwrap_or(0))
    }

    /// The block at byte `at`, if it can be read.
    pub(super) fn block(&self, at: u64) -> Option<Box<PageBytes>> {
        let part = self.striping.parts(at, BLOCK).next()?;
        read(&*self.members[part.member], part.offset).filter(|_| part.len == BLOCK)
    }
}
