//! A bound address, and the connections that come to it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::socket::UnixSocket;
use crate::{Address, ListenError};

/// A bound address, until it is closed or dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: ListeningSocket,
    /// With the port that was chosen.
    pub(crate) address: Address,
}

#[derive(Debug)]
enum ListeningSocket {
    Unix(UnixSocket),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens. A socket's file gets this mode; one that a dead server left is replaced. An address that other
    /// machines can reach is refused, unless they may.
    pub(crate) fn bind(
        address: &Address,
        mode: u32,
        other_machines: bool,
    ) -> Result<Self, ListenError> {
        match address {
            Address::Unix(path) => {
                let socket = ListeningSocket::Unix(UnixSocket::bind(path, mode)?);
                Ok(Listener { socket, address: address.clone() })
            }
            Address::Tcp(at) => {
                let resolved: Vec<_> = at.to_socket_addrs()?.collect();
                if let Some(address) =
                    resolved.iter().find(|at| !other_machines && !is_loopback(at))
                {
                    return Err(ListenError::Reachable { address: *address });
                }
                let bound = TcpListener::bind(&resolved[..])
                    .and_then(|socket| Ok((socket.local_addr()?.to_string(), socket)));
                let (at, socket) = bound.map_err(ListenError::of_port)?;
                Ok(Listener { socket: ListeningSocket::Tcp(socket), address: Address::Tcp(at) })
            }
        }
    }

    /// Waits for the next client.
    pub(crate) fn accept(&self) -> io::Result<ClientStream> {
        match &self.socket {
            ListeningSocket::Unix(socket) => Ok(ClientStream::Unix(socket.accept()?)),
            ListeningSocket::Tcp(socket) => {
                let stream = socket.accept()?.0;
                // Without these a reply may wait for an acknowledgement, and a client that was
                // switched off keeps its place for ever; with an error there, so be it.
                let _ = stream.set_nodelay(true);
                let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
                Ok(ClientStream::Tcp(stream))
            }
        }
    }

    /// Makes [`Listener::accept`] fail, now and from now on, and removes the socket's file if it is
    /// still this one.
    pub(crate) fn close(&self) {
        match &self.socket {
            ListeningSocket::Unix(socket) => socket.close(),
            ListeningSocket::Tcp(socket) => {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            }
        }
    }
}

/// Whether only this machine can reach the address, also where it is an IPv4 address in the form of IPv6.
fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The connection of a client. A shared reference reads and writes.
#[derive(Debug)]
pub enum ClientStream {
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
}

impl ClientStream {
    /// Ends reads, writes or both, of this process and of the client.
    pub fn shut_down(&self, how: Shutdown) {
        // It fails when the client is gone, which is as good.
        let _ = match self {
            ClientStream::Unix(stream) => stream.shutdown(how),
            ClientStream::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// The longest that one read may wait; for ever with `None`.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            ClientStream::Unix(stream) => stream.set_read_timeout(timeout),
            ClientStream::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// The longest that one write may wait; for ever with `None`.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            ClientStream::Unix(stream) => stream.set_write_timeout(timeout),
            ClientStream::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Whether reads and writes fail instead of waiting.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            ClientStream::Unix(stream) => stream.set_nonblocking(nonblocking),
            ClientStream::Tcp(stream) => stream.set_nonblocking(nonblocking),
        }
    }

    /// Whether the client has hung up. A client that only sends no more has not.
    #[must_use]
    pub fn is_hung_up(&self) -> bool {
        let mut stream = [PollFd::new(self, PollFlags::RDHUP)];
        let ready = poll(&mut stream, Some(&Timespec::default()));
        ready.is_ok_and(|ready| ready > 0) && stream[0].revents().contains(PollFlags::HUP)
    }
}

impl AsFd for ClientStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ClientStream::Unix(stream) => stream.as_fd(),
            ClientStream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &ClientStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientStream::Unix(stream) => (&mut &*stream).read(out),
            ClientStream::Tcp(stream) => (&mut &*stream).read(out),
        }
    }
}

impl Write for &ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ClientStream::Unix(stream) => (&mut &*stream).write(bytes),
            ClientStream::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            ClientStream::Unix(stream) => (&mut &*stream).write_vectored(parts),
            ClientStream::Tcp(stream) => (&mut &*stream).write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_socket_is_private_and_goes_with_its_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let address = Address::Unix(path.clone());
        let listener = Listener::bind(&address, 0o600, false).expect("bound");
        let mode = fs::symlink_metadata(&path).expect("there").mode();
        assert_eq!(mode & 0o7777, 0o600);
        let second = Listener::bind(&address, 0o600, false).expect_err("taken").to_string();
        assert_eq!(second, "a process listens there already; stop it or name another path");
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_listened_on_is_told() {
        let bind = |typed: &str| {
            let address: Address = typed.parse().expect("an address");
            Listener::bind(&address, 0o600, false).expect_err(typed).to_string()
        };
        assert!(bind("/missing/s").contains("its folder does not exist"));
        assert!(bind(&format!("/tmp/{}", "x".repeat(200))).contains("at most 107 bytes"));
        let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
        let at = taken.local_addr().expect("known").to_string();
        assert_eq!(bind(&at), "another server has this port; name another, or 0");
    }

    #[test]
    fn other_machines_are_let_in_only_where_they_may_be() {
        let bind = |typed: &str, other_machines: bool| {
            let address: Address = typed.parse().expect("an address");
            Listener::bind(&address, 0o600, other_machines)
        };
        for open in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "192.0.2.1:0"] {
            let refused = bind(open, false).expect_err(open);
            assert!(matches!(refused, ListenError::Reachable { .. }), "{open}: {refused}");
        }
        for own in ["127.0.0.1:0", "127.9.9.9:0", "localhost:0"] {
            assert!(bind(own, false).is_ok(), "{own}");
        }
        assert!(bind("0.0.0.0:0", true).is_ok());
    }
}
