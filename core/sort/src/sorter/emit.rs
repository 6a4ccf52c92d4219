//! A chunk that holds all records becomes the output, without a run.

use std::sync::Arc;

use merganser_storage::{Operation, Storage, StorageExt};

use super::form::Formed;
use super::{SortOutput, Sorter};
use crate::activity::{WorkerState, wait};
use crate::output::InTurn;
use crate::run::format::PIECE_BYTES;
use crate::run::gather::GatherRecords;
use crate::run::write_behind::WriteBehind;
use crate::{Error, Progress, Result};

impl Sorter<'_> {
    /// Gathers all records there are into the output, or into the only run of a view.
    pub(super) fn hand_out(
        &mut self,
        sorted: &mut dyn GatherRecords,
        output: &mut SortOutput<'_>,
        header: Vec<u8>,
        progress: &dyn Progress,
    ) -> Result<Formed> {
        if !matches!(output, SortOutput::View { .. }) {
            self.emit(sorted, output, &header, progress)?;
            return Ok(Formed::Done);
        }
        if sorted.records() > 0 {
            let mut behinds = Vec::new();
            let mut unfinished = Some(self.spill(sorted, output, &mut behinds, progress)?);
            self.finish_run(&mut unfinished, &mut behinds)?;
        }
        Ok(Formed::Runs { header })
    }

    /// Everything fits into one chunk: the output is gathered from it directly.
    pub(super) fn emit(
        &mut self,
        sorted: &mut dyn GatherRecords,
        output: &mut SortOutput<'_>,
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.check_columns()?;
        let base = header.len() as u64;
        let total = base + sorted.bytes();
        progress.phase("writing", Some(total));
        self.report.records = sorted.records();
        self.report.output_bytes = total;
        let mut behinds = Vec::new();
        match output {
            SortOutput::Storage(storage) => {
                if total > 0 {
                    let _waiting = wait(WorkerState::Writing);
                    storage.run(Operation::Allocate { offset: 0, len: total })?;
                }
                storage.write_at(0, header)?;
                self.prepare_behinds(storage, &mut behinds)?;
                sorted.gather(
                    self.plan.block_bytes,
                    false,
                    &mut behinds,
                    &|number, piece, behind| {
                        if progress.cancelled() {
                            return Err(Error::Cancelled);
                        }
                        let (buffer, len) = piece.into_bytes();
                        progress.advance(len as u64);
                        behind.write(base + number * PIECE_BYTES as u64, buffer, len)
                    },
                )?;
                behinds.iter_mut().try_for_each(WriteBehind::drain)?;
                Ok(())
            }
            SortOutput::Writer(writer) => {
                writer.write_all(header)?;
                // The write-behind only lends its buffers here; nothing goes to its storage.
                let nowhere: Arc<dyn Storage> =
                    merganser_storage::memory::MemoryStorage::new("nowhere");
                self.prepare_behinds(&nowhere, &mut behinds)?;
                let turn = InTurn::new(&mut **writer);
                sorted.gather(
                    self.plan.block_bytes,
                    false,
                    &mut behinds,
                    &|number, piece, behind| {
                        if progress.cancelled() {
                            turn.stop();
                            return Err(Error::Cancelled);
                        }
                        let (buffer, len) = piece.into_bytes();
                        turn.write(number, &buffer[..len])?;
                        progress.advance(len as u64);
                        behind.put_back(buffer);
                        Ok(())
                    },
                )
            }
            SortOutput::View { .. } => unreachable!("a view has a run"),
        }
    }
}
