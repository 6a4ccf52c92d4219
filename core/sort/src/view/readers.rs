//! Read-ahead for readers of a view that go from front to back without saying so.
//!
//! ```text
//!   read ──► in reach of a stream? ──────────yes──► its portions (made ahead on all cores)
//!               │ no
//!               ├── begins where an earlier read ended ──► a stream is started
//!               └── else ──► made at random: a window is merged, or a bucket sorted and kept
//! ```
//!
//! A few portions are kept behind a stream's place, because kernels send read-ahead slightly out of
//! order. Sorted pieces that a reader has passed are kept longer, for reads at random, as long as nothing
//! else needs their memory.
//!
//! This file is the part of [`View`] that answers reads, so it and `view/mod.rs` import each other. Streams hold the
//! memory of the view, which knows [`Readers`] as [`ReadAhead`] that can be given up, and does not keep them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use parking_lot::{Mutex, MutexGuard};

use super::View;
use super::memory::{HELD, ReadAhead};
use super::stream::ViewPortions;
use crate::portion::{Portion, Portions};
use crate::{Error, Result};

/// Ends of earlier reads that are remembered.
const ENDS: usize = 16;
/// A read may begin this far after an earlier one's end and still be its sequel.
const GAP_BYTES: u64 = 1 << 20;
/// A stream is started when a sequential reader is this near to the end of the kept bytes.
const NEAR_BYTES: u64 = 1 << 20;

pub(super) struct Readers {
    known: Mutex<Known>,
    streams_max: usize,
}

/// State of the readers.
struct Known {
    /// Most recently used last.
    streams: Vec<Arc<Slot>>,
    ends: VecDeque<u64>,
}

/// A stream, and the portions that are kept behind it.
struct Slot {
    /// Places that the stream can serve without much waiting; updated when it moves.
    reach: Mutex<Range<u64>>,
    reading: Mutex<Reading>,
}

struct Reading {
    portions: ViewPortions,
    held: VecDeque<Portion>,
}

