//! A server: what it exports, how long it lives, how it ends.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use merganser_server::{
    Address, ClientLimits, ClientStream, ConnectedClient, Connections, Presence, Service, Stopper,
};
use merganser_storage::Storage;
use merganser_storage::thread::spawn_scoped;

use super::device::NbdDevice;
use super::handshake::{self, Listed};
use super::outbox::{InFlight, Outbox, ReplyRoom};
use super::transmission::{self, ReadAnswer, Storages};
use super::writes::Writes;
use super::{CONNECTIONS_MAX, DEVICE_IN_FLIGHT, IN_FLIGHT, REPLY_BYTES_USEFUL, wire};
use crate::failures::Failures;
use crate::reads::{ExportedStorage, Reads};
use crate::{Error, OnError};

/// How long clients may take to read what they have asked for when the server is stopped.
const PATIENCE: Duration = Duration::from_secs(2);
/// Requests are small and come in bursts.
const INPUT_BYTES: usize = 4096;

/// One storage to be served.
pub struct Export {
    /// Its name for clients. The first of a server's exports has the empty name, too.
    pub name: String,
    /// Its bytes. The size is asked once, when the server is made, and must not change. The bytes of a
    /// read-only export must not change either.
    pub storage: Arc<dyn Storage>,
    /// What clients may do with it, and how requests reach it.
    pub access: Access,
}

/// What clients may do with an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    Read,
    /// Write to it, too.
    Write,
    /// The same, and the storage gets each request when it comes.
    Device,
}

impl Export {
    /// An export that can only be read.
    pub fn read_only(name: impl Into<String>, storage: Arc<dyn Storage>) -> Self {
        Export { name: name.into(), storage, access: Access::Read }
    }

    /// An export that can be written to, too.
    pub fn writable(name: impl Into<String>, storage: Arc<dyn Storage>) -> Self {
        Export { name: name.into(), storage, access: Access::Write }
    }

    /// An export of a storage that decides when each request ends, in any order and from any thread: an
    /// emulated disk. It gets requests of up to [`crate::READ_BYTES_MAX`]; longer ones are cut, and their
    /// pieces are under way together.
    pub fn device(name: impl Into<String>, storage: Arc<dyn Storage>) -> Self {
        Export { name: name.into(), storage, access: Access::Device }
    }
}

/// What to serve where; [`NbdOptions::new`] gives the usual choices.
pub struct NbdOptions {
    /// Where to listen.
    pub address: Address,
    /// The exports, each with a name of its own.
    pub exports: Vec<Export>,
    /// How many reads run at once (at least one does). Each worker holds
    /// [`crate::READ_BYTES_MAX`].
    pub threads: usize,
    /// Memory, in bytes, for the replies of all clients that are not written yet, in addition to one of [`crate::READ_BYTES_MAX`] that each client may always have. No client holds more than
    /// 4 MiB.
    pub reply_bytes: usize,
    /// How long a client may take to choose an export before it is hung up on.
    pub handshake_timeout: Duration,
    /// How long a client must have sent and taken nothing before a new one may take its place. Only
    /// where all [`CONNECTIONS_MAX`] places are taken does the client that is idle for longest go.
    pub idle_at_least: Duration,
    /// Whether to listen at an address that other machines can reach although any program on them may then
    /// read, and write to what is writable.
    pub insecure: bool,
    /// Told about every failed read, from the worker it happened in.
    pub on_error: Option<OnError>,
}

impl NbdOptions {
    /// `exports` at `address`, two reads at once, half a minute for the handshake, five seconds
    /// of silence before a client may lose its place, failures told only by [`NbdServer::run`].
    #[must_use]
    pub fn new(address: Address, exports: Vec<Export>) -> Self {
        NbdOptions {
            address,
            exports,
            threads: 2,
            reply_bytes: REPLY_BYTES_USEFUL,
            handshake_timeout: Duration::from_secs(30),
            idle_at_least: Duration::from_secs(5),
            insecure: false,
            on_error: None,
        }
    }
}

