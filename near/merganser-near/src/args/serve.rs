//! `merganser serve`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use merganser_shell::args::{TypedCount, TypedSize};

use super::GuestArgs;

/// Serve programs near the data, run map tasks of Hadoop, or merge their outputs while reducers fetch them
///
/// With --data it is a node: clients run SSDlets on the files below DIR and read its views, over
/// Arrow Flight. A client opens a session, names ranges of files, and gets the rows (docs/near/serve.md).
/// Only files below DIR are read, and no links are followed. Beyond this machine it serves only with
/// a token and TLS. 'merganser map --on' is a client, and so is any other of Arrow Flight.
///
/// With --log-folder it answers calls through files, for clients that share a folder with it.
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
/// One process can do all of it. Events are reported on standard error, one line each. On SIGTERM, work
/// under way gets 8 seconds to end, and the socket is removed.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["data", "shuffle", "hdfs"]).required(true).multiple(true)))]
#[command(group(ArgGroup::new("sockets").args(["shuffle", "hdfs"]).multiple(true)))]
#[command(after_help = "\
Examples:
  # a node for this machine
  merganser serve --data /data
  # a node whose clients call through files, without a network
  merganser serve --data /data --log-folder /srv/calls
  # a node for others
  merganser serve --data /data --listen 0.0.0.0:7443 --token-file T --tls-cert C --tls-key K
  # next to a NodeManager
  merganser serve --shuffle /run/merganser/shuffle.sock --local-dir /data/1/yarn
  merganser serve --shuffle s.sock --local-dir /tmp/yarn --memory 1G --merges 16
  # next to a DataNode
  merganser serve --hdfs /run/merganser/map.sock --hdfs-data-dir /data/1/dfs --memory 1G")]
pub struct ServeArgs {
    /// Serve the files and views below DIR
    #[arg(long, value_name = "DIR", help_heading = "Node")]
    pub data: Option<PathBuf>,

    /// Listen here; port 0 stands for any that is free [default: 127.0.0.1:7443, or nowhere with
    /// --log-folder]
    #[arg(long, value_name = "HOST:PORT", requires = "data", help_heading = "Node")]
    pub listen: Option<String>,

    /// Answer calls that clients write into files in the folder DIR (smartFAM), such as one that this
    /// machine exports by NFS. Whoever may write there may read all data
    #[arg(long, value_name = "DIR", requires = "data", help_heading = "Node")]
    pub log_folder: Option<PathBuf>,

    /// With --log-folder: look for calls every 5 to 250 milliseconds, and don't ask for news of files
    /// (inotify)
    #[arg(long, requires = "log_folder", help_heading = "Node")]
    pub poll: bool,

    /// Clients must show the token in FILE: 16 to 1024 characters in one line
    #[arg(long, value_name = "FILE", requires = "data", help_heading = "Node")]
    pub token_file: Option<PathBuf>,

    /// Encrypt with the certificate in FILE, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["data", "tls_key"], help_heading = "Node")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's key, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["data", "tls_cert"], help_heading = "Node")]
    pub tls_key: Option<PathBuf>,

    /// Serve other machines without token or TLS: whoever reaches the port can read all data
    #[arg(long, requires = "data", help_heading = "Node")]
    pub insecure: bool,

    /// Offer the SSDlets in DIR: NAME.wasm is called NAME
    #[arg(long, value_name = "DIR", requires = "data", help_heading = "Node")]
    pub ssdlets: Option<PathBuf>,

    /// Keep SSDlets of clients in the folder of --ssdlets
    #[arg(long, requires_all = ["data", "ssdlets"], help_heading = "Node")]
    pub allow_upload: bool,

    /// Open at most this many sessions at once
    #[arg(long, value_name = "N", default_value = "64", requires = "data", help_heading = "Node")]
    pub sessions: TypedCount,

    /// Close a session that no client has used for this long
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "600",
        requires = "data",
        help_heading = "Node"
    )]
    pub idle: TypedCount,

    /// A session may keep this much of results and blobs on disk
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "4G",
        requires = "data",
        help_heading = "Node"
    )]
    pub scratch: TypedSize,

    /// Write spills, results and blobs here, in files without a name [default: $TMPDIR, or else /tmp]
    #[arg(short = 'T', long, value_name = "DIR", requires = "data", help_heading = "Node")]
    pub temp_dir: Option<PathBuf>,

    /// Run SSDlets in at most this many threads [default: one more than processors]
    #[arg(long, value_name = "N", requires = "data", help_heading = "Node")]
    pub threads: Option<usize>,

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

    /// The octal mode of the socket's file, for --shuffle and --hdfs. It decides who may connect: 660
    /// also lets its group
    #[arg(long, value_name = "MODE", default_value = "600", requires = "sockets")]
    pub socket_mode: String,

    /// Use at most this much memory, and some 10 MiB beyond it for --shuffle, 64 MiB for --data and for
    /// --hdfs. Merges, map tasks, sessions and calls through files get equal parts of it
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "256M")]
    pub memory: TypedSize,

    #[command(flatten)]
    pub guest: GuestArgs,
}
