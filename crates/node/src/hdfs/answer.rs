//! The frames of a map, while it is made.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use super::ifile::{SegmentIndex, Sink};
use super::protocol::{Frame, frame_head};
use super::{HdfsError, Result};
use crate::talk::{End, Talk};

/// How often a task gets to know how far its map is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Sends the result of a map.
pub(super) struct Frames<'a> {
    talk: Talk<'a>,
    /// When the client was last sent something.
    told: Instant,
    /// Why nothing more can be sent.
    end: Option<End>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(talk: Talk<'a>) -> Self {
        Frames { talk, told: Instant::now(), end: None }
    }

    /// Why nothing more could be sent, if that is so.
    pub(super) fn into_end(self) -> Option<End> {
        self.end
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, frame: &Frame) -> Result<()> {
        self.write(&mut [IoSlice::new(&frame.encode())])
    }

    fn write(&mut self, parts: &mut [IoSlice<'_>]) -> Result<()> {
        self.told = Instant::now();
        self.talk.write(parts).map_err(|end| {
            self.end = Some(end);
            HdfsError::Gone
        })
    }
}

impl Sink for Frames<'_> {
    fn data(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(&mut [IoSlice::new(&frame_head(bytes.len())), IoSlice::new(bytes)])
    }

    fn spill(&mut self, number: u32, records: u64, index: Vec<SegmentIndex>) -> Result<()> {
        self.send(&Frame::Spill { number, records, index })
    }

    fn progress(&mut self, split_bytes: u64, records: u64) -> Result<()> {
        if self.talk.stream.is_hung_up() {
            return Err(HdfsError::Gone);
        }
        if self.told.elapsed() < PROGRESS_EVERY {
            return Ok(());
        }
        self.send(&Frame::Progress { split_bytes, records })
    }
}
