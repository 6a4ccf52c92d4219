//! `merganser advise`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Measure this machine and print settings that suit it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser advise hadoop --dir /data/1/yarn       settings for map tasks of this node")]
pub struct AdviseArgs {
    /// The program to advise on
    #[command(subcommand)]
    pub what: AdviseCommand,
}

/// The programs that can be advised on.
#[derive(Debug, Subcommand)]
pub enum AdviseCommand {
    Hadoop(AdviseHadoopArgs),
}

/// When map tasks of this node should leave their merge to the fetch
///
/// Takes some 20 seconds and up to 272 MiB in a folder below DIR, which is removed. Measures how fast
/// the disk writes and reads, what a seek takes, and how fast spills of records from 32 bytes to 32 KiB
/// are merged, 2 to 64 at once. It then prints the sizes above which a deferred merge costs less than it
/// saves, the reason, and the properties for mapred-site.xml. A deferred merge saves writing and reading
/// the merged copy. It costs a seek and some work for each segment, and one fetch in ten is repeated and
/// merges again. Run it while the node is idle.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser advise hadoop --dir /data/1/yarn
  merganser advise hadoop --dir /data/1/yarn --json > node7.json")]
pub struct AdviseHadoopArgs {
    /// A folder on the disk of yarn.nodemanager.local-dirs
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,

    /// Print the measurements and the advice as JSON
    #[arg(long)]
    pub json: bool,
}
