//! `merganser recover`, as typed.

use std::path::PathBuf;

use clap::Args;

/// Find what interrupted commands left
///
/// Looks at PATH for unfinished work: in a folder and next to a result. For each leftover it says
/// whose it is, how far the work was, where the records are, and which command continues or removes
/// it. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser recover .                              all leftovers in this folder
  merganser recover sorted.txt                     what is left of the command that made it
  merganser recover /data --json                   the same as data")]
pub(crate) struct RecoverArgs {
    /// A folder, a result (whether it is there or not), an input, or a view
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
