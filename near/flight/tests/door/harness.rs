//! A server in this process, with data of its own.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use merganser_flight::Token;
use merganser_flight::client::{NodeAddress, NodeClient, Result};
use merganser_flight::credentials::CredentialsChanger;
use merganser_flight::server::{
    BATCH_PATIENCE, FlightServer, FlightServerOptions, FlightStopper, Tls,
};
use merganser_flight::wire::{GetTicket, SessionTicket, SetBody, TextAs};
use merganser_map::ssdlet::{
    Chunk, Emitter, MemoryLender, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Worker,
};
use merganser_serve::session::request::{OpenRequest, SessionRange, Wanted};
use merganser_serve::session::{GuestLimits, Offered, SessionOptions, SsdletOpener};
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::SortInput;
use merganser_sort::{Silent, SortOptions, SortOutput, Strategy, sort};
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, FileStorage};
use parking_lot::Mutex;
use serde_json::Value;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const LINES: Format = Format::Lines { delimiter: b'\n' };

/// `copy` gives its input back; `fail` fails; `panic` does what its name says; `slow` takes its time, and `slower` more
/// of it. The module `good` is one that copies, too, once it was uploaded.
#[derive(Default)]
struct Zoo {
    uploaded: Mutex<Vec<String>>,
}

/// A module that is taken.
pub(crate) const GOOD: &[u8] = b"good";
/// Its SHA-256.
pub(crate) const GOOD_SHA256: &str =
    "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c";

struct Animal(SsdletDescription);

struct Working(String);

impl SsdletOpener for Zoo {
    fn open(
        &self,
        wanted: Wanted<'_>,
        _: &Value,
        _: GuestLimits,
        _: &dyn MemoryLender,
    ) -> std::result::Result<Option<Box<dyn Ssdlet>>, SsdletError> {
        let name = match wanted {
            Wanted::Name(name) if ["copy", "fail", "panic", "slow", "slower"].contains(&name) => {
                name
            }
            Wanted::Sha256(sha256) if self.uploaded.lock().iter().any(|has| has == sha256) => {
                "copy"
            }
            _ => return Ok(None),
        };
        let output = SsdletOutput::Ordered { format: LINES };
        let name = name.to_owned();
        Ok(Some(Box::new(Animal(SsdletDescription {
            name,
            input: LINES,
            output,
            worker_bytes: 0,
        }))))
    }

    fn list(&self) -> Vec<Offered> {
        Vec::new()
    }

    fn upload(
        &self,
        sha256: &str,
        bytes: &[u8],
        _: &dyn MemoryLender,
    ) -> std::result::Result<SsdletDescription, SsdletError> {
        if bytes != GOOD {
            return Err(SsdletError::Failed("it is no module".to_owned()));
        }
        self.uploaded.lock().push(sha256.to_owned());
        let output = SsdletOutput::Ordered { format: LINES };
        Ok(SsdletDescription { name: "copy".to_owned(), input: LINES, output, worker_bytes: 0 })
    }
}

impl Ssdlet for Animal {
    fn description(&self) -> &SsdletDescription {
        &self.0
    }

    fn worker(&self) -> std::result::Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(Working(self.0.name.clone())))
    }
}

impl Worker for Working {
    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        out: &mut Emitter<'_>,
    ) -> std::result::Result<(), SsdletError> {
        match &*self.0 {
            "fail" => return Err(SsdletError::Failed("it\nalways fails".to_owned())),
            "panic" => panic!("a mistake"),
            "slow" => thread::sleep(Duration::from_millis(300)),
            "slower" => thread::sleep(Duration::from_secs(2)),
            _ => {}
        }
        out.records(chunk.bytes);
        Ok(())
    }
}

/// A server, which ends with this.
pub(crate) struct Node {
    pub dir: tempfile::TempDir,
    pub address: SocketAddr,
    pub known: NodeAddress,
    stopper: FlightStopper,
    pub changer: CredentialsChanger,
    thread: Option<JoinHandle<io::Result<()>>>,
}

pub(crate) fn options(dir: &Path) -> FlightServerOptions {
    for folder in ["data", "temp"] {
        fs::create_dir_all(dir.join(folder)).expect("made");
    }
    FlightServerOptions {
        listen: "127.0.0.1:0".to_owned(),
        token: Some(Token::new(TOKEN).expect("a token")),
        tls: None,
        insecure: false,
        allow_upload: false,
        batch_patience: BATCH_PATIENCE,
        sessions: SessionOptions {
            data: dir.join("data"),
            temp: FileDirectory::open(dir.join("temp")).expect("there"),
            memory_bytes: 256 << 20,
            threads: 3,
            sessions_max: 64,
            idle: Duration::from_secs(600),
            scratch_bytes: 256 << 20,
            opener: Arc::new(Zoo::default()),
        },
    }
}

