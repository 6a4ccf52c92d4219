//! What an emulated disk did, as a table and as data, and whether to believe it.

use std::fmt::Write;

use merganser_device::emulated::EmulationResults;
use merganser_pages::text;
use merganser_shell::failure::Failure;
use serde_json::{Value, json};

use super::super::simulate::model::ModelledDevice;
use super::super::simulate::{data, table};
use super::activity::{DiskActivity, DiskFlow};

/// A run that has ended.
pub(super) struct EmulatedRun {
    /// The model; `None` takes no time.
    pub model: Option<ModelledDevice>,
    /// The size of the disk.
    pub size: u64,
    /// The seed of the model.
    pub seed: u64,
    /// The seconds of the wall clock for one second of the disk.
    pub slower: u32,
    /// When the emulation began, in milliseconds of the system's clock.
    pub started_unix_ms: u64,
    /// What programs did.
    pub activity: DiskActivity,
    /// The work of the model, and the lag of the answers.
    pub ended: EmulationResults,
}

impl EmulatedRun {
    /// The device's name.
    pub(super) fn name(&self) -> &str {
        &self.ended.results.device
    }

    /// One line about it.
    pub(super) fn about(&self) -> &'static str {
        self.model.as_ref().map_or("takes no time", ModelledDevice::about)
    }

    /// How late answers were, in one sentence.
    pub(super) fn lag_words(&self) -> String {
        let lag = &self.ended.lag;
        format!(
            "{} of {} requests late ({:.2} %), {:.2} % of the busy time; answers came {} after the \
             model on average, 99 of 100 within {}, {} of them by more than 1 % of their own time",
            text::count(lag.late()),
            text::count(lag.requests),
            lag.late_share() * 100.0,
            lag.time_share() * 100.0,
            text::seconds(lag.delays.mean() / 1e9),
            text::seconds(lag.delays.percentile(0.99) as f64 / 1e9),
            text::count(lag.slow())
        )
    }

    /// The share of requests that continue the last one of their kind.
    pub(super) fn in_order(flow: &DiskFlow) -> f64 {
        if flow.requests == 0 { 0.0 } else { flow.in_order as f64 / flow.requests as f64 }
    }

    /// The table for people.
    pub(super) fn table(&self) -> String {
        let EmulatedRun { activity, ended, .. } = self;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "device        {}: {} ({})",
            self.name(),
            self.about(),
            text::bytes(self.size)
        );
        let time = text::seconds(ended.results.seconds());
        let _ = match self.slower {
            1 => writeln!(out, "time          {time}"),
            slower => {
                writeln!(out, "time          {time} of the disk, which was {slower} times as slow")
            }
        };
        let _ = writeln!(
            out,
            "in order      {} of reads, {} of writes; at most {} in flight",
            text::percent(Self::in_order(&activity.reads)),
            text::percent(Self::in_order(&activity.writes)),
            activity.depth_max
        );
        out.push_str(&table::of_results(&ended.results));
        let _ = writeln!(out, "lag           {}", self.lag_words());
        out
    }

    /// The same as data.
    pub(super) fn data(&self) -> Value {
        let EmulatedRun { model, size, seed, slower, started_unix_ms, activity, ended } = self;
        let lag = &ended.lag;
        let [reads, writes] = activity.flows().map(|flow| {
            json!({
                "requests": flow.requests,
                "in_order": flow.in_order,
                "bytes": flow.bytes,
                "in_flight_ns": flow.in_flight_ns,
                "requests_per_bin": flow.requests_per_bin,
                "in_order_per_bin": flow.in_order_per_bin,
            })
        });
        let points: Vec<_> = activity
            .points
            .iter()
            .map(|point| json!([point.at_ns, if point.read { "R" } else { "W" }, point.offset]))
            .collect();
        json!({
            "device": model.as_ref().map_or(json!({ "name": self.name() }), data::of_model),
            "seed": seed,
            "size_bytes": size,
            "slower": slower,
            "started_unix_ms": started_unix_ms,
            "valid": lag.is_valid(),
            "lag": {
                "requests": lag.requests,
                "overtaken": lag.overtaken,
                "late": lag.late(),
                "slow": lag.slow(),
                "late_ns": lag.late_ns,
                "late_share": lag.late_share(),
                "time_share": lag.time_share(),
                "busy_ns": lag.busy_ns,
                "delay_ns_mean": lag.delays.mean(),
                "delay_ns_p99": lag.delays.percentile(0.99),
                "delay_ns_max": lag.delays.max(),
            },
            "activity": {
                "end_ns": activity.end_ns,
                "bin_ns": activity.bin_ns,
                "in_flight_max": activity.depth_max,
                "others": activity.others,
                "reads": reads,
                "writes": writes,
                "requests_per_point": activity.stride,
                "points": points,
            },
            "results": data::of_results(&ended.results),
        })
    }

    /// An error, when the run is not to be believed.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let lag = &self.ended.lag;
        if lag.is_valid() {
            return Ok(());
        }
        Err(format!(
            "THIS RUN IS NOT VALID: {} % of the requests were late, and answers by {} % of the busy time; \
             at most 1 % is valid. A late request waited for the data, the other time is the processor's: put the \
             data in memory, leave a core idle, or take a slower device",
            text::significant(lag.late_share() * 100.0),
            text::significant(lag.time_share() * 100.0)
        )
        .into())
    }
}
