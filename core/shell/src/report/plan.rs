//! The forecast before the work, compared with the measurement after it.

use merganser_sort::{Estimate, Explanation};
use serde::Serialize;

/// The plan that was followed, as far as it can be checked.
#[derive(Serialize)]
pub(super) struct ReportedPlan {
    /// `one pass`, `merge` or `distribute`.
    pub strategy: &'static str,
    /// Why.
    pub reason: String,
    /// The disk's speed before the work, in bytes per second.
    pub disk_read_rate: f64,
    pub disk_write_rate: f64,
    pub predicted: Took,
    pub measured: Took,
    /// Measured for each predicted one.
    pub ratio: Ratio,
}

/// The cost of work: time, and bytes read and written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Took {
    pub seconds: f64,
    pub processor_seconds: f64,
    /// Bytes of inputs, samples of them, runs or buckets, and output.
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// Ratios of the parts of [`Took`]; `None` without a forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Ratio {
    pub seconds: Option<f64>,
    pub processor_seconds: Option<f64>,
    pub read_bytes: Option<f64>,
    pub written_bytes: Option<f64>,
}

impl ReportedPlan {
    /// Compares the forecast `explained` with the measurement.
    pub(super) fn new(explained: Explanation, measured: Took) -> Self {
        let distributes = explained.distribute.filter(|_| explained.strategy == "distribute");
        let Estimate { seconds, processor_seconds, read_bytes, written_bytes, .. } =
            distributes.unwrap_or(explained.merge);
        let predicted = Took { seconds, processor_seconds, read_bytes, written_bytes };
        let of = |measured: f64, predicted: f64| (predicted > 0.0).then(|| measured / predicted);
        let bytes = |measured: u64, predicted: u64| of(measured as f64, predicted as f64);
        ReportedPlan {
            strategy: explained.strategy,
            reason: explained.reason,
            disk_read_rate: explained.disk_read_rate,
            disk_write_rate: explained.disk_write_rate,
            predicted,
            measured,
            ratio: Ratio {
                seconds: of(measured.seconds, predicted.seconds),
                processor_seconds: of(measured.processor_seconds, predicted.processor_seconds),
                read_bytes: bytes(measured.read_bytes, predicted.read_bytes),
                written_bytes: bytes(measured.written_bytes, predicted.written_bytes),
            },
        }
    }
}