pub(crate) fn node_with(change: impl FnOnce(&mut FlightServerOptions)) -> Node {
    let dir = tempfile::tempdir().expect("a folder");
    let mut options = options(dir.path());
    change(&mut options);
    let (token, ca) =
        (options.token.clone(), options.tls.as_ref().map(|tls| tls.certificate.clone()));
    let server = FlightServer::bind(options).expect("it listens");
    let (address, stopper, changer) = (server.address(), server.stopper(), server.changer());
    let thread = Some(thread::spawn(move || server.run()));
    let known = NodeAddress { address: address.to_string(), token, ca };
    Node { dir, address, known, stopper, changer, thread }
}

pub(crate) fn node() -> Node {
    node_with(|_| {})
}

impl Node {
    pub(crate) fn client(&self) -> NodeClient {
        NodeClient::connect(&self.known).expect("it answers")
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.dir.path().join("data").join(name), bytes).expect("written");
    }

    /// Makes the view `name` of `bytes`.
    pub(crate) fn sort(&self, name: &str, bytes: &[u8], order: OrderSpec) {
        let folder = self.dir.path().join("data").join(name);
        fs::create_dir(&folder).expect("made");
        let input = self.dir.path().join("input");
        fs::write(&input, bytes).expect("written");
        let temp: Arc<dyn Directory> = FileDirectory::open(&folder).expect("there");
        let options = SortOptions::new(order)
            .memory(64 << 20)
            .threads(2)
            .temp(vec![Arc::clone(&temp)])
            .strategy(Strategy::Merge);
        let input = SortInput::Storage(FileStorage::open_path(&input, false).expect("there"));
        let output = SortOutput::View { folder: temp, name: name.to_owned() };
        sort(vec![input], output, &options, &Silent).expect("sorted");
    }

    /// Asks it to end, and waits.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.stopper.stop();
        self.thread.take().map_or(Ok(()), |thread| thread.join().expect("no panic"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let ended = self.stop();
        if !thread::panicking() {
            ended.expect("it ends well");
        }
    }
}

pub(crate) fn of_ssdlet(ssdlet: &str) -> OpenRequest {
    OpenRequest { ssdlet: Some(ssdlet.to_owned()), ..OpenRequest::default() }
}

pub(crate) fn rows_of(session: &str, offset: u64) -> GetTicket {
    GetTicket::Session(SessionTicket { session: session.to_owned(), offset, text: TextAs::Binary })
}

/// All keys and values of `ticket`.
pub(crate) fn rows(client: &mut NodeClient, ticket: GetTicket) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut rows = client.rows(ticket);
    let mut all = Vec::new();
    while rows.advance()? {
        all.push((rows.key().to_vec(), rows.value().to_vec()));
    }
    Ok(all)
}

/// Opens `ssdlet` on `paths`, and begins its run.
pub(crate) fn begin(client: &mut NodeClient, ssdlet: &str, paths: &[&str]) -> Result<String> {
    let session = client.open(&of_ssdlet(ssdlet))?.session;
    let ranges = paths.iter().map(|path| SessionRange::of_path(*path)).collect();
    client.set(&SetBody { session: session.clone(), ranges, run: true })?;
    Ok(session)
}

/// A proxy that cuts its first connections after some number of bytes from the server each.
pub(crate) struct Proxy {
    pub address: SocketAddr,
    pub connections: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) fn new(to: SocketAddr, cuts: Vec<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let connections = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            let mut cuts = cuts.into_iter();
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                count.fetch_add(1, Ordering::Relaxed);
                let cut = cuts.next().unwrap_or(u64::MAX);
                let Ok(server) = TcpStream::connect(to) else { return };
                let (mut from, mut into) =
                    (client.try_clone().expect("open"), server.try_clone().expect("open"));
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut into);
                    let _ = into.shutdown(Shutdown::Both);
                });
                let (mut from, mut into) = (server, client);
                thread::spawn(move || {
                    let mut left = cut;
                    let mut buffer = [0; 4096];
                    while left > 0 {
                        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                        match from.read(&mut buffer[..most]) {
                            Ok(n) if n > 0 && into.write_all(&buffer[..n]).is_ok() => {
                                left -= n as u64;
                            }
                            _ => break,
                        }
                    }
                    let _ = into.shutdown(Shutdown::Both);
                    let _ = from.shutdown(Shutdown::Both);
                });
            }
        });
        Proxy { address, connections }
    }
}

/// A certificate for this machine that signs itself.
pub(crate) fn tls() -> Tls {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    Tls {
        certificate: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    }
}
