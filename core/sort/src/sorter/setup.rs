//! A sort before it begins: the inputs are sampled, the memory is planned.
//!
//! A sort that consumes its inputs holds its journal (`consume`), and `consume` prepares such a sort,
//! so these two files import each other.

use std::sync::Arc;

use merganser_storage::Storage;
use merganser_storage::spread::Spread;

use super::consume;
use super::files::TempFiles;
use super::options::{CompressionChoice, SortOptions, SortReport};
use super::unpack::Unpacking;
use crate::key::Order;
use crate::merge::segments::Segments;
use crate::pipeline::Workers;
use crate::plan::{RecordSample, RunPlan, sample};
use crate::record::Format;
use crate::run::format::{HEADER_BYTES, PIECE_BYTES};
use crate::run::header_lines::HeaderRule;
use crate::run::input::SortInput;
use crate::run::{Compression, Run};
use crate::{Budget, Error, Result, shares};

/// Runs are compressed when the sample shrinks to two parts of three. With less gain, compression takes
/// more time than it saves.
const COMPRESSED_PARTS: (usize, usize) = (2, 3);

/// A sort that is prepared or under way.
pub(super) struct Sorter<'a> {
    pub(super) options: &'a SortOptions,
    pub(super) workers: Workers,
    pub(super) order: Arc<Order>,
    pub(super) spec: String,
    pub(super) inputs: Vec<SortInput>,
    /// Until the inputs were read.
    pub(super) unpacking: Option<Unpacking>,
    pub(super) total_bytes: Option<u64>,
    pub(super) plan: RunPlan,
    pub(super) sample: RecordSample,
    pub(super) compression: Compression,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) temp_files: TempFiles,
    /// Runs that a view may have.
    pub(super) view_runs_max: usize,
    /// The journal of a sort that consumes its inputs.
    pub(super) journal: Option<consume::Keeper<'a>>,
    pub(super) report: SortReport,
}

impl<'a> Sorter<'a> {
    pub(super) fn prepare(
        inputs: Vec<SortInput>,
        options: &'a SortOptions,
        to_view: bool,
    ) -> Result<Self> {
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

    /// With `look` false, the inputs may be partly gone: then `header` is given and no input is
    /// sampled. `held_bytes` of the budget are held already by the fences of existing runs.
    pub(super) fn prepare_from(
        inputs: Vec<SortInput>,
        options: &'a SortOptions,
        header: &[u8],
        look: bool,
        held_bytes: u64,
    ) -> Result<Self> {
        options.order.check_format()?;
        let workers = Workers::new(options.threads);
        let unpackers = if workers.are_own() { 1 } else { workers.count() };
        let (mut inputs, unpacking) = Unpacking::prepare(inputs, unpackers, &options.budget)?;
        let (sampled, header) = if look {
            let rule = HeaderRule::of_order(&options.order);
            if let Some(rule) = &rule {
                rule.compare(&inputs)?;
            }
            sample(&mut inputs, options.order.format, rule.as_ref())?
        } else {
            (Vec::new(), Some(header.to_vec()).filter(|h| !h.is_empty()))
        };
        let order = options.order.compile(header.as_deref())?;
        let total_bytes = total_bytes(&inputs);
        let free_bytes = options.budget.free_bytes() + held_bytes - unpacking.kept_bytes;
        let limit_bytes = options.budget.limit_bytes();
        let sample = RecordSample::of_bytes(&order, &sampled);
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
                let least_bytes = least_bytes.saturating_add(limit_bytes - free_bytes);
                Error::Memory { owner, least_bytes, limit_bytes }
            }
            Error::Threads { threads, most, .. } => Error::Threads { threads, most, limit_bytes },
            other => other,
        })?;
        let compression = match options.compression {
            CompressionChoice::Fixed(compression) => compression,
            CompressionChoice::Auto => {
                let packed = lz4_flex::block::compress(&sampled).len();
                if packed * COMPRESSED_PARTS.1 <= sampled.len() * COMPRESSED_PARTS.0 {
                    Compression::Lz4
                } else {
                    Compression::Off
                }
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
            unpacking: Some(unpacking),
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

    /// A place for a temporary run of `bytes`.
    pub(super) fn temp_storage(&self, bytes: u64) -> Result<Arc<dyn Storage>> {
        if let Some(limit_bytes) = self.options.temp_limit_bytes
            && self.report.run_bytes + bytes > limit_bytes
        {
            return Err(Error::TempLimit { limit_bytes });
        }
        let mut disks = self.temp_files.create()?;
        Ok(match disks.len() {
            1 => disks.remove(0),
            // Each run is spread over all disks, because only one run is written at a time, and one
            // may be merged more than the others.
            _ => Spread::new(disks, HEADER_BYTES as u64, PIECE_BYTES as u64),
        })
    }

    pub(super) fn segments(&self) -> Segments {
        self.segments_of(&self.runs)
    }

    pub(super) fn segments_of(&self, runs: &[Arc<Run>]) -> Segments {
        Segments {
            runs: runs.into(),
            order: Arc::clone(&self.order),
            unique: self.options.order.unique,
            width: Arc::default(),
        }
    }

    /// Mean length of a fence's key: the greatest of the sample's and the runs'.
    pub(super) fn fence_key_bytes(&self) -> f64 {
        let runs = self.runs.iter().map(|run| run.mean_fence_key_bytes());
        runs.fold(self.plan.fence_key_bytes, f64::max)
    }
}

/// Bytes of all inputs, where all are known.
pub(super) fn total_bytes(inputs: &[SortInput]) -> Option<u64> {
    inputs.iter().map(SortInput::size).try_fold(0u64, |sum, size| Some(sum + size?))
}

/// The memory that a merge may take of the budget.
pub(super) fn merge_room(budget: &Budget) -> u64 {
    shares::of_stream(budget.free_bytes())
}

pub(super) fn run_name(number: usize) -> String {
    format!("{number:06}.run")
}
