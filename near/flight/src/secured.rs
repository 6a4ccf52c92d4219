//! Connections with TLS, whose certificate can be replaced while the server runs: the library of gRPC takes one for good.

use std::io;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::credentials::Credentials;
use crate::listener::{Guarded, HELLO};

/// Those of `connections` that end their handshake well within [`HELLO`]. Handshakes run next to each other; places limit
/// how many there are.
pub(crate) fn secured(
    connections: impl Stream<Item = io::Result<Guarded>> + Send,
    credentials: Arc<Credentials>,
) -> impl Stream<Item = io::Result<TlsStream<Guarded>>> + Send {
    let shake = move |connection: io::Result<Guarded>| {
        let tls = credentials.tls();
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(tls?);
            tokio::time::timeout(HELLO, acceptor.accept(connection.ok()?)).await.ok()?.ok()
        })
    };
    let shaken = connections.map(shake).buffer_unordered(usize::MAX);
    shaken.filter_map(async |done| done.ok().flatten().map(Ok))
}
