//! The superblock: the root of everything that a checkpoint made durable. Docs: docs/array/array.md, "Superblock".
//!
//! It is there twice. A checkpoint writes the first copy, syncs, writes the second, and syncs. So a
//! cut leaves at least one good copy, and a damaged copy has a twin. The newer one counts, and the other
//! one alone is repaired.

use merganser_storage::numbers::u64_of;
use merganser_storage::{Storage, StorageExt};

use crate::bytes::{
    BLOCK, NUMBER_MAX, PAGE, PageBytes, is_sealed, len_at, put_u32, put_u64, seal, u32_at, u64_at,
    zeroed,
};
use crate::counters::{COUNTERS, VolumeCounters};
use crate::error::{Error, Result};
use crate::layout::{Kinds, VolumeLayout};
use crate::log::RingPlace;

const MAGIC: &[u8; 8] = b"MGNSRsup";
/// Version 1 had transactions without the volume's identity, and version 2 nothing that tells an old block from a new
/// one.
pub(crate) const VERSION: u32 = 3;
const SEAL: usize = 12;
const COUNTERS_AT: usize = 144;
const RUNS_AT: usize = COUNTERS_AT + 8 * 32;
/// Runs of the index at most.
pub(crate) const RUNS_MAX: usize = 40;
const STATES_SUM_AT: usize = RUNS_AT + RUNS_MAX * 24;
const CHUNKS_AT: usize = STATES_SUM_AT + 4;
const _: () = assert!(CHUNKS_AT + 8 <= PAGE && COUNTERS <= 32);

/// A run of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunPlace {
    /// First block, from the begin of the index.
    pub(crate) at: u64,
    pub(crate) entries: u64,
    /// Number of the run, which its blocks repeat.
    pub(crate) number: u64,
}

/// Everything that a checkpoint makes durable in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The version of the formats that the volume has.
    pub(crate) version: u32,
    pub(crate) volume: [u8; 16],
    /// Number of the checkpoint, from 1.
    pub(crate) checkpoint: u64,
    /// Number of the opening, which journal and log repeat.
    pub(crate) session: u64,
    pub(crate) volume_pages: u64,
    pub(crate) segments: u64,
    pub(crate) journal_blocks: u64,
    pub(crate) dedup: bool,
    pub(crate) sha1: bool,
    pub(crate) compare: bool,
    pub(crate) buffered: bool,
    pub(crate) thin: bool,
    /// Whether the volume was closed: then the journal is empty, and all of the log is durable.
    pub(crate) clean: bool,
    /// Which copy of the states counts.
    pub(crate) states_copy: u8,
    /// Whether the states have the checksum of each table block. Volumes that were made before version 3 have no room
    /// for them.
    pub(crate) sums: bool,
    /// The checksum of the states, from version 3 on.
    pub(crate) states_sum: u32,
    /// Consecutive bytes on one data and one buffer member, as the labels have them; 0 before version 3.
    pub(crate) chunk_bytes: (u32, u32),
    /// Where the first transaction after the checkpoint begins.
    pub(crate) journal: RingPlace,
    /// The first record of the log that has not moved.
    pub(crate) log_tail: RingPlace,
    /// The last record of the log that is known to be durable.
    pub(crate) log_synced: u64,
    /// The first record of the log that the session could write.
    pub(crate) log_opened: u64,
    pub(crate) counters: VolumeCounters,
    pub(crate) runs: Vec<RunPlace>,
}

pub(crate) fn put_place(bytes: &mut [u8], at: usize, place: RingPlace) {
    put_u64(bytes, at, place.seq);
    put_u64(bytes, at + 8, place.at);
    put_u32(bytes, at + 16, place.chain);
}

pub(crate) fn place_at(bytes: &[u8], at: usize) -> RingPlace {
    RingPlace { seq: u64_at(bytes, at), at: u64_at(bytes, at + 8), chain: u32_at(bytes, at + 16) }
}

impl Superblock {
    pub(crate) fn encode(&self) -> Box<PageBytes> {
        let mut out = zeroed();
        out[..8].copy_from_slice(MAGIC);
        put_u32(&mut *out, 8, self.version);
        out[16..32].copy_from_slice(&self.volume);
        put_u64(&mut *out, 32, self.checkpoint);
        put_u64(&mut *out, 40, self.session);
        put_u64(&mut *out, 48, self.volume_pages);
        put_u64(&mut *out, 56, self.segments);
        put_u64(&mut *out, 64, self.journal_blocks);
        let flags = [
            self.dedup,
            self.sha1,
            self.compare,
            self.buffered,
            self.thin,
            self.clean,
            self.states_copy == 1,
            self.sums,
        ];
        let flags = flags.iter().enumerate().map(|(bit, &set)| u32::from(set) << bit).sum();
        put_u32(&mut *out, 72, flags);
        put_u32(&mut *out, 76, u32::try_from(self.runs.len()).expect("bounded"));
        put_place(&mut *out, 80, self.journal);
        put_place(&mut *out, 104, self.log_tail);
        put_u64(&mut *out, 128, self.log_synced);
        put_u64(&mut *out, 136, self.log_opened);
        for (i, value) in self.counters.values().into_iter().enumerate() {
            put_u64(&mut *out, COUNTERS_AT + 8 * i, value);
        }
        for (i, run) in self.runs.iter().enumerate() {
            let at = RUNS_AT + 24 * i;
            put_u64(&mut *out, at, run.at);
            put_u64(&mut *out, at + 8, run.entries);
            put_u64(&mut *out, at + 16, run.number);
        }
        put_u32(&mut *out, STATES_SUM_AT, self.states_sum);
        put_u32(&mut *out, CHUNKS_AT, self.chunk_bytes.0);
        put_u32(&mut *out, CHUNKS_AT + 4, self.chunk_bytes.1);
        seal(&mut *out, SEAL);
        out
    }

