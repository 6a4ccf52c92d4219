//! The server: right answers, busy ones, and clients that mean no good.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use merganser_hadoop_node::hdfs::protocol::{
    HdfsErrorKind, HdfsRequest, MapFrame, MapServerState, Totals,
};
use merganser_hadoop_node::hdfs::server::{HdfsServer, HdfsServerOptions, Stopper};
use merganser_hadoop_node::hdfs::{CombineKind, FolderState, MapCounters, MapRequest, Sink};
use parking_lot::Mutex;

use super::support::{HdfsFile, Spills, change, count, lines};
use crate::frames;

/// Distinct words whose rows are more than all buffers on the way to a client that does not read.
const LARGE: usize = 20_000;

type Client = frames::Client<MapFrame>;

struct Fixture {
    file: HdfsFile,
    stopper: Stopper,
    running: Option<JoinHandle<()>>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    fn new(text: &[u8], maps: u32) -> Self {
        let file = HdfsFile::new(text, 1 << 20);
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&events);
        let server = HdfsServer::bind(HdfsServerOptions {
            socket: file.folder.path().join("s"),
            socket_mode: 0o600,
            data_dirs: vec![file.dir()],
            memory_bytes: 16 << 20 << maps.ilog2(),
            maps,
            compile: None,
            product: "test".to_owned(),
            describe: Box::new(ToString::to_string),
            on_event: Box::new(move |event| told.lock().push(event.to_owned())),
        })
        .expect("it listens");
        let stopper = server.stopper();
        let running = Some(std::thread::spawn(|| server.run()));
        Fixture { file, stopper, running, events }
    }

    fn connect(&self) -> Client {
        Client::connect(&self.file.folder.path().join("s"), MapFrame::decode)
    }

    /// Waits until as many maps run.
    fn wait_for(&self, maps: u32) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let mut client = self.connect();
            let hello = HdfsRequest::Hello.encode().expect("a request");
            let sent = client.stream.write_all(&hello);
            // With all places taken, the answer is another one, or none.
            let answer = sent.ok().and_then(|()| client.next());
            if let Some(MapFrame::Hello(hello)) = &answer
                && hello.maps == maps
                && (maps > 0 || hello.memory_bytes == 0)
            {
                return;
            }
            assert!(Instant::now() < until, "still {answer:?}");
            std::thread::yield_now();
        }
    }

    /// A map whose result no buffer holds: all rows leave.
    fn large(&self) -> MapRequest {
        MapRequest { combine: CombineKind::None, ..self.file.whole("wordcount") }
    }

    fn tells(&self, what: &str) -> bool {
        self.events.lock().iter().any(|event| event.contains(what))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.running.take().expect("once").join();
        if !std::thread::panicking() {
            ended.expect("it does not panic");
            assert!(!self.file.folder.path().join("s").exists(), "the socket is removed");
        }
    }
}

impl Client {
    fn ask(&mut self, request: &HdfsRequest) {
        self.send(&request.encode().expect("a request"));
    }

    fn map(&mut self, request: MapRequest) {
        self.ask(&HdfsRequest::Map(Box::new(request)));
    }

    /// The spills of a whole map, and its counters.
    fn spills(&mut self) -> (Spills, MapCounters) {
        let mut spills = Spills::default();
        assert!(matches!(self.frame(), MapFrame::Accepted { memory_bytes: 1.. }));
        loop {
            match self.frame() {
                MapFrame::Data(bytes) => spills.data(&bytes).expect("taken"),
                MapFrame::Spill { number, records, index } => {
                    spills.spill(number, records, index).expect("taken");
                }
                MapFrame::Progress { split_bytes, records } => {
                    spills.progress(split_bytes, records).expect("taken");
                }
                MapFrame::End(counters) => return (spills, counters),
                other => panic!("{other:?}"),
            }
        }
    }

    fn state(&mut self, folders: bool) -> MapServerState {
        self.ask(&HdfsRequest::State { folders });
        let MapFrame::State(state) = self.frame() else { panic!("no state") };
        state
    }

    /// The error that ends an answer.
    fn error(&mut self) -> (HdfsErrorKind, String) {
        loop {
            match self.frame() {
                MapFrame::Error { kind, sentence } => return (kind, sentence),
                MapFrame::End(_) => panic!("it is no error"),
                _ => {}
            }
        }
    }
}

