//! How a command shows its progress.

use clap::{Args, ValueEnum};

/// The options on progress.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ProgressArgs {
    /// Show progress as HOW: auto, a bar if standard error is a terminal and nothing otherwise; or log,
    /// lines for a log file, at the start of each phase and every 10 seconds. With log, and on a
    /// terminal after 2 seconds or more, a line at the end says what was done
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        overrides_with = "quiet",
        hide_possible_values = true
    )]
    pub progress: Option<ProgressName>,

    /// Show no progress, and no line at the end
    #[arg(long, overrides_with = "progress")]
    pub quiet: bool,
}

/// What follows `--progress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressName {
    /// A bar on a terminal, nothing otherwise.
    Auto,
    /// Lines for a log file.
    Log,
}
