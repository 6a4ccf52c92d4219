//! Clients that mean harm, or are broken: the server answers others meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, Int64Array, RecordBatch};
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use futures::{StreamExt, TryStreamExt};
use merganser_flight::wire::{SetBody, ViewTicket};
use merganser_serve::session::request::SessionRange;
use merganser_sort::key::OrderSpec;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::harness::{LINES, Node, TOKEN, begin, node, node_with, of_ssdlet, rows, rows_of, tls};

/// A client without any manners: calls as they are typed.
fn raw<T>(node: &Node, work: impl AsyncFnOnce(FlightServiceClient<Channel>) -> T) -> T {
    let address = format!("http://{}", node.address);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("made");
    runtime.block_on(async {
        let channel =
            Channel::from_shared(address).expect("an address").connect().await.expect("it answers");
        work(FlightServiceClient::new(channel)).await
    })
}

fn with_token<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let token: MetadataValue<_> = format!("Bearer {TOKEN}").parse().expect("ASCII");
    request.metadata_mut().insert("authorization", token);
    request
}

#[test]
fn garbage_on_the_port_harms_nobody() {
    for encrypted in [false, true] {
        let node = node_with(|options| options.tls = encrypted.then(tls));
        let mut client = node.client();
        for garbage in [
            &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
            &[0; 100_000],
            &[0xff; 100_000],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff\x04\x00\x00\x00\x00\x00",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x01",
            b"\x16\x03\x01\xff\xff\x01\x00\x00",
            b"",
        ] {
            let mut stream = TcpStream::connect(node.address).expect("it listens");
            // The server may have hung up in the middle of it.
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
            let mut answer = Vec::new();
            let end = stream.read_to_end(&mut answer);
            assert!(end.is_ok() || answer.len() < 10_000, "it hangs up: {end:?}");
            client.list().expect("others are answered");
        }
    }
}

#[test]
fn connections_that_say_nothing_are_closed_and_others_are_served_meanwhile() {
    let node = node();
    let begun = Instant::now();
    let silent: Vec<_> =
        (0..64).map(|_| TcpStream::connect(node.address).expect("it listens")).collect();
    // Half of them begin to speak, and stop.
    for mut stream in silent.iter().take(32) {
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("open");
    }
    node.client().list().expect("others are answered");
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        // Settings of HTTP/2 may come first.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(8) && waited < Duration::from_secs(60), "{waited:?}");
    node.client().list().expect("it still answers");
}

