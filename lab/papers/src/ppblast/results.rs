//! The figures of searches, and of a pipeline's report.

use std::hash::{DefaultHasher, Hasher};

use serde_json::Value;

use super::bed::ProgramTime;

/// The lines that a search prints, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hits {
    /// Lines.
    pub lines: u64,
    /// The sum of their hashes.
    digest: u64,
}

/// A whole database.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeDatabase {
    /// makeblastdb, on the storage node.
    pub format: ProgramTime,
    /// The search on the compute node.
    pub search: ProgramTime,
    /// The search by two threads on both.
    pub both: ProgramTime,
    /// The search by two processes of `mpirun` on both, each with half of the database, and its hits.
    pub ranks: Option<(ProgramTime, Hits)>,
    /// The hits of the search on the compute node.
    pub hits: Hits,
}

impl WholeDatabase {
    /// Seconds with as many compute nodes as the pipeline has.
    pub(super) fn seconds(&self) -> f64 {
        self.format.seconds + self.search.seconds
    }

    /// Seconds with as many nodes as the pipeline has in all.
    pub(super) fn both_seconds(&self) -> f64 {
        self.format.seconds + self.both.seconds
    }
}

/// A database in partitions.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartitionedDatabase {
    /// Their number.
    pub count: u32,
    /// From start to end of the command, with the merge.
    pub seconds: f64,
    /// Its own report.
    pub model: ReportModel,
    /// Its hits.
    pub hits: Hits,
}

/// Figures from the report of a pipeline, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReportModel {
    /// The means of formatting and of searching a partition.
    pub stages: [f64; 2],
    /// To the end of the last stage.
    pub measured: f64,
    /// Equation 4.4.
    pub unpipelined: f64,
    /// Equation 4.5.
    pub pipelined: f64,
    /// The recurrence.
    pub recurrence: f64,
    /// Predicted after two partitions.
    pub ahead: Option<f64>,
    /// Equation 4.7.
    pub first: Option<f64>,
    /// Equation 4.8 with s_f, and as printed.
    pub second: Option<[f64; 2]>,
}

impl Hits {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut hits = Hits { lines: 0, digest: 0 };
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let mut hasher = DefaultHasher::new();
            hasher.write(line);
            hits.lines += 1;
            hits.digest = hits.digest.wrapping_add(hasher.finish());
        }
        hits
    }

    /// Those of both.
    pub(super) fn and(self, other: Hits) -> Self {
        let digest = self.digest.wrapping_add(other.digest);
        Hits { lines: self.lines + other.lines, digest }
    }
}

impl ReportModel {
    /// From the report of a pipeline with two stages.
    pub(super) fn of(report: &Value) -> Option<Self> {
        let model = &report["pipeline"]["model"];
        let seconds = |name: &str| model[name].as_f64();
        let stages = model["stage_seconds"].as_array()?;
        Some(ReportModel {
            stages: [stages.first()?.as_f64()?, stages.get(1)?.as_f64()?],
            measured: seconds("measured_seconds")?,
            unpipelined: seconds("unpipelined_seconds")?,
            pipelined: seconds("pipelined_seconds")?,
            recurrence: seconds("recurrence_seconds")?,
            ahead: seconds("ahead_seconds"),
            first: seconds("first_stage_seconds"),
            second: seconds("second_stage_seconds")
                .zip(seconds("second_stage_as_printed_seconds"))
                .map(|(with_formatted, as_printed)| [with_formatted, as_printed]),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::runs::PartitionFlow;
    use super::*;

    /// A whole database of this size in the paper, by lines that cross.
    pub(crate) fn whole(megabytes: f64) -> WholeDatabase {
        let timed = |seconds| ProgramTime { seconds, processor_seconds: seconds };
        WholeDatabase {
            format: timed(megabytes / 100.0),
            search: timed(megabytes / 200.0 + 6.0),
            both: timed(megabytes / 400.0 + 3.0),
            ranks: None,
            hits: Hits { lines: 10, digest: 1 },
        }
    }

    /// The same in partitions: each has a fixed part of half a second per stage.
    pub(crate) fn parts(megabytes: f64, count: u32, flow: PartitionFlow) -> PartitionedDatabase {
        let n = f64::from(count);
        let stages = [megabytes / 100.0 / n + 0.5, (megabytes / 200.0 + 6.0) / n + 0.5];
        let unpipelined = n * (stages[0] + stages[1]);
        let pipelined = stages[0] + stages[1] + (n - 1.0) * stages[0].max(stages[1]);
        let measured = if flow == PartitionFlow::Serial { unpipelined } else { pipelined };
        let model = ReportModel {
            stages,
            measured,
            unpipelined,
            pipelined,
            recurrence: measured,
            ahead: (count > 2).then_some(measured * 1.1),
            first: Some(stages[0]),
            second: Some([stages[1], stages[1] + 1.0]),
        };
        PartitionedDatabase { count, seconds: measured, model, hits: Hits { lines: 10, digest: 1 } }
    }

    #[test]
    fn hits_are_the_same_in_any_order() {
        let hits = Hits::of(b"a\t1\nb\t2\n");
        assert_eq!(hits, Hits::of(b"b\t2\na\t1\n"));
        assert_eq!(hits.lines, 2);
        assert_eq!(hits, Hits::of(b"b\t2\n").and(Hits::of(b"a\t1\n")));
        for other in [&b"a\t1\nb\t3\n"[..], b"a\t1\n", b"a\t1\nb\t2\nb\t2\n"] {
            assert_ne!(hits, Hits::of(other));
        }
    }

    #[test]
    fn a_report_without_a_model_is_none() {
        let model = json!({
            "stage_seconds": [1.0, 2.0], "measured_seconds": 5.0, "unpipelined_seconds": 6.0,
            "pipelined_seconds": 4.0, "recurrence_seconds": 4.5, "ahead_seconds": null,
            "first_stage_seconds": 1.0, "second_stage_seconds": 2.0,
            "second_stage_as_printed_seconds": 3.0,
        });
        let found = ReportModel::of(&json!({ "pipeline": { "model": model } })).expect("a model");
        assert_eq!((found.stages, found.ahead, found.second), ([1.0, 2.0], None, Some([2.0, 3.0])));
        assert_eq!(ReportModel::of(&json!({ "pipeline": { "model": null } })), None);
        assert_eq!(ReportModel::of(&Value::Null), None);
    }
}
