//! The options for reading a trace.

use clap::{Args, ValueEnum};
use merganser_shell::args::TypedSize;

/// The options for reading a trace.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceArgs {
    /// The trace's format: auto, merganser, disksim, spc, msr, mqsim, blkparse or fiu
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Trace"
    )]
    pub format: TraceFormatName,

    /// The event of blkparse that counts as a request: issued (D) or queued (Q)
    #[arg(
        long,
        value_name = "EVENT",
        value_enum,
        default_value = "issued",
        hide_possible_values = true,
        help_heading = "Trace"
    )]
    pub event: EventName,

    /// Take only this disk of a trace with several: its number, or major,minor
    #[arg(long, value_name = "UNIT", help_heading = "Trace")]
    pub unit: Option<String>,

    /// Take all disks of a trace, at the same addresses
    #[arg(long, conflicts_with = "unit", help_heading = "Trace")]
    pub units_together: bool,

    /// Take all disks of a trace, one after the other, with this size each
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["unit", "units_together"], help_heading = "Trace")]
    pub units_apart: Option<TypedSize>,

    /// Multiply times: 0.5 is twice as fast
    #[arg(long, value_name = "F", default_value_t = 1.0, help_heading = "Trace")]
    pub time_scale: f64,

    /// Multiply addresses
    #[arg(long, value_name = "F", help_heading = "Trace")]
    pub address_scale: Option<f64>,

    /// Wrap addresses beyond the device, so that they begin again at 0
    #[arg(long, conflicts_with = "address_scale", help_heading = "Trace")]
    pub wrap: bool,

    /// Skip up to N lines that can't be used, and count them; the next one is an error
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Trace")]
    pub skip_bad: u64,
}

/// What follows `--format` of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormatName {
    /// Detect it by the first line.
    Auto,
    /// Ours.
    Merganser,
    /// DiskSim's ASCII.
    Disksim,
    /// SPC, of UMass.
    Spc,
    /// Of Microsoft Research Cambridge.
    Msr,
    /// MQSim's.
    Mqsim,
    /// Of blktrace.
    Blkparse,
    /// Of Florida International University.
    Fiu,
}

/// What follows `--event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventName {
    /// D.
    Issued,
    /// Q.
    Queued,
}
