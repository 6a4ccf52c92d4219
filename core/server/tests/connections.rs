//! Hostile clients, full servers and stops, over a Unix socket and over TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use merganser_server::{
    Address, ClientCounts, ClientLimits, ConnectedClient, Connections, Incident, Service, Stopper,
};
use parking_lot::{Condvar, Mutex};

/// Beyond this a test counts as hanging.
const SOON: Duration = Duration::from_secs(20);

/// Answers each byte: `e` with itself, `w` with bytes without end, `p` with a panic, `b` when the gate
/// opens.
#[derive(Default)]
struct Letters {
    gate: Mutex<bool>,
    opened: Condvar,
    incidents: Mutex<Vec<String>>,
    busy: AtomicUsize,
    answered: AtomicUsize,
}

struct Shown(Arc<Letters>);

impl Service for Shown {
    const THREAD: &'static str = "letters";

    fn serve(&self, client: &ConnectedClient) {
        let (mut stream, mut letter) = (client.stream(), [0]);
        while matches!(stream.read(&mut letter), Ok(1)) {
            client.presence().owe();
            match letter[0] {
                b'w' => {
                    self.0.busy.fetch_add(1, Ordering::SeqCst);
                    while stream.write_all(&[0; 1 << 16]).is_ok() {}
                }
                b'p' => panic!("as asked"),
                b'b' => {
                    self.0.busy.fetch_add(1, Ordering::SeqCst);
                    self.0.opened.wait_while(&mut self.0.gate.lock(), |open| !*open);
                    self.0.busy.fetch_sub(1, Ordering::SeqCst);
                }
                _ => {}
            }
            let answered = stream.write_all(&letter);
            client.presence().answered();
            self.0.answered.fetch_add(1, Ordering::SeqCst);
            if answered.is_err() {
                return;
            }
        }
    }

    fn notice(&self, incident: Incident<'_>) {
        let told = match incident {
            Incident::Full { mut stream, connections_max } => {
                let _ = stream.write_all(b"full");
                format!("full: {connections_max}")
            }
            other => format!("{other:?}"),
        };
        self.0.incidents.lock().push(told);
    }
}

struct Server {
    address: Address,
    letters: Arc<Letters>,
    stopper: Stopper,
    thread: Option<JoinHandle<ClientCounts>>,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(limits: ClientLimits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = Address::Unix(folder.path().join("socket"));
        Self::start_at(&address, limits, folder)
    }

    fn start_at(address: &Address, limits: ClientLimits, folder: tempfile::TempDir) -> Self {
        let connections = Connections::listen(address, 0o600, limits).expect("it listens");
        let (address, stopper) = (connections.address().clone(), connections.stopper());
        let letters: Arc<Letters> = Arc::default();
        let service = Shown(Arc::clone(&letters));
        let thread = Some(std::thread::spawn(move || connections.run(&service)));
        Server { address, letters, stopper, thread, _folder: folder }
    }

    fn client(&self) -> UnixStream {
        let Address::Unix(path) = &self.address else { panic!("a TCP port") };
        let stream = UnixStream::connect(path).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("set");
        stream
    }

    /// Stops it; how long that took.
    fn stop(&mut self) -> (ClientCounts, Duration) {
        let start = Instant::now();
        self.stopper.stop();
        let counts = self.thread.take().expect("runs").join().expect("no panic");
        (counts, start.elapsed())
    }

