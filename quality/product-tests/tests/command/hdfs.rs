//! `hadoop serve --hdfs`, as a real process: a map, signals, kills, and the files that are left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use merganser_hadoop_node::hdfs::meta::{Checksum, MetaHeader};
use merganser_hadoop_node::hdfs::protocol::{HdfsErrorKind, HdfsRequest, MapFrame};
use merganser_hadoop_node::hdfs::{
    BlockRange, Codec, CombineKind, FolderState, HdfsBlock, MapRequest, Order, Partitioner,
    SsdletName, Writable,
};
use merganser_testkit::install_program;

use crate::{fails, folder, merganser, names, signal};

const BLOCK: HdfsBlock = HdfsBlock { id: 1_073_741_825, generation: 1001 };

/// A process that does not outlive its test.
struct Server(Child);

impl Server {
    /// Asks it to end, and waits until it has.
    fn end(&mut self) {
        signal(&self.0, libc::SIGTERM);
        assert_eq!(self.0.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it in `dir`, for one map at a time, and waits until it listens at `s`.
fn serve(dir: &Path) -> Server {
    serve_with(dir, &["--maps", "1"])
}

fn serve_with(dir: &Path, more: &[&str]) -> Server {
    let arguments = [&["hadoop", "serve", "--hdfs", "s", "--hdfs-data-dir", "dfs"], more].concat();
    let mut child = merganser(dir, &arguments).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
    assert!(line.starts_with("merganser: map tasks for clients of s: at most "), "{line}");
    Server(child)
}

/// A block of `count` different words, and a request to map all of it.
fn request(dir: &Path, count: usize) -> MapRequest {
    let folder = dir.join("dfs/current/BP-1/current/finalized/subdir0/subdir0");
    fs::create_dir_all(&folder).expect("made");
    let words: Vec<u8> = (0..count).flat_map(|n| format!("w{n:07}\n").into_bytes()).collect();
    fs::write(folder.join("blk_1073741825"), &words).expect("written");
    let header = MetaHeader { checksum: Checksum::Crc32, bytes_per_checksum: 512 };
    let sums = words.chunks(512).flat_map(|piece| header.checksum.of_bytes(piece).to_be_bytes());
    let meta = [&header.encode()[..], &sums.collect::<Vec<_>>()].concat();
    fs::write(folder.join("blk_1073741825_1001.meta"), meta).expect("written");
    let length = words.len() as u64;
    MapRequest {
        attempt: "attempt_1".to_owned(),
        ssdlet: SsdletName::BuiltIn("wordcount".to_owned()),
        arguments: String::new(),
        pool: "BP-1".to_owned(),
        ranges: vec![BlockRange { block: BLOCK, block_length: length, offset: 0, length }],
        start: 0,
        end: length,
        tail: Vec::new(),
        tail_at_eof: true,
        delimiter: Vec::new(),
        record_bytes_max: i32::MAX as u32,
        partitions: 4,
        partitioner: Partitioner::Hash,
        order: Order::Text,
        key: Writable::Text,
        value: Writable::Int,
        combine: CombineKind::Sum,
        codec: Codec::None,
        memory_bytes: 100 << 20,
        patience_ms: 0,
    }
}

fn ask(dir: &Path, request: &MapRequest) -> UnixStream {
    let mut stream = UnixStream::connect(dir.join("s")).expect("it listens");
    let request = HdfsRequest::Map(Box::new(request.clone())).encode().expect("short");
    stream.write_all(&request).expect("sent");
    stream
}

/// The DataNode's user has closed the folder, and the process runs as another one: it says so, and each map is refused.
#[test]
fn a_process_of_another_user_says_that_it_may_not_read() {
    // SAFETY: it reads a number of this process.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let dir = folder();
    let request = request(dir.path(), 10);
    // The program where this user may find it.
    let program = dir.path().join("merganser");
    for name in ["merganser", "merganser-hadoop"] {
        install_program(
            Path::new(merganser_testkit::program()).with_file_name(name),
            &dir.path().join(name),
        );
    }
    let user = 60_000 + std::process::id() % 5000;
    std::os::unix::fs::chown(dir.path(), Some(user), None).expect("root");
    let mode = fs::Permissions::from_mode;
    let finalized = dir.path().join("dfs/current/BP-1/current/finalized");
    for (closed, state) in [
        (dir.path().join("dfs"), FolderState::Denied),
        (finalized.join("subdir0/subdir0"), FolderState::Denied),
        (finalized.join("subdir0/subdir0/blk_1073741825"), FolderState::Denied),
        (dir.path().join("other"), FolderState::Readable),
    ] {
        if closed.ends_with("other") {
            fs::create_dir(&closed).expect("made");
        }
        fs::set_permissions(&closed, mode(0o700)).expect("mine");
        let mut command = std::process::Command::new(&program);
        command
            .args(["hadoop", "serve", "--hdfs", "s", "--hdfs-data-dir", "dfs"])
            .uid(user)
            .gid(user);
        command.current_dir(dir.path()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut server = Server(command.spawn().expect("it starts"));
        let mut line = String::new();
        let stderr = server.0.stderr.as_mut().expect("piped");
        BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
        assert!(line.starts_with("merganser: map tasks for clients of s: at most "), "{line}");
        let told = send(
            dir.path(),
            &[HdfsRequest::State { folders: true }, HdfsRequest::Map(Box::new(request.clone()))],
        );
        let MapFrame::State(found) = &told[0] else { panic!("{told:?}") };
        let path = dir.path().join("dfs").to_str().expect("text").to_owned();
        assert_eq!(found.folders, [(state, path)], "{closed:?}");
        match &told[1..] {
            [MapFrame::Error { kind: HdfsErrorKind::Replica, sentence }] => {
                assert_eq!(state, FolderState::Denied, "{sentence}");
            }
            [MapFrame::Accepted { .. }, ..] => assert_eq!(state, FolderState::Readable),
            other => panic!("{other:?}"),
        }
        server.end();
        fs::set_permissions(&closed, mode(0o755)).expect("mine");
    }
}

/// All frames until the server hangs up.
fn frames(stream: &mut UnixStream) -> Vec<MapFrame> {
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let (mut frames, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((frame, len)) = MapFrame::decode(rest).expect("frames") {
        frames.push(frame);
        rest = &rest[len..];
    }
    frames
}

/// A size of the server's memory, in KiB, by its name in /proc/PID/status.
fn kib(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.0.id())).expect("it runs");
    let size = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
    size.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_map_is_done_and_refused_ones_are_told() {
    let dir = folder();
    let request = request(dir.path(), 1000);
    let mut server = serve(dir.path());
    let all = frames(&mut ask(dir.path(), &request));
    assert!(matches!(all.first(), Some(MapFrame::Accepted { .. })));
    let Some(MapFrame::End(counters)) = all.last() else { panic!("{all:?}") };
    assert_eq!(
        (counters.input_records, counters.spilled_records, counters.spills),
        (1000, 1000, 1)
    );
    let pool = MapRequest { pool: "BP-2".to_owned(), ..request };
    let told = frames(&mut ask(dir.path(), &pool));
    let [MapFrame::Error { sentence, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(sentence, "blk_1073741825_1001: no folder of this node has it (--hdfs-data-dir)");
    server.end();
    assert_eq!(names(dir.path()), ["dfs"]);
    let mut log = String::new();
    server.0.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
    assert!(log.contains("attempt_1: not mapped: blk_1073741825_1001: no folder"), "{log}");
}

#[test]
fn maps_stay_within_the_memory() {
    let dir = folder();
    let request = request(dir.path(), 400_000);
    let mut server = serve_with(dir.path(), &["--maps", "2", "--memory", "48M"]);
    let request = MapRequest { patience_ms: 30_000, ..request };
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (request, dir) = (&request, dir.path());
            scope.spawn(move || {
                // Some tasks send as much behind their split as they may.
                let tail = if n % 2 == 0 { Vec::new() } else { vec![b'x'; 4 << 20] };
                let all = frames(&mut ask(dir, &MapRequest { tail, ..request.clone() }));
                let Some(MapFrame::End(counters)) = all.last() else { panic!("{:?}", all.last()) };
                assert!(counters.spills > 1, "the words don't fit");
            });
        }
    });
    let peak = kib(&server, "VmHWM:") >> 10;
    assert!(peak < 48 + 64, "{peak} MiB");
    server.end();
}

#[test]
fn a_kill_is_seen_by_the_task_and_the_next_process_serves() {
    let dir = folder();
    // More than the buffers between the processes hold, so that it can't be done before the kill.
    let request = request(dir.path(), 200_000);
    let mut server = serve(dir.path());
    let mut stream = ask(dir.path(), &request);
    stream.read_exact(&mut [0; 13]).expect("accepted");
    server.0.kill().expect("killed");
    server.0.wait().expect("it ends");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 3_000_000, "a task sees that it is not all");
    assert_eq!(names(dir.path()), ["dfs", "s"]);

    let mut server = serve(dir.path());
    let again = ["hadoop", "serve", "--hdfs", "s", "--hdfs-data-dir", "dfs"];
    let refused = fails(dir.path(), &again);
    assert_eq!(refused, "s: a process listens there already; stop it or name another path");
    let mut stream = ask(dir.path(), &request);
    stream.read_exact(&mut [0; 13]).expect("accepted");
    signal(&server.0, libc::SIGTERM);
    let all = frames(&mut stream);
    assert!(matches!(all.last(), Some(MapFrame::End(_))), "maps that run may end");
    assert_eq!(server.0.wait().expect("it ends").code(), Some(0));
}

/// What became of a map.
#[derive(Debug, PartialEq, Eq)]
enum Became {
    /// Its result is whole: this number of records.
    Done(u64),
    /// It was refused, or failed.
    Told(HdfsErrorKind),
    /// The connection ended.
    Cut,
}

/// The end of an answer, which has to come within a minute.
fn became(mut stream: UnixStream) -> Became {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        while let Some((frame, len)) = MapFrame::decode(&bytes).expect("frames") {
            bytes.drain(..len);
            match frame {
                MapFrame::End(counters) => return Became::Done(counters.input_records),
                MapFrame::Error { kind, .. } => return Became::Told(kind),
                _ => {}
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) => return Became::Cut,
            Ok(n) => bytes.extend(&chunk[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return Became::Cut,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => panic!("the process says nothing: {e}"),
        }
    }
}

/// A system that refuses memory to a process with more maps than fit: each task gets its result, a reason or the end of its
/// connection, soon; and the process that systemd starts next serves.
#[test]
fn without_memory_a_map_is_refused_or_cut_and_the_next_process_serves() {
    let dir = folder();
    // The split ends where a line does, so the tail has one record more.
    const RECORDS: u64 = 40_001;
    // A tail is held from the beginning, words in a table until the end.
    let request = MapRequest {
        tail: vec![b'x'; 3 << 20],
        patience_ms: 30_000,
        memory_bytes: 32 << 20,
        ..request(dir.path(), 40_000)
    };
    let (mut whole, mut refused, mut ended) = (0, 0, 0);
    // Up to the first limit within which all maps fit.
    for mib in (32..2048).step_by(48) {
        let arguments = [
            "hadoop",
            "serve",
            "--hdfs",
            "s",
            "--hdfs-data-dir",
            "dfs",
            "--maps",
            "6",
            "--memory",
            "256M",
        ];
        let mut command = merganser(dir.path(), &arguments);
        let limits = libc::rlimit { rlim_cur: mib << 20, rlim_max: mib << 20 };
        // SAFETY: between fork and exec there is one system call, which reads a value of the closure.
        unsafe {
            command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limits) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let mut server = Server(command.stderr(Stdio::piped()).spawn().expect("it starts"));
        let mut line = String::new();
        let stderr = server.0.stderr.as_mut().expect("piped");
        BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
        if !line.starts_with("merganser: map tasks for clients of s: at most ") {
            // Not even the process fits.
            continue;
        }
        let results: Vec<Became> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        let Ok(mut stream) = UnixStream::connect(dir.path().join("s")) else {
                            return Became::Cut;
                        };
                        let bytes = HdfsRequest::Map(Box::new(request.clone())).encode();
                        match stream.write_all(&bytes.expect("short")) {
                            Ok(()) => became(stream),
                            Err(_) => Became::Cut,
                        }
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().expect("it does not panic")).collect()
        });
        for result in &results {
            match result {
                Became::Done(records) => assert_eq!(*records, RECORDS, "within {mib} MiB"),
                Became::Told(_) => refused += 1,
                Became::Cut => {}
            }
        }
        if results.contains(&Became::Cut) {
            // A thread that gets no memory ends the process, with a sentence.
            let status = server.0.wait().expect("it ends");
            let mut said = String::new();
            server.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
            assert_eq!(status.code(), Some(2), "within {mib} MiB: {said}");
            assert!(said.contains("the system has no "), "within {mib} MiB: {said}");
            ended += 1;
            let mut next = serve(dir.path());
            assert_eq!(became(ask(dir.path(), &request)), Became::Done(RECORDS));
            next.end();
        } else {
            server.end();
        }
        if results.iter().all(|result| *result == Became::Done(RECORDS)) {
            whole += 1;
            break;
        }
    }
    assert_eq!(whole, 1, "enough memory is enough");
    assert!(ended + refused > 0, "no limit was too small");
}

