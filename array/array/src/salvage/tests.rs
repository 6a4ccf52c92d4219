//! Random damage to the blocks of small volumes. An oracle that knows of each page which blocks hold and name it says
//! which pages have to be there; the versions of each page say what may be read at all.
//!
//! `MERGANSER_DAMAGES` asks for more cases, and `MERGANSER_SEED` for others.
#![allow(clippy::print_stdout, reason = "the seed is printed")]

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Operation, Storage, StorageExt};
use merganser_testkit::Random;

use super::{Salvage, Trust};
use crate::bytes::{PAGE, u32_at, u64_at};
use crate::journal::{MapChange, Transaction};
use crate::label::LABEL_BYTES;
use crate::layout::{HEAD, MAP_ENTRIES, SEGMENT_PAGES, VolumeLayout};
use crate::log::record::{RecordEntry, RecordHeader};
use crate::raid::{Raid0, Striping};
use crate::store::Stored;
use crate::superblock::Superblock;
use crate::table::read_states;
use crate::{Error, Hash, Members, OpenOptions, Volume, VolumeSettings};

const PAGES: u64 = 512;
const DATA_MEMBERS: usize = 2;
const DATA_CHUNK: u32 = 16 << 10;
const BUFFER_CHUNK: u32 = 32 << 10;

/// A block of a member.
type Place = (usize, usize);

/// How the last session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    /// A power cut, some time after the last write.
    Sealed,
    /// A power cut right after the last flush.
    Cut,
}

fn page(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..PAGE / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

fn members(of: &[Vec<u8>]) -> Members {
    let disk = |(number, bytes): (usize, &Vec<u8>)| {
        let disk = MemoryStorage::new(&format!("disk{number}"));
        disk.run(Operation::SetSize { size: bytes.len() as u64 }).expect("sized");
        disk.write_at(0, bytes).expect("written");
        disk as Arc<dyn Storage>
    };
    let mut data: Vec<_> = of.iter().enumerate().map(disk).collect();
    let buffer = data.split_off(DATA_MEMBERS);
    Members { data, buffer }
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 1 << 20, durable_writes: false, ..OpenOptions::default() }
}

/// A volume as bytes.
struct Made {
    name: String,
    members: Vec<Vec<u8>>,
    /// For each page, what it had in turn; the last one is what it has now.
    versions: Vec<Vec<Vec<u8>>>,
    named: Named,
    /// Blocks that are not zeros: all of them, and those that are no pages.
    filled: Vec<Place>,
    maps: Vec<Place>,
}

