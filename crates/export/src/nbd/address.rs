//! Where clients connect: a Unix socket or a TCP port, and what listening on one leaves behind.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use merganser_storage::socket;

use crate::Error;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system, for the user who serves alone.
    Unix(PathBuf),
    /// `HOST:PORT`; port 0 stands for any that is free. Whoever can reach it can read.
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    /// `HOST:PORT`, or a path: anything with a `/`, or without a colon.
    fn from_str(typed: &str) -> Result<Self, String> {
        match typed.rsplit_once(':') {
            _ if typed.is_empty() => Err("name a socket or HOST:PORT".into()),
            Some((host, port)) if !typed.contains('/') => {
                if host.is_empty() {
                    Err(format!("'{typed}' has no host; try localhost:{port}"))
                } else if port.parse::<u16>().is_err() {
                    Err(format!(
                        "'{port}' is no port: give 0 to 65535, or ./{typed} for a socket of this name"
                    ))
                } else {
                    Ok(Address::Tcp(typed.into()))
                }
            }
            _ => Ok(Address::Unix(typed.into())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(at) => at.fmt(f),
        }
    }
}

/// A bound address, until it is closed or dropped.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Socket,
    /// With the port that was chosen.
    pub(super) address: Address,
}

#[derive(Debug)]
enum Socket {
    Unix(socket::Socket),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens. A socket's file gets mode 0600; one that a dead server left is replaced.
    pub(super) fn bind(address: &Address) -> Result<Self, Error> {
        let explain = |problem: String| Error::Listen { address: address.to_string(), problem };
        match address {
            Address::Unix(path) => {
                let bound = socket::Socket::bind(path, 0o600);
                let socket = Socket::Unix(bound.map_err(|e| explain(e.to_string()))?);
                Ok(Listener { socket, address: address.clone() })
            }
            Address::Tcp(at) => {
                let bound = TcpListener::bind(at)
                    .and_then(|socket| Ok((socket.local_addr()?.to_string(), socket)));
                let (at, socket) = bound.map_err(|e| explain(explain_tcp(&e)))?;
                Ok(Listener { socket: Socket::Tcp(socket), address: Address::Tcp(at) })
            }
        }
    }

    /// Waits for the next client.
    pub(super) fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Unix(socket) => Ok(Stream::Unix(socket.accept()?)),
            Socket::Tcp(socket) => {
                let stream = socket.accept()?.0;
                // Without these a reply may wait for an acknowledgement, and a client that was
                // switched off keeps its place for ever; with an error there, so be it.
                let _ = stream.set_nodelay(true);
                let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// Makes [`Listener::accept`] fail, now and from now on, and removes the socket's file if it is
    /// still this one.
    pub(super) fn close(&self) {
        match &self.socket {
            Socket::Unix(socket) => socket.close(),
            Socket::Tcp(socket) => {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            }
        }
    }
}

fn explain_tcp(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another server has this port; name another, or 0".into(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need root".into(),
        _ => error.to_string(),
    }
}

/// A connected client.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn shut_down(&self, how: Shutdown) {
        // It fails when the client is gone, which is as good.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// The longest that one read or write may wait.
    pub(super) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).read(out),
            Stream::Tcp(stream) => (&mut &*stream).read(out),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).write_vectored(parts),
            Stream::Tcp(stream) => (&mut &*stream).write_vectored(parts),
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
    fn what_is_typed_is_a_socket_or_a_port() {
        let parse = |typed: &str| typed.parse::<Address>();
        for path in ["a.sock", "/run/a:1", "./a:10809", "dir/a"] {
            assert_eq!(parse(path), Ok(Address::Unix(path.into())));
        }
        for at in ["localhost:0", "127.0.0.1:10809", "[::1]:65535"] {
            assert_eq!(parse(at), Ok(Address::Tcp(at.into())));
        }
        for (typed, told) in
            [("", "name a socket"), (":1", "no host"), ("a:b", "no port"), ("a:65536", "no port")]
        {
            assert!(parse(typed).expect_err(typed).contains(told), "{typed}");
        }
    }

    #[test]
    fn a_socket_is_private_and_goes_with_its_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let address = Address::Unix(path.clone());
        let listener = Listener::bind(&address).expect("bound");
        let mode = fs::symlink_metadata(&path).expect("there").mode();
        assert_eq!(mode & 0o7777, 0o600);
        let second = Listener::bind(&address).expect_err("taken").to_string();
        assert!(
            second.ends_with("/s: a process listens there already; stop it or name another path")
        );
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_listened_on_is_told() {
        let bind = |typed: &str| {
            let address: Address = typed.parse().expect("an address");
            Listener::bind(&address).expect_err(typed).to_string()
        };
        assert!(bind("/missing/s").contains("its folder does not exist"));
        assert!(bind(&format!("/tmp/{}", "x".repeat(200))).contains("at most 107 bytes"));
        let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
        let at = taken.local_addr().expect("known").to_string();
        assert_eq!(bind(&at), format!("{at}: another server has this port; name another, or 0"));
    }
}
