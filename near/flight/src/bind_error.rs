//! Why a server can't begin, or can't take another token or certificate.

use std::io;
use std::net::SocketAddr;

use crate::identity::TlsFault;

/// Why a server can't begin.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Other machines could reach it, and it has no token, or no TLS.
    #[error("{address}: other machines can reach this address, so a token and TLS are needed")]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The address can't be listened on.
    #[error("{listen}: {source}")]
    Listen {
        /// As it was given.
        listen: String,
        /// The cause.
        source: io::Error,
    },
    /// The certificate or its key can't be used.
    #[error("the certificate and its key: {0}")]
    Tls(#[from] TlsFault),
    /// The library of TLS refuses them.
    #[error("the certificate and its key: {0}")]
    TlsSetup(String),
    /// The server would lose its token or its TLS, or get one that it did not have.
    #[error("a server keeps a token and TLS if it began with them, and gets none later")]
    OtherProtection,
    /// The system has no thread left.
    #[error(transparent)]
    Threads(io::Error),
}