impl Readers {
    pub(super) fn new(streams_max: usize) -> Self {
        let known = Known { streams: Vec::new(), ends: VecDeque::new() };
        Readers { known: Mutex::new(known), streams_max }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl ReadAhead for Readers {
    fn give_up(&self) {
        let streams = std::mem::take(&mut self.lock().streams);
        // Workers are waited for without the lock.
        drop(streams);
    }
}

impl Known {
    /// A read ended at `end`.
    fn remember(&mut self, end: u64) {
        self.ends.push_back(end);
        if self.ends.len() > ENDS {
            self.ends.pop_front();
        }
    }

    /// Whether a read from `offset` on follows an earlier one.
    fn follows(&mut self, offset: u64) -> bool {
        let before = self.ends.iter().position(|e| *e <= offset && offset - e <= GAP_BYTES);
        before.and_then(|i| self.ends.remove(i)).is_some()
    }

    /// The stream in whose reach `place` is.
    fn near(&mut self, place: u64) -> Option<Arc<Slot>> {
        let reaches = |slot: &Arc<Slot>| slot.reach.lock().contains(&place);
        let slot = self.streams.iter().position(reaches).map(|i| self.streams.remove(i))?;
        self.streams.push(Arc::clone(&slot));
        Some(slot)
    }
}

impl View {
    /// Reads at `offset`, from read-ahead where there is some.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let len = out.len().min(usize_of(self.manifest.size_bytes.saturating_sub(offset)));
        let (out, end) = (&mut out[..len], offset + u64_of(len));
        let preamble = self.preamble_bytes();
        if offset < preamble || len == 0 {
            self.readers.lock().remember(end);
            return self.read_random(offset, out);
        }
        let place = offset - preamble;
        let enough = end - preamble + NEAR_BYTES;
        let kept = self.kept_until(place, enough);
        let slot = {
            let mut known = self.readers.lock();
            let follows = known.follows(offset);
            known.remember(end);
            match known.near(kept) {
                None if follows && kept < enough => self.start_stream(&mut known, kept)?,
                near => near,
            }
        };
        let from_kept = usize_of(kept - place).min(len);
        if from_kept == len {
            return self.read_random(offset, out);
        }
        let Some(slot) = slot else { return self.read_random(offset, out) };
        let (before, after) = out.split_at_mut(from_kept);
        self.read_random(offset, before)?;
        match slot.serve(kept, after, self.reach_bytes) {
            Ok(true) => {}
            Ok(false) => {
                self.read_random(kept + preamble, after)?;
            }
            Err(e) => {
                let mut known = self.readers.lock();
                known.streams.retain(|s| !Arc::ptr_eq(s, &slot));
                drop(known);
                drop(slot);
                // The next section's stream may not fit.
                if !matches!(e, Error::Memory { .. }) {
                    return Err(e);
                }
                self.read_random(kept + preamble, after)?;
            }
        }
        Ok(len)
    }

    /// Starts a stream from `place` on. Without memory for a stream, every read is made by itself,
    /// which is slower.
    fn start_stream(&self, known: &mut Known, place: u64) -> Result<Option<Arc<Slot>>> {
        if place >= self.whole().bytes {
            return Ok(None);
        }
        if known.streams.len() >= self.readers.streams_max {
            known.streams.remove(0);
        }
        match self.read_ahead(place) {
            Ok(portions) => {
                let slot = Arc::new(Slot {
                    reach: Mutex::new(place..place + 2 * self.reach_bytes),
                    reading: Mutex::new(Reading { portions, held: VecDeque::new() }),
                });
                known.streams.push(Arc::clone(&slot));
                Ok(Some(slot))
            }
            Err(Error::Memory { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl Slot {
    /// Copies the bytes at `place` to `out`; false when the stream has passed it.
    fn serve(&self, place: u64, out: &mut [u8], reach_bytes: u64) -> Result<bool> {
        let mut reading = self.reading.lock();
        let Reading { portions, held } = &mut *reading;
        if held.front().is_some_and(|oldest| place < oldest.output_offset) {
            return Ok(false);
        }
        let mut done = 0;
        while done < out.len() {
            let at = place + u64_of(done);
            if let Some(portion) = held.iter().find(|portion| portion.range().contains(&at)) {
                let bytes = &portion.bytes()[usize_of(at - portion.output_offset)..];
                let n = bytes.len().min(out.len() - done);
                out[done..done + n].copy_from_slice(&bytes[..n]);
                done += n;
                continue;
            }
            if portions.is_between_sections() {
                for portion in held.drain(..) {
                    portions.keep(portion);
                }
            }
            let Some(next) = portions.next()? else { return Ok(false) };
            if held.len() >= HELD
                && let Some(oldest) = held.pop_front()
            {
                portions.keep(oldest);
            }
            let missed = held.is_empty() && place < next.output_offset;
            let end = next.range().end;
            held.push_back(next);
            if missed {
                return Ok(false);
            }
            let start = held.front().expect("just pushed").output_offset;
            *self.reach.lock() = start..end + reach_bytes;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use merganser_storage::Directory;
    use merganser_storage::memory::{MemoryDirectory, MemoryStorage};

    use super::*;
    use crate::key::OrderSpec;
    use crate::record::Format;
    use crate::run::SortInput;
    use crate::{Budget, Silent, SortOptions, SortOutput, Strategy, sort};

    /// Streams hold memory of the view, and the view holds its streams.
    #[test]
    fn a_view_that_is_closed_keeps_no_memory_of_its_streams() {
        let lines: Vec<u8> = (0..400_000_u32)
            .flat_map(|n| format!("{:09}\n", n.reverse_bits()).into_bytes())
            .collect();
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let options = SortOptions::new(OrderSpec::new(Format::Lines { delimiter: b'\n' }))
            .memory(16 << 20)
            .threads(2)
            .temp(vec![Arc::clone(&folder)])
            .strategy(Strategy::Merge);
        let input = SortInput::Storage(MemoryStorage::from_bytes("lines", &lines));
        let output = SortOutput::View { folder: Arc::clone(&folder), name: "v".to_owned() };
        sort(vec![input], output, &options, &Silent).expect("sorted");
        let budget = Budget::new(64 << 20);
        let view = View::open(&folder, &budget, 2).expect("opened");
        let mut read = vec![0; 64 << 10];
        for at in 0..4 {
            view.read(at * (64 << 10), &mut read).expect("read");
        }
        assert!(!view.readers.lock().streams.is_empty(), "a stream reads ahead");
        drop(view);
        assert_eq!(budget.free_bytes(), 64 << 20);
    }
}
