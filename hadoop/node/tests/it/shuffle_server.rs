//! The merge process's server, in this process: right answers, busy ones, and clients that mean no good.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use merganser_hadoop_node::shuffle::protocol::{
    MergeFrame, MergeRequest, ShuffleErrorKind, ShuffleRequest,
};
use merganser_hadoop_node::shuffle::server::{ShuffleServer, ShuffleServerOptions, Stopper};
use merganser_hadoop_node::shuffle::{SegmentMerge, SegmentSpec};
use merganser_sort::record::ifile::push_record;
use merganser_storage::contained::{self, Cause};
use parking_lot::Mutex;

/// Bytes of a large merge: more than all buffers on the way to a client that does not read.
const LARGE: usize = 8 << 20;

type Client = crate::frames::Client<MergeFrame>;

struct Fixture {
    folder: tempfile::TempDir,
    stopper: Stopper,
    running: Option<JoinHandle<()>>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    fn new(memory_bytes: u64, merges: u32) -> Self {
        Self::with(|options| {
            options.memory_bytes = memory_bytes;
            options.merges = merges;
        })
    }

    fn with(change: impl FnOnce(&mut ShuffleServerOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&events);
        fs::create_dir(folder.path().join("local")).expect("made");
        let mut options = ShuffleServerOptions {
            socket: folder.path().join("s"),
            socket_mode: 0o600,
            local_dirs: vec![folder.path().join("local")],
            memory_bytes: 64 << 20,
            merges: 4,
            keep_cache: false,
            product: "test".to_owned(),
            describe: Box::new(ToString::to_string),
            on_event: Box::new(move |event| told.lock().push(event.to_owned())),
        };
        change(&mut options);
        let server = ShuffleServer::bind(options).expect("it listens");
        let stopper = server.stopper();
        let running = Some(std::thread::spawn(|| server.run()));
        Fixture { folder, stopper, running, events }
    }

    fn connect(&self) -> Client {
        Client::connect(&self.folder.path().join("s"), MergeFrame::decode)
    }

    /// Two spills, with about this many bytes in all.
    fn spills(&self, bytes: usize) -> Vec<SegmentSpec> {
        let value = vec![b'v'; 1000];
        let write = |number: u8| {
            let path = self.folder.path().join(format!("local/spill_{number}.out"));
            let mut segment = Vec::new();
            for key in 0..(bytes / 2000) as u32 {
                push_record(&(2 * key + u32::from(number)).to_be_bytes(), &value, &mut segment);
            }
            segment.extend([0xff, 0xff]);
            let crc = crc32fast::hash(&segment);
            segment.extend(crc.to_be_bytes());
            fs::write(&path, &segment).expect("written");
            let part = segment.len() as u64;
            SegmentSpec { path, offset: 0, raw: part - 4, part }
        };
        vec![write(0), write(1)]
    }

    /// Waits until the server says so of itself.
    fn wait_for(&self, merges: u32, memory: u64) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let mut client = self.connect();
            client.ask(&ShuffleRequest::Hello);
            let MergeFrame::Hello { merges: now, memory_bytes, .. } = client.frame() else {
                panic!("no hello");
            };
            if (now, memory_bytes) == (merges, memory) {
                return;
            }
            assert!(Instant::now() < until, "still {now} merges, {memory_bytes} bytes");
            std::thread::yield_now();
        }
    }

    fn idle(&self) {
        self.wait_for(0, 0);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.running.take().expect("once").join();
        if !std::thread::panicking() {
            ended.expect("it does not panic");
            assert!(!self.folder.path().join("s").exists(), "the socket is removed");
        }
    }
}

impl Client {
    fn ask(&mut self, request: &ShuffleRequest) {
        self.send(&request.encode().expect("a request"));
    }

    /// The data of a whole answer and its last frame.
    fn answer(&mut self) -> (Vec<u8>, MergeFrame) {
        let mut data = Vec::new();
        loop {
            match self.frame() {
                MergeFrame::Data(more) => data.extend(more),
                last => return (data, last),
            }
        }
    }

    fn error(&mut self) -> (ShuffleErrorKind, String) {
        match self.answer().1 {
            MergeFrame::Error { kind, sentence } => (kind, sentence),
            other => panic!("{other:?}"),
        }
    }
}

