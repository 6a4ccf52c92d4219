//! The time of a pipeline: the dissertation's Equations 4.1 to 4.8, and the recurrence over partitions.
//!
//! The equations take each stage's mean time. Partitions are not equal, so the result is a little low. The
//! recurrence takes every partition as it is:
//!
//! ```text
//!   C1(i) = C1(i-1) + T1(i)        C2(i) = max(C1(i), C2(i-1)) + T2(i)
//! ```
//!
//! [`replay`] is that recurrence for any number of stages, and for pools with any number of threads.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Equation 4.1: the time of one partition, the sum of its stages' times.
#[must_use]
pub fn response(stages: &[f64]) -> f64 {
    stages.iter().sum()
}

/// Equation 4.2: partitions per second, one over the time of the slowest stage.
#[must_use]
pub fn throughput(stages: &[f64]) -> f64 {
    1.0 / slowest(stages)
}

/// Equations 4.3 and 4.6: how many times as fast the pipeline is, n / (1 + (n-1) max(T) / T_response).
#[must_use]
pub fn speedup(partitions: f64, stages: &[f64]) -> f64 {
    partitions / (1.0 + (partitions - 1.0) * slowest(stages) / response(stages))
}

/// Equation 4.4: the time of the stages one after the other.
#[must_use]
pub fn unpipelined(partitions: f64, stages: &[f64]) -> f64 {
    partitions * response(stages)
}

/// Equation 4.5: the time of the pipeline, T_response + (n-1) max(T).
#[must_use]
pub fn pipelined(partitions: f64, stages: &[f64]) -> f64 {
    response(stages) + (partitions - 1.0) * slowest(stages)
}

/// Equation 4.7: the time of stage 1, `unformatted / read_rate + computing + formatted / write_rate`; bytes,
/// bytes per second, seconds.
#[must_use]
pub fn first_stage(
    unformatted: f64,
    formatted: f64,
    read_rate: f64,
    write_rate: f64,
    computing: f64,
) -> f64 {
    unformatted / read_rate + computing + formatted / write_rate
}

/// Equation 4.8: the time of stage 2 on `nodes` nodes, `formatted / (nodes read_rate) + computing`. The printed
/// equation has the unformatted size s_u in its first term; its arguments and the sentence before it have s_f,
/// the formatted size, and so has this.
#[must_use]
pub fn second_stage(formatted: f64, read_rate: f64, nodes: f64, computing: f64) -> f64 {
    formatted / (nodes * read_rate) + computing
}

fn slowest(stages: &[f64]) -> f64 {
    stages.iter().copied().fold(0.0, f64::max)
}

/// The time of a stage as a straight line over the bytes of a partition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageLine {
    /// Seconds that a partition takes whatever its size.
    pub fixed_seconds: f64,
    /// Seconds per byte.
    pub seconds_per_byte: f64,
}

/// The least that starting a command takes.
const FIXED_SECONDS_MIN: f64 = 1e-3;

impl StageLine {
    /// The line through two partitions, given as bytes and seconds. Noise may turn it: a rate is never less
    /// than 0, and neither is the fixed part less than a process takes to start.
    #[must_use]
    pub fn through(small: (f64, f64), large: (f64, f64)) -> StageLine {
        let slope = (large.1 - small.1) / (large.0 - small.0);
        let most = (large.1 - FIXED_SECONDS_MIN).max(0.0) / large.0;
        let seconds_per_byte = if slope.is_finite() { slope.clamp(0.0, most) } else { 0.0 };
        let fixed_seconds = (large.1 - seconds_per_byte * large.0).max(FIXED_SECONDS_MIN);
        StageLine { fixed_seconds, seconds_per_byte }
    }

    /// Seconds for a partition of `bytes`.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.fixed_seconds + self.seconds_per_byte * bytes
    }
}

