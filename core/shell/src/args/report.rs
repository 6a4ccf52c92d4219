//! The report, and the figures that a machine does not know of itself.

use std::path::PathBuf;

use clap::Args;

use super::TypedSize;

/// The options of a report.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Write what was done, by whom and when, and how much of disk, cores and memory it took: a page
    /// for people (FILE.html) or data for programs (FILE.json)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub report: Option<PathBuf>,

    /// The price of this machine; the report adds bytes per second and dollar
    #[arg(long, value_name = "DOLLARS", help_heading = "Report")]
    pub price: Option<f64>,

    /// The power this machine draws while it works, if its processor does not measure it; the report
    /// adds records and bytes per joule
    #[arg(long, value_name = "WATTS", help_heading = "Report")]
    pub power: Option<f64>,

    /// The bytes that may be written to the SSD in its life (its data sheet's TBW), such as 600TB;
    /// the report adds how much of that life was spent
    #[arg(long, value_name = "SIZE", help_heading = "Report")]
    pub endurance: Option<TypedSize>,
}