    fn until(&self, what: &str, holds: impl Fn(ClientCounts) -> bool) {
        let start = Instant::now();
        while !holds(self.stopper.counts()) {
            assert!(start.elapsed() < SOON, "{what}: {:?}", self.stopper.counts());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn limits(connections_max: usize, idle_at_least: Duration) -> ClientLimits {
    ClientLimits { connections_max, idle_at_least, drain: SOON, ..ClientLimits::default() }
}

fn echo(stream: &mut (impl Read + Write)) -> bool {
    let mut heard = [0];
    stream.write_all(b"e").is_ok() && stream.read_exact(&mut heard).is_ok() && heard == *b"e"
}

#[test]
fn clients_are_served_over_both_transports_and_the_socket_goes_with_the_server() {
    let mut server = Server::start(ClientLimits { drain: SOON, ..ClientLimits::default() });
    let (mut first, mut second) = (server.client(), server.client());
    assert!(echo(&mut first) && echo(&mut second) && echo(&mut first));
    drop(first);
    server.until("it left", |counts| counts.open == 1);
    let (counts, took) = server.stop();
    assert_eq!(counts, ClientCounts { accepted: 2, ..ClientCounts::default() });
    assert!(took < SOON, "an idle client is not waited for: {took:?}");
    let Address::Unix(path) = &server.address else { panic!("a TCP port") };
    assert!(!path.exists());

    let folder = tempfile::tempdir().expect("a folder");
    let any = Address::Tcp("127.0.0.1:0".into());
    let mut server = Server::start_at(&any, ClientLimits::default(), folder);
    let Address::Tcp(at) = &server.address else { panic!("a socket") };
    assert!(echo(&mut TcpStream::connect(at).expect("it listens")));
    assert_eq!(server.stop().0, ClientCounts { accepted: 1, ..ClientCounts::default() });
}

#[test]
fn silent_clients_by_the_hundred_cost_a_bounded_number_of_places() {
    let mut server = Server::start(limits(8, Duration::ZERO));
    let silent: Vec<_> = (0..300).map(|_| server.client()).collect();
    server.until("all were taken", |counts| counts.accepted + counts.refused == 300);
    let counts = server.stopper.counts();
    assert!(counts.open <= 8, "{counts:?}");
    assert!(counts.evicted >= counts.accepted - 8, "{counts:?}");
    assert!(echo(&mut server.client()), "a client that speaks is served");
    let (_, took) = server.stop();
    assert!(took < SOON, "{took:?}");
    drop(silent);
}

#[test]
fn a_client_that_waits_for_its_answer_keeps_its_place() {
    let mut server = Server::start(limits(2, Duration::ZERO));
    let mut busy = [server.client(), server.client()];
    busy.iter_mut().for_each(|client| client.write_all(b"b").expect("sent"));
    server.until("both are busy", |_| server.letters.busy.load(Ordering::SeqCst) == 2);
    let mut told = String::new();
    server.client().read_to_string(&mut told).expect("closed");
    assert_eq!(told, "full");
    assert_eq!(*server.letters.incidents.lock(), ["full: 2"]);
    *server.letters.gate.lock() = true;
    server.letters.opened.notify_all();
    for client in &mut busy {
        let mut heard = [0];
        client.read_exact(&mut heard).expect("answered");
    }
    server.until("both are idle", |_| server.letters.answered.load(Ordering::SeqCst) == 2);
    assert!(echo(&mut server.client()), "now one of them is idle");
    let counts = server.stop().0;
    let expected = ClientCounts { accepted: 3, refused: 1, evicted: 1, ..ClientCounts::default() };
    assert_eq!(counts, expected);
}

#[test]
fn a_client_that_was_idle_for_too_short_a_time_keeps_its_place() {
    let mut server = Server::start(limits(1, SOON));
    let mut first = server.client();
    assert!(echo(&mut first));
    let mut told = String::new();
    server.client().read_to_string(&mut told).expect("closed");
    assert_eq!(told, "full");
    assert!(echo(&mut first));
    server.stop();
}

#[test]
fn a_stop_while_busy_waits_for_answers_within_its_bound() {
    let drain = Duration::from_secs(3);
    let mut server = Server::start(ClientLimits { drain, ..limits(8, Duration::ZERO) });
    let mut quick = server.client();
    quick.write_all(b"b").expect("sent");
    // It reads nothing, so its answer never ends.
    let mut endless = server.client();
    endless.write_all(b"w").expect("sent");
    let silent = server.client();
    server.until("all are there", |counts| {
        counts.open == 3 && server.letters.busy.load(Ordering::SeqCst) == 2
    });
    let letters = Arc::clone(&server.letters);
    let opens = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        *letters.gate.lock() = true;
        letters.opened.notify_all();
    });
    let (counts, took) = server.stop();
    opens.join().expect("no panic");
    assert_eq!((counts.cut_off, counts.open), (1, 0), "{counts:?}");
    assert!(took >= drain && took < SOON, "{took:?}");
    let mut heard = [0];
    quick.read_exact(&mut heard).expect("answered after the stop");
    drop((endless, silent));
}

#[test]
fn a_panic_ends_one_connection_and_frees_its_place() {
    let mut server = Server::start(limits(1, SOON));
    for round in 1..=3 {
        let mut client = server.client();
        client.write_all(b"p").expect("sent");
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).expect("closed");
        server.until("its place is free", |counts| counts.panicked == round && counts.open == 0);
    }
    assert!(echo(&mut server.client()));
    assert_eq!(server.letters.incidents.lock().len(), 3);
    assert_eq!(server.stop().0.cut_off, 0);
}

#[test]
fn a_server_that_was_stopped_before_it_ran_returns_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = Address::Unix(folder.path().join("socket"));
    let connections =
        Connections::listen(&address, 0o600, ClientLimits::default()).expect("it listens");
    connections.stopper().stop();
    assert_eq!(connections.run(&Shown(Arc::default())), ClientCounts::default());
}
