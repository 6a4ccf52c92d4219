//! `serve --hdfs`, as a real process: a map, signals, kills, and the files that are left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};

use merganser_node::hdfs::meta::{Checksum, Header};
use merganser_node::hdfs::protocol::{ErrorKind, Frame, Request};
use merganser_node::hdfs::{
    Block, Codec, CombineKind, MapRequest, Order, Partitioner, Range, SsdletName, Writable,
};

use crate::{fails, folder, merganser, names, signal};

const BLOCK: Block = Block { id: 1_073_741_825, generation: 1001 };

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
    let arguments = [&["serve", "--hdfs", "s", "--hdfs-data-dir", "dfs"], more].concat();
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
    let header = Header { checksum: Checksum::Crc32, bytes_per_checksum: 512 };
    let sums = words.chunks(512).flat_map(|piece| header.checksum.of(piece).to_be_bytes());
    let meta = [&header.encode()[..], &sums.collect::<Vec<_>>()].concat();
    fs::write(folder.join("blk_1073741825_1001.meta"), meta).expect("written");
    let length = words.len() as u64;
    MapRequest {
        attempt: "attempt_1".to_owned(),
        ssdlet: SsdletName::BuiltIn("wordcount".to_owned()),
        arguments: String::new(),
        pool: "BP-1".to_owned(),
        ranges: vec![Range { block: BLOCK, block_length: length, offset: 0, length }],
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
    let request = Request::Map(Box::new(request.clone())).encode().expect("short");
    stream.write_all(&request).expect("sent");
    stream
}

/// All frames until the server hangs up.
fn frames(stream: &mut UnixStream) -> Vec<Frame> {
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let (mut frames, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((frame, len)) = Frame::decode(rest).expect("frames") {
        frames.push(frame);
        rest = &rest[len..];
    }
    frames
}

#[test]
fn a_map_is_done_and_refused_ones_are_told() {
    let dir = folder();
    let request = request(dir.path(), 1000);
    let mut server = serve(dir.path());
    let all = frames(&mut ask(dir.path(), &request));
    assert!(matches!(all.first(), Some(Frame::Accepted { .. })));
    let Some(Frame::End(counters)) = all.last() else { panic!("{all:?}") };
    assert_eq!(
        (counters.input_records, counters.spilled_records, counters.spills),
        (1000, 1000, 1)
    );
    let pool = MapRequest { pool: "BP-2".to_owned(), ..request };
    let told = frames(&mut ask(dir.path(), &pool));
    let [Frame::Error { sentence, .. }] = &told[..] else { panic!("{told:?}") };
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
                let Some(Frame::End(counters)) = all.last() else { panic!("{:?}", all.last()) };
                assert!(counters.spills > 1, "the words don't fit");
            });
        }
    });
    let status = fs::read_to_string(format!("/proc/{}/status", server.0.id())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let peak = peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10;
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
    let again = ["serve", "--hdfs", "s", "--hdfs-data-dir", "dfs"];
    let refused = fails(dir.path(), &again);
    assert_eq!(refused, "s: a process listens there already; stop it or name another path");
    let mut stream = ask(dir.path(), &request);
    stream.read_exact(&mut [0; 13]).expect("accepted");
    signal(&server.0, libc::SIGTERM);
    let all = frames(&mut stream);
    assert!(matches!(all.last(), Some(Frame::End(_))), "maps that run may end");
    assert_eq!(server.0.wait().expect("it ends").code(), Some(0));
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

fn send(dir: &Path, requests: &[Request]) -> Vec<Frame> {
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
        Request::Map(Box::new(MapRequest { ssdlet, ..request.clone() }))
    };
    // The first byte of each chunk: all words begin with a w.
    let first = "(i32.store (i32.const 4) (i32.const 1)) (call $emit (i32.const 0) (i32.const 1))";
    let upload = |body| Request::Upload(guest(body));

    let mut server = serve_with(dir.path(), &["--maps", "1"]);
    for asked in [own([1; 32]), upload(first)] {
        let told = send(dir.path(), &[asked]);
        let [Frame::Error { kind: ErrorKind::Uploads, sentence }] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(sentence, "this node takes no SSDlets from jobs (--job-ssdlets)");
    }
    server.end();

    let mut server = serve_with(dir.path(), &["--maps", "1", "--job-ssdlets"]);
    let told = send(dir.path(), &[own([1; 32]), upload(first)]);
    assert!(matches!(told[0], Frame::Error { kind: ErrorKind::Absent, .. }), "{told:?}");
    assert!(matches!(told[1], Frame::Accepted { memory_bytes: 2_097_152.. }), "{told:?}");
    // The refusal is reported before it.
    let mut line = String::new();
    let stderr = server.0.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
    assert!(line.contains("there is no SSDlet with the SHA-256 0101"), "{line}");
    let sha256 = brought(&mut server);
    let told = send(dir.path(), &[own(sha256)]);
    let Some(Frame::End(counters)) = told.last() else { panic!("{told:?}") };
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
        let told = send(dir.path(), &[own(sha256), Request::Map(Box::new(request.clone()))]);
        let failure = told.iter().find_map(|frame| match frame {
            Frame::Error { kind: ErrorKind::Program, sentence } => Some(sentence),
            _ => None,
        });
        assert!(failure.is_some_and(|sentence| sentence.contains(reason)), "{told:?}");
        assert!(matches!(told.last(), Some(Frame::End(_))), "{told:?}");
        let mut line = String::new();
        let stderr = server.0.stderr.as_mut().expect("piped");
        BufReader::with_capacity(1, stderr).read_line(&mut line).expect("a line");
        assert!(line.contains(reason), "{line}");
    }
    let told = send(dir.path(), &[Request::Upload(b"#!/bin/sh".to_vec()), Request::Hello]);
    assert!(matches!(told[0], Frame::Error { kind: ErrorKind::Module, .. }), "{told:?}");
    assert!(matches!(told[1], Frame::Hello(_)), "{told:?}");
    server.end();
    assert_eq!(names(dir.path()), ["dfs"], "nothing is written");
}
