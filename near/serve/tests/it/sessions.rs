//! Sessions without a network: their life, their limits, and SSDlets that misbehave.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

use merganser_map::ssdlet::{
    Chunk, Combine, Emitter, MemoryLender, Ssdlet, SsdletDescription, SsdletError, SsdletOutput,
    Type, Worker,
};
use merganser_serve::session::request::{OpenRequest, SessionRange, SetRequest, Wanted};
use merganser_serve::session::{
    GuestLimits, Offered, SessionError, SessionOptions, SessionState, SessionStatus, Sessions,
    SsdletOpener, key_and_value,
};
use merganser_sort::record::Format;
use merganser_storage::file::FileDirectory;
use serde_json::Value;

const LINES: Format = Format::Lines { delimiter: b'\n' };

/// SSDlets of these tests: `copy` gives its input back, the others misbehave.
struct Zoo {
    held: Arc<AtomicBool>,
}

struct Animal {
    description: SsdletDescription,
    held: Arc<AtomicBool>,
}

impl SsdletOpener for Zoo {
    fn open(
        &self,
        wanted: Wanted<'_>,
        args: &Value,
        _: GuestLimits,
        _: &dyn MemoryLender,
    ) -> Result<Option<Box<dyn Ssdlet>>, SsdletError> {
        let Wanted::Name(name) = wanted else { return Ok(None) };
        let output = match name {
            "copy" | "panic" | "fail" | "hold" | "enter" | "endless" => {
                SsdletOutput::Ordered { format: LINES }
            }
            "mixed" => {
                SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum }
            }
            _ => return Ok(None),
        };
        if args.get("bad").is_some() {
            let detail = "bad is no argument".to_owned();
            return Err(SsdletError::Args { ssdlet: name.to_owned(), detail });
        }
        let description =
            SsdletDescription { name: name.to_owned(), input: LINES, output, worker_bytes: 0 };
        Ok(Some(Box::new(Animal { description, held: Arc::clone(&self.held) })))
    }

    fn list(&self) -> Vec<Offered> {
        vec![Offered { name: "copy".to_owned(), about: "its input".to_owned() }]
    }

    fn upload(
        &self,
        _: &str,
        _: &[u8],
        _: &dyn MemoryLender,
    ) -> Result<SsdletDescription, SsdletError> {
        Err(SsdletError::Failed("not here".to_owned()))
    }
}

impl Ssdlet for Animal {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let (name, held) = (self.description.name.clone(), Arc::clone(&self.held));
        Ok(Box::new(Working { name, held }))
    }
}

struct Working {
    name: String,
    held: Arc<AtomicBool>,
}

impl Worker for Working {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        match &*self.name {
            "panic" => panic!("a mistake"),
            "fail" => {
                return Err(SsdletError::Record { offset: 7, detail: "it is odd".to_owned() });
            }
            "hold" | "enter" => {
                ENTERED.fetch_or(self.name == "enter", Ordering::Relaxed);
                while self.held.load(Ordering::Relaxed) {
                    sleep(Duration::from_millis(1));
                }
            }
            "endless" => out.records(&vec![b'x'; 9 << 20]),
            _ => {}
        }
        out.records(chunk.bytes);
        Ok(())
    }
}

/// A worker of `enter` is at work.
static ENTERED: AtomicBool = AtomicBool::new(false);

struct Node {
    dir: tempfile::TempDir,
    held: Arc<AtomicBool>,
    sessions: Sessions,
}

fn node_with(change: impl FnOnce(&mut SessionOptions)) -> Node {
    let dir = tempfile::tempdir().expect("a folder");
    for folder in ["data", "temp"] {
        fs::create_dir(dir.path().join(folder)).expect("made");
    }
    fs::write(dir.path().join("data/a"), "b a\nb\n").expect("written");
    fs::write(dir.path().join("data/c"), "c\n").expect("written");
    let held = Arc::new(AtomicBool::new(true));
    let mut options = SessionOptions {
        data: dir.path().join("data"),
        temp: FileDirectory::open(dir.path().join("temp")).expect("there"),
        memory_bytes: 256 << 20,
        threads: 3,
        sessions_max: 4,
        idle: Duration::from_secs(600),
        scratch_bytes: 64 << 20,
        opener: Arc::new(Zoo { held: Arc::clone(&held) }),
    };
    change(&mut options);
    Node { dir, held, sessions: Sessions::new(options).expect("a thread") }
}

fn node() -> Node {
    node_with(|_| {})
}

impl Node {
    fn open(&self, ssdlet: &str) -> String {
        let request = OpenRequest { ssdlet: Some(ssdlet.to_owned()), ..OpenRequest::default() };
        self.sessions.open(&request).expect("opened").session
    }

