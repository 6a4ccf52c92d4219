//! A client of a server of requests and frames.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use merganser_hadoop_node::shuffle::protocol::BadMessage;

/// Reads a frame that begins the bytes, and how long it is; `None` when it does not end within them.
type Decode<F> = fn(&[u8]) -> Result<Option<(F, usize)>, BadMessage>;

/// A connection, whose answers are frames `F`.
pub(crate) struct Client<F> {
    pub stream: UnixStream,
    /// The bytes of frames that were not handed out.
    bytes: Vec<u8>,
    decode: Decode<F>,
}

impl<F> Client<F> {
    /// Connects to the socket at `path`.
    pub(crate) fn connect(path: &Path, decode: Decode<F>) -> Self {
        let stream = UnixStream::connect(path).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        Client { stream, bytes: Vec::new(), decode }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sent");
    }

    /// The next frame; `None` when the server has hung up.
    pub(crate) fn next(&mut self) -> Option<F> {
        loop {
            if let Some((frame, len)) = (self.decode)(&self.bytes).expect("a frame") {
                self.bytes.drain(..len);
                return Some(frame);
            }
            let mut chunk = vec![0; 1 << 16];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.bytes.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => panic!("{e}"),
            }
        }
    }

    pub(crate) fn frame(&mut self) -> F {
        self.next().expect("an answer")
    }
}