impl Made {
    /// A volume that was written, trimmed, moved and overwritten for two sessions.
    fn new(buffered: bool, dedup: Option<Hash>, end: End, seed: u64) -> Made {
        let mut random = Random::new(seed);
        let sizes: &[usize] =
            if buffered { &[5 << 20, 5 << 20, 5 << 20, 5 << 20] } else { &[5 << 20; 2] };
        let empty: Vec<_> = sizes.iter().map(|&bytes| vec![0; bytes]).collect();
        let members = members(&empty);
        let settings = VolumeSettings {
            chunk_bytes: DATA_CHUNK,
            buffer_chunk_bytes: BUFFER_CHUNK,
            dedup,
            journal_bytes: Some(64 << 10),
            ..VolumeSettings::new(PAGES * PAGE as u64)
        };
        Volume::create("vol", &members, &settings, false).expect("made");
        let mut versions = vec![vec![vec![0; PAGE]]; PAGES as usize];
        let mut change = |volume: &Volume, random: &mut Random| {
            let count = 1 + random.below(6);
            let first = random.below(PAGES - count);
            if random.one_in(8) {
                let (offset, len) = (first * PAGE as u64, count * PAGE as u64);
                volume.run(Operation::Discard { offset, len }).expect("trimmed");
                (first..first + count).for_each(|page| versions[page as usize].push(vec![0; PAGE]));
            } else {
                let content = |random: &mut Random| match random.below(4) {
                    0 => page(1 + random.below(30)),
                    _ => page(random.bits() | 1 << 40),
                };
                let bytes: Vec<_> = (0..count).map(|_| content(random)).collect();
                volume.write_at(first * PAGE as u64, &bytes.concat()).expect("written");
                (first..).zip(bytes).for_each(|(page, bytes)| versions[page as usize].push(bytes));
            }
        };
        for session in 0..2 {
            let volume = Volume::open("vol", &members, options()).expect("opens");
            for number in 0..160 {
                change(&volume, &mut random);
                if random.one_in(3) {
                    volume.sync().expect("flushed");
                }
                // The rest stays in the log.
                if random.one_in(4) && number < 100 {
                    volume.migrate().expect("moves");
                }
            }
            volume.sync().expect("flushed");
            match end {
                _ if session == 0 => volume.close().expect("closes"),
                End::Closed => volume.close().expect("closes"),
                End::Sealed => volume.seal().expect("sealed"),
                End::Cut => {}
            }
        }
        let bytes = members.data.iter().chain(&members.buffer);
        let bytes = bytes.map(|member| member.read_vec(0, member.size() as usize).expect("read"));
        let bytes: Vec<Vec<u8>> = bytes.collect();
        let blocks = bytes.iter().enumerate().flat_map(|(member, bytes)| {
            let blocks = bytes.chunks(PAGE).enumerate();
            blocks.filter(|(_, block)| **block != [0; PAGE]).map(move |(at, _)| (member, at))
        });
        let filled: Vec<Place> = blocks.collect();
        let is_map = |&(member, at): &Place| {
            let magics: [&[u8]; 6] = [b"MGNSR", b"MtbB", b"MtbS", b"MjrT", b"MlgS", b"MixR"];
            magics.iter().any(|magic| bytes[member][at * PAGE..].starts_with(magic))
        };
        let maps = filled.iter().copied().filter(is_map).collect();
        Made {
            name: format!("buffered {buffered}, {dedup:?}, {end:?}"),
            named: Oracle::new(&bytes).named(),
            members: bytes,
            versions,
            filled,
            maps,
        }
    }
}

/// What named the newest content of a page.
#[derive(Debug, Clone, Copy)]
enum By {
    Checkpoint,
    Transaction(u64),
    Record(u64),
}

/// What names what in a volume without damage.
#[derive(Default)]
struct Named {
    /// For each page, sets of blocks: each is enough to know its newest content.
    enough: Vec<Vec<Vec<Place>>>,
    by: Vec<By>,
    /// For each page that the journal stored: the segment block that an opening changes. Salvage does without it.
    segments: BTreeMap<u64, Place>,
    /// The blocks of each transaction.
    transactions: BTreeMap<u64, Vec<Place>>,
    /// First blocks of records, each with the last record that it says was durable.
    first_blocks: Vec<(Place, u64)>,
    /// The last record that the superblock says was durable.
    synced: u64,
}

impl Named {
    /// Whether the newest content of a page is known from what is not damaged.
    fn is_known(&self, page: u64, damaged: &HashSet<Place>) -> bool {
        let is_good = |set: &Vec<Place>| set.iter().all(|place| !damaged.contains(place));
        self.enough[page as usize].iter().any(is_good)
    }

    /// Whether something that is not damaged shows that there was this content. Where all that was written last is
    /// damaged, nothing tells it from what a power cut tore.
    fn is_proven(&self, page: u64, damaged: &HashSet<Place>) -> bool {
        match self.by[page as usize] {
            By::Checkpoint => true,
            By::Transaction(seq) => {
                let mut later = self.transactions.range(seq..);
                later.any(|(_, blocks)| blocks.iter().all(|place| !damaged.contains(place)))
            }
            By::Record(seq) => {
                let mut blocks = self.first_blocks.iter();
                seq <= self.synced
                    || blocks.any(|&(at, synced)| synced >= seq && !damaged.contains(&at))
            }
        }
    }
}

