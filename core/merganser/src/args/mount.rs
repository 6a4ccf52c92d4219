//! `merganser mount`.

use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::TypedSize;

/// Show a view as a regular file
///
/// MOUNTPOINT/NAME, where NAME is the view's name without .view, is a read-only file of the exact
/// size of the sorted data. Any program can read it. The command runs until it is interrupted or
/// the folder is unmounted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser mount big.view /mnt &      then: head /mnt/big; tail -c 100 /mnt/big; grep x /mnt/big
  fusermount3 -u /mnt                  ends it")]
pub(crate) struct MountArgs {
    /// The view
    pub view: PathBuf,

    /// An existing folder
    pub mountpoint: PathBuf,

    /// Let other users read it too
    #[arg(long)]
    pub allow_other: bool,

    /// Use at most this much memory [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,
}
