//! A small volume whose members are changed at chosen places and then opened, checked, read, written and opened again. Nothing
//! panics, and no page that was durable reads as something that it never was: it is an error, or one of its contents. A change
//! under a checksum that is made right again can say anything, so only the first half of this holds for it.
//!
//! The fuzz target `array_volume` uses this module, too.

use std::sync::{Arc, LazyLock};

use merganser_array::{
    Hash, Members, OpenOptions, Salvage, Trust, Volume, VolumeSettings, formats,
};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Operation, Storage, StorageExt};

const PAGE: usize = 4096;
const PAGES: u64 = 256;
const NAMES: [&str; 4] = ["ssd0", "ssd1", "hdd0", "hdd1"];
const DATA_BYTES: u64 = 4 << 20;
const BUFFER_BYTES: u64 = 4 << 20;
/// Where the array of a member begins.
const LABEL_BYTES: usize = 1 << 20;

/// A change of a member.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub member: u8,
    /// A block that is not empty: an odd number for any, an even one for a block that is no page.
    pub block: u16,
    /// A byte of it.
    pub at: u16,
    pub bytes: [u8; 8],
    /// How many of them.
    pub len: u8,
    /// Whether the block's checksum is made right.
    pub seal: bool,
}

/// The members of a volume as bytes, the blocks of each that are not zeros, and the contents that each page had.
struct Made {
    members: Vec<Vec<u8>>,
    blocks: Vec<Vec<usize>>,
    /// Of these, the blocks of labels, superblocks, maps, journal, log and index.
    maps: Vec<Vec<usize>>,
    contents: Vec<Vec<Vec<u8>>>,
    buffered: bool,
}

fn disk(name: &str, bytes: &[u8]) -> Arc<dyn Storage> {
    let disk = MemoryStorage::new(name);
    disk.run(Operation::SetSize { size: bytes.len() as u64 }).expect("sized");
    disk.write_at(0, bytes).expect("written");
    disk as Arc<dyn Storage>
}

fn members(of: &[Vec<u8>]) -> Members {
    let mut data: Vec<_> = of.iter().zip(NAMES).map(|(bytes, name)| disk(name, bytes)).collect();
    let buffer = data.split_off(2);
    Members { data, buffer }
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 1 << 20, durable_writes: false, ..OpenOptions::default() }
}

fn page(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    (0..PAGE / 4).flat_map(|_| next().to_le_bytes()).collect()
}

/// Some pages have moved, some were overwritten or trimmed, and some are in the log alone. It was not closed.
fn make(buffered: bool, dedup: Option<Hash>) -> Made {
    let sizes = [DATA_BYTES, DATA_BYTES, BUFFER_BYTES, BUFFER_BYTES];
    let count = if buffered { 4 } else { 2 };
    let empty: Vec<_> = sizes[..count].iter().map(|&bytes| vec![0; bytes as usize]).collect();
    let members = members(&empty);
    let settings = VolumeSettings {
        chunk_bytes: 16 << 10,
        buffer_chunk_bytes: 32 << 10,
        dedup,
        compare: dedup == Some(Hash::Sha1),
        journal_bytes: Some(64 << 10),
        ..VolumeSettings::new(PAGES * PAGE as u64)
    };
    Volume::create("vol", &members, &settings, false).expect("made");
    let volume = Volume::open("vol", &members, options()).expect("opens");
    let mut contents = vec![vec![vec![0; PAGE]]; PAGES as usize];
    let mut write = |volume: &Volume, number: u64, seed: u64| {
        volume.write_at(number * PAGE as u64, &page(seed)).expect("written");
        contents[number as usize].push(page(seed));
    };
    (0..120).for_each(|number| write(&volume, number, 1 + number % 70));
    while buffered && volume.migrate().expect("moves") {}
    // The maps are written, and the journal is empty.
    volume.close().expect("closed");
    drop(volume);
    let volume = Volume::open("vol", &members, options()).expect("opens");
    (60..150).for_each(|number| write(&volume, number, 200 + number % 50));
    volume.run(Operation::Discard { offset: 0, len: 9 * PAGE as u64 }).expect("trimmed");
    volume.sync().expect("flushed");
    (140..160).for_each(|number| write(&volume, number, 300 + number));
    volume.sync().expect("flushed");
    let bytes = members.data.iter().chain(&members.buffer);
    let bytes = bytes.map(|member| member.read_vec(0, member.size() as usize).expect("read"));
    let members: Vec<Vec<u8>> = bytes.collect();
    // Byte by byte, this would take the fuzz target half a minute, which is built without optimisation.
    let filled = |member: &Vec<u8>| {
        let blocks = member.chunks(PAGE).enumerate();
        blocks.filter(|(_, block)| *block != [0; PAGE]).map(|(at, _)| at).collect()
    };
    let blocks: Vec<Vec<usize>> = members.iter().map(filled).collect();
    let is_map = |member: &[u8], at: usize| {
        let magics: [&[u8]; 6] = [b"MGNSR", b"MtbB", b"MtbS", b"MjrT", b"MlgS", b"MixR"];
        magics.iter().any(|magic| member[at * PAGE..].starts_with(magic))
    };
    let maps = members
        .iter()
        .zip(&blocks)
        .map(|(member, blocks)| blocks.iter().copied().filter(|&at| is_map(member, at)).collect());
    let maps = maps.collect();
    Made { members, blocks, maps, contents, buffered }
}

