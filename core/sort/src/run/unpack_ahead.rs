//! Several compressed inputs are decompressed at once, each by a thread, ahead of the reader that wants
//! them one after the other.
//!
//! ```text
//!   thread 1   input 0 ─► │block│block│block│ ─►
//!   thread 2   input 1 ─► │block│block│            reader: input 0, then 1, then 2, ...
//!              input 2    (the next free thread's)
//! ```
//!
//! All inputs together hold a bounded number of blocks. A thread whose input has no block may always add
//! one, so the reader gets on, whatever the others hold. Threads start with the first read.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;

/// Readers of `inputs`, which are decompressed by `threads` threads. Up to `blocks` blocks wait to be read,
/// and two more for each thread.
pub(crate) fn readers(
    inputs: Vec<Box<dyn Read + Send>>,
    threads: usize,
    blocks: usize,
) -> Vec<AheadReader> {
    let count = inputs.len();
    let state = UnpackAheadState {
        idle: inputs.into_iter().enumerate().collect(),
        queues: (0..count).map(|_| UnpackQueue::default()).collect(),
        held: 0,
        spare: Vec::new(),
        stopped: false,
    };
    let shared = Arc::new(UnpackAheadShared {
        state: Mutex::new(state),
        changed: Condvar::new(),
        started: Mutex::new(false),
        threads,
        blocks,
    });
    (0..count)
        .map(|number| AheadReader {
            shared: Arc::clone(&shared),
            number,
            block: Vec::new(),
            at: 0,
            ended: false,
        })
        .collect()
}

struct UnpackAheadShared {
    state: Mutex<UnpackAheadState>,
    changed: Condvar,
    started: Mutex<bool>,
    threads: usize,
    /// The most blocks that wait to be read, but for one of each thread.
    blocks: usize,
}

struct UnpackAheadState {
    /// Inputs that no thread has begun, in order.
    idle: VecDeque<(usize, Box<dyn Read + Send>)>,
    /// One for each input.
    queues: Vec<UnpackQueue>,
    /// Blocks in all queues.
    held: usize,
    spare: Vec<Vec<u8>>,
    /// A reader is gone that was not at its end.
    stopped: bool,
}

#[derive(Default)]
struct UnpackQueue {
    blocks: VecDeque<Vec<u8>>,
    /// How it ends, after the blocks.
    end: Option<io::Result<()>>,
}

/// One of the inputs.
pub(crate) struct AheadReader {
    shared: Arc<UnpackAheadShared>,
    number: usize,
    block: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Read for AheadReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if self.ended {
                return Ok(0);
            }
            self.shared.start()?;
            let spent = std::mem::take(&mut self.block);
            self.at = 0;
            let mut state = self.shared.state.lock();
            if spent.capacity() > 0 {
                state.spare.push(spent);
            }
            loop {
                if let Some(block) = state.queues[self.number].blocks.pop_front() {
                    state.held -= 1;
                    self.block = block;
                    break;
                }
                if let Some(end) = state.queues[self.number].end.take() {
                    self.ended = true;
                    end?;
                    break;
                }
                self.shared.changed.wait(&mut state);
            }
            drop(state);
            self.shared.changed.notify_all();
        }
        let n = out.len().min(self.block.len() - self.at);
        out[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl Drop for AheadReader {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.state.lock().stopped = true;
            self.shared.changed.notify_all();
        }
    }
}