/// A process that gets no memory for the stack of one more thread still ends in order.
#[test]
fn without_room_for_a_thread_it_ends_as_it_is_asked_to() {
    let dir = folder();
    let request = request(dir.path(), 1000);
    let mut server = serve(dir.path());
    assert_eq!(became(ask(dir.path(), &request)), Became::Done(1000));
    let taken = kib(&server, "VmSize:") << 10;
    let limits = libc::rlimit { rlim_cur: taken + (1 << 20), rlim_max: taken + (1 << 20) };
    let id = libc::pid_t::try_from(server.0.id()).expect("a process");
    // SAFETY: it reads one value, and has no place to write another to.
    let limited =
        unsafe { libc::prlimit(id, libc::RLIMIT_AS, &raw const limits, std::ptr::null_mut()) };
    assert_eq!(limited, 0, "{}", std::io::Error::last_os_error());
    server.end();
}

/// A process that is stopped in the middle of a map: its task notices the silence, leaves, and the next map finds the place
/// free.
#[test]
fn a_process_that_hangs_is_silent_and_serves_when_it_runs_again() {
    let dir = folder();
    // More than the buffers between the processes hold, so that it can't be done before the stop.
    let request = MapRequest { patience_ms: 30_000, ..request(dir.path(), 200_000) };
    let mut server = serve(dir.path());
    let mut stream = ask(dir.path(), &request);
    stream.read_exact(&mut [0; 13]).expect("accepted");
    signal(&server.0, libc::SIGSTOP);
    // A task waits for `timeout-ms`; this one is in more of a hurry.
    stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket");
    let mut rest = Vec::new();
    let silent = stream.read_to_end(&mut rest).expect_err("it hangs");
    assert_eq!(silent.kind(), std::io::ErrorKind::WouldBlock);
    assert!(rest.len() < 3_000_000, "a task sees that it is not all");
    // Others can connect, and are not answered.
    let mut other = UnixStream::connect(dir.path().join("s")).expect("it listens");
    other.write_all(&HdfsRequest::Hello.encode().expect("short")).expect("sent");
    other.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket");
    let silent = other.read_exact(&mut [0; 1]).expect_err("it hangs");
    assert_eq!(silent.kind(), std::io::ErrorKind::WouldBlock);
    drop(stream);
    signal(&server.0, libc::SIGCONT);
    assert_eq!(became(ask(dir.path(), &request)), Became::Done(200_000));
    // A map is counted when its task has the result.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let told = send(dir.path(), &[HdfsRequest::State { folders: false }]);
        let [MapFrame::State(state)] = &told[..] else { panic!("{told:?}") };
        if (state.totals.maps, state.totals.left) == (1, 1) {
            break;
        }
        assert!(Instant::now() < until, "{state:?}");
        std::thread::yield_now();
    }
    server.end();
}

