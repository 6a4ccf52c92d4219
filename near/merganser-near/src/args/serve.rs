//! `merganser serve`.

use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::{TypedCount, TypedSize};

use merganser_guests::GuestArgs;

/// Serve programs near the data
///
/// It is a node: clients run SSDlets on the files below DIR and read its views, over
/// Arrow Flight. A client opens a session, names ranges of files, and gets the rows (docs/near/serve.md).
/// Only files below DIR are read, and no links are followed. Beyond this machine it serves only with
/// a token and TLS. 'merganser map --on' is a client, and so is any other of Arrow Flight.
///
/// With --log-folder it answers calls through files, for clients that share a folder with it.
///
/// One process can do both. Events are reported on standard error, one line each. On SIGTERM, work
/// under way gets 8 seconds to end, and the socket is removed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # a node for this machine
  merganser serve --data /data
  # a node whose clients call through files, without a network
  merganser serve --data /data --log-folder /srv/calls
  # a node for others
  merganser serve --data /data --listen 0.0.0.0:7443 --token-file T --tls-cert C --tls-key K")]
pub(crate) struct ServeArgs {
    /// Serve the files and views below DIR
    #[arg(long, value_name = "DIR", required = true)]
    pub data: PathBuf,

    /// Listen here; port 0 stands for any that is free [default: 127.0.0.1:7443, or nowhere with
    /// --log-folder]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,

    /// Answer calls that clients write into files in the folder DIR (smartFAM), such as one that this
    /// machine exports by NFS. Whoever may write there may read all data
    #[arg(long, value_name = "DIR")]
    pub log_folder: Option<PathBuf>,

    /// With --log-folder: look for calls every 5 to 250 milliseconds, and don't ask for news of files
    /// (inotify)
    #[arg(long, requires = "log_folder")]
    pub poll: bool,

    /// Clients must show the token in FILE: 16 to 1024 characters in one line
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Encrypt with the certificate in FILE, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Serve other machines without token or TLS: whoever reaches the port can read all data
    #[arg(long)]
    pub insecure: bool,

    /// Offer the SSDlets in DIR: NAME.wasm is called NAME
    #[arg(long, value_name = "DIR")]
    pub ssdlets: Option<PathBuf>,

    /// Keep SSDlets of clients in the folder of --ssdlets
    #[arg(long, requires = "ssdlets")]
    pub allow_upload: bool,

    /// Open at most this many sessions at once
    #[arg(long, value_name = "N", default_value = "64")]
    pub sessions: TypedCount,

    /// Close a session that no client has used for this long
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    pub idle: TypedCount,

    /// A session may keep this much of results and blobs on disk
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub scratch: TypedSize,

    /// Write spills, results and blobs here, in files without a name [default: $TMPDIR, or else /tmp]
    #[arg(short = 'T', long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,

    /// Run SSDlets in at most this many threads [default: one more than processors]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Use at most this much memory, and some 64 MiB beyond it. Sessions and calls through files get equal parts
    /// of it
    #[arg(short = 'S', long, value_name = "SIZE", default_value = "256M")]
    pub memory: TypedSize,

    #[command(flatten)]
    pub guest: GuestArgs,
}
