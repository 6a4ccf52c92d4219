//! What a pipeline did and when, and what the model says of it.

use serde::Serialize;

use super::model::{self, PipelineShape, StageLine};

/// One try of a stage.
#[derive(Debug, Clone, Serialize)]
pub struct StageRun {
    /// The partition.
    pub k: u32,
    /// The stage, from 0.
    pub stage: usize,
    /// The pool and its thread.
    pub pool: usize,
    /// The thread, from 0.
    pub thread: usize,
    /// When it began, in seconds since the pipeline began.
    pub start_seconds: f64,
    /// When its output had its name and was noted.
    pub end_seconds: f64,
    /// Processor time of its processes.
    pub processor_seconds: f64,
    /// Bytes of its output.
    pub bytes_out: u64,
    /// Whether it failed, and was tried again or given up.
    pub failed: bool,
}

/// The totals of a stage.
#[derive(Debug, Clone, Serialize)]
pub struct StageTotals {
    /// Its name.
    pub name: String,
    /// The name of its pool.
    pub pool: String,
    /// Partitions that it ran for, in this process.
    pub runs: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Seconds of the successful tries.
    pub seconds: f64,
    /// Processor seconds of these.
    pub processor_seconds: f64,
    /// Bytes of their inputs: the partition, or the output of the stage before.
    pub bytes_in: u64,
    /// Bytes of their outputs.
    pub bytes_out: u64,
}

/// The totals of a pool.
#[derive(Debug, Clone, Serialize)]
pub struct PoolTotals {
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: usize,
    /// Seconds in which they ran stages, added up.
    pub busy_seconds: f64,
}

/// Predicted and measured times. Missing where this process did not do all the work.
#[derive(Debug, Clone, Serialize)]
pub struct Predictions {
    /// The mean time of each stage: T1, T2, ...
    pub stage_seconds: Vec<f64>,
    /// The same per thread of the stage's pool, together with the other stages of the pool: the time for which
    /// a partition occupies each pool.
    pub pool_seconds: Vec<f64>,
    /// Equation 4.1.
    pub response_seconds: f64,
    /// Equation 4.2, with pools in the place of stages.
    pub throughput_per_second: f64,
    /// Equation 4.4.
    pub unpipelined_seconds: f64,
    /// Equation 4.5, with pools in the place of stages.
    pub pipelined_seconds: f64,
    /// Equations 4.3 and 4.6: 4.4 over 4.5.
    pub speedup: f64,
    /// Equation 4.7, from the bytes, the measured rates and the processor time of the first stage.
    pub first_stage_seconds: Option<f64>,
    /// Equation 4.8 for the second stage, with s_f.
    pub second_stage_seconds: Option<f64>,
    /// Equation 4.8 as it is printed, with s_u.
    pub second_stage_as_printed_seconds: Option<f64>,
    /// The recurrence over the measured times of all partitions.
    pub recurrence_seconds: f64,
    /// The same predicted when the first two partitions had passed all stages.
    pub ahead_seconds: Option<f64>,
    /// What it took: from the beginning to the end of the last stage.
    pub measured_seconds: f64,
    /// The best number of partitions, by the times of the smallest and the largest partition, if these differ
    /// in size.
    pub best_partitions: Option<f64>,
}

/// What a pipeline did.
#[derive(Debug, Clone, Serialize)]
pub struct PipelineReport {
    /// Partitions.
    pub partitions: usize,
    /// Their records.
    pub records: u64,
    /// Their bytes, after decompression.
    pub bytes: u64,
    /// Bytes of the output.
    pub output_bytes: u64,
    /// Whether it continued the work of another process, whose times are not here.
    pub continued: bool,
    /// Seconds that this process took.
    pub seconds: f64,
    /// Of these, after the last stage: gathering and merging.
    pub merge_seconds: f64,
    /// Seconds of cutting partitions, and their number.
    pub cut_seconds: f64,
    /// Partitions that this process cut.
    pub cuts: usize,
    /// Seconds of counting bytes before the first cut.
    pub count_seconds: f64,
    /// The most bytes of temporary files.
    pub temporary_bytes_max: u64,
    /// Partitions in flight at most.
    pub in_flight: usize,
    /// The stages.
    pub stages: Vec<StageTotals>,
    /// The pools.
    pub pools: Vec<PoolTotals>,
    /// All tries.
    pub runs: Vec<StageRun>,
    /// The model.
    pub model: Option<Predictions>,
}

/// Measured times of all partitions, for the model.
pub(super) struct Times<'a> {
    pub(super) shape: &'a PipelineShape,
    pub(super) bytes: Vec<u64>,
    pub(super) cuts: &'a [f64],
    pub(super) runs: &'a [StageRun],
    pub(super) ahead_seconds: Option<f64>,
    /// Before the first cut.
    pub(super) count_seconds: f64,
}