    fn set(&self, id: &str, ranges: &[SessionRange]) -> Result<SessionStatus, SessionError> {
        self.sessions.set(id, &SetRequest { ranges: ranges.to_vec(), run: false })
    }

    fn rows(&self, id: &str, from: u64) -> Result<Vec<Vec<u8>>, SessionError> {
        let getting = self.sessions.get(id)?;
        let (sender, over) = mpsc::channel();
        getting.when_over(move || sender.send(()).expect("heard"));
        over.recv_timeout(Duration::from_secs(30)).expect("it ends");
        let mut reader = getting.results()?.expect("it is over").read(from)?;
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row()? {
            rows.push(row.to_vec());
        }
        Ok(rows)
    }

    fn wait_for(&self, id: &str, state: SessionState) -> SessionStatus {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let status = self.sessions.status(id).expect("open");
            if status.state == state {
                return status;
            }
            assert!(Instant::now() < until, "{status:?}");
            sleep(Duration::from_millis(1));
        }
    }
}

fn counts(rows: &[Vec<u8>]) -> Vec<(String, i64)> {
    let count = |row: &Vec<u8>| {
        let (key, value) = key_and_value(row);
        let value = i64::from_le_bytes(row[value].try_into().expect("8 bytes"));
        (String::from_utf8(row[key].to_vec()).expect("UTF-8"), value)
    };
    rows.iter().map(count).collect()
}

#[test]
fn a_session_counts_words_again_and_again() {
    let node = node();
    let id = node.open("wordcount");
    assert!(matches!(node.rows(&id, 0), Err(SessionError::State(_))), "nothing was set");
    node.set(&id, &[SessionRange::of_path("a")]).expect("set");
    node.set(&id, &[SessionRange::of_path("c"), SessionRange::of_path("a")]).expect("set");
    let all = [("a".to_owned(), 2), ("b".to_owned(), 4), ("c".to_owned(), 1)];
    assert_eq!(counts(&node.rows(&id, 0).expect("done")), all);
    assert_eq!(counts(&node.rows(&id, 1).expect("done")), all[1..], "from any row on");
    assert!(node.rows(&id, 3).expect("done").is_empty());
    assert!(matches!(node.rows(&id, 4), Err(SessionError::Invalid(_))));
    let status = node.sessions.status(&id).expect("open");
    assert_eq!(
        (status.state, status.run, status.ranges, status.rows),
        (SessionState::Done, 1, 3, 3)
    );
    assert!(status.kept_bytes > 0 && status.memory > 0 && status.threads > 0, "{status:?}");

    node.set(&id, &[SessionRange::of_path("c")]).expect("a new run");
    let status = node.sessions.status(&id).expect("open");
    assert_eq!((status.run, status.ranges, status.kept_bytes), (2, 1, 0), "results are gone");
    assert_eq!(counts(&node.rows(&id, 0).expect("done")), [("c".to_owned(), 1)]);
    node.sessions.close(&id).expect("open");
    assert!(matches!(node.sessions.status(&id), Err(SessionError::NoSession { .. })));
    assert_eq!(fs::read_dir(node.dir.path().join("temp")).expect("there").count(), 0);
}

#[test]
fn ranges_that_adjoin_have_every_record_once() {
    let node = node();
    let lines: String = (0..5000).map(|i| format!("line {}\n", i * i)).collect();
    fs::write(node.dir.path().join("data/lines"), &lines).expect("written");
    for cut in [0, 1, 7, 1000, 1001, lines.len() as u64] {
        let id = node.open("copy");
        let first = SessionRange { length: Some(cut), ..SessionRange::of_path("lines") };
        let rest = SessionRange { start: cut, ..SessionRange::of_path("lines") };
        node.set(&id, &[first, rest]).expect("set");
        assert_eq!(node.rows(&id, 0).expect("done").concat(), lines.as_bytes(), "cut at {cut}");
        node.sessions.close(&id).expect("open");
    }
}