#[test]
fn one_connection_takes_one_map_after_the_other() {
    let text = lines(2000, 300);
    let fixture = Fixture::new(&text, 2);
    let mut client = fixture.connect();
    for _ in 0..2 {
        client.map(fixture.file.whole("wordcount"));
        let (spills, counters) = client.spills();
        assert_eq!(spills.sums(), count(&text, 3));
        assert_eq!(counters.input_records, 2000);
        // A refusal in between changes nothing.
        client.map(fixture.file.whole("sort"));
        assert_eq!(client.error().0, HdfsErrorKind::Ssdlet);
    }
    client.ask(&HdfsRequest::Hello);
    let MapFrame::Hello(hello) = client.frame() else { panic!("no hello") };
    assert_eq!((hello.version, hello.maps, hello.maps_max, hello.memory_bytes), (3, 0, 2, 0));
    assert!(hello.ssdlets.contains(&"wordcount".to_owned()) && hello.product == "test");
    let mode = fs::metadata(fixture.file.folder.path().join("s")).expect("there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

#[test]
fn maps_at_once_have_their_own_results() {
    let text = lines(20_000, 5000);
    let fixture = Fixture::new(&text, 2);
    let expected = count(&text, 3);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut client = fixture.connect();
                client.map(fixture.file.whole("wordcount"));
                assert_eq!(client.spills().0.sums(), expected);
            });
        }
    });
    fixture.wait_for(0);
}

#[test]
fn a_map_waits_for_its_turn_and_not_for_ever() {
    let fixture = Fixture::new(&lines(LARGE, 1000), 1);
    let mut first = fixture.connect();
    first.map(fixture.large());
    fixture.wait_for(1);
    let mut second = fixture.connect();
    second.map(MapRequest { patience_ms: 100, ..fixture.file.whole("wordcount") });
    assert_eq!(second.error().0, HdfsErrorKind::Busy);
    second.map(fixture.file.whole("wordcount"));
    // A client that gives up waiting frees its place in the queue.
    let mut third = fixture.connect();
    third.map(fixture.file.whole("wordcount"));
    drop(third);
    first.spills();
    second.spills();
    fixture.wait_for(0);
}

#[test]
fn clients_that_leave_end_their_maps() {
    let fixture = Fixture::new(&lines(LARGE, 1000), 1);
    for read_some in [false, true] {
        let mut client = fixture.connect();
        client.map(fixture.large());
        fixture.wait_for(1);
        if read_some {
            while !matches!(client.frame(), MapFrame::Data(_)) {}
        }
        drop(client);
        fixture.wait_for(0);
    }
    let mut client = fixture.connect();
    client.map(fixture.file.whole("wordcount"));
    client.spills();
}

#[test]
fn damage_is_told_and_the_connection_stays() {
    let text = lines(3000, 300);
    let fixture = Fixture::new(&text, 1);
    let mut client = fixture.connect();
    let (data, _) = fixture.file.paths(0);
    change(&data, 5000);
    client.map(fixture.file.whole("wordcount"));
    let (kind, sentence) = client.error();
    assert_eq!(kind, HdfsErrorKind::Damaged);
    assert!(sentence.contains("blk_1073741825_1001: damaged at byte 4608"), "{sentence}");
    assert!(fixture.tells("attempt_1700000000000_0001_m_000000_0: not mapped"));
    change(&data, 5000);
    client.map(fixture.file.whole("wordcount"));
    assert_eq!(client.spills().0.sums(), count(&text, 3));
}

#[test]
fn lies_and_floods_end_their_own_connection() {
    let fixture = Fixture::new(&lines(100, 30), 1);
    let whole =
        HdfsRequest::Map(Box::new(fixture.file.whole("wordcount"))).encode().expect("short");
    let answer = |bytes: &[u8]| {
        let mut client = fixture.connect();
        client.send(bytes);
        let told = client.error();
        assert!(client.next().is_none(), "the connection ends");
        told
    };
    let (kind, sentence) = answer(b"MGSH\x00\x01\x00\x02\x00\x00\x00\x00");
    assert_eq!(kind, HdfsErrorKind::Request);
    assert!(sentence.contains("begins with MGHN"), "{sentence}");
    // Bodies that are longer than they may be, or other than they say.
    answer(b"MGHN\x00\x01\x00\x01\xff\xff\xff\xff");
    let mut longer = whole.clone();
    longer[11] = longer[11].wrapping_add(1);
    longer.push(0);
    assert!(answer(&longer).1.contains("1 bytes follow what the request says"));
    for at in (12..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        let mut client = fixture.connect();
        client.send(&changed);
        // Whatever it means now: an answer, and the next client is served.
        let mut frames = std::iter::from_fn(|| client.next());
        assert!(
            frames.any(|frame| matches!(frame, MapFrame::End(_) | MapFrame::Error { .. })),
            "{at}"
        );
    }
    // Requests that never come, from more clients than are served at once.
    let held: Vec<_> = (0..300)
        .map(|n| {
            let mut client = fixture.connect();
            let _ = client.stream.write_all(&whole[..if n % 2 == 0 { 5 } else { 20 }]);
            client
        })
        .collect();
    drop(held);
    fixture.wait_for(0);
    let mut client = fixture.connect();
    client.map(fixture.file.whole("wordcount"));
    client.spills();
}