/// The best number of partitions for `bytes`, where (4.5) is least:
///
/// ```text
///   T(n) = rest/n + S_b/t_b + n c_b/t_b + …        n* = sqrt(rest / (c_b/t_b))
/// ```
///
/// S are seconds of all partitions together without the fixed part, c the fixed part of one partition, b the
/// pool that takes longest, t its threads, and `rest` what does not overlap with it: the seconds of all stages
/// less S_b/t_b.
#[must_use]
pub fn best_partitions(
    bytes: f64,
    stages: &[StageLine],
    pool_of: &[usize],
    threads: &[usize],
) -> f64 {
    let per_pool = |of: &dyn Fn(&StageLine) -> f64| -> Vec<f64> {
        let mut sums = vec![0.0; threads.len()];
        for (stage, pool) in stages.iter().zip(pool_of) {
            sums[*pool] += of(stage) / threads[*pool] as f64;
        }
        sums
    };
    let work = per_pool(&|line| line.seconds_per_byte * bytes);
    let fixed = per_pool(&|line| line.fixed_seconds);
    let Some(longest) = (0..threads.len()).max_by(|a, b| work[*a].total_cmp(&work[*b])) else {
        return 1.0;
    };
    let all: f64 = stages.iter().map(|line| line.seconds_per_byte * bytes).sum();
    let rest = (all - work[longest]).max(0.0);
    (rest / fixed[longest].max(FIXED_SECONDS_MIN)).sqrt().max(1.0)
}

/// The pools of a pipeline, as [`replay`] needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineShape {
    /// For each stage, its pool.
    pub pool_of: Vec<usize>,
    /// For each pool, its threads.
    pub threads: Vec<usize>,
    /// Partitions that are in flight at most.
    pub in_flight: usize,
    /// This many partitions must have ended before the others are cut.
    pub samples: usize,
}