/// The bytes of a compressed file are no records, wherever a range of it begins.
#[test]
fn a_part_of_a_compressed_file_is_refused_and_all_of_it_is_not() {
    let node = node();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"b a\nb\n").expect("memory");
    let packed = packed.finish().expect("memory");
    let size = packed.len() as u64;
    fs::write(node.dir.path().join("data/a.gz"), packed).expect("written");
    let rows = |start, length| {
        let id = node.open("copy");
        node.set(&id, &[SessionRange { start, length, ..SessionRange::of_path("a.gz") }])
            .expect("set");
        let rows = node.rows(&id, 0).map(|rows| rows.concat());
        node.sessions.close(&id).expect("open");
        rows.map_err(|error| error.to_string())
    };
    for length in [None, Some(size), Some(u64::MAX)] {
        assert_eq!(rows(0, length).expect("all of it"), b"b a\nb\n");
    }
    for (start, length) in [(0, Some(size - 1)), (1, None), (4, Some(5))] {
        let told = rows(start, length).expect_err("a part");
        assert!(told.starts_with("a.gz: it is compressed"), "{told}");
    }
}

/// Nothing is mapped of a file of another kind, and its session can continue.
#[test]
fn a_file_that_is_no_text_is_refused() {
    let node = node();
    fs::write(node.dir.path().join("data/x.parquet"), b"PAR1\x15\x04\nb\n").expect("written");
    let id = node.open("copy");
    node.set(&id, &[SessionRange::of_path("c"), SessionRange::of_path("x.parquet")]).expect("set");
    let told = node.rows(&id, 0).expect_err("refused").to_string();
    assert!(told.contains("x.parquet: is a Parquet file, which is not read here"), "{told}");
    node.sessions.close(&id).expect("open");
}

#[test]
fn a_blob_is_an_input_of_a_later_run() {
    let node = node_with(|options| options.scratch_bytes = 1 << 20);
    let id = node.open("copy");
    let mut blob = node.sessions.put(&id, "part").expect("room");
    blob.write(b"x\n").expect("room");
    blob.write(b"y\n").expect("room");
    assert_eq!(blob.finish().expect("room").bytes, 4);
    let range = SessionRange { blob: Some("part".to_owned()), ..SessionRange::default() };
    node.set(&id, &[range, SessionRange::of_path("c")]).expect("set");
    assert_eq!(node.rows(&id, 0).expect("done"), [b"x\n", b"y\n", b"c\n"]);
    let mut large = node.sessions.put(&id, "large").expect("room");
    let refused = large.write(&vec![0; 2 << 20]).expect_err("too large");
    assert!(refused.to_string().contains("1048576"), "{refused}");
    drop(large);
    let unfinished = node.sessions.status(&id).expect("open");
    assert_eq!(unfinished.blobs.len(), 1);
    // The blob's 4 bytes and the result's 6.
    assert_eq!(unfinished.kept_bytes, 10);
    let other = node.open("copy");
    let range = SessionRange { blob: Some("part".to_owned()), ..SessionRange::default() };
    node.set(&other, &[range]).expect("set");
    assert!(node.rows(&other, 0).is_err(), "blobs are their session's own");
}

#[test]
fn a_failing_ssdlet_ends_its_own_run_with_one_sentence() {
    let node = node();
    let good = node.open("copy");
    for (name, told) in
        [("fail", "a: at byte 7: it is odd"), ("panic", "mistake"), ("endless", "more than")]
    {
        let id = node.open(name);
        node.set(&id, &[SessionRange::of_path("a")]).expect("set");
        let failed = node.rows(&id, 0).expect_err("it fails").to_string();
        assert!(failed.contains(told) && !failed.contains('\n'), "{failed}");
        assert_eq!(node.sessions.status(&id).expect("open").error, Some(failed));
        node.set(&id, &[SessionRange::of_path("a")]).expect("a new run");
        node.sessions.close(&id).expect("open");
    }
    node.set(&good, &[SessionRange::of_path("c")]).expect("set");
    assert_eq!(node.rows(&good, 0).expect("done"), [b"c\n"]);
}

#[test]
fn files_elsewhere_are_refused_when_they_are_set_or_opened() {
    let node = node();
    fs::write(node.dir.path().join("secret"), "secret").expect("written");
    std::os::unix::fs::symlink("../secret", node.dir.path().join("data/link")).expect("made");
    let id = node.open("copy");
    let absolute = node.dir.path().join("secret").display().to_string();
    for path in ["../secret", &absolute, "a/../../secret", ""] {
        let refused = node.set(&id, &[SessionRange::of_path(path)]).expect_err("refused");
        assert!(matches!(refused, SessionError::Refused { .. }), "{path}: {refused}");
    }
    for path in ["link", "missing", "."] {
        let refused = node.set(&id, &[SessionRange::of_path(path)]).and_then(|_| node.rows(&id, 0));
        let told = refused.expect_err("refused").to_string();
        assert!(told.starts_with(path), "{told}");
        assert!(!told.contains(Path::new(&absolute).parent().unwrap().to_str().unwrap()), "{told}");
    }
}

