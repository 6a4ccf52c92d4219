//! smartFAM: two sides on one folder, with and without inotify; torn records at every byte; a node that
//! is killed at every step; a full disk; too few open files; files that are no logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use merganser_map::frame;
use merganser_map::ssdlet::Installed;
use merganser_map::ssdlet::{
    Chunk, Emitter, Ssdlet, SsdletDescription, SsdletError, Worker, builtin,
};
use merganser_serve::smart_fam;
use merganser_serve::smart_fam::{
    CallError, CallRequest, CallResult, INLINE_MAX, ModuleClient, PollIntervals, Serve, serve,
};
use merganser_testkit::{within, word_counts};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);

const POLLING: PollIntervals = PollIntervals {
    least: Duration::from_millis(1),
    most: Duration::from_millis(20),
    inotify: false,
};

/// A folder of logs, and one of data with some inputs.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("made");
        let place = Place { dir };
        fs::create_dir_all(place.data().join("sub")).expect("made");
        fs::write(place.data().join("small"), "b a\na\n").expect("written");
        let many: String = (0..9000).map(|n| format!("word{n} same\n")).collect();
        fs::write(place.data().join("sub/large"), many).expect("written");
        place
    }

    fn logs(&self) -> PathBuf {
        self.dir.path().join("logs")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn module(&self) -> PathBuf {
        self.logs().join("wordcount")
    }

    fn settings(&self, waiting: PollIntervals) -> Serve {
        settings(&self.logs(), &self.data(), waiting)
    }

    fn node(&self, waiting: PollIntervals) -> Node {
        self.node_of(self.settings(waiting))
    }

    fn node_of(&self, serving: Serve) -> Node {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(&serving, &stopped).expect("served"));
        for _ in 0..2000 {
            if self.module().is_dir() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Node { stop, thread: Some(thread) }
    }

    fn client(&self, name: &str) -> ModuleClient {
        ModuleClient::new(&self.logs(), name, POLLING).expect("a name")
    }

    fn answers(&self, client: &str) -> Vec<u8> {
        fs::read(self.module().join(format!("{client}.res"))).unwrap_or_default()
    }
}

fn settings(logs: &Path, data: &Path, waiting: PollIntervals) -> Serve {
    Serve {
        folder: logs.to_owned(),
        data: data.to_owned(),
        modules: vec!["wordcount".to_owned()],
        installed: Arc::new(builtin::open),
        memory_bytes: 64 << 20,
        threads: 1,
        temp: Vec::new(),
        waiting,
    }
}

/// A node in a thread, stopped when it is dropped.
struct Node {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

fn counts(result: CallResult) -> BTreeMap<String, i64> {
    let CallResult::Rows(rows) = result else { panic!("{result:?}") };
    word_counts(rows)
}

fn small() -> BTreeMap<String, i64> {
    BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)])
}

fn call(client: &mut ModuleClient, inputs: &[&str]) -> Result<BTreeMap<String, i64>, CallError> {
    client.call("wordcount", &json!({}), inputs, LIMIT).map(counts)
}

/// The record of a request for the counts of the words in `small`.
fn record(id: u64) -> Vec<u8> {
    let request = CallRequest { args: json!({}), inputs: vec!["small".to_owned()] };
    frame::encode(smart_fam::MAGIC, id, &request, 1000).expect("short")
}