/// A guest whose `mgs_chunk` has this body.
fn guest(body: &str) -> Vec<u8> {
    let json = r#"{\"abi\": 1, \"name\": \"own\", \"input\": \"lines\", \"memory\": 2097152, \"output\": {\"keyed\": {\"key\": \"text\", \"value\": \"i64\", \"combine\": \"sum\"}}}"#;
    let text = format!(
        r#"(module
            (import "mgs" "emit_spans" (func $emit (param i32 i32)))
            (memory (export "memory") 16)
            (func (export "mgs_abi") (result i32) i32.const 1)
            (func (export "mgs_buffer") (param i32) (result i32) i32.const 65536)
            (func $chunk (export "mgs_chunk") (param i32 i32) (result i32) {body} i32.const 0)
            (@custom "merganser.ssdlet" "{json}"))"#
    );
    wat::parse_str(text).expect("well-formed")
}

/// The SHA-256 of a module that a job has just brought, as the server reports it.
fn brought(server: &mut Server) -> [u8; 32] {
    let mut line = String::new();
    let stderr = server.0.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
    let said = line.trim_end().strip_prefix("merganser: a job brought the SSDlet own: ");
    let hex = said.unwrap_or_else(|| panic!("{line}"));
    assert_eq!(hex.len(), 64);
    std::array::from_fn(|n| u8::from_str_radix(&hex[2 * n..][..2], 16).expect("a digit"))
}

