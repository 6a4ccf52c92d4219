//! The options for the format of the records and for their order; `sort` and `verify` share them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use merganser_sort::record::Format;

use super::TextArgs;

/// FORMAT and KEY.
#[derive(Debug, Clone, Default, Args)]
pub struct OrderArgs {
    /// The format of the records.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "lines",
        help_heading = "Records",
        help = format!("The records: {}", Format::names_described())
    )]
    pub format: FormatName,

    /// How texts are read.
    #[command(flatten)]
    pub text: TextArgs,

    /// The first row of each csv input names the columns; it stays first
    #[arg(long, help_heading = "Records")]
    pub header: bool,

    /// The lines at the beginning of each input that begin with P are a header; it stays first, once. Repeat for
    /// more prefixes
    #[arg(long, value_name = "P", help_heading = "Records", allow_hyphen_values = true)]
    pub header_prefix: Vec<OsString>,

    /// The byte between the fields of a line or of a csv row (`\t` for a tab, `\0` for NUL) [default for lines: the
    /// empty string between a non-blank and a blank]
    #[arg(short = 't', long, value_name = "SEP", help_heading = "Keys")]
    pub field_separator: Vec<OsString>,

    /// Sort by this key; repeat for more keys, the first decides first
    ///
    /// Lines: `POS1[,POS2][bdfgiMhnRrV]` as in GNU sort; POS is `FIELD[.CHARACTER]`, from 1.
    ///
    /// Csv: a column's name or its number from 1, then any of `:n` (number), `:r` (descending) and
    /// the other letters but b.
    ///
    /// Fixed: `OFFSET:LENGTH[:TYPE][:r]`, from 0; TYPE is bytes (default), or one of u8, i8, and
    /// u16, u32, u64, i16, i32, i64, f32, f64 followed by le or be.
    ///
    /// Keyed: `:r`.
    ///
    /// Fasta, fastq: id (up to the first blank), header, length, or sequence (its letters, wherever lines
    /// are broken), then `:r`; id and header take the letters of csv, such as `id:V`.
    #[arg(
        short = 'k',
        long,
        value_name = "KEY",
        help_heading = "Keys",
        allow_hyphen_values = true
    )]
    pub key: Vec<OsString>,

    /// Compare as WORD says, like the option of its letter: general-numeric -g, human-numeric
    /// -h, month -M, numeric -n, random -R, version -V
    #[arg(long, value_name = "WORD", hide_possible_values = true, help_heading = "Keys")]
    pub sort: Vec<SortWord>,

    /// Ignore leading blanks
    #[arg(short = 'b', long, help_heading = "Keys")]
    pub ignore_leading_blanks: bool,

    /// Compare only blanks, letters and digits
    #[arg(short = 'd', long, help_heading = "Keys")]
    pub dictionary_order: bool,

    /// Compare lower case as upper case
    #[arg(short = 'f', long, help_heading = "Keys")]
    pub ignore_case: bool,

    /// Compare as general numbers, such as 1.5e-3, inf, nan
    #[arg(short = 'g', long, help_heading = "Keys")]
    pub general_numeric_sort: bool,

    /// Compare human-readable numbers, such as 2K, 1G
    #[arg(short = 'h', long, help_heading = "Keys")]
    pub human_numeric_sort: bool,

    /// Compare only printable characters
    #[arg(short = 'i', long, help_heading = "Keys")]
    pub ignore_nonprinting: bool,

    /// Compare as months, unknown < JAN < ... < DEC
    #[arg(short = 'M', long, help_heading = "Keys")]
    pub month_sort: bool,

    /// Compare as numbers of any length
    #[arg(short = 'n', long, help_heading = "Keys")]
    pub numeric_sort: bool,

    /// Shuffle, with equal keys together
    #[arg(short = 'R', long, help_heading = "Keys")]
    pub random_sort: bool,

    /// Take the randomness of -R from this file
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub random_source: Vec<PathBuf>,

    /// Reverse the order
    #[arg(short = 'r', long, help_heading = "Keys")]
    pub reverse: bool,

    /// Compare as version numbers, such as 1.9 < 1.10
    #[arg(short = 'V', long, help_heading = "Keys")]
    pub version_sort: bool,

    /// Keep the input order of records with equal keys, instead of comparing their whole bytes last
    #[arg(short = 's', long, help_heading = "Keys")]
    pub stable: bool,

    /// Of records with equal keys keep the first; when checking, an equal key is a disorder
    #[arg(short = 'u', long, help_heading = "Keys")]
    pub unique: bool,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl OrderArgs {
    /// Whether the flag of this ordering letter was given.
    #[must_use]
    pub fn is_given(&self, letter: char) -> bool {
        match letter {
            'b' => self.ignore_leading_blanks,
            'd' => self.dictionary_order,
            'f' => self.ignore_case,
            'g' => self.general_numeric_sort,
            'h' => self.human_numeric_sort,
            'i' => self.ignore_nonprinting,
            'M' => self.month_sort,
            'n' => self.numeric_sort,
            'R' => self.random_sort,
            'r' => self.reverse,
            'V' => self.version_sort,
            _ => false,
        }
    }
}

/// What follows `--format`: a format without the options that other flags give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatName(pub Format);

impl FormatName {
    /// `lines`.
    pub const LINES: FormatName = FormatName(Format::Lines { delimiter: b'\n' });
    /// `csv`.
    pub const CSV: FormatName = FormatName(Format::csv_rows(b',', false));
}

impl Default for FormatName {
    fn default() -> Self {
        FormatName::LINES
    }
}

impl std::str::FromStr for FormatName {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let bytes = |typed: &str| typed.parse().map(|super::TypedSize(bytes)| bytes);
        Format::parse(typed, &bytes).map(FormatName).map_err(|error| error.to_string())
    }
}

/// What follows `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortWord {
    /// `-g`.
    GeneralNumeric,
    /// `-h`.
    HumanNumeric,
    /// `-M`.
    Month,
    /// `-n`.
    Numeric,
    /// `-R`.
    Random,
    /// `-V`.
    Version,
}

#[cfg(test)]
mod tests {
    use merganser_sort::record::Format;

    use super::FormatName;

    #[test]
    fn formats_parse_and_others_are_refused() {
        assert_eq!("lines".parse(), Ok(FormatName::LINES));
        assert_eq!("fasta".parse(), Ok(FormatName(Format::Fasta)));
        assert_eq!("fixed:100".parse(), Ok(FormatName(Format::Fixed { bytes: 100 })));
        assert_eq!("fixed:4K".parse(), Ok(FormatName(Format::Fixed { bytes: 4096 })));
        for typed in ["", "line", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:2G", "csv:1"] {
            assert!(typed.parse::<FormatName>().is_err(), "{typed}");
        }
    }
}
