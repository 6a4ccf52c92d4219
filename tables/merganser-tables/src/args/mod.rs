//! The command line as it was typed: one struct per subcommand, whose doc comments are the help.
//!
//! Nothing is checked here beyond its syntax. [`crate::config`] turns it into settings.

mod cat;
mod form;
mod hive;
pub(crate) mod sort;
mod verify;

use clap::{Args, Parser, Subcommand};

pub(crate) use cat::TableCatArgs;
pub(crate) use form::{PackingName, TableForm};
pub(crate) use hive::HiveArgs;
pub(crate) use sort::TableSortArgs;
pub(crate) use verify::{TableInfoArgs, TableVerifyArgs};

/// Sort and read Parquet and Arrow.
///
/// These commands belong to merganser: `merganser table` runs this program.
#[derive(Debug, Parser)]
#[command(
    name = "merganser-tables",
    bin_name = "merganser",
    version,
    disable_help_subcommand = true
)]
#[command(args_override_self = true, max_term_width = 100)]
pub(crate) struct TablesLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: TablesCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum TablesCommand {
    Table(TableArgs),
}

/// Sort, read and check tables: Parquet and Arrow
///
/// The word table may be left out where an input is a table: merganser sort FILE.parquet is merganser
/// table sort FILE.parquet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # by a column of text, then by a number, largest first, nulls last
  merganser table sort 'in/*.parquet' -o out.parquet --key name --key qty:r:last --memory 512M
  # a sorted view, ready after one pass, and a part of it
  merganser table sort in/ --view by-name.view --key name
  merganser table cat by-name.view --from-key adam --head 10 --output-format csv
  # files that are sorted already
  merganser table sort -m sorted-*.parquet -o all.parquet --key name
  # a folder for each country, with files of 256 MiB at most
  merganser table sort in/ -o out/ --key name --partition-by country --file-size 256M
  # a random order, the same each time
  merganser table sort in/ --shuffle --seed 7 -o shuffled.parquet
  # order, rows and a checksum of values
  merganser table verify out.parquet --key name --key qty:r:last")]
pub(crate) struct TableArgs {
    /// What to do
    #[command(subcommand)]
    pub what: TableTask,
}

/// What follows `table`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "parsed once a process")]
pub(crate) enum TableTask {
    Sort(TableSortArgs),
    Cat(TableCatArgs),
    Info(TableInfoArgs),
    Verify(TableVerifyArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::TablesLine;

    #[test]
    fn the_declaration_is_consistent() {
        TablesLine::command().debug_assert();
    }
}