impl Times<'_> {
    /// Seconds of each stage of each of the first `count` partitions; `None` if some are not known.
    pub(super) fn of_first(&self, count: usize) -> Option<Vec<Vec<f64>>> {
        let mut times = vec![vec![None; self.shape.pool_of.len()]; count];
        for run in self.runs.iter().filter(|run| !run.failed) {
            if let Some(stages) = times.get_mut(run.k as usize) {
                stages[run.stage] = Some(run.end_seconds - run.start_seconds);
            }
        }
        times.into_iter().map(|stages| stages.into_iter().collect()).collect()
    }

    /// The lines through the times of two partitions, for each stage.
    pub(super) fn lines(
        &self,
        times: &[Vec<f64>],
        (small, large): (usize, usize),
    ) -> Vec<StageLine> {
        let point = |k: usize, stage: usize| (self.bytes[k] as f64, times[k][stage]);
        (0..self.shape.pool_of.len())
            .map(|stage| StageLine::through(point(small, stage), point(large, stage)))
            .collect()
    }

    /// The time of all stages by the times of the first two partitions, if `total` bytes are cut into these
    /// and `others` of equal bytes.
    pub(super) fn ahead(&self, total: u64, others: usize) -> Option<f64> {
        let known = self.of_first(2)?;
        let [first, second] = *self.bytes.first_chunk()?;
        let [cut_first, cut_second] = *self.cuts.first_chunk()?;
        let rest = total.saturating_sub(first + second) as f64 / others as f64;
        // Partitions of nearly one size tell nothing of the fixed part.
        let differ = first.max(second) >= 2 * first.min(second);
        let share = rest / (first + second) as f64;
        let stages: Vec<f64> = match differ {
            true => self.lines(&known, (0, 1)).iter().map(|line| line.seconds(rest)).collect(),
            false => known[0].iter().zip(&known[1]).map(|(a, b)| (a + b) * share).collect(),
        };
        let mut cuts = vec![cut_first, cut_second];
        cuts.resize(others + 2, (cut_first + cut_second) * share);
        let mut times = known;
        times.resize(others + 2, stages);
        Some(self.count_seconds + model::replay(self.shape, &cuts, &times))
    }

    pub(super) fn predictions(&self) -> Option<Predictions> {
        let times = self.of_first(self.bytes.len())?;
        if times.is_empty() || self.cuts.len() != times.len() {
            return None;
        }
        let count = times.len() as f64;
        let mean = |stage: usize| times.iter().map(|times| times[stage]).sum::<f64>() / count;
        let stage_seconds: Vec<f64> = (0..self.shape.pool_of.len()).map(mean).collect();
        let mut pool_seconds = vec![0.0; self.shape.threads.len()];
        for (seconds, pool) in stage_seconds.iter().zip(&self.shape.pool_of) {
            pool_seconds[*pool] += seconds / self.shape.threads[*pool] as f64;
        }
        let response = model::response(&stage_seconds);
        let slowest = pool_seconds.iter().copied().fold(0.0, f64::max);
        let unpipelined = model::unpipelined(count, &stage_seconds);
        let pipelined = response + (count - 1.0) * slowest;
        let ends = self.runs.iter().map(|run| run.end_seconds);
        let by_bytes = |k: &usize| self.bytes[*k];
        let small = (0..times.len()).min_by_key(by_bytes)?;
        let large = (0..times.len()).max_by_key(by_bytes)?;
        let total: u64 = self.bytes.iter().sum();
        let differ = self.bytes[large] >= 2 * self.bytes[small];
        let best = differ.then(|| {
            let lines = self.lines(&times, (small, large));
            let PipelineShape { pool_of, threads, .. } = self.shape;
            model::best_partitions(total as f64, &lines, pool_of, threads)
        });
        Some(Predictions {
            response_seconds: response,
            throughput_per_second: 1.0 / slowest,
            unpipelined_seconds: unpipelined,
            pipelined_seconds: pipelined,
            speedup: unpipelined / pipelined,
            first_stage_seconds: None,
            second_stage_seconds: None,
            second_stage_as_printed_seconds: None,
            recurrence_seconds: self.count_seconds + model::replay(self.shape, self.cuts, &times),
            ahead_seconds: self.ahead_seconds,
            measured_seconds: ends.fold(0.0, f64::max),
            best_partitions: best,
            stage_seconds,
            pool_seconds,
        })
    }
}

/// Adds Equations 4.7 and 4.8, which need rates of the disk: `read` and `write` in bytes per second.
pub(super) fn add_rates(
    found: &mut Predictions,
    stages: &[StageTotals],
    (read, write): (f64, f64),
) {
    let mean = |stage: &StageTotals, total: f64| total / stage.runs.max(1) as f64;
    let usable = |rate: f64| rate.is_finite() && rate > 0.0;
    if !usable(read) || !usable(write) {
        return;
    }
    let Some(first) = stages.first() else { return };
    let unformatted = mean(first, first.bytes_in as f64);
    let formatted = mean(first, first.bytes_out as f64);
    let computing = mean(first, first.processor_seconds);
    let seconds = model::first_stage(unformatted, formatted, read, write, computing);
    found.first_stage_seconds = Some(seconds);
    if let Some(second) = stages.get(1) {
        // The processor time of all threads and nodes is measured, so m is 1.
        let computing = mean(second, second.processor_seconds);
        let seconds = |bytes| model::second_stage(bytes, read, 1.0, computing);
        found.second_stage_seconds = Some(seconds(formatted));
        found.second_stage_as_printed_seconds = Some(seconds(unformatted));
    }
}