fn send(dir: &Path, requests: &[HdfsRequest]) -> Vec<MapFrame> {
    let mut stream = UnixStream::connect(dir.join("s")).expect("it listens");
    for request in requests {
        stream.write_all(&request.encode().expect("short")).expect("sent");
    }
    frames(&mut stream)
}

#[test]
fn a_job_brings_its_own_ssdlet_if_the_operator_allows_it() {
    let dir = folder();
    let request = request(dir.path(), 1000);
    let own = |sha256| {
        let ssdlet = SsdletName::Module(sha256);
        HdfsRequest::Map(Box::new(MapRequest { ssdlet, ..request.clone() }))
    };
    // The first byte of each chunk: all words begin with a w.
    let first = "(i32.store (i32.const 4) (i32.const 1)) (call $emit (i32.const 0) (i32.const 1))";
    let upload = |body| HdfsRequest::Upload(guest(body));

    let mut server = serve_with(dir.path(), &["--maps", "1"]);
    for asked in [own([1; 32]), upload(first)] {
        let told = send(dir.path(), &[asked]);
        let [MapFrame::Error { kind: HdfsErrorKind::Uploads, sentence }] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(sentence, "this node takes no SSDlets from jobs (--job-ssdlets)");
    }
    server.end();

    let mut server = serve_with(dir.path(), &["--maps", "1", "--job-ssdlets"]);
    let told = send(dir.path(), &[own([1; 32]), upload(first)]);
    assert!(matches!(told[0], MapFrame::Error { kind: HdfsErrorKind::Absent, .. }), "{told:?}");
    assert!(matches!(told[1], MapFrame::Accepted { memory_bytes: 2_097_152.. }), "{told:?}");
    // The refusal is reported before it.
    let mut line = String::new();
    let stderr = server.0.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
    assert!(line.contains("there is no SSDlet with the SHA-256 0101"), "{line}");
    let sha256 = brought(&mut server);
    let told = send(dir.path(), &[own(sha256)]);
    let Some(MapFrame::End(counters)) = told.last() else { panic!("{told:?}") };
    // The first record of a file is a chunk of its own.
    assert_eq!((counters.input_records, counters.output_records), (1000, 2));

    // What strangers may try. Each fails its own request, and the process serves the next one.
    for (body, reason) in [
        ("(drop (call $chunk (i32.const 0) (i32.const 0)))", "too deeply"),
        ("(loop $ever (br $ever))", "used up its fuel"),
        ("unreachable", "gave up"),
    ] {
        send(dir.path(), &[upload(body)]);
        let sha256 = brought(&mut server);
        let told = send(dir.path(), &[own(sha256), HdfsRequest::Map(Box::new(request.clone()))]);
        let failure = told.iter().find_map(|frame| match frame {
            MapFrame::Error { kind: HdfsErrorKind::Program, sentence } => Some(sentence),
            _ => None,
        });
        assert!(failure.is_some_and(|sentence| sentence.contains(reason)), "{told:?}");
        assert!(matches!(told.last(), Some(MapFrame::End(_))), "{told:?}");
        let mut line = String::new();
        let stderr = server.0.stderr.as_mut().expect("piped");
        BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
        assert!(line.contains(reason), "{line}");
    }
    let told = send(dir.path(), &[HdfsRequest::Upload(b"#!/bin/sh".to_vec()), HdfsRequest::Hello]);
    assert!(matches!(told[0], MapFrame::Error { kind: HdfsErrorKind::Module, .. }), "{told:?}");
    assert!(matches!(told[1], MapFrame::Hello(_)), "{told:?}");
    server.end();
    assert_eq!(names(dir.path()), ["dfs"], "nothing is written");
}