impl UnpackAheadShared {
    /// Starts the threads, once.
    fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut started = self.started.lock();
        if !*started {
            for _ in 0..self.threads {
                let shared = Arc::clone(self);
                spawn("unpack", move || shared.work())?;
            }
            *started = true;
        }
        Ok(())
    }

    /// Takes input after input, as one of the threads.
    fn work(&self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                if state.stopped { None } else { state.idle.pop_front() }
            };
            let Some((number, mut reader)) = next else { return };
            let mut ending = UnpackEndGuard { shared: self, number, end: None };
            let end = loop {
                let (block, end) = self.block(&mut *reader);
                if !block.is_empty() && !self.push(number, block) {
                    return;
                }
                if let Some(end) = end {
                    break end;
                }
            };
            // Its memory is back before the next input begins.
            drop(reader);
            ending.end = Some(end);
        }
    }

    /// The next block, and how the input ends if it does.
    fn block(&self, reader: &mut dyn Read) -> (Vec<u8>, Option<io::Result<()>>) {
        let mut block = self.state.lock().spare.pop().unwrap_or_default();
        block.resize(BLOCK_BYTES, 0);
        let (mut len, mut end) = (0, None);
        while len < BLOCK_BYTES && end.is_none() {
            match reader.read(&mut block[len..]) {
                Ok(0) => end = Some(Ok(())),
                Ok(n) => len += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => end = Some(Err(error)),
            }
        }
        block.truncate(len);
        (block, end)
    }

    /// Adds a block once there is room; false when no one wants it.
    fn push(&self, number: usize, block: Vec<u8>) -> bool {
        let mut state = self.state.lock();
        let full = |state: &UnpackAheadState| {
            state.held >= self.blocks && !state.queues[number].blocks.is_empty()
        };
        while !state.stopped && full(&state) {
            self.changed.wait(&mut state);
        }
        if state.stopped {
            return false;
        }
        state.held += 1;
        state.queues[number].blocks.push_back(block);
        drop(state);
        self.changed.notify_all();
        true
    }
}

/// Ends an input, also when its thread panics.
struct UnpackEndGuard<'s> {
    shared: &'s UnpackAheadShared,
    number: usize,
    end: Option<io::Result<()>>,
}

impl Drop for UnpackEndGuard<'_> {
    fn drop(&mut self) {
        let lost = || Err(io::Error::other("the thread that decompressed it has failed"));
        self.shared.state.lock().queues[self.number].end =
            Some(self.end.take().unwrap_or_else(lost));
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in small steps, then perhaps an error.
    struct Slow(Vec<u8>, usize, bool);

    impl Read for Slow {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = out.len().min(self.0.len() - self.1).min(70_000);
            out[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
            self.1 += n;
            if n == 0 && self.2 { Err(io::Error::other("broken")) } else { Ok(n) }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn inputs_are_read_as_they_are(
            lengths in prop::collection::vec(0..900_000_usize, 0..9),
            broken in 0..12_usize,
            (threads, blocks) in (1..4_usize, 0..5_usize),
        ) {
            let bytes = |number: usize, len: usize| -> Vec<u8> {
                (0..len).map(|at| (at / 1000 + number * 7) as u8).collect()
            };
            let numbered = || lengths.iter().copied().enumerate();
            let inputs = numbered().map(|(number, len)| {
                Box::new(Slow(bytes(number, len), 0, number == broken)) as Box<dyn Read + Send>
            });
            let mut readers = readers(inputs.collect(), threads, blocks).into_iter();
            for (number, len) in numbered() {
                let mut got = Vec::new();
                let read = readers.next().expect("one each").read_to_end(&mut got);
                prop_assert_eq!(got, bytes(number, len));
                if number == broken {
                    prop_assert_eq!(read.expect_err("broken").to_string(), "broken");
                    break;
                }
                prop_assert_eq!(read.expect("read"), len);
            }
        }
    }

    #[test]
    fn the_blocks_that_wait_are_bounded() {
        let inputs = (0..40).map(|_| Box::new(Slow(vec![1; 600_000], 0, false)) as _).collect();
        let mut readers = readers(inputs, 3, 5);
        let shared = Arc::clone(&readers[0].shared);
        let mut byte = [0];
        readers[0].read_exact(&mut byte).expect("read");
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(shared.state.lock().held <= 5 + 3);
        drop(readers);
        assert!(shared.state.lock().stopped);
    }
}
