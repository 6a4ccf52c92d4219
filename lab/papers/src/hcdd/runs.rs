//! The four arrangements on the three traces, for the experiments.

use merganser_device::request::{DeviceRequest, RequestKind};

use super::load::{Contents, Duplicates};
use super::measured::ResponseTimes;
use super::node::{HybridNode, NodeError, SubmissionPace};
use super::setup::{Arrangement, NodeSetup};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::look_alike::{self, Look};
use crate::outcome::OutcomeSection;

/// No request of a trace here has more bytes.
const REQUEST_BYTES_MAX: u64 = 16 << 20;

/// A trace of Table 5.2, and what the dissertation says of it.
pub(super) struct PaperTrace {
    pub look: Look,
    /// Writes that were removed (5.4.3).
    pub removed: f64,
    /// The duplicate share that the text says, in percent.
    pub text_percent: f64,
    /// Seconds that HcDD takes longer than SSDs, all responses together (Figure 5.13).
    pub longer_seconds: f64,
}

impl PaperTrace {
    /// Share of duplicates among the writes.
    pub(super) fn duplicates(&self) -> f64 {
        self.removed / self.look.writes as f64
    }

    /// Seconds of all its responses together, by the mean of those that were played. If all were, this is their sum.
    pub(super) fn whole_seconds(&self, measured: &ResponseTimes) -> f64 {
        measured.mean_ms() / 1e3 * (self.look.reads + self.look.writes) as f64
    }

    /// Its requests, at most about `most`.
    pub(super) fn requests(&self, most: u64) -> Result<Vec<DeviceRequest>, ExperimentError> {
        self.look.requests(most)
    }
}

/// The traces of Table 5.2.
pub(super) fn traces() -> [PaperTrace; 3] {
    let of = |look, removed, text_percent, longer_seconds| PaperTrace {
        look,
        removed,
        text_percent,
        longer_seconds,
    };
    [
        of(look_alike::kernel(), 20_731., 29.15, 54.),
        of(look_alike::phoenix(), 72_933., 46.93, 123.),
        of(look_alike::financial(), 138_748., 28.9, -50.),
    ]
}

/// How many requests of a trace are played, by the given size: one for each 4 KiB.
pub(super) fn most(lab: &Lab<'_>) -> u64 {
    lab.setup.size_bytes.map_or(u64::MAX, |bytes| (bytes / 4096).max(1000))
}

/// Contents with a share of duplicates.
pub(super) fn drawn(duplicates: f64) -> Contents {
    Contents::Drawn(Duplicates::new(duplicates, 11))
}

/// What errors of its model name.
const NODE: &str = "the dissertation's node";

/// The dissertation's node, with the changes of its SSDs that were given.
pub(super) fn paper(lab: &Lab<'_>, arrangement: Arrangement) -> Result<NodeSetup, ExperimentError> {
    changed(lab, NodeSetup::paper(arrangement).map_err(ExperimentError::device(NODE))?)
}

/// The same with the write buffer of HcDD's SSDs in those of every arrangement.
pub(super) fn enhanced(
    lab: &Lab<'_>,
    arrangement: Arrangement,
) -> Result<NodeSetup, ExperimentError> {
    changed(
        lab,
        NodeSetup::paper(arrangement)
            .and_then(NodeSetup::enhanced)
            .map_err(ExperimentError::device(NODE))?,
    )
}

/// The dissertation's node, whose disks have their write caches on, and nothing is synced.
pub(super) fn cached(
    lab: &Lab<'_>,
    arrangement: Arrangement,
) -> Result<NodeSetup, ExperimentError> {
    let mut setup = NodeSetup { log_syncs: false, ..paper(lab, arrangement)? };
    setup.hdd.set("write_cache=on").map_err(ExperimentError::device(NODE))?;
    Ok(setup)
}

/// A node with the changes of its SSDs that were given.
pub(super) fn changed(lab: &Lab<'_>, setup: NodeSetup) -> Result<NodeSetup, ExperimentError> {
    Ok(NodeSetup { ssd: lab.setup.changed(setup.ssd)?, ..setup })
}

