//! Tells the service manager that started this process, such as systemd, when the service answers and when it begins to
//! end. A unit with `Type=notify` waits for the first: units that are ordered after it find a server that answers.
//!
//! The manager names a datagram socket in `NOTIFY_SOCKET`, and the words are those of sd_notify(3). Not a crate: it is one
//! datagram.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::failure::notice;

/// The variable that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The service answers.
pub(crate) fn ready() {
    tell("READY=1");
}

/// The service has been asked to end.
pub(crate) fn stopping() {
    tell("STOPPING=1");
}

/// Tells the manager, if there is one. A manager that can't be told is named: it would take the service for one that never
/// began.
fn tell(state: &str) {
    let Some(socket) = env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, state) {
        let socket = socket.display();
        notice(&format!("{VARIABLE}={socket}: {error}; the service manager is not told {state}"));
    }
}

/// Sends `state` to `socket`: a path, or with `@` in front a name in the abstract namespace.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path @ [b'/', ..] => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
        _ => return Err(io::Error::other("not a path from the root, and no name with @ in front")),
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let mut bytes = [0; 64];
        let len = socket.recv(&mut bytes).expect("sent");
        String::from_utf8(bytes[..len].to_vec()).expect("text")
    }

    #[test]
    fn a_socket_is_a_path_or_an_abstract_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("bound");
        send(path.as_os_str(), "READY=1").expect("sent");
        assert_eq!(received(&socket), "READY=1");

        let name = format!("merganser-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("bound");
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").expect("sent");
        assert_eq!(received(&socket), "STOPPING=1");
    }

    #[test]
    fn a_socket_that_can_not_be_told_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(send(folder.path().join("none").as_os_str(), "READY=1").is_err());
        assert!(send(OsStr::new("vsock:2:1"), "READY=1").is_err());
    }
}
