//! `merganser export`.

use std::path::PathBuf;

use clap::Args;
use merganser_shell::args::{NbdArgs, TypedSize};

/// Serve views to NBD clients
///
/// Each view becomes a read-only network block device of the exact size of the sorted data, called
/// by the view's name without .view; the first is the default export, too. At most 32 clients read
/// at once, such as nbdcopy, qemu-img, virtual machines and nbd-client. The command runs until it
/// is interrupted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  merganser export big.view --nbd big.sock &
  nbdcopy --connections=1 'nbd+unix:///?socket=big.sock' sorted.txt
  qemu-img convert -O qcow2 'nbd+unix:///?socket=big.sock' sorted.qcow2
  merganser export a.view b.view --nbd localhost:10809     as nbd://localhost/a and nbd://localhost/b")]
pub(crate) struct ExportArgs {
    /// The views, each with a name of its own
    #[arg(required = true, value_name = "VIEW")]
    pub views: Vec<PathBuf>,

    /// Listen here: at a socket in the file system, which only this user can open, or at a TCP port, open
    /// to any program of this machine. Port 0 is a free one; the address is printed
    #[arg(long, value_name = "SOCKET|HOST:PORT")]
    pub nbd: String,

    #[command(flatten)]
    pub protection: NbdArgs,

    /// Use at most this much memory, an eighth of it for replies, the rest shared by the views; each
    /// connection takes up to 1 MiB beyond it [default: a quarter of what is available]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<TypedSize>,
}