/// Finds what names what.
struct Oracle {
    members: Members,
    data: Arc<dyn Storage>,
    superblock: Superblock,
    layout: VolumeLayout,
    slots: Vec<u8>,
    named: Named,
}

impl Oracle {
    fn new(bytes: &[Vec<u8>]) -> Oracle {
        let members = members(bytes);
        let chunk = u64::from(DATA_CHUNK);
        let data: Arc<dyn Storage> =
            Arc::new(Raid0::new("vol", members.data.clone(), chunk, LABEL_BYTES));
        let superblock = Superblock::read(&*data, false).expect("good");
        let layout = superblock.layout(chunk * DATA_MEMBERS as u64);
        let named = Named {
            by: vec![By::Checkpoint; PAGES as usize],
            synced: superblock.log_synced,
            ..Named::default()
        };
        Oracle { members, data, superblock, layout, slots: Vec::new(), named }
    }

    /// The block at byte `at` of the data members.
    fn on_data(at: u64) -> Place {
        Self::place(DATA_MEMBERS, u64::from(DATA_CHUNK), 0, at)
    }

    fn place(members: usize, chunk_bytes: u64, first: usize, at: u64) -> Place {
        let striping = Striping { members, chunk_bytes, base_bytes: LABEL_BYTES };
        let part = striping.parts(at, PAGE as u64).next().expect("a part");
        (first + part.member, (part.offset / PAGE as u64) as usize)
    }

    fn block(&self, at: u64) -> Vec<u8> {
        self.data.read_vec(at, PAGE).expect("read")
    }

    fn named(mut self) -> Named {
        self.add_checkpoint();
        let tail = self.add_journal();
        self.add_log(tail);
        let superblocks = [Self::on_data(0), Self::on_data(PAGE as u64)];
        for sets in &mut self.named.enough {
            // The maps need one of the superblocks, and a log is found without it.
            let needs = |set: &Vec<Place>| set.iter().all(|&(member, _)| member < DATA_MEMBERS);
            let (stored, logged): (Vec<_>, Vec<_>) = sets.drain(..).partition(needs);
            let with = |copy| stored.iter().map(move |set| [&set[..], &[copy]].concat());
            sets.extend(superblocks.into_iter().flat_map(with));
            sets.extend(logged);
        }
        self.named
    }

    /// The slot of a table block that counts.
    fn slot(&self, block: u64) -> Option<(u64, Vec<u8>)> {
        let slot = self.slots[block as usize].checked_sub(1)?;
        let at = self.layout.slot_at(block, slot);
        Some((at, self.block(at)))
    }

    fn add_checkpoint(&mut self) {
        let Superblock { checkpoint, states_copy, .. } = self.superblock;
        let states = read_states(&*self.data, &self.layout, checkpoint, states_copy, None);
        self.slots = states.expect("good").slots;
        let states_at = crate::states::copy_at(&self.layout, states_copy);
        let blocks = 0..self.layout.state_blocks;
        let named: Vec<Place> =
            blocks.map(|number| Self::on_data(states_at + number * PAGE as u64)).collect();
        for page in 0..PAGES {
            let mut set = named.clone();
            if let Some((at, block)) = self.slot(page / MAP_ENTRIES) {
                set.push(Self::on_data(at));
                let entry = u64_at(&block[HEAD..], (page % MAP_ENTRIES) as usize * 8);
                if let Some(place) = entry.checked_sub(1) {
                    let segment = self.layout.map_blocks + place / SEGMENT_PAGES;
                    let (at, block) = self.slot(segment).expect("written");
                    assert!(Stored::decode(&block[HEAD..], place).references > 0);
                    set.extend([Self::on_data(at), Self::on_data(self.layout.page_at(place))]);
                }
            }
            self.named.enough.push(vec![set]);
        }
    }

