//! Our own client of a node. It blocks: tokio runs in the caller's thread, while a call lasts.
//!
//! It does not trust the node. A message has at most 4 MiB, and an action one answer; a call that has no stream ends
//! in time; and a [`StopFlag`] ends any call, whatever the node does.
//!
//! ```text
//!   Client ── open, set, status, close ──► a node
//!      └───── rows ──► Rows ── advance ──► batches of the node
//!                        └── broken? connect again, at most 5 times, and continue at the row
//! ```

mod certificate;
mod rows;
mod stop;

use std::fmt;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo};
use futures::StreamExt;
use merganser_serve::session::request::OpenRequest;
use merganser_serve::session::{BlobStatus, Listing, OpenedSession, SessionStatus};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tonic::codegen::InterceptedService;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};

use crate::token::Token;
use crate::wire::{GetTicket, SessionBody, SetBody, Uploaded, to_json};
use crate::{batches, schema};

pub use certificate::CertificateFault;
pub use rows::RemoteRows;
pub use stop::StopFlag;

/// How long a node may take to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a node may take to answer a request that has no stream.
const ANSWER_PATIENCE: Duration = Duration::from_secs(90);
/// How long a node may take to hear that a session is closed, when no caller waits for it.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a node is asked whether it is there, and how long it may take to answer that.
const PING: Duration = Duration::from_secs(15);
/// The longest message of a node, in bytes.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes that a node may send ahead.
const WINDOW_BYTES: u32 = 4 << 20;
/// Bytes of one message of a blob.
const BLOB_PIECE_BYTES: usize = 1 << 20;
/// The longest message of a blob that can be sent, in bytes: a piece, and what the encoding adds.
const BLOB_MESSAGE_BYTES_MAX: usize = 2 * BLOB_PIECE_BYTES;

/// Where a node is, and what it wants to see.
#[derive(Debug, Clone)]
pub struct NodeAddress {
    /// `HOST:PORT`.
    pub address: String,
    /// The token.
    pub token: Option<Token>,
    /// The authority that signed the node's certificate, as PEM. With it the connection is encrypted.
    pub ca: Option<Vec<u8>>,
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

/// Why a call to a node failed. The text does not name the node.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address, or the certificate, makes no sense.
    #[error("{0}")]
    Address(String),
    /// The connection can't be made, or broke.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// The node refused, or its run failed; its sentence.
    #[error("{sentence}")]
    Refused {
        /// The kind of the refusal.
        why: RefusalKind,
        /// The node's own sentence.
        sentence: String,
    },
    /// The node's certificate was not accepted.
    #[error("{0}")]
    Certificate(CertificateFault),
    /// The node speaks TLS, and this client was to speak without.
    #[error("the node speaks TLS alone")]
    WantsTls,
    /// The caller's [`StopFlag`] ended the call.
    #[error("stopped")]
    Stopped,
    /// The node does not keep to the protocol.
    #[error("the node does not keep to the protocol: {0}")]
    Protocol(String),
}

/// The kind of a node's refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Too much is going on: the same might work later.
    Busy,
    /// There is no such SSDlet, session, file or view.
    Missing,
    /// The client may not do this.
    Forbidden,
    /// The client did not show the node's token.
    Unknown,
    /// All else.
    Other,
}

impl ClientError {
    fn of_status(status: &tonic::Status) -> Self {
        if is_broken(status) {
            let mut cause: &dyn std::error::Error = status;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            return if std::error::Error::source(status).is_some() {
                Self::of_cause(cause)
            } else {
                ClientError::Connection(status.message().to_owned())
            };
        }
        if status.code() == Code::Unauthenticated {
            let sentence = status.message().to_owned();
            return ClientError::Refused { why: RefusalKind::Unknown, sentence };
        }
        let sentence = match status.message() {
            "" => status.code().description().to_owned(),
            sentence => sentence.to_owned(),
        };
        let why = match status.code() {
            Code::ResourceExhausted => RefusalKind::Busy,
            Code::NotFound => RefusalKind::Missing,
            Code::PermissionDenied => RefusalKind::Forbidden,
            _ => RefusalKind::Other,
        };
        ClientError::Refused { why, sentence }
    }

    /// Why a connection can't be made, or broke, from the deepest cause.
    fn of_cause(cause: &dyn std::error::Error) -> Self {
        let told = cause.to_string();
        match CertificateFault::of_text(&told) {
            Some(fault) => ClientError::Certificate(fault),
            // Rust adds the number of the system's error.
            None => {
                let plain = told.rsplit_once(" (os error ").map_or(&*told, |(plain, _)| plain);
                ClientError::Connection(plain.to_owned())
            }
        }
    }
}