fn merge(segments: &[SegmentSpec], skip: u64) -> ShuffleRequest {
    ShuffleRequest::Merge(MergeRequest {
        skip,
        memory_bytes: 1 << 20,
        order: "int".to_owned(),
        segments: segments.to_vec(),
    })
}

fn merged(segments: &[SegmentSpec]) -> Vec<u8> {
    let order = "int".parse().expect("an order");
    let mut merge = SegmentMerge::open(&order, segments, 1 << 20).expect("sound");
    let mut bytes = vec![0; merge.part_len() as usize];
    assert_eq!(merge.read(&mut bytes).expect("sound"), bytes.len());
    bytes
}

#[test]
fn one_connection_takes_one_request_after_the_other() {
    let fixture = Fixture::new(64 << 20, 4);
    let spills = fixture.spills(LARGE);
    let expected = merged(&spills);
    let mut client = fixture.connect();
    for skip in [0, 1, 300_000, expected.len() - 5, expected.len(), expected.len() + 9] {
        client.ask(&merge(&spills, skip as u64));
        let (data, end) = client.answer();
        assert!(data == expected[skip.min(expected.len())..], "skip {skip}");
        let MergeFrame::End { records, compares } = end else { panic!("{end:?}") };
        assert_eq!(records, 2 * (LARGE as u64 / 2000));
        assert!(compares >= records / 2);
    }
    client.ask(&ShuffleRequest::Hello);
    let hello =
        MergeFrame::Hello { version: 1, merges: 0, memory_bytes: 0, product: "test".to_owned() };
    assert_eq!(client.frame(), hello);
    client.ask(&merge(&[], 0));
    assert_eq!(client.answer().0, [0xff, 0xff, 0xff, 0xff, 0, 0]);
    fixture.idle();
}

#[test]
fn what_cannot_be_merged_is_told_by_kind_and_the_connection_goes_on() {
    let fixture = Fixture::new(64 << 20, 4);
    let spills = fixture.spills(100_000);
    let mut client = fixture.connect();
    let mut told = |change: &dyn Fn(&mut MergeRequest)| {
        let ShuffleRequest::Merge(mut request) = merge(&spills, 0) else { unreachable!() };
        change(&mut request);
        client.ask(&ShuffleRequest::Merge(request));
        client.error()
    };
    let (kind, sentence) = told(&|r| r.order = "words".to_owned());
    assert_eq!((kind, sentence.starts_with("order 'words'")), (ShuffleErrorKind::Order, true));
    let gone = fixture.folder.path().join("local/gone");
    let (kind, sentence) = told(&|r| r.segments[1].path = gone.clone());
    assert_eq!(
        (kind, sentence.ends_with("the spill is not there")),
        (ShuffleErrorKind::Missing, true)
    );
    let (kind, sentence) = told(&|r| r.segments[0].offset = 1);
    assert_eq!((kind, sentence.contains("damaged at byte")), (ShuffleErrorKind::Damaged, true));
    let (kind, sentence) = told(&|r| r.segments[0].path = PathBuf::from("/etc/passwd"));
    assert_eq!((kind, sentence.contains("none of the folders")), (ShuffleErrorKind::Request, true));
    let (kind, sentence) = told(&|r| r.memory_bytes = 100);
    assert_eq!(
        (kind, sentence.contains("too few for this merge")),
        (ShuffleErrorKind::Request, true)
    );
    std::os::unix::fs::symlink("/etc/passwd", fixture.folder.path().join("local/link"))
        .expect("made");
    let link = fixture.folder.path().join("local/link");
    let (kind, sentence) = told(&|r| r.segments[0].path = link.clone());
    assert_eq!((kind, sentence.contains("is a link or")), (ShuffleErrorKind::Request, true));

    client.ask(&merge(&spills, 0));
    assert!(client.answer().0 == merged(&spills), "nothing of it hurt");
    let events = fixture.events.lock().clone();
    assert_eq!(events.len(), 6, "{events:?}");
    assert!(events.iter().skip(1).all(|event| event.starts_with("merge failed: ")), "{events:?}");
}

