//! The decoders of all formats, for fuzzing: any bytes give a value or an error, never a panic.

use crate::bytes::PAGE;
use crate::journal::{MapChange, Transaction};
use crate::label::MemberLabel;
use crate::log::record::{ENTRIES_MAX, RecordHeader};
use crate::superblock::Superblock;

/// Decodes `bytes` as a label, and whether it is one that encodes to the same bytes.
#[must_use]
pub fn label(bytes: &[u8]) -> bool {
    MemberLabel::decode(bytes).is_ok_and(|label| label.encode()[..] == *bytes)
}

/// The same for a superblock.
#[must_use]
pub fn superblock(bytes: &[u8]) -> bool {
    Superblock::decode(bytes).is_ok_and(|superblock| superblock.encode()[..] == *bytes)
}

/// The same for the first block of a record of the log.
#[must_use]
pub fn record(bytes: &[u8]) -> bool {
    RecordHeader::decode(bytes).is_some_and(|header| {
        header.facts.entries.len() <= ENTRIES_MAX && header.encode()[..] == *bytes
    })
}

/// The number of changes of a transaction.
#[must_use]
pub fn transaction(bytes: &[u8]) -> Option<usize> {
    let transaction = Transaction::decode(bytes)?;
    let mut rest = &transaction.changes[..];
    let mut count = 0;
    while !rest.is_empty() {
        MapChange::decode(&mut rest)?;
        count += 1;
    }
    Some(count)
}

/// Decodes `bytes` as block `number` of the tables, of the states and of a run of the index.
#[must_use]
pub fn blocks(bytes: &[u8], number: u64) -> [bool; 3] {
    let page: Option<&[u8; PAGE]> = bytes.try_into().ok();
    [
        page.is_some_and(|page| crate::table::check_block(page, number, u64::MAX).is_ok()),
        crate::states::states_of(bytes, number, 1).is_ok(),
        crate::index::run::decode(bytes, 1, number).is_some(),
    ]
}

/// Makes the checksum of a block right: at byte 4 (all blocks but these), 12 (superblock), 4092 (label).
pub fn seal(bytes: &mut [u8], at: usize) {
    if bytes.len() >= at + 4 {
        crate::bytes::seal(bytes, at);
    }
}
