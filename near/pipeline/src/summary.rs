//! Adds up what a pipeline did.

use super::model::PipelineShape;
use super::plan::PipelinePlan;
use super::report::{PipelineReport, PoolTotals, StageTotals, Times, add_rates};
use super::schedule::{PipelineContext, ScheduleState};
use merganser_results::pipeline::{Partitions, PipelineProgress};

/// The pools of a plan, for the model.
pub(super) fn shape_of(plan: &PipelinePlan, state: &ScheduleState) -> PipelineShape {
    PipelineShape {
        pool_of: plan.stages.iter().map(|stage| stage.pool).collect(),
        threads: plan.pools.iter().map(|pool| pool.threads).collect(),
        in_flight: plan.in_flight,
        samples: state.done.split.map_or(0, |split| split.first as usize),
    }
}

/// The times that were measured so far.
pub(super) fn times_of<'a>(state: &'a ScheduleState, shape: &'a PipelineShape) -> Times<'a> {
    Times {
        shape,
        bytes: state.done.cuts.iter().map(|cut| cut.bytes).collect(),
        cuts: &state.cut_seconds,
        runs: &state.runs,
        ahead_seconds: state.ahead_seconds,
        count_seconds: state.count_seconds,
    }
}

/// Predicts the time of all stages, once the first two partitions have passed them and it is known how the
/// others are cut.
pub(super) fn predict(shared: &PipelineContext<'_>, state: &mut ScheduleState) {
    let firsts = state.finished.len() == 2 && state.finished.iter().all(|k| *k < 2);
    let Some(total) = state.done.total.filter(|_| firsts && state.ahead_seconds.is_none()) else {
        return;
    };
    let all = match (shared.settings.partitions, state.done.split) {
        (Partitions::Count(count), _) => count,
        (Partitions::Auto, Some(split)) => split.first + split.partitions,
        _ => return,
    };
    let others = all.saturating_sub(2);
    if others == 0 {
        return;
    }
    let shape = shape_of(shared.plan, state);
    state.ahead_seconds = times_of(state, &shape).ahead(total, others as usize);
}

/// The report of a pipeline whose output another process made.
pub(super) fn of_merged(done: &PipelineProgress, output_bytes: u64) -> PipelineReport {
    PipelineReport {
        partitions: done.cuts.len(),
        records: done.cuts.iter().map(|cut| cut.records).sum(),
        bytes: done.cut_bytes(),
        output_bytes,
        continued: true,
        seconds: 0.0,
        merge_seconds: 0.0,
        cut_seconds: 0.0,
        cuts: 0,
        count_seconds: 0.0,
        temporary_bytes_max: 0,
        in_flight: 0,
        stages: Vec::new(),
        pools: Vec::new(),
        runs: Vec::new(),
        model: None,
    }
}

/// The report of a pipeline that ran.
pub(super) fn of_run(
    shared: &PipelineContext<'_>,
    continued: bool,
    output_bytes: u64,
    stages_seconds: f64,
) -> PipelineReport {
    let plan = shared.plan;
    let state = shared.lock();
    let seconds = shared.seconds();
    let stages = stage_totals(plan, &state);
    let shape = shape_of(plan, &state);
    let times = times_of(&state, &shape);
    let mut model = if continued { None } else { times.predictions() };
    let cut_seconds: f64 = state.cut_seconds.iter().sum();
    let bytes = state.done.cut_bytes();
    if let Some(model) = &mut model {
        // A cut reads, writes and syncs each byte, which is all that is known of the disk.
        let rate = bytes as f64 / cut_seconds;
        add_rates(model, &stages, (rate, rate));
    }
    let pool = |(at, pool): (usize, &super::StagePool)| {
        let runs = state.runs.iter().filter(|run| run.pool == at);
        PoolTotals {
            name: pool.name.clone(),
            threads: pool.threads,
            busy_seconds: runs.map(|run| run.end_seconds - run.start_seconds).sum(),
        }
    };
    PipelineReport {
        partitions: state.done.cuts.len(),
        records: state.done.cuts.iter().map(|cut| cut.records).sum(),
        bytes,
        output_bytes,
        continued,
        seconds,
        merge_seconds: (seconds - stages_seconds).max(0.0),
        cut_seconds,
        cuts: state.cut_seconds.len(),
        count_seconds: state.count_seconds,
        temporary_bytes_max: state.used_bytes_max,
        in_flight: plan.in_flight,
        stages,
        pools: plan.pools.iter().enumerate().map(pool).collect(),
        runs: state.runs.clone(),
        model,
    }
}

fn stage_totals(plan: &PipelinePlan, state: &ScheduleState) -> Vec<StageTotals> {
    let of_stage = |(at, stage): (usize, &super::plan::PlannedStage)| {
        let mut totals = StageTotals {
            name: stage.name.clone(),
            pool: plan.pools[stage.pool].name.clone(),
            runs: 0,
            failed: 0,
            seconds: 0.0,
            processor_seconds: 0.0,
            bytes_in: 0,
            bytes_out: 0,
        };
        for run in state.runs.iter().filter(|run| run.stage == at) {
            if run.failed {
                totals.failed += 1;
                continue;
            }
            let k = run.k as usize;
            totals.runs += 1;
            totals.seconds += run.end_seconds - run.start_seconds;
            totals.processor_seconds += run.processor_seconds;
            totals.bytes_out += run.bytes_out;
            totals.bytes_in += match at.checked_sub(1) {
                None => state.done.cuts[k].bytes,
                Some(before) => state.done.ran[k][before],
            };
        }
        totals
    };
    plan.stages.iter().enumerate().map(of_stage).collect()
}