/// HTTP/2 reads nothing more while it can't write, so the deadlines of reads are not looked at.
#[test]
fn a_client_that_pings_and_does_not_read_is_closed() {
    let node = node();
    let mut stream = TcpStream::connect(node.address).expect("it listens");
    stream.set_write_timeout(Some(Duration::from_secs(30))).expect("a socket");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("open");
    let pings = b"\0\0\x08\x06\0\0\0\0\0pingpong".repeat(4096);
    let begun = Instant::now();
    let error = loop {
        if let Err(error) = stream.write_all(&pings) {
            break error;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it is served for ever");
    };
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    assert!(
        !matches!(error.kind(), TimedOut | WouldBlock),
        "it is open after {:?}",
        begun.elapsed()
    );
    node.client().list().expect("others are answered");
}

#[test]
fn messages_that_are_too_large_are_refused() {
    let node = node();
    raw(&node, async |mut client| {
        let action = Action::new("status", vec![b' '; 5 << 20]);
        let refused = client.do_action(with_token(action)).await.map(|_| ()).expect_err("5 MiB");
        assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
        // Without the token, nothing of the body is read.
        let action = Action::new("status", vec![b' '; 64 << 20]);
        let refused = client.do_action(action).await.map(|_| ()).expect_err("no token");
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
        let many = vec![SessionRange::of_path("a"); 65_537];
        let body =
            serde_json::to_vec(&SetBody { session: "x".to_owned(), ranges: many, run: false });
        let action = Action::new("set", body.expect("JSON"));
        client.do_action(with_token(action)).await.map(|_| ()).expect_err("no session");
    });
    let mut client = node.client();
    let session = client.open(&of_ssdlet("copy")).expect("opened").session;
    let ranges = vec![SessionRange::of_path("a"); 65_537];
    let refused =
        client.set(&SetBody { session, ranges, run: false }).expect_err("too many").to_string();
    assert!(refused.contains("at most 65536 ranges"), "{refused}");
}

#[test]
fn wrong_tickets_descriptors_and_calls_get_an_answer() {
    let node = node();
    let session = node.client().open(&of_ssdlet("copy")).expect("opened").session;
    raw(&node, async |mut client| {
        for ticket in [
            "",
            "{}",
            "nonsense",
            r#"{"session":"x"}"#,
            r#"{"view":"/"}"#,
            r#"{"session":"x","offset":"1"}"#,
        ] {
            let got = client.do_get(with_token(Ticket::new(ticket))).await;
            assert!(matches!(
                got.map(|_| ()).expect_err(ticket).code(),
                Code::InvalidArgument | Code::NotFound | Code::PermissionDenied
            ));
        }
        let nothing = Ticket::new(format!(r#"{{"session":"{session}"}}"#));
        let got =
            client.do_get(with_token(nothing)).await.map(|_| ()).expect_err("nothing was set");
        assert_eq!(got.code(), Code::FailedPrecondition);
        for (name, body) in
            [("open", "{}"), ("open", "[1]"), ("steal", "{}"), ("set", r#"{"ranges":[]}"#)]
        {
            let got = client.do_action(with_token(Action::new(name, body))).await;
            assert_eq!(
                got.map(|_| ()).expect_err(name).code(),
                Code::InvalidArgument,
                "{name} {body}"
            );
        }
        let descriptors = [FlightDescriptor::new_path(vec![]), FlightDescriptor::new_cmd("{}")];
        for descriptor in descriptors {
            client.get_flight_info(with_token(descriptor)).await.map(|_| ()).expect_err("nothing");
        }
        // Bytes that are not blobs.
        let path = FlightDescriptor::new_path(vec![session.clone(), "b".to_owned()]);
        let garbage = FlightData::new()
            .with_descriptor(path.clone())
            .with_data_header(vec![0xff; 64])
            .with_data_body(vec![1; 100]);
        let empty = FlightData::new().with_descriptor(path);
        for messages in [vec![], vec![empty], vec![garbage], vec![FlightData::new()]] {
            let put = client.do_put(with_token(futures::stream::iter(messages))).await;
            let status = put.map(|_| ()).err();
            assert!(status.is_none_or(|status| status.code() != Code::Unavailable));
        }
    });
    node.client().list().expect("it still answers");
}

/// The messages of a blob in `columns`.
async fn blob(session: &str, columns: Vec<ArrayRef>) -> Vec<FlightData> {
    let named = columns.into_iter().enumerate().map(|(n, column)| (n.to_string(), column));
    let batch = RecordBatch::try_from_iter(named).expect("columns of one length");
    let path = FlightDescriptor::new_path(vec![session.to_owned(), "b".to_owned()]);
    let messages = FlightDataEncoderBuilder::new()
        .with_dictionary_handling(DictionaryHandling::Resend)
        .with_flight_descriptor(Some(path))
        .build(futures::stream::iter([Ok(batch)]));
    messages.try_collect().await.expect("they can be encoded")
}

/// Arrow's decoder panics at many of these, and a panic would end the process of the command.
#[test]
fn blobs_that_make_no_sense_are_refused() {
    let node = node();
    let session = node.client().open(&of_ssdlet("copy")).expect("opened").session;
    let bytes = || Arc::new(BinaryArray::from(vec![&b"one\n"[..], b"two\n"])) as ArrayRef;
    raw(&node, async |mut client| {
        let mut put = async |messages: Vec<FlightData>| {
            let answers = client.do_put(with_token(futures::stream::iter(messages))).await;
            answers.map(|answers| drop(answers.into_inner().boxed())).map_err(|e| e.code())
        };
        let good = blob(&session, vec![bytes()]).await;
        assert_eq!(put(good.clone()).await, Ok(()));
        let [_, batch] = &good[..] else { panic!("a schema and a batch") };
        for cut in 0..batch.data_body.len() {
            let mut messages = good.clone();
            messages[1].data_body.truncate(cut);
            let refused = put(messages).await;
            // 12 bytes of offsets fill up 64, and 8 bytes of values follow.
            let expected = if cut < 72 { Err(Code::InvalidArgument) } else { Ok(()) };
            assert_eq!(refused, expected, "{cut}");
        }
        for at in 0..batch.data_header.len() {
            for change in [1, 0x80, 0xff] {
                let mut header = batch.data_header.to_vec();
                header[at] ^= change;
                let mut messages = good.clone();
                messages[1].data_header = header.into();
                let answer = put(messages).await;
                assert!(matches!(answer, Ok(()) | Err(Code::InvalidArgument)), "{at}: {answer:?}");
            }
        }
        let numbers = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let words: DictionaryArray<Int32Type> = ["one", "two"].into_iter().collect();
        for columns in [vec![numbers()], vec![bytes(), bytes()], vec![Arc::new(words)]] {
            assert_eq!(put(blob(&session, columns).await).await, Err(Code::InvalidArgument));
        }
    });
    assert_eq!(node.client().status(&session).expect("open").blobs[0].name, "b");
}

/// A call that is cancelled ends its stream of messages like one that was whole.
#[test]
fn a_blob_whose_put_is_cancelled_is_not_kept() {
    let node = node();
    let session = node.client().open(&of_ssdlet("copy")).expect("opened").session;
    for expected in [&[][..], &[("b".to_owned(), 6)]] {
        raw(&node, async |mut client| {
            for _ in 0..10 {
                let bytes = Arc::new(BinaryArray::from(vec![&b"a part of a blob\n"[..]]));
                let messages = futures::stream::iter(blob(&session, vec![bytes]).await);
                let put = client.do_put(with_token(messages.chain(futures::stream::pending())));
                let cancelled = tokio::time::timeout(Duration::from_millis(100), put).await;
                assert!(cancelled.is_err(), "its messages do not end");
            }
            // The connection has to tell the server of the last one.
            tokio::time::sleep(Duration::from_millis(300)).await;
        });
        let blobs = node.client().status(&session).expect("open").blobs;
        let blobs: Vec<_> = blobs.into_iter().map(|blob| (blob.name, blob.bytes)).collect();
        assert_eq!(blobs, expected);
        node.client().put(&session, "b", &mut &b"whole\n"[..]).expect("kept");
    }
}

#[test]
fn a_reader_that_stops_frees_its_memory_and_can_continue() {
    let node = node_with(|options| {
        options.batch_patience = Duration::from_millis(500);
        // Streams get a quarter of it: enough for one at a time.
        options.sessions.memory_bytes = 12 << 20;
    });
    let lines: String = (0..4_000_000).map(|i| format!("line {i:08}\n")).collect();
    node.write("lines", &lines);
    let mut slow = node.client();
    let session = begin(&mut slow, "copy", &["lines"]).expect("begun");
    let mut taken = slow.rows(rows_of(&session, 0));
    assert!(taken.advance().expect("a first row"));
    // It reads no more. Its results fill all buffers, then its connection is closed.
    thread::sleep(Duration::from_secs(3));
    let quick = thread::scope(|scope| {
        scope
            .spawn(|| {
                rows(&mut node.client(), rows_of(&session, 3_999_999)).expect("there is memory")
            })
            .join()
    });
    assert_eq!(quick.expect("no panic").len(), 1);
    let mut expected = lines.as_bytes().split_inclusive(|b| *b == b'\n');
    loop {
        assert_eq!(Some(taken.key()), expected.next());
        if !taken.advance().expect("continued") {
            break;
        }
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn sixty_four_sessions_are_answered_and_one_of_them_is_hostile() {
    let node = node();
    node.write("good", "b a b\n".repeat(10_000));
    let hostile = thread::scope(|scope| {
        let others: Vec<_> = (0..63)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = node.client();
                    let session = begin(&mut client, "wordcount", &["good"]).expect("begun");
                    let counted = rows(&mut client, rows_of(&session, 0)).expect("counted");
                    client.close(&session).expect("open");
                    counted
                })
            })
            .collect();
        let hostile = scope.spawn(|| {
            let mut client = node.client();
            let mut ends = 0;
            for _ in 0..20 {
                let Ok(session) = begin(&mut client, "panic", &["good"]) else { continue };
                ends += usize::from(rows(&mut client, rows_of(&session, 0)).is_err());
                let mut garbage = TcpStream::connect(node.address).expect("it listens");
                let _ = garbage.write_all(&[0xff; 50_000]);
                let _ = client.close(&session);
            }
            ends
        });
        for other in others {
            let counted = other.join().expect("answered");
            let value = |count: i64| count.to_le_bytes().to_vec();
            assert_eq!(counted, [(b"a".to_vec(), value(10_000)), (b"b".to_vec(), value(20_000))]);
        }
        hostile.join().expect("no panic")
    });
    assert!(hostile > 0);
}

/// A frame of HTTP/2.
fn http2(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call, none of them indexed and none compressed.
fn headers_of_a_call() -> Vec<u8> {
    let token = format!("Bearer {TOKEN}");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "node"),
        (":path", "/arrow.flight.protocol.FlightService/DoAction"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("authorization", &token),
    ];
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let field = |(name, value): (&str, &str)| [vec![0], text(name), text(value)].concat();
    fields.into_iter().flat_map(field).collect()
}

#[test]
fn bodies_that_never_come_do_not_keep_others_away() {
    let node = node();
    let mut slow = TcpStream::connect(node.address).expect("it listens");
    slow.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("open");
    slow.write_all(&http2(4, 0, 0, &[])).expect("open");
    // One request for each place; some send a few bytes.
    let begun = Instant::now();
    for stream in (1..).step_by(2).take(8) {
        slow.write_all(&http2(1, 4, stream, &headers_of_a_call())).expect("open");
        slow.write_all(&http2(0, 0, stream, &[0, 0, 0][..stream as usize % 4])).expect("open");
    }
    // Their places are taken once the node has read them, and free 5 seconds later.
    thread::sleep(Duration::from_secs(3));
    // A request that found no place for 30 seconds would be refused.
    node.client().list().expect("it is answered");
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Connections that never show the token.
struct Strangers {
    streams: Vec<TcpStream>,
    greeting: &'static [u8],
    closed: usize,
}

impl Strangers {
    /// Connects `count` times, and says `greeting` each time.
    fn new(node: &Node, count: usize, greeting: &'static [u8]) -> Self {
        let streams = (0..count).map(|_| Self::connect(node, greeting)).collect();
        Strangers { streams, greeting, closed: 0 }
    }

    fn connect(node: &Node, greeting: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(node.address).expect("it listens");
        let _ = stream.write_all(greeting);
        stream.set_nonblocking(true).expect("a socket");
        stream
    }

    /// Connects again whenever the node closes one, until `over` is set. Returns how many were closed.
    fn insist(mut self, node: &Node, over: &AtomicBool) -> usize {
        loop {
            // Asked before the look at the streams: what was closed by then is counted.
            let last = over.load(Ordering::Acquire);
            for stream in &mut self.streams {
                let ended = match stream.read(&mut [0; 1024]) {
                    Ok(read) => read == 0,
                    Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
                };
                if ended {
                    *stream = Self::connect(node, self.greeting);
                    self.closed += 1;
                }
            }
            if last {
                return self.closed;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// More of them than there are places, with and without TLS, and made again when they are closed.
#[test]
fn connections_without_the_token_keep_no_client_away() {
    for (encrypted, greeting) in [
        (false, &b""[..]),
        (true, b""),
        (false, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (true, b"\x16"),
    ] {
        let node = node_with(|options| options.tls = encrypted.then(tls));
        let over = AtomicBool::new(false);
        // All are connected before the first client, so it is served only when 122 of them gave way.
        let strangers = Strangers::new(&node, 250, greeting);
        thread::scope(|scope| {
            let strangers = scope.spawn(|| strangers.insist(&node, &over));
            for _ in 0..3 {
                let begun = Instant::now();
                node.client().list().expect("it is served");
                // Without the rule it took 10 seconds for each turn of the places.
                assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
            }
            over.store(true, Ordering::Release);
            let closed = strangers.join().expect("no panic");
            assert!(closed >= 122, "{closed} gave way");
        });
    }
}

/// Clients that have shown the token are not closed for those that have not.
#[test]
fn a_client_with_the_token_keeps_its_connection() {
    let node = node();
    let (mut client, over) = (node.client(), AtomicBool::new(false));
    client.list().expect("served");
    let strangers = Strangers::new(&node, 250, b"");
    thread::scope(|scope| {
        let strangers = scope.spawn(|| strangers.insist(&node, &over));
        thread::sleep(Duration::from_secs(3));
        let begun = Instant::now();
        client.list().expect("over the connection that it has");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        over.store(true, Ordering::Release);
        assert!(strangers.join().expect("no panic") > 0, "some gave way");
    });
}

/// Streams that wait for memory take no places of requests.
#[test]
fn requests_are_answered_while_streams_wait_for_memory() {
    // Memory for one stream of a view.
    let node = node_with(|options| options.sessions.memory_bytes = 24 << 20);
    let lines: String = (0..300_000).map(|i| format!("{i:099}\n")).collect();
    node.sort("v.view", lines.as_bytes(), OrderSpec::new(LINES));
    let ticket = ViewTicket { view: "v.view".to_owned(), ..ViewTicket::default() };
    let ticket = merganser_flight::wire::GetTicket::View(ticket);
    let (node, json) = (&node, &ticket.to_json());
    thread::scope(|scope| {
        let mut first = node.client();
        let mut taken = first.rows(ticket.clone());
        assert!(taken.advance().expect("a first row"));
        scope.spawn(move || {
            raw(node, async |client| {
                let wait = |_| {
                    let mut client = client.clone();
                    async move { drop(client.do_get(with_token(Ticket::new(json.clone()))).await) }
                };
                futures::future::join_all((0..12).map(wait)).await;
            });
        });
        thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        node.client().list().expect("there is a place");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        // The first one is closed now, and the others get its memory, one after another.
    });
}

#[test]
fn streams_beyond_the_most_are_told_to_come_again() {
    let node = node();
    // Its run takes more than a minute, and its streams wait for the end of it.
    node.write("lines", "x\n".repeat(20 << 20));
    let session = begin(&mut node.client(), "slower", &["lines"]).expect("begun");
    let ticket = Ticket::new(rows_of(&session, 0).to_json());
    let address = format!("http://{}", node.address);
    raw(&node, async |mut other| {
        let mut held = Vec::new();
        let mut refused = None;
        // A connection has 32 streams at most.
        for _ in 0..5 {
            let channel = Channel::from_shared(address.clone()).expect("an address");
            let mut client = FlightServiceClient::new(channel.connect().await.expect("it answers"));
            for _ in 0..30 {
                match client.do_get(with_token(ticket.clone())).await {
                    Ok(stream) => held.push(stream),
                    Err(status) => refused = refused.or(Some((held.len(), status.code()))),
                }
            }
        }
        assert_eq!(refused, Some((128, Code::ResourceExhausted)));
        // Actions are answered meanwhile, and there is room once streams are gone.
        let cancel = Action::new("cancel", format!(r#"{{"session":"{session}"}}"#));
        other.do_action(with_token(cancel)).await.expect("it has places of its own");
        drop(held);
    });
    let until = Instant::now() + Duration::from_secs(60);
    let fresh = begin(&mut node.client(), "copy", &["lines"]).expect("begun");
    while rows(&mut node.client(), rows_of(&fresh, (20 << 20) - 1)).is_err() {
        assert!(Instant::now() < until, "the places come back");
        thread::sleep(Duration::from_millis(100));
    }
}
