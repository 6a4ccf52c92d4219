//! Members whose checksums are right and whose numbers are not: another program wrote them, or memory was
//! bad when they were sealed. Opening and using such a volume gives errors, and never a panic, a hang or
//! memory without bound.

use std::ops::Range;

use crate::common::{Build, PAGE, content};
use merganser_array::{Hash, formats};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Operation, StorageExt};
use merganser_testkit::Random;

/// Copies of a block with a checksum: the member, the bytes where they begin, the byte of the checksum in
/// each, and the bytes of numbers.
type Block = (&'static str, &'static [u64], usize, Range<usize>);

const LABEL: u64 = 1 << 20;
const BLOCK: u64 = PAGE as u64;

/// Superblock, labels, both copies of the states, the first transaction, and the first record.
const BLOCKS: [Block; 7] = [
    ("ssd0", &[LABEL, LABEL + BLOCK], 12, 8..160),
    ("ssd0", &[LABEL, LABEL + BLOCK], 12, 400..456),
    ("ssd0", &[0, BLOCK], 4092, 8..56),
    ("hdd0", &[0, BLOCK], 4092, 8..56),
    ("ssd0", &[LABEL + 2 * BLOCK, LABEL + 3 * BLOCK], 4, 8..64),
    ("ssd0", &[LABEL + 4 * BLOCK], 4, 8..96),
    ("hdd0", &[LABEL], 4, 8..96),
];

/// Opens it and uses all of it. Errors are right, whatever they are.
fn use_it(build: &Build, directory: &MemoryDirectory) {
    let Ok(volume) = build.open(directory) else { return };
    for page in 0..512_u64 {
        let _ = volume.read_vec(page * PAGE as u64, PAGE);
    }
    let _ = volume.write_at(3 * PAGE as u64, &[5; 3 * PAGE]);
    let _ = volume.run(Operation::Discard { offset: 0, len: 100 * PAGE as u64 });
    let _ = (volume.migrate(), volume.check(&mut |_, _| {}), volume.close());
    drop(volume);
    drop(build.open(directory));
}

#[test]
fn impossible_numbers_under_right_checksums_are_errors() {
    let build = Build::small(true, Some(Hash::Blake3));
    let directory = MemoryDirectory::new();
    build.create(&*directory);
    {
        let volume = build.open(&*directory).expect("opens");
        let mut random = Random::new(3);
        for i in 0..30 {
            let bytes = content(&mut random, 8);
            volume.write_at(random.below(504) * PAGE as u64, &bytes).expect("written");
            if i == 20 {
                while volume.migrate().expect("moves") {}
            }
        }
        volume.sync().expect("flushed");
        // Not closed: journal and log are repeated.
    }
    for (member, copies, seal, numbers) in BLOCKS {
        for field in numbers.step_by(8) {
            for value in [0, 1, 1 << 40, u64::MAX] {
                let copy = directory.copy();
                let disk = copy.open(member, true).expect("opens");
                let mut block = disk.read_vec(copies[0], PAGE).expect("reads");
                block[field..field + 8].copy_from_slice(&u64::to_le_bytes(value));
                formats::seal(&mut block, seal);
                for at in copies {
                    disk.write_at(*at, &block).expect("written");
                }
                use_it(&build, &copy);
            }
        }
    }
}
