//! The result of a simulated run.

use merganser_device::request::SimTime;
use merganser_device::results::{DeviceResults, Fairness, Share};
use merganser_device::trace::Tally;
use merganser_device::workload::Preconditioned;

use super::model::ModelledDevice;

/// Everything that is known of a run.
pub(crate) struct MeasuredRun {
    /// The device.
    pub model: ModelledDevice,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The workload, in words.
    pub load: String,
    /// How the device was used before the run.
    pub preconditioned: Option<Preconditioned>,
    /// For a trace, the counts of its requests and lines.
    pub tally: Option<Tally>,
    /// For several streams, each next to the others and alone.
    pub streams: Vec<MeasuredStream>,
    /// The results of the device.
    pub results: DeviceResults,
    /// The duration of the simulation in real time, in seconds.
    pub wall_seconds: f64,
}

impl MeasuredRun {
    /// How evenly the streams were slowed down; `None` unless all were active together.
    pub(crate) fn fairness(&self) -> Option<Fairness> {
        let slowdowns: Option<Vec<f64>> =
            self.streams.iter().map(MeasuredStream::slowdown).collect();
        Fairness::of_slowdowns(&slowdowns?)
    }
}

/// A stream of a run.
pub(crate) struct MeasuredStream {
    /// Its name.
    pub name: String,
    /// Its workload, in words.
    pub load: String,
    /// When it begins.
    pub begin: SimTime,
    /// Next to the others.
    pub shared: Share,
    /// Without the others.
    pub alone: Share,
}

impl MeasuredStream {
    /// Its slowdown; `None` if the streams were never active together.
    pub(crate) fn slowdown(&self) -> Option<f64> {
        self.shared.slowdown(&self.alone)
    }
}
