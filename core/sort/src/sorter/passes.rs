//! More runs than memory merges at once, or than a view may have open: neighbours are merged into
//! longer runs first.

use std::sync::Arc;

use merganser_storage::{Directory, DirectoryExt};

use super::{Sorter, merge_room, run_name};
use crate::activity;
use crate::budget::Reservation;
use crate::merge::segments::Segments;
use crate::merge::sizes::{least_memory_bytes, runs_at_once, stream_size};
use crate::merge::stream::{Stream, StreamSize};
use crate::pipeline::Workers;
use crate::plan::{FENCES_SHARE_MAX, RunPlan};
use crate::portion::{Portions, Start};
use crate::run::builder::RunBuilder;
use crate::run::index::{FENCES, IndexMemory};
use crate::run::release::Released;
use crate::run::{Compression, Run, RunWriter};
use crate::view::Segment;
use crate::{Error, Progress, Result};

/// A group of runs of a sort that consumes its inputs is at most this part of all.
const GROUP_SHARE: u64 = 10;

impl Sorter<'_> {
    /// Merges neighbouring runs until memory allows to merge the rest at once.
    pub(super) fn make_mergeable(
        &mut self,
        view: Option<&Arc<dyn Directory>>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let budget = self.options.budget.clone();
        let room = || merge_room(&budget);
        let mut made = self.runs.iter().map(|run| run_number(run) + 1).max().unwrap_or(0);
        // A view must open again in the memory that made it.
        let runs_max = if view.is_some() { self.view_runs_max } else { usize::MAX };
        let fits = |segments: &Segments| match view {
            Some(_) => {
                let held: u64 = segments.runs.iter().map(|run| run.reserved_bytes()).sum();
                segments.runs.len() <= runs_max
                    && least_memory_bytes(segments.footers()) <= budget.free_bytes() + held
            }
            None => stream_size(segments, &budget, room(), Workers::new(1)).is_ok(),
        };
        while self.runs.len() > 1 && !fits(&self.segments()) {
            let packed = self.compression != Compression::Off;
            let block_bytes = self.runs.iter().map(|run| run.block_bytes()).max();
            let at_once = runs_at_once(block_bytes.expect("not empty"), packed, room());
            // One of the open runs of a view is the run that is being written.
            let fan_in = (at_once as usize).min(runs_max - 1);
            if fan_in < 2 {
                return stream_size(&self.segments(), &budget, room(), Workers::new(1)).map(|_| ());
            }
            self.report.extra_passes += 1;
            let bytes = self.segments().data_bytes();
            progress.phase("merging runs", Some(bytes));
            let _worker = activity::enter("write");
            let key_bytes = self.fence_key_bytes();
            let mut old = std::mem::take(&mut self.runs);
            let mut merged = Vec::new();
            while !old.is_empty() {
                let count = fan_in.min(old.len()).min(self.runs_for_space(&old, bytes));
                let (segments, block_bytes, memory, size) =
                    self.merge_group(&old[..count], key_bytes)?;
                let group = Arc::clone(&segments.runs);
                let storage = match view {
                    Some(folder) => folder.create(&run_name(made))?,
                    None => self.temp_storage(0)?,
                };
                made += 1;
                let writer = RunWriter::new(storage, block_bytes, self.compression, None, memory)?;
                let mut builder = RunBuilder::new(writer, (*self.order).clone())?;
                let mut stream = Stream::new(segments, None, None, None, size, &budget)?;
                let mut released = Released::new(&group);
                while let Some(window) = stream.next()? {
                    if progress.cancelled() {
                        return Err(Error::Cancelled);
                    }
                    builder.append(window.bytes())?;
                    progress.advance(window.len as u64);
                    // Runs that a journal names must stay until it names their replacement.
                    if let (None, Start::Merge { needed, .. }) = (&self.journal, &window.start) {
                        released.release(&group, needed)?;
                    }
                    stream.recycle(window.buffer, window.ticket);
                }
                released.finish(&group)?;
                let run = builder.finish(&self.spec, view.is_some())?;
                self.report.run_bytes += run.storage().size();
                merged.push(Arc::new(run));
                // Their fences go before the next group's come.
                old.drain(..group.len());
                if let Some(journal) = &mut self.journal {
                    journal.replace_runs(merged.iter().chain(&old))?;
                }
                if let Some(folder) = view {
                    // The merged runs have names there, but only the new run is part of the view.
                    for run in group.iter() {
                        folder.remove_if_exists(&Segment::of_run(run).run)?;
                    }
                }
            }
            self.runs = merged;
        }
        Ok(())
    }

    /// How many of the first `runs` may be merged into one while their inputs are gone: until the new
    /// run is whole, the old ones stay, which takes the space of both.
    fn runs_for_space(&self, runs: &[Arc<Run>], all_bytes: u64) -> usize {
        if self.journal.is_none() {
            return runs.len();
        }
        let mut bytes = 0;
        let fits = runs.iter().take_while(|run| {
            bytes += run.data_bytes();
            bytes <= all_bytes / GROUP_SHARE
        });
        fits.count().max(2)
    }

    /// The first runs of `runs` that can be merged at once, at least two; the block size of the
    /// resulting run, and the memory of its index; the size of the windows that merge them.
    fn merge_group(
        &self,
        runs: &[Arc<Run>],
        key_bytes: f64,
    ) -> Result<(Segments, u32, Reservation, StreamSize)> {
        let budget = &self.options.budget;
        let mut count = runs.len();
        loop {
            let segments = self.segments_of(&runs[..count]);
            let expected =
                |block_bytes| IndexMemory::expected(segments.data_bytes(), block_bytes, key_bytes);
            let mut block_bytes = self.plan.block_bytes;
            while expected(block_bytes).most() > budget.free_bytes() / FENCES_SHARE_MAX
                && block_bytes < RunPlan::block_bytes_max(budget.limit_bytes())
            {
                block_bytes *= 2;
            }
            let sized = budget.reserve(expected(block_bytes).most(), FENCES).and_then(|memory| {
                let size = stream_size(&segments, budget, merge_room(budget), self.workers)?;
                Ok((memory, size))
            });
            match sized {
                Ok((memory, size)) => return Ok((segments, block_bytes, memory, size)),
                Err(Error::Memory { .. }) if count > 2 => count -= 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// The number in the name of a run in a view's folder; 0 for a run that has no name.
fn run_number(run: &Arc<Run>) -> usize {
    let name = Segment::of_run(run).run;
    name.strip_suffix(".run").and_then(|number| number.parse().ok()).unwrap_or(0)
}
