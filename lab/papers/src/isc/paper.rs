//! The figures of the paper, and what of them contradicts itself.

use crate::outcome::OutcomeSection;

/// The profile of the device.
pub(crate) const PROFILE: &str = "isc";
/// Bytes of a split; the paper's 64 MB are Hadoop's, 2^26.
pub(crate) const SPLIT_BYTES: u64 = 64 << 20;

/// Figure 10a: one job of 1 GB on one node, seconds.
pub(crate) const JOB_SETUP: f64 = 3.;
pub(crate) const JOB_MAPS: f64 = 277.;
pub(crate) const JOB_REDUCES: f64 = 268.;
pub(crate) const JOB_CLEANUP: f64 = 3.;
/// Splits of that job.
pub(crate) const JOB_SPLITS: u64 = 16;
/// Figure 10b: a map task, seconds.
pub(crate) const TASK_BASELINE: f64 = 15.;
pub(crate) const TASK_ISC: f64 = 6.;
/// Figure 10c: the constant part of each.
pub(crate) const CONSTANT_PART_BASELINE: f64 = 0.146;
pub(crate) const CONSTANT_PART_ISC: f64 = 0.36;
/// Figure 10c: the pure map is this many times as fast.
pub(crate) const PURE_GAIN: f64 = 3.6;
/// Figure 10b: the task is.
pub(crate) const TASK_GAIN: f64 = 2.5;
/// Figures 9, 11, 12a and 15: the job is.
pub(crate) const JOB_GAIN: f64 = 2.;
/// Figures 13 and 14: times less of the host's processor, in all and during maps, and of its memory.
pub(crate) const PROCESSOR_TOTAL: f64 = 3.7;
pub(crate) const PROCESSOR_MAPS: f64 = 4.2;
pub(crate) const MEMORY: f64 = 3.;
/// "Almost 2 orders of magnitude" less is read.
pub(crate) const READ: f64 = 100.;
/// Figures 12b and 16: times less energy, and power.
pub(crate) const ENERGY: f64 = 9.3;
pub(crate) const POWER: f64 = 4.6;
/// Figure 13: ridges of 1 GB on two devices.
pub(crate) const RIDGES: f64 = 8.;
/// 2.1 and 4.1.1: inside over link, as said, by the parts, as measured.
pub(crate) const RATIO_SAID: f64 = 5.;
pub(crate) const RATIO_PARTS: f64 = 4.27;
pub(crate) const RATIO_MEASURED: f64 = 3.8;

/// The pure map of Hadoop's own mapper, seconds of a split.
pub(crate) const PURE_BASELINE: f64 = TASK_BASELINE * (1. - CONSTANT_PART_BASELINE);
/// The constant part of a task: the mean of what both percentages give.
pub(crate) const CONSTANT: f64 =
    (TASK_BASELINE * CONSTANT_PART_BASELINE + TASK_ISC * CONSTANT_PART_ISC) / 2.;
/// Between two tasks of one slot, until the next is started: the job's maps less their tasks.
pub(crate) const BETWEEN: f64 = JOB_MAPS / JOB_SPLITS as f64 - TASK_BASELINE;

/// The constants, as a table.
pub(crate) fn constants() -> OutcomeSection {
    let mut chosen =
        OutcomeSection::new("chosen: constants of the paper, seconds, the same on all sides");
    chosen.paper("a job's setup (Figure 10a)", JOB_SETUP);
    chosen.paper("a job's cleanup (Figure 10a)", JOB_CLEANUP);
    chosen.paper("a task's setup and cleanup (14.6 % of 15 s, 36 % of 6 s)", CONSTANT);
    chosen.paper("between tasks (277 s / 16 splits - 15 s)", BETWEEN);
    chosen.paper("pure map of 64 MB by Hadoop's mapper", PURE_BASELINE);
    chosen
}

/// What the paper says twice, differently.
pub(crate) fn contradictions() -> OutcomeSection {
    let mut table = OutcomeSection::new("the paper against itself");
    table.paper("constant part of a task, s: as said", 1.2);
    table.paper("the same: 36 % of 6 s", TASK_ISC * CONSTANT_PART_ISC);
    table.paper("the same: 14.6 % of 15 s", TASK_BASELINE * CONSTANT_PART_BASELINE);
    table.paper("the same: \"about 2-3 sec/Map\", middle", 2.5);
    table.paper("pure map, times as fast: as said", PURE_GAIN);
    let by_parts = PURE_BASELINE / (TASK_ISC * (1. - CONSTANT_PART_ISC));
    table.paper("the same: by the percentages", by_parts);
    table.paper("the same: with 1.2 s of constants", (TASK_BASELINE - 1.2) / (TASK_ISC - 1.2));
    table.paper("bandwidth inside over link: as said", RATIO_SAID);
    table.paper("the same: 3.2 GB/s over 750 MB/s", RATIO_PARTS);
    table.paper("the same: measured (footnote 4)", RATIO_MEASURED);
    table.paper("maps of a 1 GB job, percent: as said", 91.);
    let maps = JOB_MAPS / (JOB_SETUP + JOB_MAPS + JOB_CLEANUP);
    table.paper("the same: by Figure 10a", 100. * maps);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contradictions_are_as_large_as_documented() {
        let rows = contradictions().rows;
        let of = |at: usize| rows[at].paper.expect("the paper's");
        assert!((of(1) - 2.16).abs() < 1e-9 && (of(2) - 2.19).abs() < 1e-9);
        assert!((of(5) - 3.336).abs() < 1e-3 && (of(6) - 2.875).abs() < 1e-3);
        assert!((of(11) - 97.88).abs() < 0.01);
        assert!((BETWEEN - 2.3125).abs() < 1e-9 && (CONSTANT - 2.175).abs() < 1e-9);
    }
}
