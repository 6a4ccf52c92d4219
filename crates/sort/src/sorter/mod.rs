//! A whole sort: inputs in, a view, a file or a stream out.
//!
//! ```text
//!   inputs ──► chunks ──► runs ──(too many for memory? merge some)──► view: manifest
//!                 │                                            └────► file: windows written in order,
//!                 └── everything fits ──► straight to the output            blocks given back behind
//! ```
//!
//! ```text
//!   options  what is asked for, what is told       distribute  the other way: buckets
//!   journal  how far a consuming sort is
//!   form     chunks become runs                    consume     inputs given back on the way
//!   passes   runs become fewer                     explain     what would be done, at what cost
//!   result   runs become the result                files       where runs go, with few open files
//! ```

mod consume;
mod distribute;
mod explain;
mod files;
mod form;
pub mod journal;
mod options;
mod passes;
mod result;

use std::sync::Arc;
use std::time::Instant;

use merganser_storage::Storage;
use merganser_storage::spread::Spread;

use crate::key::Order;
use crate::merge::window::Segments;
use crate::pipeline::Workers;
use crate::plan::{RunPlan, Sample, sample};
use crate::record::Format;
use crate::run::format::{HEADER_BYTES, PIECE_BYTES};
use crate::run::input::Input;
use crate::run::{Compression, Run};
use crate::{Budget, Conflict, Error, Progress, Result, shares};

pub use consume::{Consumed, Stamp, sort_consuming};
pub use explain::{Estimate, Explanation, explain};
use files::{TempFiles, ViewFolder};
use form::Formed;
pub use options::{CompressionChoice, SortOptions, SortOutput, SortReport, Strategy};

/// Sorts `inputs`.
///
/// # Errors
/// Bad input, a full disk, too little memory or the storage's own. The inputs are never changed,
/// and nothing that bears a name is left of temporary runs; the caller removes an unfinished
/// output or view folder.
pub fn sort(
    inputs: Vec<Input>,
    output: SortOutput<'_>,
    options: &SortOptions,
    progress: &dyn Progress,
) -> Result<SortReport> {
    let started = Instant::now();
    if options.order.unique && matches!(output, SortOutput::View { .. }) {
        return Err(Conflict::UniqueView.into());
    }
    if options.top.is_some() && matches!(output, SortOutput::View { .. }) {
        return Err(Conflict::TopView.into());
    }
    let mut sorter = Sorter::prepare(inputs, options, matches!(output, SortOutput::View { .. }))?;
    progress.phase("sorting", sorter.total_bytes);
    sorter.run(output, started, progress)
}

struct Sorter<'a> {
    options: &'a SortOptions,
    workers: Workers,
    order: Arc<Order>,
    spec: String,
    inputs: Vec<Input>,
    total_bytes: Option<u64>,
    plan: RunPlan,
    sample: Sample,
    compression: Compression,
    runs: Vec<Arc<Run>>,
    temp_files: TempFiles,
    /// Runs that a view may have.
    view_runs_max: usize,
    /// The journal of a sort that consumes its inputs.
    journal: Option<consume::Keeper<'a>>,
    report: SortReport,
}

impl<'a> Sorter<'a> {
    fn prepare(inputs: Vec<Input>, options: &'a SortOptions, to_view: bool) -> Result<Self> {
        let mut sorter = Self::prepare_from(inputs, options, &[], true, 0)?;
        let overlaps = !(to_view || sorter.workers.are_own());
        if let (true, Some(total), Format::Fixed { bytes }) =
            (overlaps, sorter.total_bytes, options.order.format)
        {
            sorter.plan = sorter.plan.overlapped(total, bytes as u64);
            sorter.report.chunk_bytes = sorter.plan.chunk_bytes;
        }
        Ok(sorter)
    }

