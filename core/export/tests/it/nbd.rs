//! An NBD server and its clients:
//!
//! - `client`: one written by hand from the protocol
//! - `protocol`: the duties of a server towards clients that keep to the protocol
//! - `misbehaviour`: garbage, floods, stalls, lies and early leave
//! - `writing`: writable exports and devices
//! - `device`: what only a device gets
//! - `clients`: those that people use (`nbdinfo`, `nbdcopy`, `nbdfuse`, `qemu-img`, `fio`). A program
//!   that is not installed is named as skipped.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod client;
mod clients;
mod device;
mod misbehaviour;
mod protocol;
mod writing;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::Client;
use merganser_export::Error;
use merganser_export::nbd::{Access, Address, Export, NbdOptions, NbdServer, Stopper};
use merganser_storage::{Clock, Completion, Completions, Operation, RealClock, Storage};
use parking_lot::{Condvar, Mutex};

const SIZE: usize = 5_000_017;
const M: usize = 1 << 20;
/// Beyond this a test counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes in memory that fail where told to, and wait when told to.
#[derive(Default)]
struct Bytes {
    content: Vec<u8>,
    bad: Option<u64>,
    gate: Gate,
}

/// While it is closed no read ends.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock() = closed;
        self.opened.notify_all();
    }
}

impl Storage for Bytes {
    fn name(&self) -> &str {
        "test bytes"
    }

    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let Operation::Read { offset, mut buffer } = operation else { panic!("only reads") };
        self.gate.opened.wait_while(&mut self.gate.closed.lock(), |closed| *closed);
        let (from, end) = (offset as usize, offset as usize + buffer.len());
        assert!(end <= self.content.len(), "{end} is outside");
        buffer.copy_from_slice(&self.content[from..end]);
        let result = match self.bad {
            Some(bad) if (offset..end as u64).contains(&bad) => Err(io::Error::other("damaged")),
            _ => Ok(buffer.len()),
        };
        completions.post(Completion { token, buffer: Some(buffer), result });
    }
}

/// Numbered lines, so that misplaced bytes show in a diff.
fn lines(size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 16);
    for i in 0.. {
        if out.len() >= size {
            break;
        }
        writeln!(out, "{i:011}").expect("a vector takes all");
    }
    out.truncate(size);
    out
}

/// A running server of the exports `view` and `other`, on a Unix socket.
struct Served {
    folder: tempfile::TempDir,
    bytes: Arc<Bytes>,
    other: Vec<u8>,
    address: Address,
    stopper: Stopper,
    run: Option<JoinHandle<Result<(), Error>>>,
}

impl Served {
    fn new() -> Self {
        Self::with(Bytes { content: lines(SIZE), ..Bytes::default() }, |options| options)
    }

    fn with(bytes: Bytes, change: impl FnOnce(NbdOptions) -> NbdOptions) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bytes = Arc::new(bytes);
        let other = b"other bytes\n".to_vec();
        let exports = vec![
            Export::read_only("view", bytes.clone()),
            Export::read_only(
                "other",
                Arc::new(Bytes { content: other.clone(), ..Bytes::default() }),
            ),
        ];
        let address = Address::Unix(folder.path().join("s"));
        let server = NbdServer::new(change(NbdOptions::new(address, exports))).expect("listens");
        let (address, stopper) = (server.address().clone(), server.stopper());
        let run = Some(std::thread::spawn(move || server.run()));
        Served { folder, bytes, other, address, stopper, run }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket().display())
    }

    fn connect(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// A client that is through the handshake of the export `view`.
    fn client(&self, structured: bool) -> Client {
        Client::of_export(&self.socket(), b"view", structured)
    }

    /// Ends it; gives what `run` said.
    fn stop(mut self) -> Result<(), Error> {
        self.stopper.stop();
        self.run.take().expect("running").join().expect("no panic")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.bytes.gate.set(false);
        self.stopper.stop();
        if let Some(run) = self.run.take() {
            let ended = run.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

fn within_patience(mut holds: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::yield_now();
    }
}