#[test]
fn beyond_its_bounds_it_is_busy() {
    let fixture = Fixture::new(64 << 20, 1);
    let spills = fixture.spills(LARGE);
    let mut slow = fixture.connect();
    slow.ask(&merge(&spills, 0));
    let MergeFrame::Data(first) = slow.frame() else { panic!("no data") };
    let mut second = fixture.connect();
    second.ask(&merge(&spills, 0));
    let (kind, sentence) = second.error();
    assert_eq!(kind, ShuffleErrorKind::Busy);
    assert!(sentence.contains("all 1 merges are taken"), "{sentence}");
    let (rest, _) = slow.answer();
    assert!([first, rest].concat() == merged(&spills), "who reads slowly gets all of it");
    fixture.idle();
    second.ask(&merge(&spills, 0));
    assert!(second.answer().0 == merged(&spills), "and now it is the other's turn");

    let fixture = Fixture::new(1 << 20, 8);
    let spills = fixture.spills(LARGE);
    let mut first = fixture.connect();
    first.ask(&merge(&spills, 0));
    first.frame();
    let mut second = fixture.connect();
    second.ask(&merge(&spills, 0));
    let (kind, sentence) = second.error();
    let bound = sentence.contains(" of 1048576 in use");
    assert_eq!((kind, bound), (ShuffleErrorKind::Busy, true), "{sentence}");
}

#[test]
fn a_client_that_leaves_gives_back_what_it_had() {
    let fixture = Fixture::new(64 << 20, 2);
    let spills = fixture.spills(LARGE);
    for skip in [0, 1_000_000, u64::MAX] {
        for _ in 0..4 {
            let mut client = fixture.connect();
            client.ask(&merge(&spills, skip));
            drop(client);
            fixture.idle();
        }
    }
    let local = fixture.folder.path().join("local");
    let open = || {
        let all = fs::read_dir("/proc/self/fd").expect("Linux");
        let paths = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        paths.filter(|path: &PathBuf| path.starts_with(&local)).count()
    };
    // Memory is given back first, files are closed next.
    let end = Instant::now() + Duration::from_secs(20);
    while open() > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(open(), 0);
}

#[test]
fn hostile_clients_are_hung_up_on_and_harm_nobody() {
    let fixture = Fixture::new(4 << 20, 2);
    let spills = fixture.spills(100_000);
    let hello = ShuffleRequest::Hello.encode().expect("short");
    let lies: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"MGSH\x00\x02\x00\x01\x00\x00\x00\x00",
        b"MGSH\x00\x01\x00\x07\x00\x00\x00\x00",
        b"MGSH\x00\x01\x00\x01\xff\xff\xff\xff",
        b"MGSH\x00\x01\x00\x01\x00\x00\x00\x04abcd",
    ];
    for lie in lies {
        let mut client = fixture.connect();
        client.send(lie);
        assert_eq!(client.error().0, ShuffleErrorKind::Request);
        assert_eq!(client.next(), None, "and hung up on");
    }
    // Bodies that are announced and never come, more of them than there is memory for.
    let waiting: Vec<Client> = (0..40)
        .map(|_| {
            let mut client = fixture.connect();
            client.send(b"MGSH\x00\x01\x00\x01\x00\x10\x00\x00half");
            client
        })
        .collect();
    fixture.wait_for(0, 4 << 20);
    let mut asks = fixture.connect();
    asks.ask(&merge(&spills, 0));
    assert_eq!(asks.error().0, ShuffleErrorKind::Busy, "its memory is bounded");
    drop(waiting);
    fixture.idle();
    // A flood of connections that ask for nothing.
    let flood: Vec<UnixStream> = (0..1200)
        .map_while(|_| UnixStream::connect(fixture.folder.path().join("s")).ok())
        .collect();
    asks.stream = UnixStream::connect(fixture.folder.path().join("s")).expect("it listens");
    asks.ask(&merge(&spills, 0));
    assert!(asks.answer().0 == merged(&spills), "{} idle ones", flood.len());
    // A flood of requests whose answers are not read.
    let mut flood = fixture.connect().stream;
    flood.set_write_timeout(Some(Duration::from_millis(300))).expect("a socket");
    while flood.write_all(&hello.repeat(100)).is_ok() {}
    let mut client = fixture.connect();
    client.ask(&merge(&spills, 0));
    assert!(client.answer().0 == merged(&spills));
}