/// Whether the connection broke, and not the call: what comes from the network has a cause, and what the
/// node says has none.
fn is_broken(status: &tonic::Status) -> bool {
    std::error::Error::source(status).is_some()
        || matches!(status.code(), Code::Unavailable | Code::Internal)
}

/// The results of calls.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Adds the token to each request.
#[derive(Clone)]
struct ShowToken(Option<MetadataValue<Ascii>>);

impl Interceptor for ShowToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, tonic::Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

type FlightCalls = FlightServiceClient<InterceptedService<Channel, ShowToken>>;

/// A connection to a node.
pub struct NodeClient {
    runtime: Runtime,
    endpoint: Endpoint,
    token: ShowToken,
    calls: FlightCalls,
    stop: StopFlag,
}

impl NodeClient {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Connection`].
    pub fn connect(node: &NodeAddress) -> Result<Self> {
        Self::connect_until(node, &StopFlag::default())
    }

    /// Connects; `stop` ends this and all later calls.
    ///
    /// # Errors
    /// As [`NodeClient::connect`]; [`ClientError::Stopped`].
    pub fn connect_until(node: &NodeAddress, stop: &StopFlag) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| ClientError::Connection(e.to_string()))?;
        let endpoint = endpoint(node)?;
        let token = match &node.token {
            Some(token) => {
                let header = token.header().parse();
                let mut header: MetadataValue<Ascii> = header
                    .map_err(|_| ClientError::Address("the token has odd characters".to_owned()))?;
                header.set_sensitive(true);
                ShowToken(Some(header))
            }
            None => ShowToken(None),
        };
        let calls =
            runtime.block_on(stop.within(CONNECT_PATIENCE, connected(&endpoint, &token)))??;
        Ok(NodeClient { runtime, endpoint, token, calls, stop: stop.clone() })
    }

    /// `error`, or the reason behind it: a server of TLS ends a connection without TLS.
    pub(crate) fn explain(node: &NodeAddress, error: ClientError) -> ClientError {
        match error {
            ClientError::Connection(_) if node.ca.is_none() && speaks_tls(&node.address) => {
                ClientError::WantsTls
            }
            error => error,
        }
    }

    /// What the node offers.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn list(&mut self) -> Result<Listing> {
        self.act("list", Vec::new())
    }

    /// OPEN.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn open(&mut self, request: &OpenRequest) -> Result<OpenedSession> {
        self.act("open", to_json(request))
    }

    /// SET.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn set(&mut self, body: &SetBody) -> Result<SessionStatus> {
        self.act("set", to_json(body))
    }

    /// How far the run of `session` is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&mut self, session: &str) -> Result<SessionStatus> {
        self.act("status", of_session(session))
    }

    /// Ends the run of `session`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn cancel(&mut self, session: &str) -> Result<SessionStatus> {
        self.act("cancel", of_session(session))
    }

    /// CLOSE.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn close(&mut self, session: &str) -> Result<()> {
        let _: serde_json::Map<String, serde_json::Value> =
            self.act("close", of_session(session))?;
        Ok(())
    }

    /// CLOSE, where no caller waits for it: a node that does not answer closes the session later by itself.
    pub(crate) fn leave(&mut self, session: &str) {
        let action = Action::new("close", of_session(session));
        let mut calls = self.calls.clone();
        let never = StopFlag::default();
        let told = never.within(CLOSE_PATIENCE, calls.do_action(action));
        let _ = self.runtime.block_on(told);
    }

    /// Has the node verify and keep an SSDlet.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn upload(&mut self, ssdlet: Vec<u8>) -> Result<Uploaded> {
        self.act("upload", ssdlet)
    }

    /// PUT: keeps what `reader` gives as the blob `name` of `session`.
    ///
    /// # Errors
    /// [`ClientError`]; an error of the reader is a [`ClientError::Address`]. Then the node keeps nothing of the blob, and
    /// an earlier one of this name stays.
    pub fn put(&mut self, session: &str, name: &str, reader: &mut dyn Read) -> Result<BlobStatus> {
        let descriptor = FlightDescriptor::new_path(vec![session.to_owned(), name.to_owned()]);
        let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
        let schema = schema::of_view();
        let encoded = FlightDataEncoderBuilder::new()
            .with_schema(schema.clone())
            .with_flight_descriptor(Some(descriptor))
            .build(futures::stream::poll_fn(move |context| receiver.poll_recv(context)));
        // The node keeps the blob when the stream ends, and a call that is dropped looks like that to it. So an error
        // becomes a message that can't be sent, which breaks the stream.
        let data = encoded.map(|data| data.unwrap_or_else(|_| too_long()));
        let data: futures::stream::BoxStream<'static, FlightData> = data.boxed();
        let mut calls = self.calls.clone().max_encoding_message_size(BLOB_MESSAGE_BYTES_MAX);
        self.runtime.block_on(async {
            let call = calls.do_put(data);
            let schema = &schema;
            // It owns the sender: the stream ends with it.
            let feed = async move {
                loop {
                    let mut piece = vec![0; BLOB_PIECE_BYTES];
                    let n = match read_full(reader, &mut piece) {
                        Ok(0) => return Ok(()),
                        Ok(n) => n,
                        Err(error) => {
                            let told = format!("the blob {name}: {error}");
                            // If it is not taken, the call has ended.
                            let _ = sender
                                .send(Err(FlightError::from_external_error(error.into())))
                                .await;
                            return Err(ClientError::Address(told));
                        }
                    };
                    piece.truncate(n);
                    let batch = batches::records(schema, vec![0, n as i32], piece);
                    if sender.send(Ok(batch)).await.is_err() {
                        // The call has ended, and says why.
                        return Ok(());
                    }
                }
            };
            let both = async { tokio::join!(call, feed) };
            let (answer, fed) = self.stop.unless_set(both).await?;
            fed?;
            let mut answers = answer.map_err(|e| ClientError::of_status(&e))?.into_inner();
            let answer = self.stop.within(ANSWER_PATIENCE, answers.message()).await?;
            let answer = answer.map_err(|e| ClientError::of_status(&e))?;
            let answer = answer.ok_or_else(|| ClientError::Protocol("no answer".to_owned()))?;
            json(&answer.app_metadata)
        })
    }

    /// What `descriptor` describes: sizes and schema of a view or of results.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn info(&mut self, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let mut calls = self.calls.clone();
        self.answered(async move { Ok(calls.get_flight_info(descriptor).await?.into_inner()) })
    }

    /// The rows of `ticket`, which begin to come at the first [`RemoteRows::advance`].
    #[must_use]
    pub fn rows(&mut self, ticket: GetTicket) -> RemoteRows<'_> {
        RemoteRows::new(self, ticket)
    }

    /// Does an action whose answer is JSON.
    fn act<T: DeserializeOwned>(&mut self, name: &str, body: Vec<u8>) -> Result<T> {
        let action = Action::new(name, body);
        let mut calls = self.calls.clone();
        let (answer, more) = self.answered(async move {
            let mut answers = calls.do_action(action).await?.into_inner();
            let answer = answers.message().await?;
            // Nothing after the answer is kept.
            let more = match answer {
                Some(_) => answers.message().await?.is_some(),
                None => false,
            };
            Ok((answer, more))
        })?;
        match (answer, more) {
            (Some(answer), false) => json(&answer.body),
            (Some(_), true) => {
                Err(ClientError::Protocol(format!("more than one answer to {name}")))
            }
            (None, _) => Err(ClientError::Protocol(format!("no answer to {name}"))),
        }
    }

    /// Waits for a call that has no stream.
    fn answered<T>(&self, call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T> {
        let answer = self.runtime.block_on(self.stop.within(ANSWER_PATIENCE, call))?;
        answer.map_err(|status| ClientError::of_status(&status))
    }
}

/// Connects to `endpoint`.
async fn connected(endpoint: &Endpoint, token: &ShowToken) -> Result<FlightCalls> {
    let channel = endpoint.connect().await.map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        ClientError::of_cause(cause)
    })?;
    let calls = FlightServiceClient::with_interceptor(channel, token.clone());
    Ok(calls.max_decoding_message_size(MESSAGE_BYTES_MAX))
}

/// Whether a server at `address` answers a client without TLS by an alert of TLS.
fn speaks_tls(address: &str) -> bool {
    const ALERT: u8 = 0x15;
    let asked = || -> std::io::Result<u8> {
        let address = address.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, CLOSE_PATIENCE)?;
        stream.set_read_timeout(Some(CLOSE_PATIENCE))?;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(first[0])
    };
    asked().is_ok_and(|first| first == ALERT)
}

fn endpoint(node: &NodeAddress) -> Result<Endpoint> {
    let NodeAddress { address, ca, .. } = node;
    let scheme = if ca.is_some() { "https" } else { "http" };
    let wrong = |e: &dyn fmt::Display| ClientError::Address(format!("{address}: {e}"));
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(|e| wrong(&e))?;
    let mut endpoint = endpoint
        .connect_timeout(CONNECT_PATIENCE)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    if let Some(ca) = ca {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
        endpoint = endpoint.tls_config(config).map_err(|e| wrong(&e))?;
    }
    Ok(endpoint)
}

fn of_session(session: &str) -> Vec<u8> {
    to_json(&SessionBody { session: session.to_owned() })
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| ClientError::Protocol(e.to_string()))
}

/// A message of a blob that can't be sent.
fn too_long() -> FlightData {
    FlightData { data_body: vec![0; BLOB_MESSAGE_BYTES_MAX].into(), ..FlightData::default() }
}

fn read_full(reader: &mut dyn Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match reader.read(&mut out[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