/// A server that listens; [`NbdServer::run`] serves.
pub struct NbdServer {
    connections: Connections,
    exports: Vec<Listed>,
    reads: Reads<ReadAnswer>,
    writes: Writes,
    /// By export; none for one that is no device.
    devices: Vec<Option<Arc<NbdDevice>>>,
    failures: Arc<Failures>,
    threads: usize,
    room: Arc<ReplyRoom>,
    handshake_timeout: Duration,
}

impl NbdServer {
    /// Checks the names and begins to listen. A socket's file gets mode 0600.
    ///
    /// # Errors
    /// A bad name, or an address that cannot be listened on.
    pub fn new(options: NbdOptions) -> Result<NbdServer, Error> {
        check_names(&options.exports)?;
        let limits = ClientLimits {
            connections_max: CONNECTIONS_MAX,
            idle_at_least: options.idle_at_least,
            drain: PATIENCE,
            other_machines: options.insecure,
        };
        let address = options.address;
        let connections = Connections::listen(&address, 0o600, limits)
            .map_err(|source| Error::Listen { address, source })?;
        let failures = Arc::new(Failures::new(options.on_error));
        let writes = Writes::new(options.exports.iter().map(writable).collect());
        let devices = options.exports.iter().map(|export| device(export, &failures)).collect();
        let (exports, contents) = options.exports.into_iter().map(split).unzip();
        Ok(NbdServer {
            connections,
            exports,
            reads: Reads::new(contents, Arc::clone(&failures)),
            writes,
            devices,
            failures,
            threads: options.threads.max(1),
            room: ReplyRoom::new(options.reply_bytes),
            handshake_timeout: options.handshake_timeout,
        })
    }

    /// Where it listens, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.connections.address()
    }

    /// A handle that can end it from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.connections.stopper()
    }

    /// Serves until [`Stopper::stop`]. Then clients still get what they have asked for, within
    /// two seconds.
    ///
    /// # Errors
    /// The first read that failed, or a thread that could not be started.
    pub fn run(self) -> Result<(), Error> {
        let served = thread::scope(|scope| {
            let started = self.start_workers(scope);
            if started.is_ok() {
                self.connections.run(&self);
            }
            self.reads.close();
            self.writes.close();
            started
        });
        let client = || self.address().to_string();
        served.map_err(|source| Error::Thread { client: client(), source })?;
        self.failures.take_first().map_or(Ok(()), Err)
    }

    fn start_workers<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        for worker in 0..self.threads {
            let name = format!("nbd-{worker}");
            spawn_scoped(scope, name, || self.reads.work())?;
        }
        for worker in 0..self.writes.workers() {
            let name = format!("nbd-write-{worker}");
            spawn_scoped(scope, name, || self.writes.work(|error| self.failures.tell(error)))?;
        }
        Ok(())
    }

    fn talk(&self, stream: &ClientStream, presence: &Arc<Presence>) -> io::Result<()> {
        let until = Some(Instant::now() + self.handshake_timeout);
        let timed = || TimedStream { stream, until, presence };
        let mut input = BufReader::with_capacity(INPUT_BYTES, timed());
        let mut output = timed();
        let Some(agreed) = handshake::negotiate(&mut input, &mut output, &self.exports)? else {
            return Ok(());
        };
        // From here on a client may be as slow as it likes: it waits for itself.
        set_timeout(stream, None)?;
        input.get_mut().until = None;
        output.until = None;
        let hang_up = || stream.shut_down(Shutdown::Both);
        let storages = Storages {
            reads: &self.reads,
            writes: &self.writes,
            devices: &self.devices,
            failures: &self.failures,
        };
        let most = in_flight(&self.devices[agreed.export]);
        let outbox = Outbox::new(most, Arc::clone(&self.room), Arc::clone(presence));
        transmission::serve(&mut input, &mut output, agreed, storages, &outbox, hang_up)
    }
}

impl Service for NbdServer {
    const THREAD: &'static str = "nbd-client";

    fn serve(&self, client: &ConnectedClient) {
        // How it ended concerns the client alone; failed reads are reported elsewhere.
        let _ = self.talk(client.stream(), client.presence());
    }
}

