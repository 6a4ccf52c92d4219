//! Blocks that are stored twice, labels and superblocks: a copy that is damaged is made like the good one.

use std::sync::Arc;

use merganser_storage::{Storage, StorageExt};

use super::members::{Members, arrays};
use crate::bytes::{BLOCK, PAGE};
use crate::error::Result;
use crate::label::MemberLabel;
use crate::superblock::Superblock;

pub(super) fn mend(name: &str, members: &Members) -> Result<u64> {
    // Nothing is written to members that are not those of the volume.
    let data = arrays(name, members)?.data;
    let mut mended = 0;
    for member in members.data.iter().chain(&members.buffer) {
        mended += u64::from(mend_label(member)?);
    }
    let copies = data.read_vec(0, 2 * PAGE)?;
    let damaged = copies.chunks(PAGE).filter(|copy| Superblock::decode(copy).is_err()).count();
    if damaged == 1 {
        // It writes a copy that is older, too: a cut came between the two.
        Superblock::read(&*data, true)?;
        mended += 1;
    }
    Ok(mended)
}

/// Whether one of the copies was damaged. If both are, opening the volume says so.
fn mend_label(member: &Arc<dyn Storage>) -> Result<bool> {
    let copies = member.read_vec(0, 2 * PAGE)?;
    let labels = [MemberLabel::decode(&copies[..PAGE]), MemberLabel::decode(&copies[PAGE..])];
    let (at, label) = match &labels {
        [Err(_), Ok(label)] => (0, label),
        [Ok(label), Err(_)] => (BLOCK, label),
        _ => return Ok(false),
    };
    member.write_at(at, &*label.encode())?;
    member.sync()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use merganser_storage::Operation;
    use merganser_storage::memory::MemoryStorage;

    use super::*;
    use crate::label::LABEL_BYTES;
    use crate::{OpenOptions, Volume, VolumeSettings};

    #[test]
    fn a_damaged_copy_is_counted_and_made_like_the_other() {
        let disk = |name: &str| {
            let disk = MemoryStorage::new(name);
            disk.run(Operation::SetSize { size: 24 << 20 }).expect("sized");
            disk as Arc<dyn Storage>
        };
        let members = Members { data: vec![disk("ssd0")], buffer: vec![disk("hdd0")] };
        Volume::create("vol", &members, &VolumeSettings::new(8 << 20), false).expect("made");
        let mend = || Volume::mend("vol", &members).expect("mended");
        assert_eq!(mend(), 0);
        let (data, buffer) = (&members.data[0], &members.buffer[0]);
        for (member, at) in [
            (data, 0),
            (data, PAGE as u64),
            (buffer, PAGE as u64),
            (data, LABEL_BYTES),
            (data, LABEL_BYTES + PAGE as u64),
        ] {
            let good = member.read_vec(at, PAGE).expect("read");
            let mut bad = good.clone();
            bad[20] ^= 4;
            member.write_at(at, &bad).expect("written");
            assert_eq!((mend(), mend()), (1, 0), "{} {at}", member.name());
            assert!(member.read_vec(at, PAGE).expect("read") == good);
        }
        drop(Volume::open("vol", &members, OpenOptions::default()).expect("opens"));
    }
}