#[test]
fn runs_wait_for_their_turn_and_can_be_cancelled() {
    let node = node_with(|options| options.threads = 1);
    let (first, second, third) = (node.open("hold"), node.open("copy"), node.open("copy"));
    let go = SetRequest { ranges: vec![SessionRange::of_path("c")], run: true };
    node.sessions.set(&first, &go).expect("set");
    node.wait_for(&first, SessionState::Running);
    node.sessions.set(&second, &go).expect("set");
    node.sessions.set(&third, &go).expect("set");
    assert_eq!(node.sessions.status(&second).expect("open").state, SessionState::Queued);
    assert!(matches!(node.sessions.set(&first, &go), Err(SessionError::State(_))));
    assert!(matches!(node.sessions.set(&second, &go), Err(SessionError::State(_))));
    node.sessions.cancel(&second).expect("open");
    node.wait_for(&second, SessionState::Cancelled);
    assert!(matches!(node.rows(&second, 0), Err(SessionError::Cancelled)));
    node.held.store(false, Ordering::Relaxed);
    assert_eq!(node.rows(&third, 0).expect("done"), [b"c\n"]);
    assert_eq!(node.rows(&first, 0).expect("done"), [b"c\n"]);
    node.set(&second, &[SessionRange::of_path("c")]).expect("a new run");
    assert_eq!(node.rows(&second, 0).expect("done"), [b"c\n"]);
}

/// A session keeps the names in its ranges, and no budget counts them.
#[test]
fn the_names_of_a_run_are_bounded() {
    let node = node();
    let id = node.open("copy");
    let long = vec![SessionRange::of_path("x".repeat(4096)); 1100];
    node.set(&id, &long).expect("some MiB");
    let told = node.set(&id, &long).expect_err("too many bytes").to_string();
    assert!(told.contains("at most 8388608 bytes"), "{told}");
    assert_eq!(node.sessions.status(&id).expect("open").ranges, 1100);
}

/// Another client of the session may begin a new run at the moment when the first one is over: a GET of that
/// one waits no more, and does not get the rows of the other.
#[test]
fn a_get_belongs_to_its_run() {
    let node = node();
    let id = node.open("hold");
    let go = SetRequest { ranges: vec![SessionRange::of_path("c")], run: true };
    node.held.store(false, Ordering::Relaxed);
    node.sessions.set(&id, &go).expect("set");
    let getting = node.sessions.get(&id).expect("open");
    node.wait_for(&id, SessionState::Done);
    assert!(getting.results().expect("over").is_some());
    node.held.store(true, Ordering::Relaxed);
    node.sessions.set(&id, &go).expect("a new run");
    node.wait_for(&id, SessionState::Running);
    assert!(matches!(getting.results(), Err(SessionError::State(_))), "not the new run");
    node.held.store(false, Ordering::Relaxed);
    node.wait_for(&id, SessionState::Done);
    assert!(matches!(getting.results(), Err(SessionError::State(_))), "not its rows");
}

/// A client that asks for the rows of a long run and hangs up, again and again, leaves nothing.
#[test]
fn a_get_that_is_given_up_is_forgotten() {
    let node = node();
    let id = node.open("hold");
    let go = SetRequest { ranges: vec![SessionRange::of_path("c")], run: true };
    node.sessions.set(&id, &go).expect("set");
    node.wait_for(&id, SessionState::Running);
    let waits = Arc::new(());
    let getting = node.sessions.get(&id).expect("open");
    let held = Arc::clone(&waits);
    getting.when_over(move || drop(held));
    assert_eq!(Arc::strong_count(&waits), 2);
    drop(getting);
    assert_eq!(Arc::strong_count(&waits), 1, "nobody waits");
    node.held.store(false, Ordering::Relaxed);
    assert_eq!(node.rows(&id, 0).expect("done"), [b"c\n"]);
}