/// Serves one client over any two streams of bytes, for example those of a child process, in the
/// calling thread and two others, until the client leaves, breaks the protocol, or a stream fails.
/// There is no limit on its time.
///
/// # Errors
/// A bad name, the first read that failed, or no thread.
pub fn serve_streams(
    exports: Vec<Export>,
    input: impl Read,
    mut output: impl Write + Send,
) -> Result<(), Error> {
    check_names(&exports)?;
    let writes = Writes::new(exports.iter().map(writable).collect());
    let failures = Arc::new(Failures::default());
    let devices: Vec<_> = exports.iter().map(|export| device(export, &failures)).collect();
    let (listed, contents): (Vec<_>, _) = exports.into_iter().map(split).unzip();
    let reads = Reads::new(contents, Arc::clone(&failures));
    let mut input = BufReader::with_capacity(INPUT_BYTES, input);
    // A client that breaks the protocol sees the end of the conversation.
    let Ok(Some(agreed)) = handshake::negotiate(&mut input, &mut output, &listed) else {
        return Ok(());
    };
    let served = thread::scope(|scope| {
        let worker = spawn_scoped(scope, "nbd-0", || reads.work())?;
        let writer = match writes.workers() {
            0 => None,
            _ => {
                let work = || writes.work(|error| failures.tell(error));
                Some(spawn_scoped(scope, "nbd-write-0", work).inspect_err(|_| reads.close())?)
            }
        };
        let room = ReplyRoom::new(REPLY_BYTES_USEFUL);
        let most = in_flight(&devices[agreed.export]);
        let outbox = Outbox::new(most, room, Arc::new(Presence::new()));
        let storages =
            Storages { reads: &reads, writes: &writes, devices: &devices, failures: &failures };
        let served = transmission::serve(&mut input, &mut output, agreed, storages, &outbox, || {});
        reads.close();
        writes.close();
        if let Some(writer) = writer {
            writer.join().map_err(|_| io::Error::other("the worker panicked"))?;
        }
        worker.join().map_err(|_| io::Error::other("the worker panicked"))?;
        served
    });
    served.map_err(|source| Error::Thread { client: "the client".into(), source })?;
    failures.take_first().map_or(Ok(()), Err)
}

impl fmt::Debug for NbdServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NbdServer").field("address", self.address()).finish_non_exhaustive()
    }
}

/// A stream whose reads and writes end, together, at a point of time. Each is a sign of life.
struct TimedStream<'a> {
    stream: &'a ClientStream,
    until: Option<Instant>,
    presence: &'a Presence,
}

fn set_timeout(stream: &ClientStream, timeout: Option<Duration>) -> io::Result<()> {
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)
}

impl TimedStream<'_> {
    fn arm(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        set_timeout(self.stream, Some(left))
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.arm()?;
        self.stream.read(out).inspect(|_| self.presence.seen())
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arm()?;
        self.stream.write(bytes).inspect(|_| self.presence.seen())
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.arm()?;
        self.stream.write_vectored(parts).inspect(|_| self.presence.seen())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check_names(exports: &[Export]) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for Export { name, .. } in exports {
        let problem = if name.is_empty() {
            "an export needs a name"
        } else if name.contains('\0') {
            "a name has no NUL"
        } else if name.len() > wire::STRING_BYTES_MAX {
            "a name has at most 4096 bytes"
        } else if !seen.insert(name) {
            "two exports would bear it"
        } else {
            continue;
        };
        return Err(Error::Name { name: name.clone(), problem });
    }
    Ok(())
}

fn split(export: Export) -> (Listed, ExportedStorage) {
    let content = ExportedStorage::new(Arc::clone(&export.storage));
    let Export { name, access, .. } = export;
    (Listed { name, size: content.size, writable: access != Access::Read }, content)
}

fn writable(export: &Export) -> Option<Arc<dyn Storage>> {
    (export.access == Access::Write).then(|| Arc::clone(&export.storage))
}

fn device(export: &Export, failures: &Arc<Failures>) -> Option<Arc<NbdDevice>> {
    (export.access == Access::Device).then(|| NbdDevice::new(&export.storage, failures))
}

fn in_flight(device: &Option<Arc<NbdDevice>>) -> InFlight {
    if device.is_some() { DEVICE_IN_FLIGHT } else { IN_FLIGHT }
}
