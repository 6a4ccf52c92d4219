//! Where work that takes more space than the memory puts it: an option of every command that sorts.

use std::path::PathBuf;

use clap::Args;

/// The temporary folders.
#[derive(Debug, Clone, Default, Args)]
pub struct TempArgs {
    /// Write temporary files here; repeat to spread them over several disks [default: $MERGANSER_TEMP_DIR, $TMPDIR, or else
    /// the folder of the output, or else /tmp; with --view, the view]
    #[arg(
        short = 'T',
        long = "temp-dir",
        alias = "temporary-directory",
        value_name = "DIR",
        help_heading = "Resources"
    )]
    pub dirs: Vec<PathBuf>,
}