static MADE: LazyLock<[Made; 4]> = LazyLock::new(|| {
    [
        make(true, Some(Hash::Blake3)),
        make(true, None),
        make(false, Some(Hash::Sha1)),
        make(false, None),
    ]
});

/// The byte of a block's checksum.
fn seal_at(block: &[u8], at: usize) -> usize {
    match (at < LABEL_BYTES, block.starts_with(b"MGNSRsup")) {
        (true, _) => PAGE - 4,
        (false, true) => 12,
        (false, false) => 4,
    }
}

/// Salvages it: a page is what it once was, or lost.
fn salvage(made: &Made, members: &Members, sealed: bool) {
    let Ok(mut salvage) = Salvage::open("vol", members) else { return };
    let mut read = vec![0; PAGE];
    for number in 0..PAGES.min(salvage.size() / PAGE as u64) {
        let trust = salvage.read(number, &mut read);
        let known = made.contents[number as usize].contains(&read);
        assert!(trust == Trust::Lost || known || sealed, "page {number} is what it never was");
    }
}

/// Changes volume `which` at the chosen places, and uses it.
///
/// # Panics
/// When a page reads as what it never was.
pub(crate) fn try_changes(which: u8, changes: &[Change]) {
    let made = &MADE[usize::from(which) % MADE.len()];
    let mut changed = made.members.clone();
    let mut sealed = false;
    for change in changes.iter().take(16) {
        let member = usize::from(change.member) % changed.len();
        // Pages outnumber all else, so every second change is not to one.
        let of = if change.block & 1 == 0 { &made.maps } else { &made.blocks };
        let blocks = &of[member];
        let at = blocks[usize::from(change.block >> 1) % blocks.len()] * PAGE;
        let block = &mut changed[member][at..at + PAGE];
        let inside = usize::from(change.at) % PAGE;
        let len = (1 + usize::from(change.len) % 8).min(PAGE - inside);
        block[inside..inside + len].copy_from_slice(&change.bytes[..len]);
        if change.seal {
            let seal = seal_at(block, at);
            formats::seal(block, seal);
            sealed = true;
        }
    }
    let members = members(&changed);
    let _ = Volume::describe("vol", &members);
    let _ = Volume::usage("vol", &members);
    salvage(made, &members, sealed);
    let _ = Volume::mend("vol", &members);
    let Ok(volume) = Volume::open("vol", &members, options()) else { return };
    assert!(!volume.name().is_empty() && made.buffered != members.buffer.is_empty());
    let mut read = vec![0; PAGE];
    for number in 0..PAGES.min(volume.size() / PAGE as u64) {
        let Ok(count) = volume.read_at(number * PAGE as u64, &mut read) else { continue };
        let known = made.contents[number as usize].contains(&read);
        assert!(count == PAGE && (known || sealed), "page {number} is what it never was");
    }
    let _ = volume.check(&mut |_, _| {});
    let _ = volume.write_at(3 * PAGE as u64, &[5; 3 * PAGE]);
    let _ = volume.run(Operation::Discard { offset: 0, len: 100 * PAGE as u64 });
    let _ = (volume.migrate(), volume.seal(), volume.close());
    drop(volume);
    drop(Volume::open("vol", &members, options()));
}
