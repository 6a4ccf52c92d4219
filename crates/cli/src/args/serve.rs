//! `merganser serve`.

use std::path::PathBuf;

use clap::Args;

use super::Size;

/// Merge Hadoop's map outputs while reducers fetch them
///
/// Runs next to a NodeManager whose shuffle service is Merganser's: map tasks leave their spills
/// unmerged, and this process merges the part of a reducer while it is sent. It reads spills below
/// the folders given by --local-dir and nothing else, checks every checksum, and answers "busy" when
/// all of its memory or merges are taken. The NodeManager finds it by merganser.shuffle.socket in
/// yarn-site.xml; without it, or when it ends, the NodeManager merges in Java. Events are reported on
/// standard error, one line each. On SIGTERM, merges under way get 8 seconds to end, and the socket is
/// removed.
///
/// A client may take 30 seconds to send a request, 5 minutes to take the next 256 KiB of an answer,
/// and be idle for 10 minutes; then its connection is closed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser serve --shuffle /run/merganser/shuffle.sock --local-dir /data/1/yarn
  merganser serve --shuffle s.sock --local-dir /tmp/yarn --memory 1G --merges 16
  merganser serve --shuffle s.sock --local-dir /data/1/yarn --local-dir /data/2/yarn")]
pub struct ServeArgs {
    /// Listen at this socket in the file system. The socket of a killed process is replaced, the
    /// socket of a running one is not
    #[arg(long, value_name = "SOCKET")]
    pub shuffle: PathBuf,

    /// A folder below which spills may be read: each of yarn.nodemanager.local-dirs. It may be made
    /// later
    #[arg(long = "local-dir", required = true, value_name = "DIR")]
    pub local_dirs: Vec<PathBuf>,

    /// Use at most this much memory for merging, and some 10 MiB beyond it
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "256M")]
    pub memory: Size,

    /// Run at most this many merges at once [default: two per processor]
    #[arg(long, value_name = "N")]
    pub merges: Option<u32>,

    /// Leave spills in the system's page cache when they were served. Without it they are dropped from
    /// there, as a stock NodeManager with Hadoop's native library does it: set it where
    /// mapreduce.shuffle.manage.os.cache is false
    #[arg(long)]
    pub keep_cache: bool,

    /// The octal mode of the socket's file, which decides who may connect: 660 also lets its group
    #[arg(long, value_name = "MODE", default_value = "600")]
    pub socket_mode: String,
}