    fn set(&mut self, page: u64, by: By, enough: Vec<Vec<Place>>) {
        self.named.enough[page as usize] = enough;
        self.named.by[page as usize] = by;
    }

    /// Returns the first record that has not moved.
    fn add_journal(&mut self) -> u64 {
        let mut tail = self.superblock.log_tail.seq;
        if self.superblock.clean {
            return tail;
        }
        let mut found = BTreeMap::new();
        for number in 0..self.layout.journal_blocks {
            let at = self.layout.journal_at + number * PAGE as u64;
            let first = self.block(at);
            let seq = u64_at(&first, 16);
            let blocks = Transaction::blocks(&first, seq, u32_at(&first, 24)).unwrap_or(0) as u64;
            if blocks == 0 || number + blocks > self.layout.journal_blocks {
                continue;
            }
            let bytes = self.data.read_vec(at, blocks as usize * PAGE).expect("read");
            let own = (0..blocks).map(|number| Self::on_data(at + number * PAGE as u64));
            let transaction = Transaction::decode(&bytes).filter(|transaction| {
                transaction.checkpoint == self.superblock.checkpoint
                    && seq >= self.superblock.journal.seq
            });
            found.extend(transaction.map(|found| (seq, (found, own.collect::<Vec<Place>>()))));
        }
        let mut named: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
        for (seq, (transaction, own)) in found {
            tail = tail.max(transaction.log_tail.seq);
            let by = By::Transaction(seq);
            self.named.transactions.insert(seq, own.clone());
            let mut rest = &transaction.changes[..];
            while let Some(change) = MapChange::decode(&mut rest) {
                if let MapChange::New { page, place, .. } | MapChange::Map { page, place } = change
                {
                    let segment = self.layout.map_blocks + place / SEGMENT_PAGES;
                    let at = self.slot(segment).map(|(at, _)| (page, Self::on_data(at)));
                    self.named.segments.remove(&page);
                    self.named.segments.extend(at);
                }
                match change {
                    MapChange::New { page, place, .. } => {
                        named.insert(place, own.clone());
                        let stored = Self::on_data(self.layout.page_at(place));
                        self.set(page, by, vec![[&own[..], &[stored]].concat()]);
                    }
                    // Its checksum is named elsewhere: in an earlier transaction, or in the checkpoint, which this
                    // oracle does not follow there.
                    MapChange::Map { page, place } => {
                        let stored = Self::on_data(self.layout.page_at(place));
                        let all = |named: &Vec<Place>| [&own[..], &named[..], &[stored]].concat();
                        self.set(page, by, named.get(&place).map(all).into_iter().collect());
                    }
                    MapChange::Unmap { page, count } => {
                        for page in page..page + u64::from(count) {
                            self.set(page, by, vec![own.clone()]);
                        }
                    }
                    MapChange::Lost { .. } => unreachable!("nothing is damaged"),
                }
            }
        }
        tail
    }

    fn add_log(&mut self, tail: u64) {
        let count = self.members.buffer.len();
        if count == 0 {
            return;
        }
        let chunk = u64::from(BUFFER_CHUNK);
        let log = Raid0::new("log", self.members.buffer.clone(), chunk, LABEL_BYTES);
        let place = |block: u64| Self::place(count, chunk, DATA_MEMBERS, block * PAGE as u64);
        let mut records = BTreeMap::new();
        for at in 0..log.size() / PAGE as u64 {
            let block = log.read_vec(at * PAGE as u64, PAGE).expect("read");
            let header = RecordHeader::decode(&block).filter(|header| header.seq >= tail);
            if let Some(header) = header {
                let other = records.insert(header.seq, (at, header));
                assert!(other.is_none(), "no record was dropped");
            }
        }
        for (seq, (at, header)) in &records {
            let next = records.get(&(seq + 1)).filter(|(_, next)| next.before.is_some());
            let heads = [Some(place(*at)), next.map(|&(at, _)| place(at))];
            let heads: Vec<Place> = heads.into_iter().flatten().collect();
            self.named.first_blocks.push((place(*at), header.facts.synced));
            let (by, mut block) = (By::Record(*seq), at + 1);
            for entry in &header.facts.entries {
                match *entry {
                    RecordEntry::Page { page, .. } => {
                        let sets = heads.iter().map(|&head| vec![head, place(block)]);
                        self.set(page, by, sets.collect());
                        block += 1;
                    }
                    RecordEntry::Trim { page, count } => {
                        for page in page..page + u64::from(count) {
                            let sets = heads.iter().map(|&head| vec![head]);
                            self.set(page, by, sets.collect());
                        }
                    }
                }
            }
        }
    }
}

