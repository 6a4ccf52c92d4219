//! A sorted chunk becomes a run.

use std::sync::Arc;

use merganser_storage::{Buffer, Storage};

use super::{SortOutput, Sorter, run_name};
use crate::activity::{WorkerState, wait};
use crate::budget::Reservation;
use crate::plan::{FENCES_SHARE_MAX, RunPlan};
use crate::run::RunWriter;
use crate::run::format::PIECE_BYTES;
use crate::run::gather::GatherRecords;
use crate::run::index::{FENCES, IndexMemory};
use crate::run::write_behind::WriteBehind;
use crate::{Error, Progress, Result};

/// How many more runs there is room for when the number of runs is unknown.
const RUNS_AHEAD: u64 = 8;

/// A run whose pieces are all gathered, but not all written.
pub(super) struct Unfinished {
    writer: RunWriter,
    records: u64,
    durable: bool,
}

impl Sorter<'_> {
    /// Gathers a sorted chunk into a run. Its last pieces are still being written.
    pub(super) fn spill(
        &mut self,
        sorted: &mut dyn GatherRecords,
        output: &SortOutput<'_>,
        behinds: &mut Vec<WriteBehind>,
        progress: &dyn Progress,
    ) -> Result<Unfinished> {
        let (storage, durable) = match output {
            SortOutput::View { folder, .. } => (folder.create(&run_name(self.runs.len()))?, true),
            _ => (self.temp_storage(sorted.bytes())?, false),
        };
        let (block_bytes, memory) = self.index_memory(sorted.bytes())?;
        let writer = RunWriter::new(
            Arc::clone(&storage),
            block_bytes,
            self.compression,
            Some(sorted.bytes()),
            memory,
        )?;
        self.prepare_behinds(&storage, behinds)?;
        let place = |number, piece, behind: &mut WriteBehind| {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            writer.place(number, piece, behind)
        };
        sorted.gather(block_bytes, true, behinds, &place)?;
        Ok(Unfinished { writer, records: sorted.records(), durable })
    }

    /// Waits for the writes of the run that was gathered last, if any, and completes it.
    pub(super) fn finish_run(
        &mut self,
        unfinished: &mut Option<Unfinished>,
        behinds: &mut [WriteBehind],
    ) -> Result<()> {
        let Some(Unfinished { writer, records, durable }) = unfinished.take() else {
            return Ok(());
        };
        behinds.iter_mut().try_for_each(WriteBehind::drain)?;
        let _waiting = wait(WorkerState::Writing);
        let run = writer.finish(&self.spec, records, durable)?;
        self.report.run_bytes += run.storage().size();
        self.runs.push(Arc::new(run));
        Ok(())
    }

    /// Memory for the index of a run of `bytes`, and its block size. It is the plan's size, or
    /// larger when the fences of this run and of later runs would not fit otherwise.
    pub(super) fn index_memory(&self, bytes: u64) -> Result<(u32, Reservation)> {
        let budget = &self.options.budget;
        let ahead = match self.total_bytes {
            Some(total) => {
                total.saturating_sub(self.report.input_bytes).div_ceil(self.plan.chunk_bytes)
            }
            None => RUNS_AHEAD,
        };
        let free = budget.free_bytes();
        let block_bytes_max = RunPlan::block_bytes_max(budget.limit_bytes());
        let mut block_bytes = self.plan.block_bytes;
        loop {
            let expected = IndexMemory::expected(bytes, block_bytes, self.fence_key_bytes());
            let all = expected.most() + ahead * expected.open;
            if all <= free || block_bytes >= block_bytes_max {
                return match budget.reserve(expected.most(), FENCES) {
                    Ok(memory) => Ok((block_bytes, memory)),
                    Err(_) => {
                        let held: u64 = self.runs.iter().map(|run| run.reserved_bytes()).sum();
                        let limit_bytes = budget.limit_bytes();
                        let least_bytes = ((held + all) * FENCES_SHARE_MAX).max(limit_bytes + all);
                        Err(Error::Memory { owner: FENCES, least_bytes, limit_bytes })
                    }
                };
            }
            block_bytes *= 2;
        }
    }

    /// One write-behind per thread, all for `storage`.
    pub(super) fn prepare_behinds(
        &self,
        storage: &Arc<dyn Storage>,
        behinds: &mut Vec<WriteBehind>,
    ) -> Result<()> {
        if behinds.is_empty() {
            for _ in 0..self.workers.count() {
                let buffers = (0..self.plan.pieces).map(|_| Buffer::try_new(PIECE_BYTES));
                let buffers = buffers.collect::<std::io::Result<_>>()?;
                behinds.push(WriteBehind::new(Arc::clone(storage), buffers));
            }
        }
        behinds.iter_mut().try_for_each(|b| b.retarget(Arc::clone(storage)))
    }
}
