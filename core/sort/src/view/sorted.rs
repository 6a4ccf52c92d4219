//! A bucket of sorted segments: its bytes are merged, window by window.
//!
//! ```text
//!   read at random ──► enclose ──► one window ──► merge ──► skip ──► bytes
//!   stream         ──► windows merged ahead on all cores, in order
//! ```

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Buffer, Storage};

use super::making::{Making, Origin, Purpose, Space};
use super::memory::{ReadMemory, Scratch};
use super::select::{Enclosure, Unit, enclose, enclose_nearly};
use crate::bound::Bound;
use crate::merge::segments::Segments;
use crate::merge::sizes::{RANDOM_BYTES, random_bytes};
use crate::merge::stream::{Stream, StreamSize};
use crate::merge::window::{LoadingWindow, WindowPlan};
use crate::portion::{Portion, Portions, Start};
use crate::record::{Framing, with_framing};
use crate::run::format::corrupt;
use crate::run::release::Released;
use crate::{Error, Result};

/// A bucket whose segments are sorted runs.
pub(super) struct SortedBucket {
    pub(super) segments: Segments,
    pub(super) size: StreamSize,
    /// Name of the view, for errors, and where the bucket begins in it.
    pub(super) view: String,
    pub(super) view_offset: u64,
}

impl SortedBucket {
    /// Merges one window that encloses the bytes from `from` on. Bounds that nearly always enclose
    /// them are tried first.
    fn read_window(&self, memory: &ReadMemory, from: u64, out: &mut [u8]) -> Result<()> {
        let range = from..from + u64_of(out.len());
        let near = enclose_nearly(&self.segments, Unit::Bytes, range.clone())?;
        if self.read_between(memory, near, &range, out)? {
            return Ok(());
        }
        let sure = enclose(&self.segments, Unit::Bytes, range.clone())?;
        if self.read_between(memory, sure, &range, out)? {
            return Ok(());
        }
        Err(self.contradiction(from))
    }

    /// Merges the window between two bounds; false when it does not enclose `range`.
    fn read_between(
        &self,
        memory: &ReadMemory,
        bounds: Enclosure,
        range: &Range<u64>,
        out: &mut [u8],
    ) -> Result<bool> {
        let plan = WindowPlan::barely_between(&self.segments, bounds.lower, bounds.upper)?;
        let blocks = plan.memory_bytes(&self.segments);
        let scratch = self.scratch(memory, blocks, u64_of(out.len()))?;
        let Scratch { input, mut merged, memory: reserved } = scratch;
        let window = LoadingWindow::start(&self.segments, plan, input)?.finish(&self.segments)?;
        let encloses = window.encloses(range);
        if encloses {
            let skip = usize_of(range.start - window.output_offset);
            let wanted = skip..skip + out.len();
            if merged.len() < wanted.end {
                merged = Buffer::try_new(wanted.end.next_multiple_of(4096))?;
            }
            window.merge_into(&self.segments, &mut merged[..wanted.end])?;
            out.copy_from_slice(&merged[wanted]);
        }
        self.keep(memory, Scratch { input: window.into_memory(), merged, memory: reserved });
        Ok(encloses)
    }

    /// Memory for a random read of `len` bytes out of blocks of `blocks` bytes: what an earlier one
    /// left, if that is enough.
    fn scratch(&self, memory: &ReadMemory, blocks: u64, len: u64) -> Result<Scratch> {
        let packed = self.segments.runs.iter().any(|run| run.packed());
        let need = |blocks: u64| blocks * (2 + u64::from(packed)) + len;
        let spare = memory.take_spare();
        if let Some(spare) = spare.filter(|spare| spare.memory.bytes() >= need(blocks)) {
            return Ok(spare);
        }
        // Half as much again, so that the next one finds enough, too.
        let (owner, roomy) = ("reading a view at random", blocks + blocks / 2);
        let (reserved, blocks) = match memory.budget.reserve(need(roomy), owner) {
            Ok(reserved) => (reserved, roomy),
            Err(_) => (memory.reserve(need(blocks), owner)?, blocks),
        };
        let input = Buffer::try_new(usize_of(blocks))?;
        Ok(Scratch { input, merged: Buffer::try_new(usize_of(blocks + len))?, memory: reserved })
    }

    /// Leaves memory for the next random read, since fresh memory costs a page fault every 4 KiB; no
    /// more than streams leave free.
    fn keep(&self, memory: &ReadMemory, scratch: Scratch) {
        if scratch.memory.bytes() <= random_bytes(self.segments.footers()) {
            *memory.spare.lock() = Some(scratch);
        }
    }

    /// The error for bounds that surely enclose a place, and do not.
    fn contradiction(&self, place: u64) -> Error {
        let detail = "the records and indexes of its runs contradict each other".to_owned();
        corrupt(&self.view, self.view_offset + place, detail)
    }
}

