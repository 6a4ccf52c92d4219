//! A small volume whose members are changed at chosen places and then opened, checked, read, written and opened again: see
//! `array/array/tests/it/common/mutated.rs`.
#![no_main]

#[path = "../../../array/array/tests/it/common/mutated.rs"]
mod mutated;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    /// Which of the volumes.
    which: u8,
    changes: Vec<Change>,
}

#[derive(Debug, Arbitrary)]
struct Change {
    member: u8,
    block: u16,
    at: u16,
    bytes: [u8; 8],
    len: u8,
    seal: bool,
}

fuzz_target!(|input: Input| {
    let changes = input.changes.into_iter().map(|change| {
        let Change { member, block, at, bytes, len, seal } = change;
        mutated::Change { member, block, at, bytes, len, seal }
    });
    let changes: Vec<mutated::Change> = changes.collect();
    mutated::try_changes(input.which, &changes);
});
