//! An NBD server and its clients: one written by hand from the protocol, that also misbehaves, and
//! those that people use (`nbdinfo`, `nbdcopy`, `nbdfuse`, `qemu-img`, `fio`). A program that is
//! not installed is named as skipped.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use export::Error;
use export::nbd::{Address, CONNECTIONS_MAX, Export, Server, ServerOptions, Stopper};
use storage::{Clock, Completion, Completions, Operation, RealClock, Storage};

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
        *self.closed.lock().expect("no holder panics") = closed;
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
        let closed = self.gate.closed.lock().expect("no holder panics");
        drop(self.gate.opened.wait_while(closed, |closed| *closed).expect("no holder panics"));
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

    fn with(bytes: Bytes, change: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bytes = Arc::new(bytes);
        let other = b"other bytes\n".to_vec();
        let exports = vec![
            Export { name: "view".into(), storage: bytes.clone() },
            Export {
                name: "other".into(),
                storage: Arc::new(Bytes { content: other.clone(), ..Bytes::default() }),
            },
        ];
        let address = Address::Unix(folder.path().join("s"));
        let server = Server::new(change(ServerOptions::new(address, exports))).expect("listens");
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
        let stream = UnixStream::connect(self.socket()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        Client { stream, structured: false }
    }

    /// A client that is through the handshake of the export `view`.
    fn client(&self, structured: bool) -> Client {
        let mut client = self.connect();
        client.greet(3);
        if structured {
            client.option(8, b"");
            assert_eq!(client.option_reply(), (8, ACK, Vec::new()));
            client.structured = true;
        }
        client.go(b"view").expect("there");
        client
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

const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;
const ERR_UNSUP: u32 = 0x8000_0001;
const ERR_INVALID: u32 = 0x8000_0003;
const ERR_UNKNOWN: u32 = 0x8000_0006;
const ERR_TOO_BIG: u32 = 0x8000_0009;

const READ: u16 = 0;
const DISC: u16 = 2;
const FLUSH: u16 = 3;
const BLOCK_STATUS: u16 = 7;
const DF: u16 = 4;

/// The protocol by hand.
struct Client {
    stream: UnixStream,
    structured: bool,
}

/// A chunk of a structured reply.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    done: bool,
    kind: u16,
    cookie: u64,
    payload: Vec<u8>,
}

impl Client {
    fn send(&mut self, parts: &[&[u8]]) {
        self.stream.write_all(&parts.concat()).expect("the server listens");
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.stream.read_exact(&mut out).expect("the server answers");
        out
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("2"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("4"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().expect("8"))
    }

    fn greet(&mut self, flags: u32) {
        assert_eq!(self.take(18), b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&[&flags.to_be_bytes()]);
    }

    fn option(&mut self, option: u32, data: &[u8]) {
        let len = (data.len() as u32).to_be_bytes();
        self.send(&[b"IHAVEOPT", &option.to_be_bytes(), &len, data]);
    }

    /// Option, kind and data of one reply.
    fn option_reply(&mut self) -> (u32, u32, Vec<u8>) {
        assert_eq!(self.take(8), b"\x00\x03\xe8\x89\x04\x55\x65\xa9");
        let (option, kind, len) = (self.u32(), self.u32(), self.u32());
        (option, kind, self.take(len as usize))
    }

    /// Kind and data of all replies to an option up to the last one.
    fn ask(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.option(option, data);
        let mut replies = Vec::new();
        loop {
            let (to, kind, data) = self.option_reply();
            assert_eq!(to, option);
            replies.push((kind, data));
            if kind == ACK || kind >= 1 << 31 {
                return replies;
            }
        }
    }

    /// The kind of the one reply to an option that is refused.
    fn refusal(&mut self, option: u32, data: &[u8]) -> u32 {
        let replies = self.ask(option, data);
        assert!(replies.len() == 1 && replies[0].0 != ACK, "{replies:?}");
        assert!(!replies[0].1.is_empty(), "no words");
        replies[0].0
    }

    fn go(&mut self, name: &[u8]) -> Result<(), u32> {
        let replies = self.ask(7, &export_request(name, &[]));
        match replies.last().expect("some").0 {
            ACK => Ok(()),
            error => Err(error),
        }
    }

    fn request(&mut self, command: u16, flags: u16, cookie: u64, offset: u64, len: u32) {
        self.send(&[&request(command, flags, cookie, offset, len)]);
    }

    /// Error and cookie of a simple reply.
    fn simple(&mut self) -> (u32, u64) {
        assert_eq!(self.take(4), b"\x67\x44\x66\x98");
        (self.u32(), self.u64())
    }

    fn chunk(&mut self) -> Chunk {
        assert_eq!(self.take(4), b"\x66\x8e\x33\xef");
        let (flags, kind, cookie, len) = (self.u16(), self.u16(), self.u64(), self.u32());
        Chunk { done: flags == 1, kind, cookie, payload: self.take(len as usize) }
    }

    /// The error of the reply to a command that brings no data, 0 for none.
    fn status(&mut self, cookie: u64) -> u32 {
        if !self.structured {
            let (error, of) = self.simple();
            assert_eq!(of, cookie);
            return error;
        }
        let chunk = self.chunk();
        assert!(chunk.done && chunk.cookie == cookie, "{chunk:?}");
        match chunk.kind {
            0 => 0,
            _ => u32::from_be_bytes(chunk.payload[..4].try_into().expect("4")),
        }
    }

    /// Reads, alone on the connection; the error where there is one.
    fn read(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, u32> {
        let cookie = offset ^ 0xabcd_0000_0000;
        self.request(READ, 0, cookie, offset, len as u32);
        if !self.structured {
            let (error, of) = self.simple();
            assert_eq!(of, cookie);
            return if error == 0 { Ok(self.take(len)) } else { Err(error) };
        }
        let mut out = vec![0; len];
        let mut filled = 0;
        let mut failed = None;
        loop {
            let Chunk { done, kind, cookie: of, payload } = self.chunk();
            assert_eq!(of, cookie);
            match kind {
                0 => assert!(done),
                1 => {
                    let at = u64::from_be_bytes(payload[..8].try_into().expect("8")) - offset;
                    out[at as usize..][..payload.len() - 8].copy_from_slice(&payload[8..]);
                    filled += payload.len() - 8;
                }
                0x8001 | 0x8002 => {
                    failed = Some(u32::from_be_bytes(payload[..4].try_into().expect("4")));
                }
                _ => panic!("chunk of kind {kind}"),
            }
            if done {
                break;
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                assert_eq!(filled, len);
                Ok(out)
            }
        }
    }

    /// Waits until the server hangs up; what it still sent is dropped.
    fn is_hung_up_on(&mut self) {
        let ended = io::copy(&mut self.stream, &mut io::sink());
        let reset = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionReset;
        assert!(ended.as_ref().is_ok() || ended.as_ref().is_err_and(reset), "{ended:?}");
    }
}

fn request(command: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut out = b"\x25\x60\x95\x13".to_vec();
    out.extend(flags.to_be_bytes());
    out.extend(command.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(offset.to_be_bytes());
    out.extend(len.to_be_bytes());
    out
}

/// The data of INFO and GO.
fn export_request(name: &[u8], infos: &[u16]) -> Vec<u8> {
    let mut out = (name.len() as u32).to_be_bytes().to_vec();
    out.extend(name);
    out.extend((infos.len() as u16).to_be_bytes());
    out.extend(infos.iter().flat_map(|i| i.to_be_bytes()));
    out
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
fn context_request(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let string = |s: &[u8]| [&(s.len() as u32).to_be_bytes(), s].concat();
    let queried: Vec<_> = queries.iter().flat_map(|q| string(q)).collect();
    [string(name), (queries.len() as u32).to_be_bytes().to_vec(), queried].concat()
}

#[test]
fn the_oldest_way_in_is_these_bytes() {
    let served = Served::new();
    let size = (SIZE as u64).to_be_bytes();
    for (flags, zeroes) in [(0u32, 124), (1, 124), (2, 0), (3, 0)] {
        let mut client = served.connect();
        client.greet(flags);
        client.option(1, b"view");
        assert_eq!(client.take(10), [&size[..], b"\x01\x07"].concat());
        assert_eq!(client.take(zeroes), vec![0; zeroes]);
        client.request(READ, 0, 7, 12, 11);
        assert_eq!(client.take(27), b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x0700000000001");
    }
}

#[test]
fn exports_are_listed_described_and_chosen() {
    let served = Served::new();
    let mut client = served.connect();
    client.greet(3);
    let server = |name: &[u8]| (SERVER, [&(name.len() as u32).to_be_bytes(), name].concat());
    let list = client.ask(3, b"");
    assert_eq!(list, [server(b"view"), server(b"other"), (ACK, Vec::new())]);
    assert_eq!(client.refusal(3, b"x"), ERR_INVALID);

    // Size and flags; the name, only if asked for; block sizes 1, 4 KiB and 32 MiB.
    let size = (SIZE as u64).to_be_bytes();
    let described = |flags: &[u8]| (INFO, [b"\0\0", &size[..], flags].concat());
    let sizes = (INFO, b"\0\x03\0\0\0\x01\0\0\x10\0\x02\0\0\0".to_vec());
    let info = client.ask(6, &export_request(b"", &[]));
    assert_eq!(info, [described(b"\x01\x07"), sizes.clone(), (ACK, Vec::new())]);
    client.ask(8, b"");
    let info = client.ask(6, &export_request(b"view", &[3, 1, 0, 99]));
    let name = (INFO, b"\0\x01view".to_vec());
    assert_eq!(info, [described(b"\x01\x87"), name, sizes, (ACK, Vec::new())]);

    assert_eq!(client.refusal(6, &export_request(b"missing", &[])), ERR_UNKNOWN);
    assert_eq!(client.refusal(7, &export_request(b"missing", &[])), ERR_UNKNOWN);
    assert_eq!(client.refusal(7, &export_request(&[b'x'; 5000], &[])), ERR_TOO_BIG);
    for malformed in [&b""[..], b"\0\0\0\x05view\0\0", b"\0\0\0\x04view", b"\0\0\0\x04view\0\x01"] {
        assert_eq!(client.refusal(7, malformed), ERR_INVALID, "{malformed:?}");
    }
    client.go(b"other").expect("there");
    client.structured = true;
    assert_eq!(client.read(0, served.other.len()), Ok(served.other.clone()));
}

#[test]
fn what_the_server_does_not_do_is_refused_in_words() {
    let served = Served::new();
    let mut client = served.connect();
    client.greet(1);
    assert_eq!(client.refusal(5, b""), ERR_UNSUP); // TLS
    assert_eq!(client.refusal(5, b"x"), ERR_INVALID);
    assert_eq!(client.refusal(11, b""), ERR_UNSUP); // extended headers
    assert_eq!(client.refusal(77, &[1; 60_000]), ERR_UNSUP);
    assert_eq!(client.refusal(8, b"x"), ERR_INVALID);
    assert_eq!(client.ask(2, b""), [(ACK, Vec::new())]); // abort
    client.is_hung_up_on();
}

#[test]
fn allocation_is_the_one_context() {
    let served = Served::new();
    let mut client = served.connect();
    client.greet(3);
    let all = context_request(b"view", &[]);
    assert_eq!(client.refusal(9, &all), ERR_INVALID, "structured replies come first");
    client.ask(8, b"");
    client.structured = true;
    let context = |id: u8| (META_CONTEXT, [&[0, 0, 0, id], &b"base:allocation"[..]].concat());
    let ack = (ACK, Vec::new());
    let nothing = [ack.clone()];
    assert_eq!(client.ask(9, &all), [context(0), ack.clone()]);
    assert_eq!(client.ask(9, &context_request(b"", &[b"base:"])), [context(0), ack.clone()]);
    assert_eq!(client.ask(9, &context_request(b"view", &[b"qemu:"])), nothing);
    assert_eq!(client.ask(10, &all), nothing);
    assert_eq!(client.ask(10, &context_request(b"view", &[b"base:"])), nothing);
    let wanted = context_request(b"view", &[b"x-a:b", b"base:allocation"]);
    assert_eq!(client.ask(10, &wanted), [context(1), ack]);
    for malformed in [&wanted[..wanted.len() - 1], b"", &[&wanted[..], b"x"].concat()] {
        assert_eq!(client.refusal(9, malformed), ERR_INVALID);
    }
    let many = [&context_request(b"view", &[])[..8], &[0xff; 4]].concat();
    assert_eq!(client.refusal(9, &many), ERR_INVALID);

    client.go(b"").expect("there");
    client.request(BLOCK_STATUS, 0, 5, 4096, (SIZE - 4096) as u32);
    let len = (SIZE as u32 - 4096).to_be_bytes();
    let payload = [&[0, 0, 0, 1], &len[..], &[0; 4]].concat();
    assert_eq!(client.chunk(), Chunk { done: true, kind: 5, cookie: 5, payload });
    client.request(BLOCK_STATUS, 8, 6, 0, 1);
    assert_eq!(client.chunk().payload, b"\0\0\0\x01\0\0\0\x01\0\0\0\0");
    for (flags, offset, len) in [(0, 0, 0), (0, 1, SIZE as u32), (0, u64::MAX, 2), (4, 0, 1)] {
        client.request(BLOCK_STATUS, flags, 9, offset, len);
        assert_eq!(client.status(9), 22, "{flags} {offset} {len}");
    }
}

#[test]
fn a_context_is_of_its_export() {
    let served = Served::new();
    for select in [&b""[..], b"view", b"other"] {
        let mut client = served.connect();
        client.greet(3);
        client.ask(8, b"");
        client.structured = true;
        client.ask(10, &context_request(select, &[b"base:allocation"]));
        client.go(b"view").expect("there");
        client.request(BLOCK_STATUS, 0, 5, 0, 1);
        let kind = client.chunk().kind;
        assert_eq!(kind, if select == b"other" { 0x8001 } else { 5 });
    }
}

#[test]
fn every_offset_and_length_is_exact() {
    let served = Served::new();
    for structured in [false, true] {
        let mut client = served.client(structured);
        let lens = [1, 511, 512, 4097, M - 1, M, M + 1, 3 * M + 77, SIZE];
        for (offset, len) in lens.iter().flat_map(|&len| [(0, len), (SIZE - len, len), (4099, len)])
        {
            if offset + len <= SIZE {
                let read = client.read(offset as u64, len);
                let expected = &served.bytes.content[offset..offset + len];
                assert!(read.as_deref() == Ok(expected), "{structured}: {len} at {offset}");
            }
        }
        assert_eq!(client.read(SIZE as u64, 0), Ok(Vec::new()));
    }
}

#[test]
fn an_unfragmented_read_is_one_chunk() {
    let served = Served::new();
    let mut client = served.client(true);
    client.request(READ, DF, 3, 100, M as u32);
    let chunk = client.chunk();
    assert_eq!((chunk.done, chunk.kind, chunk.payload.len()), (true, 1, M + 8));
    client.request(READ, DF, 4, 0, M as u32 + 1);
    assert_eq!(client.status(4), 75);
    let mut simple = served.client(false);
    simple.request(READ, DF, 5, 0, 10);
    assert_eq!(simple.status(5), 22, "the flag was not offered");
}

#[test]
fn requests_that_cannot_be_answered_are_errors() {
    let served = Served::new();
    for structured in [false, true] {
        let mut client = served.client(structured);
        let too_long = if structured { 75 } else { 22 };
        let size = SIZE as u64;
        for (command, flags, offset, len, error) in [
            (READ, 0, size, 1, 22),
            (READ, 0, u64::MAX, 100, 22),
            (READ, 1, 0, 1, 22),
            (4, 0, 0, 100, 1), // trim
            (6, 0, 0, 100, 1), // write zeroes
            (5, 0, 0, 100, 22),
            (99, 0, 0, 100, 22),
            (FLUSH, 0, 0, 0, 0),
            (FLUSH, 1, 0, 0, 22),
            (BLOCK_STATUS, 0, 0, 1, 22),
        ] {
            client.request(command, flags, 42, offset, len);
            assert_eq!(client.status(42), error, "{command} {flags} {offset} {len}");
        }
        // A write's data are read and forgotten.
        client.request(1, 0, 43, 0, 100_000);
        client.send(&[&[0x25; 100_000]]);
        assert_eq!(client.status(43), 1);
        assert!(client.read(0, 12).is_ok());
        drop(client);

        let long = Bytes { content: vec![0; (32 << 20) + 1], ..Bytes::default() };
        let large = Served::with(long, |options| options);
        let mut client = large.client(structured);
        client.request(READ, 0, 44, 0, (32 << 20) + 1);
        assert_eq!(client.status(44), too_long);
        assert_eq!(client.read(1, 32 << 20).map(|read| read.len()), Ok(32 << 20));
    }
}

#[test]
fn a_failed_read_is_eio_with_the_storages_words() {
    let bad = 2_500_000;
    let damaged = || Bytes { content: lines(SIZE), bad: Some(bad), ..Bytes::default() };
    let served = Served::with(damaged(), |options| options);
    let mut client = served.client(true);
    client.request(READ, 0, 9, 0, 4 << 20);
    let mut chunks: Vec<_> = (0..4).map(|_| client.chunk()).collect();
    assert!(chunks[3].done && !chunks[..3].iter().any(|chunk| chunk.done));
    chunks.sort_by_key(|chunk| chunk.kind);
    assert!(chunks[..3].iter().all(|chunk| chunk.kind == 1), "the rest is served");
    let why = "test bytes: reading 1048576 bytes at offset 2097152 failed: damaged";
    let len = (why.len() as u16).to_be_bytes();
    let offset = (2 * M as u64).to_be_bytes();
    let error = [b"\0\0\0\x05", &len[..], why.as_bytes(), &offset].concat();
    assert_eq!((chunks[3].kind, &chunks[3].payload), (0x8002, &error));
    assert_eq!(client.read(bad, 1), Err(5));
    assert!(client.read(0, 100).is_ok());

    let mut simple = served.client(false);
    assert_eq!(simple.read(bad, 1), Err(5));
    assert_eq!(simple.read(2 * M as u64, 2 * M), Err(5), "the first part fails");
    assert!(simple.read(0, 2 * M).is_ok());
    // Promised all bytes, then found damage: there is no way to say so but to hang up.
    simple.request(READ, 0, 1, 0, 4 << 20);
    assert_eq!(simple.simple(), (0, 1));
    let mut got = Vec::new();
    simple.stream.read_to_end(&mut got).expect("hung up");
    assert!(served.bytes.content[..2 * M].starts_with(&got), "nothing of the damaged part");

    let error = served.stop().expect_err("the first failed read");
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[test]
fn many_requests_are_in_flight_and_answered_by_cookie() {
    let served = Served::new();
    for structured in [false, true] {
        let mut client = served.client(structured);
        let place = |i: u64| (i * 7_919_117) % (SIZE as u64 - 70_000);
        let asked: Vec<_> =
            (0..300).flat_map(|i| request(READ, 0, i, place(i), 1 + 211 * i as u32)).collect();
        let mut stream = client.stream.try_clone().expect("cloned");
        let sender = std::thread::spawn(move || stream.write_all(&asked).expect("taken"));
        let mut seen = vec![false; 300];
        for _ in 0..300 {
            let (cookie, bytes) = if structured {
                let chunk = client.chunk();
                assert!(chunk.done && chunk.kind == 1);
                assert_eq!(chunk.payload[..8], place(chunk.cookie).to_be_bytes());
                (chunk.cookie, chunk.payload[8..].to_vec())
            } else {
                let (error, cookie) = client.simple();
                assert_eq!(error, 0);
                (cookie, client.take(1 + 211 * cookie as usize))
            };
            let from = place(cookie) as usize;
            assert!(bytes == served.bytes.content[from..from + 1 + 211 * cookie as usize]);
            assert!(!std::mem::replace(&mut seen[cookie as usize], true));
        }
        sender.join().expect("sent");
    }
}

#[test]
fn what_is_under_way_is_answered_before_a_disconnect() {
    let served = Served::new();
    let mut client = served.client(false);
    served.bytes.gate.set(true);
    let asked: Vec<_> = (0..5).flat_map(|i| request(READ, 0, i, 0, 10)).collect();
    client.send(&[&asked, &request(DISC, 0, 9, 0, 0)]);
    served.bytes.gate.set(false);
    for _ in 0..5 {
        assert_eq!(client.simple().0, 0);
        client.take(10);
    }
    assert_eq!(client.stream.read(&mut [0]).expect("closed"), 0);
}

#[test]
fn a_stop_answers_what_is_under_way() {
    let served = Served::new();
    let mut client = served.client(false);
    served.bytes.gate.set(true);
    client.request(READ, 0, 1, 0, 10);
    let idle = served.client(true);
    let stopper = served.stopper.clone();
    let stop = std::thread::spawn(move || stopper.stop());
    stop.join().expect("stopped");
    served.bytes.gate.set(false);
    // A request that the server had not taken when it stopped is not answered.
    let mut got = Vec::new();
    client.stream.read_to_end(&mut got).expect("closed");
    assert!(got.is_empty() || got.len() == 26, "{got:?}");
    drop(idle);
    let socket = served.socket();
    served.stop().expect("no failed read");
    assert!(!socket.exists());
}

/// Each of these breaks the protocol, and is hung up on; a client beside them never notices.
#[test]
fn garbage_ends_only_its_own_connection() {
    let served = Served::new();
    let mut bystander = served.client(true);
    let greeting = [&[0, 0, 0, 3], &b"IHAVEOPT"[..]].concat();
    let beginnings: [&[u8]; 6] = [
        &[0xff; 4],                                                       // flags
        &[0, 0, 0, 4],                                                    // flags of later days
        &[&greeting[..4], b"IHAVENOT"].concat(),                          // no option
        &[&greeting[..], &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]].concat(), // 4 GiB of data
        &[&greeting[..], &[0, 0, 0, 3, 0, 1, 0, 1]].concat(),             // one byte too many
        &[&greeting[..], b"\0\0\0\x01\0\0\0\x07missing"].concat(),        // no words for this
    ];
    for bytes in beginnings {
        let mut client = served.connect();
        client.take(18);
        client.send(&[bytes]);
        client.is_hung_up_on();
        assert!(bystander.read(0, 100).is_ok());
    }
    for bytes in [&[0; 28][..], &request(1, 0, 0, 0, (32 << 20) + 1)] {
        let mut client = served.client(false);
        client.send(&[bytes]);
        client.is_hung_up_on();
        assert!(bystander.read(0, 100).is_ok());
    }
}

/// Clients that leave at any point, mid-message and mid-reply.
#[test]
fn leaving_at_any_moment_harms_nobody() {
    let served = Served::new();
    let mut bystander = served.client(true);
    let whole: Vec<u8> = [
        &[0, 0, 0, 3],
        &b"IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x07\0\0\0\x0a\0\0\0\x04view\0\0"[..],
        &request(READ, 0, 1, 0, 4 << 20),
        &request(1, 0, 2, 0, 10),
        b"12345",
    ]
    .concat();
    for end in 0..=whole.len() {
        let mut client = served.connect();
        client.send(&[&whole[..end]]);
        if end % 2 == 0 {
            client.take(18);
        }
    }
    assert!(bystander.read(0, SIZE).is_ok());
    let all_gone = || {
        let clients: Vec<_> = (1..CONNECTIONS_MAX).map(|_| served.connect()).collect();
        clients.into_iter().all(|mut c| c.stream.read(&mut [0; 18]).is_ok_and(|n| n == 18))
    };
    within_patience(all_gone, "the places of those who left are free");
}

/// A client that asks and never reads waits for itself; the memory of its replies is bounded.
#[test]
fn a_client_that_floods_or_stalls_slows_only_itself() {
    let served = Served::new();
    let mut flooder = served.client(true);
    let flood: Vec<_> = (0..1000).flat_map(|i| request(READ, 0, i, 0, SIZE as u32)).collect();
    flooder.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("set");
    let rounds = (0..100).take_while(|_| flooder.stream.write_all(&flood).is_ok()).count();
    assert!(rounds < 100, "the server takes every request there is");
    let mut small = served.client(false);
    let many: Vec<_> = (0..1000).flat_map(|i| request(FLUSH, 0, i, 0, 0)).collect();
    small.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("set");
    let rounds = (0..1000).take_while(|_| small.stream.write_all(&many).is_ok()).count();
    assert!(rounds < 1000, "the server answers into the void");

    let start = Instant::now();
    let mut bystander = served.client(true);
    assert!(bystander.read(0, SIZE).is_ok_and(|read| read == served.bytes.content));
    assert!(start.elapsed() < PATIENCE);
    // Neither keeps the server from its end.
    let start = Instant::now();
    served.stop().expect("no failed read");
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn who_does_not_come_to_the_point_is_hung_up_on() {
    let soon = Duration::from_millis(200);
    let bytes = Bytes { content: lines(100), ..Bytes::default() };
    let served = Served::with(bytes, |o| ServerOptions { handshake_timeout: soon, ..o });
    let mut patient = served.client(true);
    let mut silent = served.connect();
    let mut busy = served.connect();
    busy.greet(3);
    silent.is_hung_up_on();
    // Many words are no excuse.
    let start = Instant::now();
    while busy.stream.write_all(b"IHAVEOPT\0\0\0\x03\0\0\0\0").is_ok() {
        assert!(start.elapsed() < PATIENCE, "it talks for ever");
        std::thread::yield_now();
    }
    assert!(patient.read(0, 100).is_ok(), "after the handshake there is no hurry");
}

#[test]
fn one_client_too_many_is_hung_up_on() {
    let served = Served::new();
    let mut clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| served.client(false)).collect();
    let mut late = served.connect();
    late.is_hung_up_on();
    assert!(clients[0].read(0, 10).is_ok());
    drop(clients);
    let free = || served.connect().stream.read(&mut [0; 18]).is_ok_and(|n| n == 18);
    within_patience(free, "a place is free again");
}

/// A client that asks and leaves keeps its place until its reads are done: what waits is bounded.
#[test]
fn who_leaves_early_keeps_its_place_for_a_while() {
    let served = Served::new();
    served.bytes.gate.set(true);
    for i in 0..CONNECTIONS_MAX as u64 {
        let mut client = served.client(true);
        client.request(READ, 0, i, i * 100_000, 10);
        client.send(&[&[0; 28]]);
        client.is_hung_up_on();
    }
    served.connect().is_hung_up_on();
    served.bytes.gate.set(false);
    within_patience(|| served.connect().stream.read(&mut [0]).is_ok_and(|n| n == 1), "all free");
}

fn within_patience(mut holds: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn it_serves_tcp_on_a_free_port() {
    let bytes = Bytes { content: lines(SIZE), ..Bytes::default() };
    let address = Address::Tcp("127.0.0.1:0".into());
    let served = Served::with(bytes, |o| ServerOptions { address, ..o });
    let Address::Tcp(at) = &served.address else { panic!("{:?}", served.address) };
    assert!(!at.ends_with(":0"));
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04view").expect("taken");
    stream.write_all(&request(READ, 0, 1, 0, SIZE as u32)).expect("taken");
    let mut out = vec![0; 18 + 10 + 16 + SIZE];
    stream.read_exact(&mut out).expect("answered");
    assert!(out[44..] == served.bytes.content);
}

#[test]
fn bad_names_are_refused() {
    let bytes: Arc<Bytes> = Arc::default();
    let long = "x".repeat(4097);
    for names in [&[""][..], &["a\0"], &["same", "same"], &[&long]] {
        let export = |name: &&str| Export { name: (*name).into(), storage: bytes.clone() };
        let exports = names.iter().map(export).collect();
        let options = ServerOptions::new(Address::Unix("/unused".into()), exports);
        let error = Server::new(options).expect_err("refused");
        assert!(matches!(error, Error::Name { .. }), "{error}");
    }
}

// The clients that people use.

/// Runs a program that must succeed; `None`, with a line said, when it is not installed.
fn program(name: &str, arguments: &[&str]) -> Option<Output> {
    let output = match Command::new(name).args(arguments).output() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            eprintln!("skipped: {name} is not installed");
            return None;
        }
        output => output.expect("it starts"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {}: {said}", output.status);
    Some(output)
}

#[test]
fn nbdinfo_understands_it() {
    let served = Served::new();
    let socket = served.uri("");
    let Some(output) = program("nbdinfo", &["--list", "--json", &socket]) else { return };
    let said = String::from_utf8(output.stdout).expect("JSON");
    for part in [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"export-name\": \"view\"",
        "\"export-name\": \"other\"",
        "\"export-size\": 5000017",
        "\"is_read_only\": true",
        "\"can_multi_conn\": true",
        "\"can_df\": true",
        "\"can_flush\": true",
        "\"can_trim\": false",
        "\"block_size_minimum\": 1",
        "\"block_size_preferred\": 4096",
        "\"block_size_maximum\": 33554432",
        "\"base:allocation\"",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let map = program("nbdinfo", &["--map", &served.uri("view")]).expect("installed");
    let map = String::from_utf8(map.stdout).expect("text");
    assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["0", "5000017", "0", "data"]);
    program("nbdinfo", &["--size", &served.uri("other")]).expect("installed");
    let refused = Command::new("nbdinfo").arg(served.uri("missing")).output().expect("it starts");
    assert!(!refused.status.success());
}

#[test]
fn nbdcopy_copies_it() {
    let served = Served::new();
    let to = served.folder.path().join("copy");
    let to = to.to_str().expect("text");
    for how in [&[][..], &["--connections=1", "--requests=1"], &["--request-size=33554432"]] {
        let uri = served.uri("view");
        let arguments = [how, &[&uri, to]].concat();
        let Some(_) = program("nbdcopy", &arguments) else { return };
        assert!(fs::read(to).expect("copied") == served.bytes.content, "{how:?}");
    }
    let piped = program("nbdcopy", &[&served.uri("other"), "-"]).expect("installed");
    assert_eq!(piped.stdout, served.other);
}

#[test]
fn nbdcopy_does_not_take_damage_for_data() {
    let bytes = Bytes { content: lines(SIZE), bad: Some(4_000_000), ..Bytes::default() };
    let served = Served::with(bytes, |options| options);
    match Command::new("nbdcopy").args([&served.uri("view"), "-"]).output() {
        Err(e) => eprintln!("skipped: nbdcopy: {e}"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("Input/output error"), "{said}");
        }
    }
}

#[test]
fn nbdfuse_mounts_it() {
    if fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_err() {
        eprintln!("skipped: /dev/fuse cannot be opened");
        return;
    }
    let served = Served::new();
    let mountpoint = served.folder.path().join("m");
    fs::create_dir(&mountpoint).expect("made");
    let file = mountpoint.join("nbd");
    let mut child =
        match Command::new("nbdfuse").arg("-r").arg(&mountpoint).arg(served.uri("view")).spawn() {
            Ok(child) => child,
            Err(e) => return eprintln!("skipped: nbdfuse: {e}"),
        };
    within_patience(|| file.exists(), "mounted");
    let read = fs::read(&file);
    let unmounted = Command::new("fusermount3").arg("-u").arg(&mountpoint).status();
    let ended = child.wait().expect("ended");
    assert!(read.expect("read") == served.bytes.content);
    assert!(unmounted.expect("it starts").success() && ended.success());
}

#[test]
fn qemu_img_reads_and_converts_it() {
    let served = Served::new();
    let at = |name: &str| served.folder.path().join(name).to_str().expect("text").to_owned();
    let plain = at("plain");
    fs::write(&plain, &served.bytes.content).expect("written");
    let uri = served.uri("view");
    let Some(info) = program("qemu-img", &["info", "--output=json", &uri]) else { return };
    let info = String::from_utf8(info.stdout).expect("JSON");
    assert!(info.contains("\"format\": \"raw\""), "{info}");
    // It counts in sectors: what is beyond the end reads as zeros.
    let compare = ["compare", "-f", "raw", "-F", "raw", &uri, &plain];
    program("qemu-img", &compare).expect("installed");
    let raw = at("raw");
    program("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, &raw]).expect("installed");
    let converted = fs::read(raw).expect("converted");
    assert!(converted.starts_with(&served.bytes.content) && converted.len() < SIZE + 512);
    assert!(converted[SIZE..].iter().all(|&b| b == 0));
    let qcow2 = at("qcow2");
    let convert = ["convert", "-f", "raw", "-O", "qcow2", &uri, &qcow2];
    program("qemu-img", &convert).expect("installed");
    program("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", &qcow2, &plain])
        .expect("installed");
}

/// Random and sequential reads at depth, over several connections; `fio` knows what its own
/// pattern looks like at every offset.
#[test]
fn fio_verifies_what_it_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let pattern = folder.path().join("pattern");
    let pattern = pattern.to_str().expect("text");
    // Else it leaves a file in the current folder.
    let verify = [
        "--verify_state_save=0",
        "--verify=pattern",
        "--verify_pattern=%o",
        "--verify_fatal=1",
        "--size=8m",
    ];
    let lay_out =
        [&["--name=l", "--rw=write", "--bs=64k", "--filename", pattern], &verify[..]].concat();
    let Some(_) = program("fio", &[&lay_out[..], &["--do_verify=0"]].concat()) else { return };
    let engines = program("fio", &["--enghelp"]).expect("installed").stdout;
    if !String::from_utf8_lossy(&engines).lines().any(|line| line.trim() == "nbd") {
        return eprintln!("skipped: this fio has no engine nbd");
    }
    let content = fs::read(pattern).expect("laid out");
    assert_eq!((content.len(), content[65_536..].starts_with(&[0, 0, 1])), (8 << 20, true));
    let served = Served::with(Bytes { content, ..Bytes::default() }, |options| options);
    let uri = format!("--uri={}", served.uri("view"));
    for how in [["--rw=read", "--bs=64k"], ["--rw=randread", "--bs=64k"]] {
        let job = ["--name=r", "--ioengine=nbd", &uri, "--iodepth=32", "--numjobs=3"];
        program("fio", &[&job[..], &how, &verify].concat()).expect("installed");
    }
}

/// What the names in a folder are, for a look at leftovers.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_server_leaves_nothing_behind() {
    let mut served = Served::new();
    served.client(true).read(0, 10).expect("read");
    served.stopper.stop();
    served.run.take().expect("running").join().expect("no panic").expect("no error");
    assert_eq!(names(served.folder.path()), Vec::<String>::new());
    assert_eq!(Arc::strong_count(&served.bytes), 1, "the storage is let go of");
}
