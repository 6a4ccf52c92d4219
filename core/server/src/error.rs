//! Why an address cannot be listened on.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The reason, and what to do about it. The address is not in the text.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The socket's folder is missing.
    #[error("its folder does not exist; make it first")]
    NoFolder,
    /// Another process holds the lock of the socket's folder.
    #[error(
        "another process has kept its folder locked for {} seconds; end that one or use another folder",
        patience.as_secs_f32()
    )]
    FolderLocked {
        /// How long the lock was waited for.
        patience: Duration,
    },
    /// A file with this name is there and is no socket.
    #[error("is there already and is no socket; name another path")]
    NoSocket,
    /// Another process serves at this path.
    #[error("a process listens there already; stop it or name another path")]
    PathTaken,
    /// The path is longer than the system allows.
    #[error("a socket's path has at most 107 bytes")]
    PathTooLong,
    /// The file of a dead process could not be removed.
    #[error("left by a dead process: {0}")]
    Leftover(#[source] io::Error),
    /// Another process has the port.
    #[error("another server has this port; name another, or 0")]
    PortTaken,
    /// The host's address is of another machine.
    #[error("this machine has no such address")]
    ForeignAddress,
    /// Other machines could reach the address, and it is not meant for them.
    #[error("{address}: other machines can reach this address")]
    Reachable {
        /// The address.
        address: SocketAddr,
    },
    /// The port is for the superuser.
    #[error("ports below 1024 need root")]
    PrivilegedPort,
    /// Any other error of the system.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl ListenError {
    /// The error of listening on a TCP port.
    pub(crate) fn of_port(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::PortTaken,
            io::ErrorKind::AddrNotAvailable => ListenError::ForeignAddress,
            io::ErrorKind::PermissionDenied => ListenError::PrivilegedPort,
            _ => ListenError::System(error),
        }
    }
}