/// All sessions share the descriptors of the server, so a run has few of its files open at once.
#[test]
fn a_run_of_many_files_has_few_of_them_open() {
    let node = node();
    let names: Vec<_> = (0..300).map(|n| format!("{n:03}")).collect();
    let data = node.dir.path().join("data");
    names.iter().for_each(|name| fs::write(data.join(name), format!("{name}\n")).expect("written"));
    let ranges: Vec<_> = names.iter().map(SessionRange::of_path).collect();
    let go = SetRequest { ranges, run: true };
    let begin = |id: &str| {
        node.held.store(true, Ordering::Relaxed);
        node.sessions.set(id, &go).expect("set");
        let until = Instant::now() + Duration::from_secs(30);
        while node.sessions.status(id).expect("open").bytes_total == 0 {
            assert!(Instant::now() < until, "it does not begin");
            sleep(Duration::from_millis(1));
        }
    };
    let id = node.open("hold");
    begin(&id);
    let fds = fs::read_dir("/proc/self/fd").expect("listed");
    let links = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    let open = links.filter(|link| link.starts_with(&data)).count();
    assert!(open <= 30, "{open} files are open");
    node.held.store(false, Ordering::Relaxed);
    let rows = node.rows(&id, 0).expect("done");
    assert_eq!(
        rows.concat(),
        names.iter().map(|name| format!("{name}\n")).collect::<String>().into_bytes()
    );

    begin(&id);
    fs::write(data.join("new"), "new\n").expect("written");
    fs::rename(data.join("new"), data.join("150")).expect("renamed");
    node.held.store(false, Ordering::Relaxed);
    let told = node.rows(&id, 0).expect_err("another file").to_string();
    assert!(told.starts_with("150: another file has taken its name"), "{told}");
}

#[test]
fn sessions_are_limited_and_idle_ones_end() {
    let node = node_with(|options| options.idle = Duration::from_secs(10));
    let ids: Vec<_> = (0..4).map(|_| node.open("copy")).collect();
    let fifth = OpenRequest { ssdlet: Some("copy".to_owned()), ..OpenRequest::default() };
    assert!(matches!(node.sessions.open(&fifth), Err(SessionError::Busy { .. })));
    let kept = node.sessions.look(&ids[0]).expect("open");
    let until = Instant::now() + Duration::from_secs(60);
    while node.sessions.list().sessions > 1 {
        assert!(Instant::now() < until, "idle sessions stay");
        sleep(Duration::from_millis(10));
    }
    node.sessions.status(&ids[0]).expect("a session in use stays");
    drop(kept);
    node.sessions.open(&fifth).expect("there is room again");
    let mut different = ids;
    different.dedup();
    assert_eq!(different.len(), 4, "ids are random");
}

#[test]
fn what_there_is_not_is_named() {
    let node = node();
    let open = |name: &str, args: &str| {
        let args = serde_json::from_str(args).expect("JSON");
        let name = Some(name.to_owned());
        node.sessions.open(&OpenRequest { ssdlet: name, args, ..OpenRequest::default() })
    };
    let told = open("nothing", "{}").expect_err("there is none").to_string();
    assert!(told.contains("no SSDlet named nothing"), "{told}");
    assert!(matches!(open("copy", r#"{"bad":1}"#), Err(SessionError::Invalid(_))));
    assert!(node.sessions.list().ssdlets.iter().any(|offered| offered.name == "wordcount"));
    assert!(node.sessions.list().ssdlets.iter().any(|offered| offered.name == "copy"));
}

#[test]
fn only_the_first_rows_are_kept_where_no_more_are_wanted() {
    let node = node();
    let lines: String = (0..1000).map(|i| format!("{i}\n")).collect();
    fs::write(node.dir.path().join("data/lines"), lines).expect("written");
    let request = OpenRequest {
        ssdlet: Some("sample".to_owned()),
        args: serde_json::json!({ "count": 3 }),
        ..OpenRequest::default()
    };
    let opened = node.sessions.open(&request).expect("opened");
    assert_eq!(opened.rows_most, Some(3), "clients that would merge rows of several runs know it");
    node.set(&opened.session, &[SessionRange::of_path("lines")]).expect("set");
    assert_eq!(node.rows(&opened.session, 0).expect("done").len(), 3);
    let all = OpenRequest { ssdlet: Some("copy".to_owned()), ..OpenRequest::default() };
    assert_eq!(node.sessions.open(&all).expect("opened").rows_most, None);
}

#[test]
fn the_end_of_the_server_ends_runs() {
    let node = node();
    let id = node.open("enter");
    let go = SetRequest { ranges: vec![SessionRange::of_path("c")], run: true };
    node.sessions.set(&id, &go).expect("set");
    while !ENTERED.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(1));
    }
    let held = Arc::clone(&node.held);
    let release = std::thread::spawn(move || {
        sleep(Duration::from_millis(50));
        held.store(false, Ordering::Relaxed);
    });
    node.sessions.end(Duration::from_secs(30));
    assert!(!node.held.load(Ordering::Relaxed), "it waited for the run");
    assert!(matches!(node.sessions.status(&id), Err(SessionError::NoSession { .. })));
    let fresh = OpenRequest { ssdlet: Some("copy".to_owned()), ..OpenRequest::default() };
    assert!(matches!(node.sessions.open(&fresh), Err(SessionError::Busy { .. })));
    release.join().expect("no panic");
}