#[test]
fn an_end_lets_maps_that_are_read_finish() {
    let text = lines(LARGE, 1000);
    let fixture = Fixture::new(&text, 1);
    let mut client = fixture.connect();
    client.map(fixture.large());
    fixture.wait_for(1);
    fixture.stopper.stop();
    assert_eq!(client.spills().0.sums(), count(&text, 3));
    assert!(client.next().is_none());
}

/// All that a process counts, and its folders.
#[test]
fn the_state_has_what_was_done_and_whether_folders_can_be_read() {
    let text = lines(LARGE, 1000);
    let fixture = Fixture::new(&text, 1);
    let mut client = fixture.connect();
    let state = client.state(false);
    assert_eq!((state.hello.version, state.uploads, state.folders.len()), (3, false, 0));
    assert_eq!(state.totals, Totals { seconds: state.totals.seconds, ..Totals::default() });
    let dir = fixture.file.dir().to_str().expect("text").to_owned();
    assert_eq!(client.state(true).folders, [(FolderState::Readable, dir.clone())]);

    client.map(fixture.file.whole("wordcount"));
    let (_, counters) = client.spills();
    client.map(fixture.file.whole("sort"));
    assert_eq!(client.error().0, HdfsErrorKind::Ssdlet);
    let (data, _) = fixture.file.paths(0);
    change(&data, 5000);
    client.map(fixture.file.whole("wordcount"));
    assert_eq!(client.error().0, HdfsErrorKind::Damaged);
    change(&data, 5000);
    client.ask(&HdfsRequest::Upload(b"\0asm".to_vec()));
    assert_eq!(client.error().0, HdfsErrorKind::Uploads);
    let mut leaves = fixture.connect();
    leaves.map(fixture.large());
    fixture.wait_for(1);
    let mut waits = fixture.connect();
    waits.map(MapRequest { patience_ms: 1, ..fixture.file.whole("wordcount") });
    assert_eq!(waits.error().0, HdfsErrorKind::Busy);
    drop(leaves);
    fixture.wait_for(0);
    let mut lies = fixture.connect();
    lies.send(b"MGSH\x00\x01\x00\x02\x00\x00\x00\x00");
    assert_eq!(lies.error().0, HdfsErrorKind::Request);
    // The place of a map that was left is free before the map is counted.
    let until = Instant::now() + Duration::from_secs(60);
    let totals = loop {
        let totals = client.state(false).totals;
        if totals.left > 0 {
            break totals;
        }
        assert!(Instant::now() < until, "{totals:?}");
        std::thread::yield_now();
    };
    let errors = [
        (HdfsErrorKind::Busy, 1),
        (HdfsErrorKind::Request, 1),
        (HdfsErrorKind::Ssdlet, 1),
        (HdfsErrorKind::Uploads, 1),
        (HdfsErrorKind::Damaged, 1),
    ];
    let expected = Totals {
        seconds: totals.seconds,
        maps: 1,
        read_bytes: counters.read_bytes,
        spill_bytes: counters.spill_bytes,
        cpu_ns: counters.cpu_ns,
        left: 1,
        errors: errors.map(|(kind, count)| (kind as u16, count)).to_vec(),
    };
    assert_eq!(totals, expected);

    fs::rename(&dir, format!("{dir}.away")).expect("moved");
    assert_eq!(client.state(true).folders[0].0, FolderState::Missing);
    fs::create_dir(&dir).expect("made");
    assert_eq!(client.state(true).folders[0].0, FolderState::Unused);
}