/// The process ends at a panic that is not contained.
#[test]
fn a_panic_ends_its_own_merge_only() {
    let cause: Arc<Mutex<Option<Cause>>> = Arc::default();
    let found = Arc::clone(&cause);
    let fixture = Fixture::with(|options| {
        options.describe = Box::new(move |_| {
            *found.lock() = contained::cause();
            panic!("as a mistake does")
        });
    });
    let spills = fixture.spills(100_000);
    let gone = fixture.folder.path().join("local/gone");
    let missing = SegmentSpec { path: gone, ..spills[0].clone() };
    let mut client = fixture.connect();
    client.ask(&merge(&[missing], 0));
    assert_eq!(client.next(), None, "hung up on");
    assert_eq!(*cause.lock(), Some(Cause::Mistake));
    assert_eq!(*fixture.events.lock(), ["a merge was ended by a mistake in this program"]);
    fixture.idle();
    let mut next = fixture.connect();
    next.ask(&merge(&spills, 0));
    assert!(next.answer().0 == merged(&spills));
}

#[test]
fn stopping_lets_merges_end_and_takes_no_more() {
    let fixture = Fixture::new(64 << 20, 4);
    let spills = fixture.spills(LARGE);
    let mut client = fixture.connect();
    client.ask(&merge(&spills, 0));
    let MergeFrame::Data(first) = client.frame() else { panic!("no data") };
    fixture.stopper.stop();
    assert!(UnixStream::connect(fixture.folder.path().join("s")).is_err());
    let (rest, end) = client.answer();
    assert!([first, rest].concat() == merged(&spills));
    assert!(matches!(end, MergeFrame::End { .. }));
    assert_eq!(client.next(), None);
}

/// How many pages of the file the page cache holds.
fn cached_pages(path: &Path) -> usize {
    let file = fs::File::open(path).expect("there");
    let len = file.metadata().expect("there").len() as usize;
    let mut pages = vec![0_u8; len.div_ceil(4096)];
    // SAFETY: a mapping of the file's length, which nothing reads through; the vector has a byte for
    // each of its pages, and no page is smaller than 4096 bytes.
    unsafe {
        let (none, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        let map = libc::mmap(none, len, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, len, pages.as_mut_ptr()), 0);
        libc::munmap(map, len);
    }
    pages.iter().filter(|page| **page & 1 == 1).count()
}

#[test]
fn what_was_served_leaves_the_page_cache_unless_it_may_stay() {
    for keep_cache in [false, true] {
        let fixture = Fixture::with(|options| options.keep_cache = keep_cache);
        let spills = fixture.spills(LARGE);
        for spill in &spills {
            let file = fs::File::options().write(true).open(&spill.path).expect("there");
            file.sync_all().expect("only what is on the disk can be dropped");
        }
        let mut client = fixture.connect();
        // An answer that was not read to its end may be asked for again.
        client.ask(&merge(&[spills[0].clone()], 0));
        assert!(matches!(client.next(), Some(MergeFrame::Data(_))));
        drop(client);
        fixture.wait_for(0, 0);
        assert!(cached_pages(&spills[0].path) > 900);

        let mut client = fixture.connect();
        client.ask(&merge(&spills, 0));
        while !matches!(client.next().expect("an answer"), MergeFrame::End { .. }) {}
        // Once it answers again it is done with the request before.
        client.ask(&ShuffleRequest::Hello);
        assert!(matches!(client.next(), Some(MergeFrame::Hello { .. })));
        for spill in &spills {
            let pages = cached_pages(&spill.path);
            // In a file system that is memory, nothing can be dropped.
            if !keep_cache && !is_memory(&spill.path) {
                assert!(pages < 10, "{pages} pages are there yet");
            } else {
                assert!(pages > 900, "{pages} pages are left");
            }
        }
        fixture.idle();
    }
}

fn is_memory(path: &Path) -> bool {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: the structure consists of integers, for which zero is a value; the name ends with NUL.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        assert_eq!(libc::statfs(path.as_ptr(), &raw mut about), 0);
        about.f_type == libc::TMPFS_MAGIC
    }
}

#[test]
fn a_live_socket_is_not_taken() {
    let fixture = Fixture::new(64 << 20, 4);
    let second = ShuffleServer::bind(ShuffleServerOptions {
        socket: fixture.folder.path().join("s"),
        socket_mode: 0o600,
        local_dirs: vec![],
        memory_bytes: 1 << 20,
        merges: 1,
        keep_cache: false,
        product: String::new(),
        describe: Box::new(ToString::to_string),
        on_event: Box::new(|_| ()),
    });
    let why = second.expect_err("taken").to_string();
    assert!(
        why.ends_with("a process listens there already; stop it or name another path"),
        "{why}"
    );
    assert!(Path::new(&fixture.folder.path().join("s")).exists());
    fixture.idle();
}