#[test]
fn several_clients_call_with_inotify_and_without() {
    for waiting in [POLLING, PollIntervals::default()] {
        let place = Place::new();
        let node = place.node(waiting);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let place = &place;
                scope.spawn(move || {
                    let name = format!("client-{number}");
                    let mut client =
                        ModuleClient::new(&place.logs(), &name, waiting).expect("a name");
                    for _ in 0..5 {
                        assert_eq!(call(&mut client, &["small"]).expect("answered"), small());
                    }
                    let large = call(&mut client, &["sub/large", "small"]).expect("answered");
                    assert_eq!((large.len(), large["same"], large["word77"]), (9003, 9000, 1));
                    assert!(place.module().join(format!("{name}.6.rows")).is_file());
                    client.close();
                });
            }
        });
        // The node removes what was made for clients that have ended.
        within(&"removal", LIMIT, {
            let module = place.module();
            move || {
                while fs::read_dir(&module).expect("there").count() > 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        drop(node);
    }
}

#[test]
fn errors_come_back_as_sentences() {
    let place = Place::new();
    let _node = place.node(POLLING);
    let mut client = place.client("c");
    let mut said = |inputs: &[&str]| call(&mut client, inputs).expect_err("refused").to_string();
    assert_eq!(said(&["../secret"]), "../secret: a path has no .., no . and no empty name in it");
    assert_eq!(said(&["sub"]), "sub: it is no regular file");
    assert_eq!(said(&["none"]), "none: there is no such file");
    let none = client.call("sort", &json!({}), &[], LIMIT).expect_err("no module").to_string();
    assert!(none.starts_with("no node serves sort in "), "{none}");
    assert!(ModuleClient::new(&place.logs(), "../x", POLLING).is_err());
    assert!(matches!(client.call("../x", &json!({}), &[], LIMIT), Err(CallError::Name(_))));
    assert_eq!(call(&mut client, &["small"]).expect("answered"), small(), "it goes on");
}

/// Counts words, and panics if it is asked to.
fn panicking(name: &str, args: &Value) -> Result<Box<dyn Ssdlet>, SsdletError> {
    assert!(args.get("panic").is_none(), "as asked");
    builtin::open(name, args)
}

#[test]
fn a_panic_ends_the_call_that_made_it_and_no_other() {
    let place = Place::new();
    let installed: Installed = Arc::new(panicking);
    let _node = place.node_of(Serve { installed, ..place.settings(POLLING) });
    let mut client = place.client("c");
    let asked = client.call("wordcount", &json!({"panic": 1}), &["small"], LIMIT);
    let said = asked.expect_err("it panicked").to_string();
    assert_eq!(said, "the call was ended by a mistake in this program");
    assert_eq!(call(&mut client, &["small"]).expect("answered"), small());
}

#[test]
fn a_number_has_one_answer() {
    let place = Place::new();
    let node = place.node(POLLING);
    let mut client = place.client("c");
    assert_eq!(call(&mut client, &["small"]).expect("answered"), small());
    // The input changes; the answer to number 1 does not.
    fs::write(place.data().join("small"), "other\n").expect("written");
    let again = client.ask("wordcount", 1, &json!({}), &["small"], LIMIT).expect("answered");
    assert_eq!(counts(again), small());
    assert_ne!(call(&mut client, &["small"]).expect("answered"), small());
    // A client of the same name after a crash, and another node.
    drop((client, node));
    let before = place.answers("c");
    let _node = place.node(POLLING);
    let mut client = place.client("c");
    let again = client.ask("wordcount", 1, &json!({}), &["small"], LIMIT).expect("answered");
    assert_eq!(counts(again), small());
    assert_eq!(call(&mut client, &["small"]).expect("answered").len(), 1);
    assert!(place.answers("c").starts_with(&before), "what was answered stays");
    // A request that a client sent twice is answered twice, with the same bytes.
    let mut file =
        OpenOptions::new().append(true).open(place.module().join("c.req")).expect("open");
    let len = place.answers("c").len();
    file.write_all(&record(1)).expect("written");
    within(&"an answer", LIMIT, {
        let path = place.module().join("c.res");
        move || {
            while fs::metadata(&path).expect("there").len() as usize == len {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    let answers = place.answers("c");
    assert!(answers.starts_with(&before[..]) && answers[len..] == before[..answers.len() - len]);
}

/// Only one of two nodes serves: both would append to one file.
#[test]
fn a_folder_has_one_node() {
    let place = Place::new();
    let node = place.node(POLLING);
    let refused = serve(&place.settings(POLLING), &AtomicBool::new(true)).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        format!("{}: another node serves this folder", place.logs().display())
    );
    drop(node);
    serve(&place.settings(POLLING), &AtomicBool::new(true)).expect("the other one has ended");
}

/// A client that ended while no node was there leaves nothing for ever.
#[test]
fn what_ended_clients_leave_is_removed_by_the_next_node() {
    let place = Place::new();
    let node = place.node(POLLING);
    for name in ["gone", "here"] {
        let mut client = place.client(name);
        call(&mut client, &["sub/large"]).expect("answered");
    }
    drop(node);
    fs::write(place.module().join(".gone.2.rows.part"), b"x").expect("written");
    fs::write(place.module().join("notes"), b"x").expect("written");
    fs::remove_file(place.module().join("gone.req")).expect("there");
    let _node = place.node(POLLING);
    call(&mut place.client("here"), &["small"]).expect("answered");
    let names = fs::read_dir(place.module()).expect("there");
    let mut names: Vec<_> =
        names.map(|entry| entry.expect("there").file_name().into_string().expect("text")).collect();
    names.sort();
    assert_eq!(names, ["here.1.rows", "here.req", "here.res", "notes"]);
}

/// A node that was killed may leave the part of a result to a client that is still there.
#[test]
fn parts_of_results_are_removed_with_their_client() {
    let place = Place::new();
    let _node = place.node(POLLING);
    let mut client = place.client("c");
    call(&mut client, &["sub/large"]).expect("answered");
    fs::write(place.module().join(".c.9.rows.part"), b"x").expect("written");
    client.close();
    let begun = Instant::now();
    while fs::read_dir(place.module()).expect("there").count() > 0 {
        assert!(begun.elapsed() < LIMIT, "not removed");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An SSDlet that takes a fifth of a second for each chunk.
struct Slow(Box<dyn Ssdlet>);

impl Ssdlet for Slow {
    fn description(&self) -> &SsdletDescription {
        self.0.description()
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(SlowWorker(self.0.worker()?)))
    }
}

struct SlowWorker(Box<dyn Worker>);

impl Worker for SlowWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        std::thread::sleep(Duration::from_millis(200));
        self.0.chunk(chunk, out)
    }
}

/// A node that is to end does not finish a long map, and does not answer it either: the next one does.
#[test]
fn a_request_that_a_stop_interrupts_is_answered_by_the_next_node() {
    let place = Place::new();
    let long: String = (0..3_000_000).map(|n| format!("w{} x\n", n % 9999)).collect();
    fs::write(place.data().join("long"), long).expect("written");
    let installed: Installed =
        Arc::new(|name: &str, args: &Value| Ok(Box::new(Slow(builtin::open(name, args)?)) as _));
    let node = place.node_of(Serve { installed, ..place.settings(POLLING) });
    let mut client = place.client("c");
    let mut ask = |limit| client.ask("wordcount", 1, &json!({}), &["long"], limit);
    let early = ask(Duration::from_millis(30));
    assert!(matches!(early, Err(CallError::Timeout { .. })), "{early:?}");
    drop(node);
    assert!(place.answers("c").is_empty(), "no answer, rather than a wrong one");
    let _node = place.node(POLLING);
    let rows = counts(ask(Duration::from_secs(60)).expect("answered"));
    assert_eq!((rows.len(), rows["x"]), (10_000, 3_000_000));
}

/// A request that arrives in two parts, cut at every byte, is awaited and then answered.
#[test]
fn torn_requests_are_awaited() {
    let place = Place::new();
    let _node = place.node(POLLING);
    let record = record(1);
    let names: Vec<String> = (0..record.len()).map(|cut| format!("c{cut}")).collect();
    for (cut, name) in names.iter().enumerate() {
        fs::write(place.module().join(format!("{name}.req")), &record[..cut]).expect("written");
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(names.iter().all(|name| place.answers(name).is_empty()));
    for (cut, name) in names.iter().enumerate() {
        let path = place.module().join(format!("{name}.req"));
        let mut file = OpenOptions::new().append(true).open(path).expect("there");
        file.write_all(&record[cut..]).expect("written");
    }
    for name in &names {
        let answer = place.client(name).ask("wordcount", 1, &json!({}), &["small"], LIMIT);
        assert_eq!(counts(answer.expect("answered")), small(), "{name}");
    }
}

/// A node was killed when it had written a part of its answer: the next one cuts them off and
/// answers again. A client was killed in its request: the same.
#[test]
fn torn_ends_are_cut_off_by_their_writers() {
    let place = Place::new();
    let node = place.node(POLLING);
    let mut client = place.client("c");
    call(&mut client, &["small"]).expect("answered");
    let first = place.answers("c").len();
    call(&mut client, &["small"]).expect("answered");
    drop((client, node));
    let (answers, requests) =
        (place.answers("c"), fs::read(place.module().join("c.req")).expect("there"));
    for cut in first..=answers.len() {
        fs::write(place.module().join("c.res"), &answers[..cut]).expect("written");
        let _node = place.node(POLLING);
        let answer = place.client("c").ask("wordcount", 2, &json!({}), &["small"], LIMIT);
        assert_eq!(counts(answer.expect("answered")), small(), "{cut}");
    }
    for cut in requests.len() / 2..requests.len() {
        fs::write(place.module().join("c.req"), &requests[..cut]).expect("written");
        let _node = place.node(POLLING);
        assert_eq!(call(&mut place.client("c"), &["small"]).expect("answered"), small(), "{cut}");
    }
}

/// The node's process of the test below.
#[test]
fn a_node_in_a_process_of_its_own() {
    let Ok(folder) = std::env::var("MERGANSER_TEST_NODE") else { return };
    let folder = PathBuf::from(folder);
    let serving = settings(&folder.join("logs"), &folder.join("data"), POLLING);
    serve(&serving, &AtomicBool::new(false)).expect("served");
}

fn process(place: &Place) -> Child {
    start(place, Command::new(std::env::current_exe().expect("this test")))
}

/// Starts the test above by `command`.
fn start(place: &Place, mut command: Command) -> Child {
    command
        .args(["--exact", "smart_fam::a_node_in_a_process_of_its_own", "--nocapture"])
        .env("MERGANSER_TEST_NODE", place.dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started")
}

/// The process of a node, killed when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Process {
    /// Starts it by bash after `command`, with the folder of its module.
    fn after(command: &str, place: &Place) -> Process {
        fs::create_dir_all(place.module()).expect("made");
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("{command}; exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().expect("this test"));
        Process(start(place, bash))
    }

    /// Sets its soft limit, or the one that it can have at most.
    fn limit(&self, resource: Resource, current: Option<u64>) {
        let maximum = getrlimit(resource).maximum;
        let limits = Rlimit { current: current.or(maximum), maximum };
        prlimit(Some(Pid::from_child(&self.0)), resource, limits).expect("allowed");
    }

    /// The numbers of the files that it has open all the time: at each of some moments.
    fn open_files(&self) -> BTreeSet<u64> {
        let path = format!("/proc/{}/fd", self.0.id());
        let number = |entry: io::Result<fs::DirEntry>| {
            let name = entry.expect("it runs").file_name();
            name.to_str().and_then(|name| name.parse().ok()).expect("a number")
        };
        let moment = |_| -> BTreeSet<u64> {
            std::thread::sleep(Duration::from_millis(1));
            fs::read_dir(&path).expect("it runs").map(number).collect()
        };
        (0..20).map(moment).reduce(|all, moment| &all & &moment).expect("some")
    }
}

/// An answer that can't be written is given when there is room, and later requests are answered, too.
#[test]
fn answers_wait_for_room_on_a_full_disk() {
    let place = Place::new();
    // No file of the node is longer than a KiB.
    let node = Process::after("trap '' XFSZ; ulimit -S -f 1 || exit 9", &place);
    let mut client = place.client("c");
    call(&mut client, &["small"]).expect("answered");
    let fitting = 1024 / place.answers("c").len() as u64;
    for _ in 1..fitting {
        call(&mut client, &["small"]).expect("answered");
    }
    let late = client.call("wordcount", &json!({}), &["small"], Duration::from_millis(600));
    assert!(matches!(late, Err(CallError::Timeout { .. })), "{late:?}");
    node.limit(Resource::Fsize, None);
    assert_eq!(call(&mut client, &["small"]).expect("answered"), small());
    let (bytes, mut at, mut given) = (place.answers("c"), 0, Vec::new());
    while let Some((found, len)) =
        frame::RecordFrame::decode(smart_fam::MAGIC, smart_fam::BODY_MAX, &bytes[at..])
            .expect("whole")
    {
        given.push(found.id);
        at += len;
    }
    assert_eq!(given, (1..=fitting + 2).collect::<Vec<_>>());
    assert_eq!(at, bytes.len());
}

/// A node that can't open a file for a while serves its clients again when it can. A client that has ended has no
/// open file.
#[test]
fn clients_are_served_again_after_the_open_files_were_used_up() {
    let place = Place::new();
    let node = Process::after("true", &place);
    let mut client = place.client("c");
    call(&mut client, &["small"]).expect("answered");
    client.close();
    let gone = |name: &str| {
        let (path, begun) = (place.module().join(format!("{name}.res")), Instant::now());
        while path.exists() {
            assert!(begun.elapsed() < LIMIT, "{name} is not removed");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    gone("c");
    let idle = node.open_files();
    let mut client = place.client("c");
    call(&mut client, &["small"]).expect("answered");
    for more in 0..6 {
        let name = format!("new-{more}");
        let open = node.open_files();
        let free = (0..).find(|number| !open.contains(number)).expect("one");
        node.limit(Resource::Nofile, Some(free + more));
        fs::write(place.module().join(format!("{name}.req")), record(1)).expect("written");
        // The answer, if there is one, may be the error that an input can't be opened.
        let _ = client.call("wordcount", &json!({}), &["small"], Duration::from_millis(400));
        node.limit(Resource::Nofile, None);
        assert_eq!(call(&mut client, &["small"]).expect("answered"), small(), "{more}");
        let mut new = place.client(&name);
        let first = new.ask("wordcount", 1, &json!({}), &["small"], LIMIT);
        assert!(matches!(first, Ok(_) | Err(CallError::Failed(_))), "{more}: {first:?}");
        assert_eq!(call(&mut new, &["small"]).expect("answered"), small(), "{more}");
        new.close();
        gone(&name);
    }
    client.close();
    gone("c");
    assert_eq!(node.open_files(), idle);
}

/// The files of clients, open all the time, leave some for the calls.
#[test]
fn clients_that_ask_nothing_can_not_use_up_the_open_files() {
    let place = Place::new();
    fs::create_dir_all(place.module()).expect("made");
    let idle = |n| place.module().join(format!("idle-{n}.req"));
    (0..200).for_each(|n| fs::write(idle(n), b"").expect("written"));
    fs::write(place.module().join("first.req"), record(1)).expect("written");
    let _node = Process::after("ulimit -n 64", &place);
    let mut client = place.client("first");
    let first = client.ask("wordcount", 1, &json!({}), &["small"], LIMIT);
    assert_eq!(counts(first.expect("answered")), small());
    assert_eq!(call(&mut client, &["small"]).expect("answered"), small());
    // Those that have ended make room for others.
    (0..200).for_each(|n| fs::remove_file(idle(n)).expect("there"));
    assert_eq!(call(&mut place.client("later"), &["small"]).expect("answered"), small());
}

/// As many clients as a node takes, and more: each has asked once, or has begun to, and says nothing more.
#[test]
fn clients_that_ask_nothing_more_make_room_for_others() {
    let place = Place::new();
    fs::create_dir_all(place.module()).expect("made");
    let silent = |n| place.module().join(format!("a{n}.req"));
    let half = |n: u64| record(1)[..20 + (n % 2) as usize].to_vec();
    (0..1100).for_each(|n| fs::write(silent(n), half(n)).expect("written"));
    (1100..1200).for_each(|n| fs::write(silent(n), b"").expect("written"));
    let _node = place.node(POLLING);
    let mut client = place.client("later");
    assert_eq!(call(&mut client, &["small"]).expect("answered"), small());
    // One of those that lost its place asks after all.
    let mut rest = OpenOptions::new().append(true).open(silent(0)).expect("there");
    rest.write_all(&record(1)[20..]).expect("written");
    let answers = place.module().join("a0.res");
    let begun = Instant::now();
    while !fs::metadata(&answers).is_ok_and(|found| found.len() > 0) {
        assert!(begun.elapsed() < LIMIT, "it has a place again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The permissions of the folder decide, and not the umask of the node.
#[test]
fn modules_have_the_permissions_of_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    let place = Place::new();
    drop(place.node(POLLING));
    assert_eq!(mode(&place.logs()), 0o700, "one that the node makes is for its user");
    assert_eq!(mode(&place.module()), 0o700);
    assert_eq!(mode(&place.logs().join(".lock")), 0o600, "other users may not hold it");

    let shared = Place::new();
    fs::create_dir(shared.logs()).expect("made");
    fs::set_permissions(shared.logs(), PermissionsExt::from_mode(0o2770)).expect("changed");
    // Of an earlier version.
    fs::write(shared.logs().join(".lock"), b"").expect("written");
    fs::set_permissions(shared.logs().join(".lock"), PermissionsExt::from_mode(0o644))
        .expect("changed");
    drop(shared.node(POLLING));
    assert_eq!(mode(&shared.module()), 0o2770);
    assert_eq!(mode(&shared.logs().join(".lock")), 0o600);
    fs::set_permissions(shared.module(), PermissionsExt::from_mode(0o750)).expect("changed");
    drop(shared.node(POLLING));
    assert_eq!(mode(&shared.module()), 0o750, "what is there stays");
}

/// A file that a request names again and again is open once.
#[test]
fn a_request_can_not_use_up_the_open_files() {
    let place = Place::new();
    let _node = Process::after("ulimit -n 64", &place);
    let counted = call(&mut place.client("c"), &["small"; 500]);
    assert_eq!(
        counted.expect("answered"),
        BTreeMap::from([("a".to_owned(), 1000), ("b".to_owned(), 500)])
    );
}

/// A node that is killed again and again, at any point, while a client calls: every call has its answer,
/// and no number has two different ones.
#[test]
fn a_node_may_be_killed_at_any_time() {
    let place = Place::new();
    fs::create_dir_all(place.module()).expect("made");
    let mut client = place.client("c");
    let mut random = merganser_testkit::Random::new(4);
    let mut node = process(&place);
    let mut killed = 0;
    // A machine that answers within most of the waits gets more calls, and so as many kills as a slow one.
    let mut calls = 0;
    while calls < 12 || killed < 20 {
        calls += 1;
        assert!(calls <= 2000, "only {killed} kills came before their answers");
        let inputs: &[&str] = if calls % 2 == 0 { &["small"] } else { &["sub/large"; 3] };
        let mut kills = 0;
        let answer = loop {
            let wait = Duration::from_micros(200 + random.below(6000));
            match client.ask("wordcount", calls, &json!({}), inputs, wait) {
                // A slow machine may need longer than any of the waits to start a node and to answer.
                Err(CallError::Timeout { .. }) if kills < 10 => {
                    node.kill().expect("killed");
                    node.wait().expect("ended");
                    kills += 1;
                    node = process(&place);
                }
                Err(CallError::Timeout { .. }) => {}
                answer => break answer.expect("answered"),
            }
        };
        killed += kills;
        let expected = if calls % 2 == 0 { 2 } else { 9001 };
        assert_eq!(counts(answer).len(), expected, "{calls}");
    }
    node.kill().expect("killed");
    node.wait().expect("ended");
    let mut answers = BTreeMap::new();
    let (bytes, mut at) = (place.answers("c"), 0);
    while let Ok(Some((found, len))) =
        frame::RecordFrame::decode(smart_fam::MAGIC, smart_fam::BODY_MAX, &bytes[at..])
    {
        let first = answers.entry(found.id).or_insert_with(|| found.body.to_vec());
        assert_eq!(*first, found.body, "number {}", found.id);
        at += len;
    }
    assert_eq!(answers.len() as u64, calls);
}

/// The node remembers a bounded number of answers that it can't sum up, also those in a file that the client wrote.
#[test]
fn numbers_out_of_order_end_their_client() {
    let place = Place::new();
    fs::create_dir_all(place.module()).expect("made");
    let numbers = |count: u64| (1..=count).flat_map(|k| record(2 * k)).collect::<Vec<_>>();
    fs::write(place.module().join("many.res"), numbers(20_000)).expect("written");
    fs::write(place.module().join("many.req"), record(1)).expect("written");
    fs::write(place.module().join("few.res"), numbers(9_000)).expect("written");
    fs::write(place.module().join("few.req"), record(1)).expect("written");
    let _node = place.node(POLLING);
    let few = place.client("few").ask("wordcount", 1, &json!({}), &["small"], LIMIT);
    assert_eq!(counts(few.expect("answered")), small());
    let (said, begun) = ("too many of its numbers are repeated or out of order", Instant::now());
    while !String::from_utf8_lossy(&place.answers("many")).contains(said) {
        assert!(begun.elapsed() < LIMIT, "not answered");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Files that are no logs end their own client, and no other.
#[test]
fn hostile_files_are_left_alone() {
    let place = Place::new();
    let secret = place.dir.path().join("secret");
    fs::write(&secret, vec![b's'; 5000]).expect("written");
    fs::create_dir_all(place.module()).expect("made");
    let at = |name: &str| place.module().join(name);
    mkfifoat(CWD, at("fifo.req"), Mode::RWXU).expect("made");
    mkfifoat(CWD, at("out.res"), Mode::RWXU).expect("made");
    fs::write(at("out.req"), b"MGsf").expect("written");
    symlink(&secret, at("link.req")).expect("linked");
    fs::write(at("linked.req"), b"MGsf").expect("written");
    symlink(&secret, at("linked.res")).expect("linked");
    fs::write(at("hard.req"), b"MGsf").expect("written");
    fs::hard_link(&secret, at("hard.res")).expect("linked");
    fs::create_dir(at("folder.req")).expect("made");
    fs::write(at("garbage.req"), b"no record of this protocol").expect("written");
    let mut long = frame::encode(smart_fam::MAGIC, 1, &json!({}), 100).expect("short");
    long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(at("long.req"), long).expect("written");
    let other = frame::encode(smart_fam::MAGIC, 1, &json!({"x": [1]}), 100).expect("short");
    fs::write(at("other.req"), other).expect("written");
    fs::write(at("Not A Name.req"), b"MGsf").expect("written");
    let _node = place.node(POLLING);
    assert_eq!(call(&mut place.client("good"), &["small"]).expect("answered"), small());
    let said = place.client("other").ask("wordcount", 1, &json!({}), &[], LIMIT);
    let said = said.expect_err("refused").to_string();
    assert!(said.starts_with("the request makes no sense: "), "{said}");
    // Bytes that are no record are given some seconds, and then up.
    within(&"the last answer", LIMIT, {
        let path = at("garbage.res");
        move || {
            while fs::metadata(&path).map_or(0, |found| found.len()) == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let last = String::from_utf8_lossy(&place.answers("garbage")[20..]).into_owned();
    assert!(last.contains("can't be read further: there is no record"), "{last}");
    fs::remove_file(at("garbage.req")).expect("there");
    within(&"removal", LIMIT, {
        let path = at("garbage.res");
        move || {
            while path.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    assert_eq!(call(&mut place.client("good-2"), &["small"]).expect("answered"), small());
    assert_eq!(fs::read(&secret).expect("there"), vec![b's'; 5000], "untouched");
}

/// A keyed result without any row is keyed, too.
#[test]
fn no_rows_are_rows() {
    let place = Place::new();
    fs::write(place.data().join("blank"), " \n").expect("written");
    let _node = place.node(POLLING);
    let counted = place.client("c").call("wordcount", &json!({}), &["blank"], LIMIT);
    assert_eq!(counted.expect("answered"), CallResult::Rows(Vec::new()));
}

/// A client that may write next to the folder of a module can't have the node write elsewhere.
#[test]
fn a_link_in_place_of_a_modules_folder_is_not_followed() {
    let place = Place::new();
    let other = place.dir.path().join("other");
    fs::create_dir_all(&other).expect("made");
    fs::create_dir_all(place.logs()).expect("made");
    symlink(&other, place.module()).expect("linked");
    let told = serve(&place.settings(POLLING), &AtomicBool::new(true)).expect_err("a link");
    assert!(told.to_string().starts_with(&place.module().display().to_string()), "{told}");
    fs::remove_file(place.module()).expect("there");

    let _node = place.node(POLLING);
    call(&mut place.client("c"), &["small"]).expect("answered");
    let moved = place.logs().join("moved");
    fs::rename(place.module(), &moved).expect("moved");
    symlink(&other, place.module()).expect("linked");
    fs::copy(moved.join("c.req"), other.join("d.req")).expect("copied");
    fs::copy(moved.join("c.req"), moved.join("e.req")).expect("copied");
    within(&"an answer", LIMIT, move || {
        while fs::metadata(moved.join("e.res")).map_or(0, |found| found.len()) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert!(!other.join("d.res").exists(), "the link is not followed");
}

/// A file of rows that is not the one of the answer is an error, and is not followed.
#[test]
fn damaged_results_are_noticed() {
    let place = Place::new();
    let _node = place.node(POLLING);
    let mut client = place.client("c");
    assert!(call(&mut client, &["sub/large"]).expect("answered").len() * 20 > INLINE_MAX);
    let rows = place.module().join("c.1.rows");
    let mut ask = || client.ask("wordcount", 1, &json!({}), &[], LIMIT);
    let mut bytes = fs::read(&rows).expect("there");
    bytes[5000] ^= 1;
    fs::write(&rows, &bytes).expect("written");
    assert!(matches!(ask(), Err(CallError::Damaged { id: 1, .. })));
    fs::write(&rows, &bytes[..100]).expect("written");
    assert!(matches!(ask(), Err(CallError::Damaged { id: 1, .. })));
    fs::remove_file(&rows).expect("there");
    symlink(place.data().join("small"), &rows).expect("linked");
    assert!(matches!(ask(), Err(CallError::Folder(_))));
}

/// docs/formats.md, byte by byte.
#[test]
fn records_and_commands_have_the_documented_bytes() {
    use merganser_inside::isc::command::{ByteExtent, DeviceSplit, SessionCommand};
    use merganser_serve::smart_fam::{CallAnswer, CallOutcome};
    let dump = |name: &str, bytes: &[u8]| {
        let mut text = format!("{name}\n");
        for (number, row) in bytes.chunks(16).enumerate() {
            let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            let shown = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
            let ascii: String = row.iter().map(shown).collect();
            text += &format!("{:04x}  {:<47}  {ascii}\n", number * 16, hex.join(" "));
        }
        text
    };
    let request = CallRequest { args: json!({"top": 5}), inputs: vec!["logs/one".to_owned()] };
    let request = frame::encode(smart_fam::MAGIC, 1, &request, 1000).expect("short");
    let outcome = CallOutcome::File { keyed: true, bytes: 70_000, crc32c: 0x0102_0304 };
    let answer = frame::encode(smart_fam::MAGIC, 1, &CallAnswer { outcome }, 1000).expect("short");
    let extents = vec![ByteExtent { offset: 4096, bytes: 8192 }];
    let split =
        DeviceSplit { input: 0, place: 3, bytes: 8000, start_offset: 3, end_offset: 7, extents };
    let set = SessionCommand::Set { split, more: false }.encode(2).expect("good");
    let set_end = set.iter().rposition(|byte| *byte != 0).expect("not empty") + 1;
    let found = [
        dump("request 1 of a client", &request),
        dump("its answer", &answer),
        dump("SET of session 2, before its zeros", &set[..set_end]),
    ]
    .concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frames.hex");
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == golden, "{} differs; it would be:\n{found}", path.display());
}