/// Damages from 1 to 50 blocks, and returns them.
fn damage(made: &Made, members: &mut [Vec<u8>], random: &mut Random) -> HashSet<Place> {
    let count = 1 + random.below(50);
    let mut damaged = HashSet::new();
    while damaged.len() < count as usize {
        let among = if random.one_in(2) { &made.maps } else { &made.filled };
        let (member, at) = among[random.index(among.len())];
        // A bad zone of a disk takes neighbours.
        let zone = if random.one_in(4) { 1 + random.below(8) as usize } else { 1 };
        let end = (at + zone).min(members[member].len() / PAGE);
        for at in (at..end).take(count as usize - damaged.len()) {
            let (_, from) = made.filled[random.index(made.filled.len())];
            let other =
                made.members[member].get(from * PAGE..(from + 1) * PAGE).map(<[u8]>::to_vec);
            let block = &mut members[member][at * PAGE..(at + 1) * PAGE];
            let before = block.to_vec();
            match random.below(4) {
                0 => block.fill(0),
                1 => block[random.index(PAGE)] ^= 1 << random.below(8),
                2 => block.copy_from_slice(&page(random.bits())),
                // A write that went to a wrong place.
                _ => block.copy_from_slice(&other.unwrap_or_else(|| page(7))),
            }
            if before != *block {
                damaged.insert((member, at));
            }
        }
    }
    damaged
}

#[derive(Debug, Default)]
struct Tally {
    good: u64,
    maybe_old: u64,
    lost: u64,
    /// Pages that were not given although one of their sets of blocks is good.
    missing: u64,
    /// Volumes of unknown size.
    sizeless: u64,
    closed: u64,
    opened: u64,
    errors: u64,
}

/// Salvages it: each page is one of its versions, and the newest one where that is claimed or its blocks are good.
fn salvaged(
    made: &Made,
    members: &[Vec<u8>],
    damaged: &HashSet<Place>,
    tally: &mut Tally,
    what: &str,
) {
    let members = self::members(members);
    let mut salvage = match Salvage::open("vol", &members) {
        Ok(salvage) => salvage,
        Err(error) => {
            // Not one block says how large the volume is.
            let copies = |member| [(member, 0), (member, 1)];
            let labels = (0..made.members.len()).flat_map(copies);
            let superblocks = [0, PAGE as u64].map(Oracle::on_data);
            let mut all = labels.chain(superblocks);
            assert!(error.is_damage() && all.all(|at| damaged.contains(&at)), "{what}: {error}");
            tally.sizeless += 1;
            return;
        }
    };
    assert_eq!(salvage.size(), PAGES * PAGE as u64);
    let mut read = vec![0; PAGE];
    for page in 0..PAGES {
        let trust = salvage.read(page, &mut read);
        let versions = &made.versions[page as usize];
        let newest = versions.last().expect("has one");
        let is_there = made.named.is_known(page, damaged);
        match trust {
            Trust::Good => {
                tally.good += 1;
                let is_right = read == *newest || !made.named.is_proven(page, damaged);
                assert!(
                    is_right,
                    "{what}: page {page} is not the newest: {:?}",
                    made.named.by[page as usize]
                );
            }
            Trust::MayBeOld => tally.maybe_old += 1,
            Trust::Lost => tally.lost += 1,
        }
        let is_version = versions.contains(&read);
        assert!(trust == Trust::Lost || is_version, "{what}: page {page} is what it never was");
        if is_there && (trust == Trust::Lost || read != *newest) {
            tally.missing += 1;
            println!(
                "{what}: page {page} is {trust:?}, and its blocks are good: {:?}; {:?}",
                made.named.enough[page as usize],
                salvage.findings()
            );
        }
    }
}

