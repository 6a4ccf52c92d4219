//! The Sort Benchmark's MinuteSort on this machine: the most data that is sorted in a minute
//! (Tables 17 and 18).
//!
//! The search begins with a small data set and continues with the size that its time suggests, a little less
//! each time, until the limit of time or of `--size` is nearly reached.

use super::systems::MINUTE;
use super::whole_sort::WholeSort;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::mean;
use merganser_generate::Gensort;
use merganser_pages::{Chart, ChartSeries};

/// Without `--size`.
const BYTES_MAX: u64 = 1_000_000_000;
/// The first data set, of the largest: some first one must be timed to estimate the next.
const FIRST_SHARE: u64 = 4;
/// How far the next one goes towards what the last one promises.
const CAUTION: f64 = 0.97;
/// Good enough, and enough.
const CLOSE: f64 = 0.95;
const ATTEMPTS: usize = 6;

/// Searches, then sorts what it found as often as asked.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let limit = lab.setup.limit_seconds;
    let bytes_max = whole_records(lab.setup.size_bytes.unwrap_or(BYTES_MAX));
    let rounds = lab.setup.rounds.unwrap_or(1);
    let mut work = WholeSort::new(lab)?;
    let mut search = SizeSearch { limit, bytes_max, tried: Vec::new() };
    while let Some(bytes) = search.next() {
        work.generate(bytes)?;
        let seconds = (0..rounds)
            .map(|_| Ok(work.sort()?.seconds))
            .collect::<Result<Vec<_>, ExperimentError>>()?;
        search.tried.push((bytes, mean(&seconds)));
    }
    drop(work);
    let Some((bytes, seconds)) = search.best() else {
        let bytes = search.tried.last().map_or(0, |tried| tried.0);
        return Err(ExperimentError::TimeLimit { bytes, limit_seconds: limit });
    };

    let mut minute = OutcomeSection::new("MinuteSort, GB (Tables 17 and 18)");
    let gigabytes = bytes as f64 / 1e9;
    let [hadoop, demsort, triton] = &MINUTE;
    minute.both("here, compared with Tritonsort's 52 nodes", triton.megabytes / 1e3, gigabytes);
    minute.paper("DEMSort, 195 nodes", demsort.megabytes / 1e3);
    minute.paper("Hadoop, 1,406 nodes", hadoop.megabytes / 1e3);
    let mut share = OutcomeSection::new("the same as MB/s, compared with Tritonsort's");
    let rate = bytes as f64 / 1e6 / seconds;
    share.both("a node", triton.throughput() / triton.nodes, rate);
    share.both("a core", triton.throughput() / triton.cores, rate / lab.machine.cores as f64);
    share.both("a disk", triton.throughput() / triton.disks, rate);
    let mut run = OutcomeSection::new("the runs");
    run.both("limit, seconds", 60., limit);
    run.both("runs that the time is the mean of", 15., rounds as f64);
    for (bytes, seconds) in &search.tried {
        run.ours(format!("{} MB, seconds", bytes / 1_000_000), *seconds);
    }
    run.ours("memory of the sort, MB", lab.setup.memory_bytes as f64 / 1e6);

    let mut differs = vec![
        "Theirs: 52 nodes with 8 cores and 16 hard disks each. Here: one node with one disk."
            .to_owned(),
        "By the benchmark's rules: its own records, from file to file, the whole process from start \
         to end with the result synced, the input not in the page cache, order and checksum \
         verified. The rules want the mean of 15 runs."
            .to_owned(),
    ];
    if limit != 60. {
        differs.push(format!("The minute lasted {limit} seconds here."));
    }
    if bytes == bytes_max && seconds < limit * CLOSE {
        differs.push(format!(
            "{seconds:.1} of {limit} seconds were used: the size limit ended the search, not the time."
        ));
    }
    let mut points: Vec<(f64, f64)> =
        search.tried.iter().map(|(bytes, seconds)| (*bytes as f64 / 1e6, *seconds)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = [points[0].0, points[points.len() - 1].0];
    Ok(Outcome {
        sections: vec![minute, share, run],
        differs,
        chart: Chart::Lines {
            title: "MinuteSort".into(),
            axes: ["sorted, MB".into(), "seconds".into()],
            series: vec![
                ChartSeries { name: "measured".into(), paper: false, points },
                ChartSeries {
                    name: format!("limit, {limit} s"),
                    paper: true,
                    points: ends.map(|x| (x, limit)).into(),
                },
            ],
        },
    })
}

/// The sizes that were tried, with their seconds, and the choice of the next size.
struct SizeSearch {
    limit: f64,
    bytes_max: u64,
    tried: Vec<(u64, f64)>,
}

impl SizeSearch {
    /// The largest that was sorted in time.
    fn best(&self) -> Option<(u64, f64)> {
        self.tried.iter().copied().filter(|(_, seconds)| *seconds <= self.limit).max_by_key(|t| t.0)
    }

    /// The next size; `None` if the answer is found, or after enough attempts.
    fn next(&self) -> Option<u64> {
        let Some((bytes, seconds)) = self.tried.last() else {
            return Some(whole_records(self.bytes_max / FIRST_SHARE));
        };
        let best = self.best().map_or(0, |best| best.0);
        let too_large = self.tried.iter().filter(|t| t.1 > self.limit).map(|t| t.0).min();
        let promised = *bytes as f64 * self.limit / seconds * CAUTION;
        let next = whole_records((promised as u64).min(self.bytes_max));
        let close = best as f64 >= CLOSE * next as f64;
        let fruitless = too_large.is_some_and(|bytes| next >= bytes);
        let wanted = next > best && !close && !fruitless || self.best().is_none() && next < *bytes;
        (wanted && self.tried.len() < ATTEMPTS).then_some(next)
    }
}

/// At least one record.
fn whole_records(bytes: u64) -> u64 {
    let record = Gensort::RECORD_BYTES as u64;
    (bytes / record).max(1) * record
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a machine whose sorts take `seconds` for their bytes.
    fn search(limit: f64, bytes_max: u64, seconds: impl Fn(f64) -> f64) -> SizeSearch {
        let mut search = SizeSearch { limit, bytes_max, tried: Vec::new() };
        while let Some(bytes) = search.next() {
            search.tried.push((bytes, seconds(bytes as f64)));
        }
        search
    }

    #[test]
    fn a_linear_machine_is_found_out_at_once() {
        let search = search(60., 1_000_000, |bytes| bytes / 10_000.);
        assert_eq!(search.best(), Some((582_000, 58.2)));
        assert_eq!(search.tried.len(), 2);
    }

    #[test]
    fn a_fast_machine_stops_at_the_largest_size() {
        let search = search(60., 1_000_000, |_| 0.1);
        assert_eq!(search.best(), Some((1_000_000, 0.1)));
        assert_eq!(search.tried.len(), 2);
    }

    #[test]
    fn one_that_slows_down_is_approached_from_both_sides() {
        // Small ones are sorted in memory, larger ones are not.
        let seconds = |bytes: f64| bytes / if bytes < 400_000. { 20_000. } else { 10_000. };
        let found = search(60., 10_000_000, seconds);
        let (bytes, seconds) = found.best().expect("some fit");
        assert!(bytes > 550_000 && seconds <= 60., "{:?}", found.tried);
    }

    #[test]
    fn one_that_is_too_slow_gives_up() {
        let search = search(1., 1_000_000, |bytes| bytes + 5.);
        assert_eq!(search.best(), None);
        assert!(search.tried.len() <= ATTEMPTS);
    }
}
