//! A small volume whose members are changed at chosen places and then opened, checked, read, written and opened again: see
//! `array/array/tests/it/common/mutated.rs`.

#[path = "../../../array/array/tests/it/common/mutated.rs"]
mod mutated;

use arbitrary::Arbitrary;

#[derive(Debug, Arbitrary)]
struct VolumeChanges {
    /// Which of the volumes.
    which: u8,
    changes: Vec<MemberChange>,
}

#[derive(Debug, Arbitrary)]
struct MemberChange {
    member: u8,
    block: u16,
    at: u16,
    bytes: [u8; 8],
    len: u8,
    seal: bool,
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(input) = crate::value_of::<VolumeChanges>(bytes) else { return };
    let changes = input.changes.into_iter().map(|change| {
        let MemberChange { member, block, at, bytes, len, seal } = change;
        mutated::Change { member, block, at, bytes, len, seal }
    });
    let changes: Vec<mutated::Change> = changes.collect();
    mutated::try_changes(input.which, &changes);
}
