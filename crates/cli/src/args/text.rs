//! Where records of text end: options of every command that reads lines or csv.

use std::ffi::OsString;

use clap::Args;

/// The bytes between records and fields.
#[derive(Debug, Clone, Default, Args)]
pub struct TextArgs {
    /// Lines end with NUL, not newline
    #[arg(short = 'z', long, help_heading = "Records")]
    pub zero_terminated: bool,

    /// The byte between csv fields [default: ,]
    #[arg(long, value_name = "SEP", help_heading = "Records")]
    pub csv_separator: Option<OsString>,
}