    /// Without `look`, the inputs are partly gone already: their header is given. `held_bytes` of
    /// the budget are held by the fences of runs that are there already.
    fn prepare_from(
        mut inputs: Vec<Input>,
        options: &'a SortOptions,
        header: &[u8],
        look: bool,
        held_bytes: u64,
    ) -> Result<Self> {
        let (sampled, header) = if look {
            sample(&mut inputs, options.order.format)?
        } else {
            (Vec::new(), Some(header.to_vec()).filter(|h| !h.is_empty()))
        };
        let order = options.order.compile(header.as_deref())?;
        let total_bytes = total_bytes(&inputs);
        let workers = Workers::new(options.threads);
        let free_bytes = options.budget.free_bytes() + held_bytes;
        let limit_bytes = options.budget.limit_bytes();
        let sample = Sample::of(&order, &sampled);
        let plan = RunPlan::new(
            free_bytes,
            total_bytes,
            inputs.len() as u64,
            sample,
            order.direct().is_none(),
            workers.count(),
        )
        .map_err(|e| match e {
            Error::Memory { owner, least_bytes, .. } => {
                let least_bytes = least_bytes + limit_bytes - free_bytes;
                Error::Memory { owner, least_bytes, limit_bytes }
            }
            other => other,
        })?;
        let compression = match options.compression {
            CompressionChoice::Fixed(compression) => compression,
            CompressionChoice::Auto => {
                let packed = lz4_flex::block::compress(&sampled).len();
                if packed * 3 <= sampled.len() * 2 { Compression::Lz4 } else { Compression::Off }
            }
        };
        let report = SortReport {
            chunk_bytes: plan.chunk_bytes,
            block_bytes: u64::from(plan.block_bytes),
            compression,
            ..SortReport::default()
        };
        let spec = serde_json::to_string(&options.order).expect("plain data");
        Ok(Sorter {
            options,
            workers,
            order: Arc::new(order),
            spec,
            inputs,
            total_bytes,
            plan,
            sample,
            compression,
            runs: Vec::new(),
            temp_files: TempFiles::new(&options.temp),
            view_runs_max: usize::MAX,
            journal: None,
            report,
        })
    }

    fn run(
        &mut self,
        mut output: SortOutput<'_>,
        started: Instant,
        progress: &dyn Progress,
    ) -> Result<SortReport> {
        if let SortOutput::View { folder, .. } = &mut output {
            let view = ViewFolder::new(Arc::clone(folder));
            (*folder, self.view_runs_max) = (view.folder, view.runs_max);
        }
        let _front = distribute::look_ahead(self, &output)?;
        if let Some(uniform) = distribute::wanted(self, &output)? {
            return self.distribute(uniform, output, started, progress);
        }
        let formed = self.form(&mut output, progress)?;
        self.report.form_seconds = started.elapsed().as_secs_f64();
        if let Formed::Runs { header } = formed {
            self.report.runs = self.runs.len() as u64;
            match output {
                SortOutput::View { folder, name } => {
                    self.make_mergeable(Some(&folder), progress)?;
                    self.make_view(&folder, name, header)?;
                    if let Some(journal) = &mut self.journal {
                        journal.sorted()?;
                    }
                }
                SortOutput::Storage(storage) => {
                    self.make_mergeable(None, progress)?;
                    self.merge_to_storage(&storage, &header, progress)?;
                }
                SortOutput::Writer(writer) => {
                    self.make_mergeable(None, progress)?;
                    self.merge_to_writer(writer, &header, progress)?;
                }
            }
        }
        self.report.merge_seconds = started.elapsed().as_secs_f64() - self.report.form_seconds;
        self.report.memory_peak_bytes = self.options.budget.peak_bytes();
        Ok(self.report.clone())
    }

    /// A place for a temporary run of `bytes`.
    fn temp_storage(&self, bytes: u64) -> Result<Arc<dyn Storage>> {
        if let Some(limit_bytes) = self.options.temp_limit_bytes
            && self.report.run_bytes + bytes > limit_bytes
        {
            return Err(Error::TempLimit { limit_bytes });
        }
        let mut disks = self.temp_files.create()?;
        Ok(match disks.len() {
            1 => disks.remove(0),
            // All of them for each run: there is only one that is written, or is merged most.
            _ => Spread::new(disks, HEADER_BYTES as u64, PIECE_BYTES as u64),
        })
    }

    fn segments(&self) -> Segments {
        self.segments_of(&self.runs)
    }

    fn segments_of(&self, runs: &[Arc<Run>]) -> Segments {
        Segments {
            runs: runs.into(),
            order: Arc::clone(&self.order),
            unique: self.options.order.unique,
            width: Arc::default(),
        }
    }

    /// Mean length of a fence's key: the greatest of what the sample and the runs so far say.
    fn fence_key_bytes(&self) -> f64 {
        let runs = self.runs.iter().map(|run| run.mean_fence_key_bytes());
        runs.fold(self.plan.fence_key_bytes, f64::max)
    }
}

/// Bytes of all inputs, where all are known.
fn total_bytes(inputs: &[Input]) -> Option<u64> {
    inputs.iter().map(Input::size).try_fold(0u64, |sum, size| Some(sum + size?))
}

/// What of the budget a merge may take.
fn merge_room(budget: &Budget) -> u64 {
    shares::of_stream(budget.free_bytes())
}

fn run_name(number: usize) -> String {
    format!("{number:06}.run")
}
