//! How rows of a map's result are printed.

use clap::ValueEnum;

/// The form of keyed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowForm {
    /// Key, tab, value.
    Tsv,
    /// Key, comma, value.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// Length-prefixed key and value.
    Keyed,
}
