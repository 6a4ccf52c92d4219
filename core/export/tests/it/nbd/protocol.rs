//! What a server owes to a client that keeps to the protocol.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use super::client::*;
use super::*;

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
    let mut got = Vec::new();
    simple.stream.read_to_end(&mut got).expect("hung up");
    // Bytes that were not written by then are dropped, even the header.
    let header = [&b"\x67\x44\x66\x98\0\0\0\0"[..], &1_u64.to_be_bytes()].concat();
    let promised = [&header, &served.bytes.content[..2 * M]].concat();
    assert!(promised.starts_with(&got), "nothing of the damaged part");

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
    assert_eq!(client.stream.read_to_end(&mut Vec::new()).expect("closed"), 0);
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

#[test]
fn it_serves_tcp_on_a_free_port() {
    let bytes = Bytes { content: lines(SIZE), ..Bytes::default() };
    let address = Address::Tcp("127.0.0.1:0".into());
    let served = Served::with(bytes, |o| NbdOptions { address, ..o });
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
        let export = |name: &&str| Export::read_only(*name, bytes.clone());
        let exports = names.iter().map(export).collect();
        let options = NbdOptions::new(Address::Unix("/unused".into()), exports);
        let error = NbdServer::new(options).expect_err("refused");
        assert!(matches!(error, Error::Name { .. }), "{error}");
    }
}

// The clients that people use.

/// The names in a folder, to look for leftovers.
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
