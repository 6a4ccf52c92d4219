//! Connections: how many, and how long each may be silent.
//!
//! ```text
//!   accept ──► a place? ──► Guarded<TcpStream> ──► TLS ──► HTTP/2
//!              waits for     no token within HELLO: closed
//!              one           silent for SILENCE: closed       (HTTP/2 pings keep live ones talking)
//!                            closed by a slow stream, or for a newcomer (places)
//! ```

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};
use tonic::transport::server::Connected;

use crate::places::{ConnectionPlace, Places};
use crate::presence::ConnectionPresence;

/// How long a connection may be open before it shows the token.
pub(crate) const HELLO: Duration = Duration::from_secs(10);
/// How long a connection may be silent. Clients answer a ping every [`PING`].
pub(crate) const SILENCE: Duration = Duration::from_secs(45);
/// How often a client is asked whether it is there.
pub(crate) const PING: Duration = Duration::from_secs(15);

/// A connection with its deadlines.
pub(crate) struct Guarded {
    stream: TcpStream,
    presence: ConnectionPresence,
    begun: Instant,
    heard: Instant,
    deadline: Pin<Box<Sleep>>,
    _place: ConnectionPlace,
}

impl Guarded {
    fn new(stream: TcpStream, place: ConnectionPlace) -> Self {
        let begun = Instant::now();
        Guarded {
            stream,
            presence: place.presence().clone(),
            begun,
            heard: begun,
            deadline: Box::pin(tokio::time::sleep_until(begun + HELLO)),
            _place: place,
        }
    }

    /// Fails if the server closes the connection, or if it did not show the token in time. This is asked before
    /// each read and write: a client may send without a pause.
    fn check_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.presence.wake_when_closed(context);
        if self.presence.is_closed() || (!self.is_known() && Instant::now() >= self.begun + HELLO) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Fails if the client was silent for too long. Otherwise the task is woken when that may be so.
    ///
    /// This is asked by reads and writes that have to wait. HTTP/2 reads nothing more while it can't write an
    /// answer to what it has read: a client that sends pings and does not read would otherwise stay for ever.
    fn check_heard(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.deadline.as_mut().poll(context).is_ready() {
            let limit = if self.is_known() { self.heard + SILENCE } else { self.begun + HELLO };
            if Instant::now() >= limit {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.deadline.as_mut().reset(limit);
        }
        Ok(())
    }

    fn is_known(&self) -> bool {
        self.presence.is_known()
    }

    /// Writes by `write`, within the deadlines.
    fn write_with(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.check_open(context)?;
        let written = write(Pin::new(&mut self.stream), context);
        if written.is_pending() {
            self.check_heard(context)?;
        }
        written
    }
}

impl Connected for Guarded {
    type ConnectInfo = ConnectionPresence;

    fn connect_info(&self) -> ConnectionPresence {
        self.presence.clone()
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_open(context)?;
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        match read {
            Poll::Ready(_) => {
                self.heard = Instant::now();
                self.presence.spoke();
            }
            Poll::Pending => self.check_heard(context)?,
        }
        read
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_with(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_with(context, |stream, context| stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The connections of `listener`, each once there is a place for it.
pub(crate) fn connections(listener: TcpListener) -> impl Stream<Item = io::Result<Guarded>> {
    futures::stream::unfold((listener, Places::new()), async |(listener, places)| {
        let (stream, address) = loop {
            match listener.accept().await {
                Ok(accepted) => break accepted,
                // Descriptors ran out, or the client is gone already: others may still come.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        // A refusal would only make answers slower.
        let _ = stream.set_nodelay(true);
        let place = places.take(address.ip().to_canonical()).await;
        Some((Ok(Guarded::new(stream, place)), (listener, places)))
    })
}

/// Whether all that can reach `address` is this machine.
pub(crate) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
