//! `merganser hadoop serve`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use merganser_guests::GuestArgs;
use merganser_shell::args::TypedSize;

/// Merge map outputs while reducers fetch them, or run map tasks where their blocks are
///
/// With --shuffle it runs next to a NodeManager whose shuffle service is Merganser's: map tasks
/// leave their spills unmerged, and this process merges the part of a reducer while it is sent. It
/// reads spills below the folders given by --local-dir and nothing else, checks every checksum, and
/// answers "busy" when all of its memory or merges are taken. The NodeManager finds it by
/// merganser.shuffle.socket in yarn-site.xml; without it, or when it ends, the NodeManager merges in
/// Java. A client may take 30 seconds to send a request, 5 minutes to take the next 256 KiB of an
/// answer, and be idle for 10 minutes; then its connection is closed.
///
/// With --hdfs it runs next to a DataNode, as its user. Map tasks of this machine name a split's blocks
/// and an SSDlet, and get the sorted spills that they would have written (docs/hadoop/hadoop-node.md). It
/// reads finalized replicas below the folders given by --hdfs-data-dir and nothing else, and checks
/// all bytes against HDFS's checksums where there are any. Tasks find it by merganser.node.socket;
/// without it, or when it refuses, they run their own mapper. A task may take 1 minute to take the
/// next 256 KiB.
///
/// One process can do both. Events are reported on standard error, one line each. On SIGTERM, work
/// under way gets 8 seconds to end, and the socket is removed.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("sockets").args(["shuffle", "hdfs"]).required(true).multiple(true)))]
#[command(after_help = "\
Examples:
  # next to a NodeManager
  merganser hadoop serve --shuffle /run/merganser/shuffle.sock --local-dir /data/1/yarn
  merganser hadoop serve --shuffle s.sock --local-dir /tmp/yarn --memory 1G --merges 16
  # next to a DataNode
  merganser hadoop serve --hdfs /run/merganser/map.sock --hdfs-data-dir /data/1/dfs --memory 1G")]
pub(crate) struct HadoopServeArgs {
    /// Listen at this socket in the file system. The socket of a killed process is replaced, the
    /// socket of a running one is not
    #[arg(long, value_name = "SOCKET", requires = "local_dirs", help_heading = "Shuffle")]
    pub shuffle: Option<PathBuf>,

    /// A folder below which spills may be read: each of yarn.nodemanager.local-dirs. It may be made
    /// later
    #[arg(
        long = "local-dir",
        id = "local_dirs",
        requires = "shuffle",
        value_name = "DIR",
        help_heading = "Shuffle"
    )]
    pub local_dirs: Vec<PathBuf>,

    /// Run at most this many merges at once [default: two per processor]
    #[arg(long, value_name = "N", requires = "shuffle", help_heading = "Shuffle")]
    pub merges: Option<u32>,

    /// Leave spills in the system's page cache when they were served. Without it they are dropped from
    /// there, as a stock NodeManager with Hadoop's native library does it: set it where
    /// mapreduce.shuffle.manage.os.cache is false
    #[arg(long, requires = "shuffle", help_heading = "Shuffle")]
    pub keep_cache: bool,

    /// Listen at this socket in the file system for map tasks
    #[arg(long, value_name = "SOCKET", requires = "hdfs_data_dirs", help_heading = "Map tasks")]
    pub hdfs: Option<PathBuf>,

    /// A folder with blocks: each of dfs.datanode.data.dir, without a storage type in front. It may be
    /// mounted later
    #[arg(
        long = "hdfs-data-dir",
        id = "hdfs_data_dirs",
        requires = "hdfs",
        value_name = "DIR",
        help_heading = "Map tasks"
    )]
    pub hdfs_data_dirs: Vec<PathBuf>,

    /// Run at most this many map tasks at once; each has an equal part of the memory (a single one has
    /// three quarters of it) [default: one per processor, as far as the memory allows]
    #[arg(long, value_name = "N", requires = "hdfs", help_heading = "Map tasks")]
    pub maps: Option<u32>,

    /// Run SSDlets in WebAssembly that jobs bring, within the limits of guests. Their authors are strangers to this
    /// process, which can read all blocks; it keeps the last 8 compiled, and writes none to a disk
    #[arg(long, requires = "hdfs", help_heading = "Map tasks")]
    pub job_ssdlets: bool,

    /// The octal mode of the socket's file, of --shuffle and --hdfs. It decides who may connect: 660
    /// also lets its group
    #[arg(long, value_name = "MODE", default_value = "600", requires = "sockets")]
    pub socket_mode: String,

    /// Use at most this much memory, and some 10 MiB beyond it for --shuffle, 64 MiB for --hdfs. Merges and map
    /// tasks get equal parts of it
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "256M")]
    pub memory: TypedSize,

    #[command(flatten)]
    pub guest: GuestArgs,
}