    /// The superblock in `bytes`, or what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Superblock, String> {
        if bytes.len() != PAGE || bytes[..8] != *MAGIC {
            return Err("it has not the magic of one".to_owned());
        }
        let version = u32_at(bytes, 8);
        if !(1..=VERSION).contains(&version) {
            return Err(format!("it has version {version}, and this program reads 1 to {VERSION}"));
        }
        if !is_sealed(bytes, SEAL) {
            return Err("its checksum is wrong".to_owned());
        }
        let flag = |bit: u32| u32_at(bytes, 72) >> bit & 1 == 1;
        let runs = len_at(bytes, 76);
        let segments = u64_at(bytes, 56);
        let (pages, journal) = (u64_at(bytes, 48), u64_at(bytes, 64));
        let bounded =
            runs <= RUNS_MAX && segments < 1 << 40 && pages < 1 << 40 && journal < 1 << 24;
        let (head, tail) = (place_at(bytes, 80), place_at(bytes, 104));
        let counts = |i: usize| u64_at(bytes, COUNTERS_AT + 8 * i) < NUMBER_MAX;
        let counters = VolumeCounters::from_values(|i| u64_at(bytes, COUNTERS_AT + 8 * i));
        // Numbers that rise leave room for the next ones.
        let rising = [32, 40, 128, 136].into_iter().all(|at| u64_at(bytes, at) < NUMBER_MAX)
            && [head.seq, tail.seq].iter().all(|seq| (1..NUMBER_MAX).contains(seq))
            && (0..COUNTERS).all(counts)
            && counters.checkpoints < NUMBER_MAX >> 16;
        let some = segments > 0 && pages > 0 && journal >= 16 && head.at < journal;
        let some = some && (version >= 3 || !flag(7));
        if !(bounded && rising && some) {
            return Err("its numbers are impossible".to_owned());
        }
        let run = |i: usize| {
            let at = RUNS_AT + 24 * i;
            RunPlace {
                at: u64_at(bytes, at),
                entries: u64_at(bytes, at + 8),
                number: u64_at(bytes, at + 16),
            }
        };
        Ok(Superblock {
            version,
            volume: bytes[16..32].try_into().expect("sixteen bytes"),
            checkpoint: u64_at(bytes, 32),
            session: u64_at(bytes, 40),
            volume_pages: pages,
            segments,
            journal_blocks: journal,
            dedup: flag(0),
            sha1: flag(1),
            compare: flag(2),
            buffered: flag(3),
            thin: flag(4),
            clean: flag(5),
            states_copy: u8::from(flag(6)),
            sums: flag(7),
            states_sum: u32_at(bytes, STATES_SUM_AT),
            chunk_bytes: (u32_at(bytes, CHUNKS_AT), u32_at(bytes, CHUNKS_AT + 4)),
            journal: head,
            log_tail: tail,
            log_synced: u64_at(bytes, 128),
            log_opened: u64_at(bytes, 136),
            counters,
            runs: (0..runs).map(run).collect(),
        })
    }

    /// The checksum of the states, if the volume has one.
    pub(crate) fn sum_of_states(&self) -> Option<u32> {
        (self.version >= 3).then_some(self.states_sum)
    }

    /// The checkpoint that transactions after this one name: none did before version 3.
    pub(crate) fn transactions_of(&self) -> u64 {
        if self.version >= 3 { self.checkpoint } else { 0 }
    }

    /// The layout of the volume on an array with stripes of `stripe` bytes.
    pub(crate) fn layout(&self, stripe: u64) -> VolumeLayout {
        let kinds = Kinds { dedup: self.dedup, sums: self.sums };
        VolumeLayout::of_sizes(self.volume_pages, self.segments, self.journal_blocks, kinds, stripe)
    }

    /// Writes both copies, durable one after the other.
    pub(crate) fn write(&self, array: &dyn Storage) -> Result<()> {
        let bytes = self.encode();
        for copy in 0..2 {
            array.write_at(copy * BLOCK, &*bytes)?;
            array.sync()?;
        }
        Ok(())
    }

    /// The newer good copy. With `repair` the other one is made like it, if it isn't.
    pub(crate) fn read(array: &dyn Storage, repair: bool) -> Result<Superblock> {
        let copies = array.read_vec(0, 2 * PAGE)?;
        let decoded = [Self::decode(&copies[..PAGE]), Self::decode(&copies[PAGE..])];
        let best = decoded.iter().flatten().max_by_key(|superblock| superblock.checkpoint);
        let Some(best) = best else {
            return Err(Error::Damaged {
                volume: array.name().to_owned(),
                what: "superblock",
                number: 0,
                detail: decoded[0].clone().err().unwrap_or_default(),
            });
        };
        let encoded = best.encode();
        for (copy, there) in copies.chunks(PAGE).enumerate().filter(|_| repair) {
            if there != &encoded[..] {
                array.write_at(u64_of(copy * PAGE), &*encoded)?;
                array.sync()?;
            }
        }
        Ok(best.clone())
    }
}