impl Making for SortedBucket {
    fn storages(&self) -> Vec<Arc<dyn Storage>> {
        self.segments.runs.iter().map(|run| Arc::clone(run.storage())).collect()
    }

    fn portions(
        &self,
        memory: &ReadMemory,
        origin: Origin<'_>,
        end: u64,
        align: Option<u64>,
        purpose: Purpose,
    ) -> Result<Box<dyn Portions>> {
        let whole = self.segments.data_bytes();
        let (lower, upper) = match origin {
            Origin::Resumed(_, bound) if end >= whole => (bound.cloned(), None),
            Origin::Byte(0) if end >= whole => (None, None),
            _ => {
                let range = origin.place()..end;
                let Enclosure { lower, upper } = enclose(&self.segments, Unit::Bytes, range)?;
                (lower, upper.filter(|_| end < whole))
            }
        };
        let start = || {
            let (segments, lower, upper) = (self.segments.clone(), lower.clone(), upper.clone());
            Stream::new(segments, lower, upper, align, self.size, &memory.budget)
        };
        memory.make_room(self.size.memory_bytes(&self.segments));
        let stream = match start() {
            Err(Error::Memory { .. }) if purpose == Purpose::Whole => {
                memory.give_up_ahead();
                start()?
            }
            started => started?,
        };
        Ok(Box::new(stream))
    }

    fn can_resume_at(&self, place: u64, bound: Option<&Bound>) -> bool {
        // A bound that was read from a file may say anything.
        let fits = bound.map(|bound| bound.fits(&self.segments.runs));
        fits.unwrap_or(place == 0)
    }

    fn portion_bytes(&self) -> u64 {
        self.size.window_bytes
    }

    fn kept_until(&self, _memory: &ReadMemory, place: u64, _enough: u64) -> u64 {
        place
    }

    /// Windows are cheap to merge again.
    fn keep(&self, _memory: &ReadMemory, _place: u64, portion: Portion) -> Option<Portion> {
        Some(portion)
    }

    fn read_at(&self, memory: &ReadMemory, place: u64, out: &mut [u8]) -> Result<()> {
        for (number, out) in out.chunks_mut(RANDOM_BYTES).enumerate() {
            self.read_window(memory, place + u64_of(number * RANDOM_BYTES), out)?;
        }
        Ok(())
    }

    fn place_of_record(&self, memory: &ReadMemory, record: u64) -> Result<u64> {
        let range = record..record + 1;
        let Enclosure { lower, upper } = enclose(&self.segments, Unit::Records, range)?;
        let plan = WindowPlan::between(&self.segments, lower, upper)?;
        let need = 3 * plan.memory_bytes(&self.segments);
        let _memory = memory.reserve(need, "finding a record of a view")?;
        let window =
            LoadingWindow::start(&self.segments, plan, Buffer::empty())?.finish(&self.segments)?;
        let mut merged = vec![0; usize_of(window.bytes())];
        window.merge_into(&self.segments, &mut merged)?;
        let skip = record.checked_sub(window.first_record(&self.segments));
        let at = skip.and_then(|skip| {
            with_framing!(self.segments.order.format(), framing => {
                (0..skip).try_fold(0, |at, _| Some(at + framing.first(&merged[at..])?))
            })
        });
        let at = at.ok_or_else(|| self.contradiction(window.output_offset))?;
        Ok(window.output_offset + u64_of(at))
    }

    fn place_of_key(&self, memory: &ReadMemory, key: &[u8]) -> Result<u64> {
        let bound = Bound::before_key(key.to_vec());
        let plan = WindowPlan::between(&self.segments, Some(bound.clone()), Some(bound))?;
        let need = plan.memory_bytes(&self.segments);
        let _memory = memory.reserve(need, "finding a key of a view")?;
        let window =
            LoadingWindow::start(&self.segments, plan, Buffer::empty())?.finish(&self.segments)?;
        Ok(window.output_offset)
    }

    fn verify_all(
        &self,
        _memory: &ReadMemory,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        self.segments.runs.iter().try_for_each(|run| run.verify_all(&mut *progress))
    }

    fn space(&self, _place: u64, step: u64) -> Box<dyn Space + '_> {
        // All runs together keep back only a part of a step, however many runs there are.
        let kept_back = step / u64_of(self.segments.runs.len().max(1));
        let released = Released::every(&self.segments.runs, kept_back);
        Box::new(SortedSpace { segments: &self.segments, released })
    }
}

/// Space of the runs, from their begin on.
struct SortedSpace<'a> {
    segments: &'a Segments,
    released: Released,
}

impl Space for SortedSpace<'_> {
    fn release(&mut self, _place: u64, start: &Start) -> Result<()> {
        let runs = &self.segments.runs;
        match start {
            Start::Merge { needed, .. } => self.released.release(runs, needed),
            // A later bucket begins: nothing of this one is needed.
            Start::Here => self.released.release_rest(runs),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.released.finish(&self.segments.runs)
    }
}
