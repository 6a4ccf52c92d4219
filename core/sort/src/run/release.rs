//! Space of run files that is given back to the device behind a reader.

use std::sync::Arc;

use merganser_storage::{Completions, Operation};

use super::Run;
use super::format::HEADER_BYTES;
use crate::{Error, Result};

/// Gives the blocks of runs back to the device as a merge leaves them behind.
pub(crate) struct Released {
    /// Space is given back in steps of at least this many bytes of a run.
    step: u64,
    /// For each run, bytes of storage that were given back.
    upto: Vec<u64>,
    completions: Completions,
    in_flight: usize,
}

/// Larger steps than this give nothing: punching a hole waits for the reads of its run that are in
/// flight, but not long.
const RELEASE_BYTES: u64 = 4 << 20;
/// Runs are given back in at least this many steps.
const STEPS: u64 = 16;

impl Released {
    pub(crate) fn new(runs: &[Arc<Run>]) -> Self {
        let shortest = runs.iter().map(|run| run.data_bytes()).min().unwrap_or(0);
        Self::every(runs, shortest / STEPS)
    }

    /// Gives back in steps of at least `step` bytes, at most of [`RELEASE_BYTES`].
    pub(crate) fn every(runs: &[Arc<Run>], step: u64) -> Self {
        Released {
            step: step.clamp(4096, RELEASE_BYTES),
            upto: vec![HEADER_BYTES as u64; runs.len()],
            completions: Completions::new(),
            in_flight: 0,
        }
    }

    /// Nothing of the runs will be read again.
    pub(crate) fn release_rest(&mut self, runs: &[Arc<Run>]) -> Result<()> {
        self.step = 4096;
        let ends: Vec<u64> = runs.iter().map(|run| run.data_bytes()).collect();
        self.release(runs, &ends)
    }

    /// Nothing before `positions` will be read again.
    pub(crate) fn release(&mut self, runs: &[Arc<Run>], positions: &[u64]) -> Result<()> {
        for ((run, position), upto) in runs.iter().zip(positions).zip(&mut self.upto) {
            let to = run.physical_floor(*position);
            if to >= *upto + self.step {
                let operation = Operation::Discard { offset: *upto, len: to - *upto };
                run.storage().submit(0, operation, &self.completions);
                self.in_flight += 1;
                *upto = to;
            }
        }
        while let Some(done) = self.completions.poll() {
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }

    /// Waits until all of it is given back.
    pub(crate) fn finish(&mut self, runs: &[Arc<Run>]) -> Result<()> {
        while self.in_flight > 0 {
            let done = self.completions.wait(&*runs[0].storage().clock());
            self.in_flight -= 1;
            ignore_unsupported(done.result)?;
        }
        Ok(())
    }
}

/// A file system that cannot punch holes costs space, not correctness.
pub(crate) fn ignore_unsupported(result: std::io::Result<usize>) -> Result<()> {
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::Unsupported => Err(Error::Io(e)),
        _ => Ok(()),
    }
}