/// Bytes that are written as pairs of digits.
fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// An answer without what differs from run to run: pieces of data are one, progress and processor time are left out.
fn told_by(mut bytes: &[u8]) -> Vec<MapFrame> {
    let mut all = Vec::new();
    while let Some((frame, len)) = MapFrame::decode(bytes).expect("frames") {
        bytes = &bytes[len..];
        match (frame, all.last_mut()) {
            (MapFrame::Data(more), Some(MapFrame::Data(data))) => data.extend(more),
            (MapFrame::Progress { .. }, _) => {}
            (MapFrame::End(counters), _) => {
                all.push(MapFrame::End(merganser_hadoop_node::hdfs::MapCounters {
                    cpu_ns: 0,
                    ..counters
                }));
            }
            (frame, _) => all.push(frame),
        }
    }
    assert!(bytes.is_empty(), "the last frame is whole");
    all
}

/// Tasks of older releases send these bytes. They get the answers that they got from processes of their time, so jars and
/// nodes can be updated in any order.
#[test]
fn recorded_requests_of_older_versions_have_their_recorded_answers() {
    let dir = folder();
    request(dir.path(), 6);
    let more = ["--maps", "1", "--memory", "16M", "--job-ssdlets"];
    let mut server = serve_with(dir.path(), &more);
    let recorded = include_str!("recorded/hdfs-versions.txt");
    let mut kinds = Vec::new();
    for case in recorded.split("\n\n").skip(1) {
        let lines: Vec<&str> = case.trim_end().lines().collect();
        let [name, asked, answered] = lines[..] else { panic!("{case}") };
        let asked = unhex(asked.strip_prefix("> ").expect("a request"));
        let expected = told_by(&unhex(answered.strip_prefix("< ").expect("an answer")));
        let mut stream = UnixStream::connect(dir.path().join("s")).expect("it listens");
        stream.write_all(&asked).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("a socket");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let found = told_by(&bytes);
        kinds.push((asked[5], asked[7]));
        match (&found[..], &expected[..]) {
            ([MapFrame::Hello(found)], [MapFrame::Hello(old)]) => {
                assert!(found.version >= old.version, "{name}");
                assert!(old.ssdlets.iter().all(|name| found.ssdlets.contains(name)), "{name}");
                assert_eq!(
                    (found.maps, found.memory_bytes, found.maps_max, found.memory_bytes_max),
                    (old.maps, old.memory_bytes, old.maps_max, old.memory_bytes_max),
                );
            }
            // Sentences may be put better.
            ([MapFrame::Error { kind: found, .. }], [MapFrame::Error { kind: old, .. }]) => {
                assert_eq!(found, old, "{name}");
            }
            (found, old) => assert_eq!(found, old, "{name}"),
        }
    }
    kinds.dedup();
    assert_eq!(kinds, [(1, 2), (1, 1), (2, 1), (2, 3), (2, 1)], "all versions and kinds");
    server.end();
}
