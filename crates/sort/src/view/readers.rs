//! Read-ahead for readers of a view that go from front to back without saying so.
//!
//! A read that begins where an earlier one ended is taken for a sequential reader and gets a
//! stream; later reads at or near its place are copied out of merged windows. A few windows are
//! kept behind the stream's place, because kernels send read-ahead slightly out of order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use storage::{Buffer, Storage};

use super::View;
use super::select::{Enclosure, Unit, enclose};
use crate::merge::stream::Stream;
use crate::{Error, Result};

/// Ends of earlier reads that are remembered.
const ENDS: usize = 16;
/// A read may begin this far after an earlier one's end and still be its sequel.
const GAP_BYTES: u64 = 1 << 20;

pub(super) struct Readers {
    state: Mutex<State>,
    streams_max: usize,
}

struct State {
    /// Most recently used last.
    streams: Vec<Arc<Slot>>,
    ends: VecDeque<u64>,
}

struct Slot {
    /// Places the stream can serve without much waiting; updated when it moves.
    reach: Mutex<std::ops::Range<u64>>,
    reading: Mutex<Reading>,
}

struct Reading {
    stream: Stream,
    windows: VecDeque<(u64, Buffer, usize)>,
}

impl Readers {
    pub(super) fn new(streams_max: usize) -> Self {
        let state = State { streams: Vec::new(), ends: VecDeque::new() };
        Readers { state: Mutex::new(state), streams_max }
    }

    /// Ends all read-ahead; it begins again when readers go on.
    pub(super) fn give_up(&self) {
        self.state.lock().expect("readers do not panic").streams.clear();
    }
}

impl View {
    /// Reads at `offset`, from read-ahead where there is some.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let len = out.len().min(self.size().saturating_sub(offset) as usize);
        let end = offset + len as u64;
        let preamble = self.preamble_bytes();
        if offset < preamble || len == 0 {
            self.remember(end);
            return self.read_random(offset, out);
        }
        let place = offset - preamble;
        if let Some(buckets) = self.bucket_view() {
            buckets.read_on(place, &mut out[..len])?;
            return Ok(len);
        }
        let slot = {
            let mut state = self.readers.state.lock().expect("readers do not panic");
            let near = state
                .streams
                .iter()
                .position(|slot| slot.reach.lock().expect("readers do not panic").contains(&place));
            let sequel = state.ends.iter().position(|e| *e <= offset && offset - e <= GAP_BYTES);
            if let Some(i) = sequel {
                state.ends.remove(i);
            }
            state.ends.push_back(end);
            if state.ends.len() > ENDS {
                state.ends.pop_front();
            }
            match near {
                Some(i) => {
                    let slot = state.streams.remove(i);
                    state.streams.push(Arc::clone(&slot));
                    Some(slot)
                }
                None if sequel.is_some() => {
                    if state.streams.len() >= self.readers.streams_max {
                        state.streams.remove(0);
                    }
                    match self.start_stream(place) {
                        Ok(slot) => {
                            state.streams.push(Arc::clone(&slot));
                            Some(slot)
                        }
                        // Without memory for a stream every read stands alone: slower, not wrong.
                        Err(Error::Memory { .. }) => None,
                        Err(e) => return Err(e),
                    }
                }
                None => None,
            }
        };
        let Some(slot) = slot else { return self.read_random(offset, out) };
        let served = slot.serve(place, &mut out[..len], self.size.window_bytes);
        match served {
            Ok(true) => Ok(len),
            Ok(false) => self.read_random(offset, out),
            Err(e) => {
                let mut state = self.readers.state.lock().expect("readers do not panic");
                state.streams.retain(|s| !Arc::ptr_eq(s, &slot));
                Err(e)
            }
        }
    }

    fn remember(&self, end: u64) {
        let mut state = self.readers.state.lock().expect("readers do not panic");
        state.ends.push_back(end);
        if state.ends.len() > ENDS {
            state.ends.pop_front();
        }
    }

    fn start_stream(&self, place: u64) -> Result<Arc<Slot>> {
        let whole = self.segments.data_bytes();
        let Enclosure { lower, .. } = enclose(&self.segments, Unit::Bytes, place..whole)?;
        let segments = self.segments.clone();
        let stream = Stream::new(segments, lower, None, None, self.size, &self.budget)?;
        Ok(Arc::new(Slot {
            reach: Mutex::new(place..place + 2 * self.size.window_bytes),
            reading: Mutex::new(Reading { stream, windows: VecDeque::new() }),
        }))
    }
}

impl Slot {
    /// Copies what is at `place` to `out`; false when the stream has gone past it.
    fn serve(&self, place: u64, out: &mut [u8], window_bytes: u64) -> Result<bool> {
        let mut reading = self.reading.lock().expect("readers do not panic");
        let Reading { stream, windows } = &mut *reading;
        if windows.front().is_some_and(|(start, ..)| place < *start) {
            return Ok(false);
        }
        let mut done = 0;
        while done < out.len() {
            let at = place + done as u64;
            let hit =
                windows.iter().find(|(start, _, len)| (*start..start + *len as u64).contains(&at));
            if let Some((start, buffer, len)) = hit {
                let from = (at - start) as usize;
                let n = (len - from).min(out.len() - done);
                out[done..done + n].copy_from_slice(&buffer[from..from + n]);
                done += n;
                continue;
            }
            let Some(merged) = stream.next_window()? else { return Ok(false) };
            if windows.len() >= 2 {
                let (_, buffer, _) = windows.pop_front().expect("two");
                stream.recycle(buffer);
            }
            if windows.is_empty() && place < merged.output_offset {
                return Ok(false);
            }
            windows.push_back((merged.output_offset, merged.buffer, merged.len));
            let start = windows.front().expect("one").0;
            let end = merged.output_offset + merged.len as u64;
            *self.reach.lock().expect("readers do not panic") = start..end + window_bytes;
        }
        Ok(true)
    }
}