/// Opens and checks it: it stays closed, or each page is the newest one or an error.
fn opened(
    made: &Made,
    members: &[Vec<u8>],
    damaged: &HashSet<Place>,
    tally: &mut Tally,
    what: &str,
) {
    let members = self::members(members);
    let volume = match Volume::open("vol", &members, options()) {
        Ok(volume) => volume,
        Err(error) => {
            let says = matches!(error, Error::Member { .. } | Error::Old { .. });
            assert!(error.is_damage() || says, "{what}: {error}");
            tally.closed += 1;
            return;
        }
    };
    tally.opened += 1;
    let mut failed = 0;
    for page in 0..PAGES {
        let versions = &made.versions[page as usize];
        match volume.read_vec(page * PAGE as u64, PAGE) {
            Ok(read) => {
                let is_newest = read == *versions.last().expect("has one");
                let is_torn = versions.contains(&read) && !made.named.is_proven(page, damaged);
                assert!(
                    is_newest || is_torn,
                    "{what}: page {page} is not the newest: {:?}",
                    made.named.by[page as usize]
                );
            }
            Err(error) => {
                failed += 1;
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{what}: {error}");
                let segment = made.named.segments.get(&page);
                let is_there = made.named.is_known(page, damaged)
                    && made.named.is_proven(page, damaged)
                    && segment.is_none_or(|segment| !damaged.contains(segment));
                assert!(!is_there, "{what}: page {page} is good, and can't be read: {error}");
            }
        }
    }
    tally.errors += failed;
    let check = volume.check(&mut |_, _| {}).expect("checks");
    assert!(check.problems >= failed, "{what}: {failed} pages are errors, and {check:?}");
}

/// A volume of each kind, without damage: the oracle and the salvage agree that all is there.
#[test]
fn random_damage_costs_no_page_whose_own_blocks_are_good() {
    let asked = |name: &str, quick: u64| {
        std::env::var(name).map_or(quick, |number| number.parse().expect("a number"))
    };
    let (cases, seed) = (asked("MERGANSER_DAMAGES", 60), asked("MERGANSER_SEED", 3));
    println!("MERGANSER_SEED={seed}");
    let mut tally = Tally::default();
    let kinds =
        [(true, Some(Hash::Blake3)), (true, None), (false, Some(Hash::Sha1)), (false, None)];
    let ends = [End::Closed, End::Sealed, End::Cut];
    let kinds =
        kinds.into_iter().flat_map(|(buffered, dedup)| ends.map(|end| (buffered, dedup, end)));
    let kinds: Vec<_> = kinds.collect();
    let per_kind = cases.div_ceil(kinds.len() as u64);
    for (number, (buffered, dedup, end)) in (0..).zip(kinds) {
        let made = Made::new(buffered, dedup, end, seed << 8 | number);
        let mut none = Tally::default();
        salvaged(&made, &made.members, &HashSet::new(), &mut none, &made.name);
        assert_eq!((none.good, none.missing), (PAGES, 0), "{}", made.name);
        for case in 0..per_kind {
            let mut random = Random::new(seed << 32 | number << 24 | case);
            let mut members = made.members.clone();
            let damaged = damage(&made, &mut members, &mut random);
            let what = format!("{}, case {case}", made.name);
            salvaged(&made, &members, &damaged, &mut tally, &what);
            opened(&made, &members, &damaged, &mut tally, &what);
        }
    }
    println!("{tally:?}");
    assert_eq!(tally.missing, 0);
}
