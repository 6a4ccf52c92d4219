//! How the bytes of buckets are made: one trait for both ways.
//!
//! ```text
//!   Making ◄── sorted::SortedBucket      sorted segments are merged, window by window
//!          ◄── unsorted::UnsortedBuckets  unsorted segments are sorted, bucket by bucket
//! ```
//!
//! All places here are bytes within the section, all numbers of records are within it too.

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::Storage;

use super::memory::ReadMemory;
use crate::Result;
use crate::bound::Bound;
use crate::portion::{Portion, Portions, Start};

/// Neighbouring buckets whose bytes are made in one way: one bucket of sorted segments, or as many
/// unsorted ones as follow one another.
pub(crate) struct Section {
    /// Where it begins in the view, in bytes (the preamble not counted) and records.
    pub(super) start: Measure,
    /// Its bytes and records.
    pub(super) size: Measure,
    /// No full key in it is below.
    pub(super) lower: Vec<u8>,
    pub(super) making: Box<dyn Making>,
}

impl Section {
    /// Where it is in the view.
    pub(super) fn range(&self) -> Range<u64> {
        self.start.bytes..self.start.bytes + self.size.bytes
    }
}

/// An amount of output: before a place of a view, or in a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Measure {
    pub(super) bytes: u64,
    pub(super) records: u64,
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    /// At a byte, or before it.
    Byte(u64),
    /// Exactly at a place that an earlier stream named.
    Resumed(u64, Option<&'a Bound>),
}

impl Origin<'_> {
    pub(super) fn place(&self) -> u64 {
        let (Origin::Byte(place) | Origin::Resumed(place, _)) = self;
        *place
    }
}

/// Whom a stream is for, which says how much memory it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A caller that reads all of it at once.
    Whole,
    /// Read-ahead for a reader that was not announced. It keeps up to [`HELD`](super::memory::HELD) portions, and
    /// reads at random stay possible.
    ReadAhead,
}

/// How the bytes of a section are made.
pub(super) trait Making: Send + Sync {
    /// The storages that its records are in.
    fn storages(&self) -> Vec<Arc<dyn Storage>>;

    /// Portions from `origin` on until at least `end`. With `align`, each portion has the place in its
    /// buffer that it has in a file in which that many bytes come before the section.
    fn portions(
        &self,
        memory: &ReadMemory,
        origin: Origin<'_>,
        end: u64,
        align: Option<u64>,
        purpose: Purpose,
    ) -> Result<Box<dyn Portions>>;

    /// Whether a stream can be resumed at `place`, which is where `bound` is.
    fn can_resume_at(&self, place: u64, bound: Option<&Bound>) -> bool;

    /// About how many bytes a portion has, at most.
    fn portion_bytes(&self) -> u64;

    /// How far bytes from `place` on are in memory already. The search may stop at `enough`.
    fn kept_until(&self, memory: &ReadMemory, place: u64, enough: u64) -> u64;

    /// Keeps a portion that a sequential reader has passed, as far as memory allows. Returns the portion
    /// if it is not kept.
    fn keep(&self, memory: &ReadMemory, place: u64, portion: Portion) -> Option<Portion>;

    /// Fills `out` from `place` on, without a stream.
    fn read_at(&self, memory: &ReadMemory, place: u64, out: &mut [u8]) -> Result<()>;

    /// Where record number `record` begins.
    fn place_of_record(&self, memory: &ReadMemory, record: u64) -> Result<u64>;

    /// Where the first record begins whose full key is at least `key`; the end without one.
    fn place_of_key(&self, memory: &ReadMemory, key: &[u8]) -> Result<u64>;

    /// Reads every block and checks it. `progress` takes the bytes read.
    fn verify_all(
        &self,
        memory: &ReadMemory,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()>;

    /// Gives space back in steps of about `step` bytes; the bytes before `place` are gone already.
    fn space(&self, place: u64, step: u64) -> Box<dyn Space + '_>;
}

/// Space of a section that is given back behind a copy.
pub(super) trait Space {
    /// Begins to give back the space before a portion that begins at `place`, as `start` says. It
    /// is not read again.
    fn release(&mut self, place: u64, start: &Start) -> Result<()>;

    /// Waits until all of it is given back. If a file system can't give space back, only space is
    /// lost.
    fn finish(&mut self) -> Result<()>;
}
