//! Nodes that mean harm: our client ends in time, within its memory, and when its caller asks for the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, Result as Answer, SchemaResult,
    Ticket,
};
use futures::stream::{self, BoxStream, StreamExt};
use merganser_flight::client::{ClientError, NodeAddress, NodeClient, StopFlag};
use merganser_flight::farm::{FarmError, SessionFarm};
use merganser_flight::wire::{GetTicket as Wanted, SessionTicket, TextAs};
use tonic::{Request, Response, Status, Streaming};

use crate::harness::of_ssdlet;

/// What it answers to any call.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Messages of this many bytes, without end.
    Endless(usize),
    /// One message of this many bytes.
    Huge(usize),
    /// Nothing at all, and the stream stays open.
    Silent,
    /// The call itself is never answered.
    Deaf,
}

#[derive(Clone)]
struct Hostile {
    manner: Manner,
    sent: Arc<AtomicU64>,
}

type Stream<T> = BoxStream<'static, Result<T, Status>>;

impl Hostile {
    async fn stream<T: Send + 'static>(
        &self,
        message: fn(Vec<u8>) -> T,
    ) -> Result<Response<Stream<T>>, Status> {
        let sent = Arc::clone(&self.sent);
        let made = move |bytes: usize| {
            sent.fetch_add(bytes as u64, Ordering::Relaxed);
            Ok(message(vec![b'x'; bytes]))
        };
        let stream: Stream<T> = match self.manner {
            Manner::Endless(bytes) => stream::repeat_with(move || made(bytes)).boxed(),
            Manner::Huge(bytes) => stream::iter([made(bytes)]).boxed(),
            Manner::Silent => stream::pending().boxed(),
            Manner::Deaf => std::future::pending().await,
        };
        Ok(Response::new(stream))
    }
}

#[tonic::async_trait]
impl FlightService for Hostile {
    type HandshakeStream = Stream<HandshakeResponse>;
    type ListFlightsStream = Stream<FlightInfo>;
    type DoGetStream = Stream<FlightData>;
    type DoPutStream = Stream<PutResult>;
    type DoExchangeStream = Stream<FlightData>;
    type DoActionStream = Stream<Answer>;
    type ListActionsStream = Stream<ActionType>;

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented("no"))
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented("no"))
    }

    async fn get_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        match self.manner {
            // It has one message; a short one would be as good as any.
            Manner::Endless(_) | Manner::Huge(_) => {
                let bytes = 6 << 20;
                let app_metadata = vec![b'x'; bytes].into();
                Ok(Response::new(FlightInfo { app_metadata, ..FlightInfo::default() }))
            }
            Manner::Silent | Manner::Deaf => std::future::pending().await,
        }
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("no"))
    }

    async fn get_schema(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        Err(Status::unimplemented("no"))
    }

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        self.stream(|bytes| FlightData { data_body: bytes.into(), ..FlightData::default() }).await
    }

    async fn do_put(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.stream(|bytes| PutResult { app_metadata: bytes.into() }).await
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("no"))
    }

    async fn do_action(
        &self,
        _: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        self.stream(|bytes| Answer { body: bytes.into() }).await
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        Err(Status::unimplemented("no"))
    }
}

/// A hostile node, and the bytes that it made.
fn hostile(manner: Manner) -> (NodeAddress, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let node = Hostile { manner, sent: Arc::clone(&sent) };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address: SocketAddr = listener.local_addr().expect("bound");
    drop(listener);
    // It ends with the test's process.
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("made");
        let service = FlightServiceServer::new(node).max_encoding_message_size(usize::MAX);
        let server = tonic::transport::Server::builder().add_service(service).serve(address);
        runtime.block_on(server).expect("it serves");
    });
    let known = NodeAddress { address: address.to_string(), token: None, ca: None };
    let begun = Instant::now();
    while NodeClient::connect(&known).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it listens");
        std::thread::sleep(Duration::from_millis(20));
    }
    (known, sent)
}

fn ticket() -> Wanted {
    Wanted::Session(SessionTicket { session: "s".to_owned(), offset: 0, text: TextAs::Binary })
}

/// Every kind of call, each with a client of its own.
fn calls(known: &NodeAddress, stop: &StopFlag) -> Vec<(&'static str, ClientError)> {
    let client = || NodeClient::connect_until(known, stop);
    let told = |done: Result<(), ClientError>| done.expect_err("it is hostile");
    vec![
        ("list", told(client().and_then(|mut c| c.list().map(drop)))),
        ("open", told(client().and_then(|mut c| c.open(&of_ssdlet("copy")).map(drop)))),
        ("status", told(client().and_then(|mut c| c.status("s").map(drop)))),
        ("cancel", told(client().and_then(|mut c| c.cancel("s").map(drop)))),
        ("close", told(client().and_then(|mut c| c.close("s")))),
        ("upload", told(client().and_then(|mut c| c.upload(vec![0; 100]).map(drop)))),
        ("put", told(client().and_then(|mut c| c.put("s", "b", &mut &b"x"[..]).map(drop)))),
        ("info", told(client().and_then(|mut c| c.info(FlightDescriptor::new_cmd("x")).map(drop)))),
        ("rows", told(client().and_then(|mut c| c.rows(ticket()).advance().map(drop)))),
    ]
}

#[test]
fn answers_without_end_are_refused_after_the_second() {
    for bytes in [0, 10, 3_000_000] {
        let (known, sent) = hostile(Manner::Endless(bytes));
        let begun = Instant::now();
        for (call, error) in calls(&known, &StopFlag::default()) {
            assert!(!matches!(error, ClientError::Stopped), "{call}: {error}");
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        // Nine calls, two messages of each, and what the windows let the node send ahead.
        let most = 9 * (2 * bytes as u64 + (16 << 20));
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent <= most, "{sent} of {most} bytes");
    }
}

#[test]
fn messages_that_are_too_long_are_refused() {
    let (known, _) = hostile(Manner::Huge(6 << 20));
    for (call, error) in calls(&known, &StopFlag::default()) {
        let told = error.to_string();
        assert!(told.contains("limit") || call == "put", "{call}: {told}");
    }
}

/// The caller's thread asks for the end while the node is silent.
#[test]
fn a_silent_node_does_not_keep_a_caller_that_wants_the_end() {
    for manner in [Manner::Silent, Manner::Deaf] {
        let (known, _) = hostile(manner);
        let stop = StopFlag::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                stop.set();
            });
            let begun = Instant::now();
            for (call, error) in calls(&known, &stop) {
                assert!(matches!(error, ClientError::Stopped) || call == "put", "{call}: {error}");
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        });
        let cancelled = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                cancelled.store(true, Ordering::Relaxed);
            });
            let begun = Instant::now();
            let is_cancelled = || cancelled.load(Ordering::Relaxed);
            let opened = SessionFarm::open(&[known], &of_ssdlet("copy"), None, &is_cancelled);
            assert!(matches!(opened.map(drop), Err(FarmError::Cancelled)));
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        });
    }
}
