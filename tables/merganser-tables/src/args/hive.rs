//! Columns that folders name.

use clap::Args;
use merganser_tables::HiveColumns;

/// What becomes of columns that folders name.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct HiveArgs {
    /// Leave out the columns that folders of inputs name, as in country=FR/year=2024/x.parquet
    #[arg(long)]
    pub no_hive: bool,
}

impl From<HiveArgs> for HiveColumns {
    fn from(typed: HiveArgs) -> HiveColumns {
        if typed.no_hive { HiveColumns::LeaveOut } else { HiveColumns::Read }
    }
}
