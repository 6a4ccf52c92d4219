//! What is to be reported, and the figures that a machine does not know of itself.

use std::path::PathBuf;

use clap::Args;

use super::Size;

/// The options of a report.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Write what was done, by whom and when, and how much of disk, cores and memory it took: a page
    /// for people (FILE.html) or data for programs (FILE.json)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub report: Option<PathBuf>,

    /// What this machine cost; the report adds bytes a second for each dollar
    #[arg(long, value_name = "DOLLARS", help_heading = "Report")]
    pub price: Option<f64>,

    /// What this machine draws while it works, where its processor does not tell; the report adds
    /// records and bytes for each joule
    #[arg(long, value_name = "WATTS", help_heading = "Report")]
    pub power: Option<f64>,

    /// What may be written to the SSD in its life (its data sheet's TBW), such as 600TB; the report
    /// adds how much of that life was spent
    #[arg(long, value_name = "SIZE", help_heading = "Report")]
    pub endurance: Option<Size>,
}
