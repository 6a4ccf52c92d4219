//! Where records of text end: options of every command that reads lines or csv.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

/// The bytes between records and fields.
#[derive(Debug, Clone, Default, Args)]
pub struct TextArgs {
    /// Lines end with NUL, not newline
    #[arg(short = 'z', long, help_heading = "Records")]
    pub zero_terminated: bool,

    /// The byte between csv fields (`\t` for a tab) [default: ,; for tsv a tab]
    #[arg(long, value_name = "SEP", help_heading = "Records")]
    pub csv_separator: Option<OsString>,

    /// A quote inside an unquoted csv field, and text behind a closing quote: lazy takes them as text, as
    /// Python's csv does, strict refuses the row [default: lazy]
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        help_heading = "Records"
    )]
    pub csv_quotes: Option<QuotesName>,
}

/// What a stray quote is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QuotesName {
    /// A letter.
    Lazy,
    /// An error.
    Strict,
}
