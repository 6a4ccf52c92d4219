//! The frames of a map, while it is made.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use super::ifile::{SegmentIndex, Sink};
use super::protocol::{MapFrame, frame_head};
use super::{HdfsError, HdfsResult};
use crate::talk::{Talk, TalkEnd};

/// How long a task may take to make room for one more frame of 256 KiB, which it writes to a disk.
pub(super) const FRAME_PATIENCE: Duration = Duration::from_secs(60);

/// How often a task gets to know how far its map is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Bytes per second that a task takes on average, beyond the patience of one frame. One that is slower holds the place of
/// others, and would write its own map output no faster.
const LEAST_BYTES_PER_SECOND: u64 = 256 << 10;

/// How long a task may still let its map wait. So a map's place is held for at most [`FRAME_PATIENCE`] and the time that its
/// bytes take at [`LEAST_BYTES_PER_SECOND`], in addition to the map itself.
#[derive(Debug, Default)]
struct TaskPace {
    waited: Duration,
    sent_bytes: u64,
}

impl TaskPace {
    fn left(&self) -> Duration {
        let sent_seconds = self.sent_bytes as f64 / LEAST_BYTES_PER_SECOND as f64;
        let all = FRAME_PATIENCE + Duration::from_secs_f64(sent_seconds);
        all.saturating_sub(self.waited).min(FRAME_PATIENCE)
    }

    fn add(&mut self, waited: Duration, bytes: usize) {
        self.waited += waited;
        self.sent_bytes += bytes as u64;
    }
}

/// Sends the result of a map.
pub(super) struct AnswerFrames<'a> {
    talk: Talk<'a>,
    pace: TaskPace,
    /// When the client was last sent something.
    told: Instant,
    /// Why nothing more can be sent.
    end: Option<TalkEnd>,
}

impl<'a> AnswerFrames<'a> {
    pub(super) fn new(talk: Talk<'a>) -> Self {
        AnswerFrames { talk, pace: TaskPace::default(), told: Instant::now(), end: None }
    }

    /// Why nothing more could be sent, if that is so.
    pub(super) fn into_end(self) -> Option<TalkEnd> {
        self.end
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, frame: &MapFrame) -> HdfsResult<()> {
        self.write(&mut [IoSlice::new(&frame.encode())])
    }

    fn write(&mut self, parts: &mut [IoSlice<'_>]) -> HdfsResult<()> {
        self.told = Instant::now();
        let bytes = parts.iter().map(|part| part.len()).sum();
        let written = Talk { frame_patience: self.pace.left(), ..self.talk }.write(parts);
        self.pace.add(self.told.elapsed(), bytes);
        written.map_err(|end| {
            self.end = Some(end);
            HdfsError::Gone
        })
    }
}

impl Sink for AnswerFrames<'_> {
    fn data(&mut self, bytes: &[u8]) -> HdfsResult<()> {
        self.write(&mut [IoSlice::new(&frame_head(bytes.len())), IoSlice::new(bytes)])
    }

    fn spill(&mut self, number: u32, records: u64, index: Vec<SegmentIndex>) -> HdfsResult<()> {
        self.send(&MapFrame::Spill { number, records, index })
    }

    fn progress(&mut self, split_bytes: u64, records: u64) -> HdfsResult<()> {
        if self.talk.stream.is_hung_up() {
            return Err(HdfsError::Gone);
        }
        if self.told.elapsed() < PROGRESS_EVERY {
            return Ok(());
        }
        self.send(&MapFrame::Progress { split_bytes, records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = 256 << 10;

    /// Seconds until a task that takes a frame every `each` is hung up on; `None` if it gets 1,000 frames.
    fn held(each: Duration) -> Option<Duration> {
        let mut pace = TaskPace::default();
        for _ in 0..1000 {
            if pace.left() < each {
                return Some(pace.waited + pace.left());
            }
            pace.add(each, FRAME);
        }
        None
    }

    #[test]
    fn a_task_that_takes_a_frame_just_in_time_does_not_hold_a_place_for_long() {
        for each in [61, 59, 31, 15] {
            let held = held(Duration::from_secs(each)).expect("it is hung up on");
            assert!(held <= Duration::from_secs(65), "{each}: {held:?}");
        }
        assert!(held(Duration::from_secs(2)).expect("hung up on") <= Duration::from_secs(122));
        assert_eq!(held(Duration::from_secs(1)), None, "as fast as it has to be");
        // A pause of less than a minute is no reason, nor is one after many bytes.
        let mut pace = TaskPace::default();
        pace.add(Duration::from_secs(50), FRAME);
        pace.add(Duration::from_millis(1), 100 * FRAME);
        assert_eq!(pace.left(), FRAME_PATIENCE);
    }
}
