//! Copies of what is good of a volume that stays closed.

use crate::common::{Build, MIB, PAGE};
use merganser_array::{Salvage, Trust};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, StorageExt};

/// A record whose first block is damaged in both copies keeps the volume closed. All else is salvaged.
#[test]
fn a_record_that_is_missing_costs_its_own_pages_alone() {
    let build = Build::small(true, None);
    let members = MemoryDirectory::new();
    build.create(&*members);
    let volume = build.open(&*members).expect("opens");
    let page = |byte: u8| vec![byte; PAGE];
    for number in 0..10_u8 {
        volume.write_at(u64::from(number) * PAGE as u64, &page(number + 1)).expect("written");
        volume.sync().expect("flushed");
    }
    drop(volume);
    let log = members.open("hdd0", true).expect("opens");
    // Record n is in blocks 2 n and 2 n + 1, and its second copy in record n + 1.
    for block in [2, 4] {
        log.write_at(MIB + block * PAGE as u64, &page(0)).expect("damaged");
    }
    assert!(build.open(&*members).err().expect("refused").is_damage());
    let mut salvage = Salvage::open("vol", &build.members(&*members)).expect("has pages");
    let mut read = page(0);
    let mut given = |number: u8| (salvage.read(u64::from(number), &mut read), read[0]);
    for number in 0..10 {
        let expected = match number {
            // Record 1 is gone. Record 0 may have had a newer version in it.
            0 => (Trust::MayBeOld, 1),
            1 => (Trust::MayBeOld, 0),
            _ => (Trust::Good, number + 1),
        };
        assert_eq!(given(number), expected, "page {number}");
    }
    assert_eq!(given(100), (Trust::MayBeOld, 0));
}