/// The end of the last stage, in seconds, if cutting partition `i` takes `cuts[i]` and its stage `s` takes
/// `stages[i][s]`, under the rules of the scheduler: a pool takes the latest stage first and, of these, the
/// first partition.
#[must_use]
pub fn replay(shape: &PipelineShape, cuts: &[f64], stages: &[Vec<f64>]) -> f64 {
    let mut free = shape.threads.clone();
    let mut ready: Vec<BTreeSet<(Reverse<usize>, usize)>> =
        vec![BTreeSet::new(); shape.threads.len()];
    let mut ends: BinaryHeap<Reverse<(Moment, ReplayStep)>> = BinaryHeap::new();
    let (mut now, mut last) = (0.0, 0.0);
    let (mut cut, mut cutting, mut ended) = (0, false, 0);
    loop {
        let may_cut = !cutting
            && cut < cuts.len()
            && cut - ended < shape.in_flight.max(1)
            && (cut != shape.samples || ended >= shape.samples);
        if may_cut {
            cutting = true;
            ends.push(Reverse((Moment(now + cuts[cut]), ReplayStep::Cut)));
        }
        for (pool, ready) in ready.iter_mut().enumerate() {
            while free[pool] > 0
                && let Some((Reverse(stage), k)) = ready.pop_first()
            {
                free[pool] -= 1;
                ends.push(Reverse((
                    Moment(now + stages[k][stage]),
                    ReplayStep::Stage { k, stage },
                )));
            }
        }
        let Some(Reverse((Moment(at), step))) = ends.pop() else { return last };
        now = at;
        let next = match step {
            ReplayStep::Cut => {
                cutting = false;
                cut += 1;
                (cut - 1, 0)
            }
            ReplayStep::Stage { k, stage } => {
                free[shape.pool_of[stage]] += 1;
                last = now;
                (k, stage + 1)
            }
        };
        match shape.pool_of.get(next.1) {
            Some(pool) => {
                ready[*pool].insert((Reverse(next.1), next.0));
            }
            None => ended += 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReplayStep {
    Cut,
    Stage { k: usize, stage: usize },
}

/// A time, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment(f64);

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    fn two_pools() -> PipelineShape {
        PipelineShape {
            pool_of: vec![0, 1],
            threads: vec![1, 1],
            in_flight: usize::MAX,
            samples: 0,
        }
    }

    /// By Equation 4.6, the speedup of equal stages is 2n/(n+1).
    #[test]
    fn equal_stages_never_gain_more_than_two() {
        for (n, expected) in [(1.0, 1.0), (2.0, 4.0 / 3.0), (4.0, 1.6), (8.0, 16.0 / 9.0)] {
            assert!(close(speedup(n, &[3.0, 3.0]), expected));
        }
        assert!(close(throughput(&[2.0, 4.0]), 0.25));
        assert!(close(first_stage(100.0, 30.0, 50.0, 10.0, 4.0), 9.0));
        assert!(close(second_stage(30.0, 10.0, 3.0, 4.0), 5.0));
    }

    proptest! {
        #[test]
        fn the_equations_agree_with_one_another(
            n in 1u32..100, a in 0.001f64..100.0, b in 0.001f64..100.0
        ) {
            let (n, stages) = (f64::from(n), [a, b]);
            // (4.3) with (4.4) and (4.5) gives (4.6).
            let by_times = unpipelined(n, &stages) / pipelined(n, &stages);
            prop_assert!(close(by_times, speedup(n, &stages)));
        }

        #[test]
        fn two_pools_of_one_follow_the_recurrence(
            times in prop::collection::vec((0.0f64..5.0, 0.0f64..5.0), 1..40)
        ) {
            let (mut first, mut second) = (0.0f64, 0.0f64);
            for (a, b) in &times {
                first += a;
                second = first.max(second) + b;
            }
            let stages: Vec<_> = times.iter().map(|(a, b)| vec![*a, *b]).collect();
            let replayed = replay(&two_pools(), &vec![0.0; stages.len()], &stages);
            prop_assert!(close(replayed, second), "{} and {}", replayed, second);
        }

        #[test]
        fn equal_partitions_take_what_the_equation_says(
            n in 1u32..30, a in 0.01f64..5.0, b in 0.01f64..5.0
        ) {
            let stages = vec![vec![a, b]; n as usize];
            let replayed = replay(&two_pools(), &vec![0.0; n as usize], &stages);
            prop_assert!(close(replayed, pipelined(f64::from(n), &[a, b])));
        }

        #[test]
        fn more_threads_and_more_in_flight_bound_the_time(
            times in prop::collection::vec(0.01f64..5.0, 1..30), threads in 1usize..5
        ) {
            let stages: Vec<_> = times.iter().map(|time| vec![*time]).collect();
            let cuts = vec![0.0; stages.len()];
            let with = |threads, in_flight| {
                let shape =
                    PipelineShape { pool_of: vec![0], threads: vec![threads], in_flight, samples: 0 };
                replay(&shape, &cuts, &stages)
            };
            let all: f64 = times.iter().sum();
            prop_assert!(close(with(1, usize::MAX), all));
            prop_assert!(close(with(threads, 1), all));
            let longest = times.iter().copied().fold(0.0, f64::max);
            let shared = with(threads, usize::MAX);
            prop_assert!(shared >= longest - 1e-9 && shared >= all / threads as f64 - 1e-9);
            prop_assert!(shared <= all / threads as f64 + longest + 1e-9);
        }

        #[test]
        fn the_best_number_is_least_of_its_neighbours(
            bytes in 1e6f64..1e9, a in 1e-9f64..1e-7, b in 1e-9f64..1e-7,
            fixed in 0.01f64..0.5
        ) {
            let line = |seconds_per_byte| StageLine { fixed_seconds: fixed, seconds_per_byte };
            let lines = [line(a), line(b)];
            let best = best_partitions(bytes, &lines, &[0, 1], &[1, 1]);
            let time = |n: f64| pipelined(n, &lines.map(|line| line.seconds(bytes / n)));
            for other in [best * 0.8, best * 1.25] {
                prop_assert!(other < 1.0 || time(best) <= time(other) + 1e-9);
            }
        }
    }

    #[test]
    fn one_worker_wants_one_partition() {
        let line = StageLine { fixed_seconds: 0.1, seconds_per_byte: 1e-7 };
        assert!(close(best_partitions(1e9, &[line, line], &[0, 0], &[1]), 1.0));
        // (P-1) S / (P c/P) with S = 200 s, c = 0.2 s.
        let best = best_partitions(1e9, &[line, line], &[0, 0], &[2]);
        assert!(close(best, (100.0f64 / 0.1).sqrt()), "{best}");
    }

    #[test]
    fn a_line_passes_its_points_and_survives_noise() {
        let line = StageLine::through((10.0, 2.0), (40.0, 5.0));
        assert!(close(line.seconds(10.0), 2.0) && close(line.seconds(40.0), 5.0));
        for (small, large) in [((10.0, 5.0), (40.0, 2.0)), ((10.0, 1.0), (10.0, 2.0))] {
            let line = StageLine::through(small, large);
            assert!(line.seconds_per_byte == 0.0 && close(line.fixed_seconds, large.1));
        }
        let steep = StageLine::through((10.0, 0.0), (11.0, 5.0));
        assert!(steep.fixed_seconds >= FIXED_SECONDS_MIN && close(steep.seconds(11.0), 5.0));
    }

    #[test]
    fn samples_are_waited_for() {
        let shape = PipelineShape { samples: 2, ..two_pools() };
        let stages = vec![vec![1.0, 1.0]; 4];
        // Two partitions end at 3 s; two more take 3 s again.
        assert!(close(replay(&shape, &[0.0; 4], &stages), 6.0));
    }
}