/// Plays `requests` on a node. Addresses begin again at the end of the volume.
pub(super) fn play(
    lab: &Lab<'_>,
    setup: &NodeSetup,
    requests: &[DeviceRequest],
    mut contents: Contents,
) -> Result<ResponseTimes, ExperimentError> {
    lab.check_cancelled()?;
    let node = HybridNode::new(setup).map_err(ExperimentError::Model)?;
    let span = node.volume_bytes() - REQUEST_BYTES_MAX;
    let given = requests.iter().map(|request| {
        if lab.progress.cancelled() {
            Err(ExperimentError::Cancelled)
        } else {
            let request = DeviceRequest { offset: request.offset % span, ..request.clone() };
            Ok(contents.give(request))
        }
    });
    node.play(given, SubmissionPace::Open).map_err(|error| match error {
        NodeError::Requests(error) => error,
        error => ExperimentError::Model(error.to_string()),
    })
}

/// Plays `requests` on the dissertation's node.
pub(super) fn play_paper(
    lab: &Lab<'_>,
    arrangement: Arrangement,
    requests: &[DeviceRequest],
    contents: Contents,
) -> Result<ResponseTimes, ExperimentError> {
    play(lab, &paper(lab, arrangement)?, requests, contents)
}

/// All arrangements on a trace, in the order of [`Arrangement::ALL`].
fn play_all(lab: &Lab<'_>, trace: &PaperTrace) -> Result<Vec<ResponseTimes>, ExperimentError> {
    let requests = trace.requests(most(lab))?;
    let of = |&arrangement: &Arrangement| {
        play_paper(lab, arrangement, &requests, drawn(trace.duplicates()))
    };
    Arrangement::ALL.iter().map(of).collect()
}

/// Plays a trace of the dissertation on a node.
pub(super) fn play_trace(
    lab: &Lab<'_>,
    setup: &NodeSetup,
    trace: &PaperTrace,
) -> Result<ResponseTimes, ExperimentError> {
    play(lab, setup, &trace.requests(most(lab))?, drawn(trace.duplicates()))
}

/// Plays every trace in all arrangements. `each` gets the trace and its runs, in the order of
/// [`Arrangement::ALL`], and what counts of a trace in a mean of them.
pub(super) fn play_traces(
    lab: &Lab<'_>,
    mut each: impl FnMut(&PaperTrace, &[ResponseTimes], f64),
) -> Result<(), ExperimentError> {
    let traces = traces();
    for trace in &traces {
        each(trace, &play_all(lab, trace)?, 1. / traces.len() as f64);
    }
    Ok(())
}

/// Table 5.2 against the look-alikes.
pub(super) fn table_5_2(lab: &Lab<'_>) -> Result<OutcomeSection, ExperimentError> {
    let mut section = OutcomeSection::new("input: Table 5.2, requests");
    for trace in traces() {
        let requests = trace.requests(most(lab))?;
        let reads = requests.iter().filter(|it| it.kind == RequestKind::Read).count();
        let Look { name, reads: all, writes, .. } = trace.look;
        section.both(format!("{name}, reads"), all as f64, reads as f64);
        section.both(format!("{name}, writes"), writes as f64, (requests.len() - reads) as f64);
    }
    Ok(section)
}

/// The differences that all experiments share.
pub(super) fn differs(lab: &Lab<'_>) -> Vec<String> {
    let mut differs = vec![
        "The traces are not public: look-alikes have the numbers of reads and writes of Table 5.2. Addresses, sizes of one page and arrival times are guesses, written down in look_alike.rs; they were chosen for the axes of Figures 5.8 and 5.9 before any figure here was computed, and response times depend on them.".to_owned(),
        "Duplicates are drawn with the dissertation's share (removed writes over writes of Table 5.2), so Figure 5.10 is an input. The other figures are predictions: nothing was fitted to them.".to_owned(),
        "The size of the buffer on the disks is not given: 4 GiB here. Writes that arrive while the log is busy are one record. A write ends when it is on the platters: the disks have no write cache.".to_owned(),
        "Two Cheetah 15K.5, two SSDs of DiskSim, SHA-1 at 47,548 cycles of 1 GHz, pages moved as soon as possible. Only HcDD's SSDs have the package-parallel buffer of 1 MiB (\"enhanced\", 5.4.1); those of the hybrid and SSDs alone have no write buffer.".to_owned(),
    ];
    differs.extend(lab.setup.changes());
    if most(lab) < 3_000_000 {
        differs.push(format!(
            "No trace has more than {} requests, because of the given size.",
            most(lab)
        ));
    }
    differs
}
