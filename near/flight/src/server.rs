//! The server: a listener, a runtime of two threads, and its end.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use merganser_serve::session::{SessionOptions, Sessions};
use merganser_storage::contained::{self, Cause};
use tokio::sync::watch;

pub use crate::bind_error::BindError;
use crate::credentials::{Credentials, CredentialsChanger};
use crate::gate::Gate;
use crate::get::Getter;
pub use crate::identity::Tls;
use crate::identity::TlsDoubt;
use crate::limits::STREAMS_MAX;
use crate::listener::{self, PING, SILENCE, is_loopback};
use crate::secured::secured;
use crate::service::NodeService;
use crate::token::Token;

/// How long a client may take to make room for one more batch, before its connection is closed.
pub const BATCH_PATIENCE: Duration = Duration::from_secs(300);
/// How long runs and streams may take once the server was asked to end.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(8);

/// Threads of the runtime.
const THREADS: usize = 2;
/// Threads for work that blocks: one per stream, and some for requests.
const BLOCKING_THREADS: usize = STREAMS_MAX + 32;
/// Stack of a thread. Reading a view recurses nowhere; the rest is JSON, whose depth is limited.
const STACK_BYTES: usize = 1 << 20;
/// Streams of one connection at once.
const CONNECTION_STREAMS_MAX: u32 = 32;
/// Bytes that a client may send ahead of the server, per stream and per connection.
const WINDOW_BYTES: u32 = 256 << 10;
/// Headers of a request, in bytes.
const HEADER_BYTES_MAX: u32 = 16 << 10;

/// What to serve, where, and to whom.
pub struct FlightServerOptions {
    /// `HOST:PORT`; port 0 stands for any that is free.
    pub listen: String,
    /// What clients must show.
    pub token: Option<Token>,
    /// Encrypts, if given.
    pub tls: Option<Tls>,
    /// Serves other machines without token and TLS.
    pub insecure: bool,
    /// Whether clients may send SSDlets.
    pub allow_upload: bool,
    /// How long a client may take to make room for one more batch: [`BATCH_PATIENCE`].
    pub batch_patience: Duration,
    /// The sessions.
    pub sessions: SessionOptions,
}

/// A server that listens; [`FlightServer::run`] serves.
pub struct FlightServer {
    listener: TcpListener,
    address: SocketAddr,
    doubt: Option<TlsDoubt>,
    credentials: Arc<Credentials>,
    runtime: tokio::runtime::Runtime,
    router: tonic::transport::server::Router,
    sessions: Arc<Sessions>,
    stop: watch::Sender<bool>,
}

/// Ends a server from any thread.
#[derive(Debug, Clone)]
pub struct FlightStopper(watch::Sender<bool>);

impl FlightStopper {
    /// Asks it to end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl FlightServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(options: FlightServerOptions) -> Result<Self, BindError> {
        let FlightServerOptions { listen, token, tls, .. } = options;
        let failed = |source| BindError::Listen { listen: listen.clone(), source };
        let addresses: Vec<_> = listen.to_socket_addrs().map_err(failed)?.collect();
        let is_safe = options.insecure || (token.is_some() && tls.is_some());
        if let Some(address) = addresses.iter().find(|address| !is_safe && !is_loopback(address)) {
            return Err(BindError::Open { address: *address });
        }
        let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_stack_size(STACK_BYTES)
            .thread_name("flight")
            // The runtime catches a panic of a task: it ends that request, or that connection.
            .on_thread_start(|| contained::from_now_on(Some(Cause::Mistake)))
            .enable_all()
            .build()
            .map_err(BindError::Threads)?;
        let sessions = Arc::new(Sessions::new(options.sessions).map_err(BindError::Threads)?);
        let getter = Getter::new(Arc::clone(&sessions), options.batch_patience);
        let service = NodeService::new(Arc::clone(&sessions), getter, options.allow_upload);
        let mut builder = tonic::transport::Server::builder()
            .accept_http1(false)
            .max_concurrent_streams(CONNECTION_STREAMS_MAX)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .http2_keepalive_interval(Some(PING))
            .http2_keepalive_timeout(Some(SILENCE - PING));
        let (credentials, doubt) = Credentials::new(token, tls.as_ref())?;
        let credentials = Arc::new(credentials);
        let router = builder.add_service(Gate::new(service, Arc::clone(&credentials)));
        let stop = watch::Sender::new(false);
        Ok(FlightServer { listener, address, doubt, credentials, runtime, router, sessions, stop })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why clients may refuse its certificate.
    #[must_use]
    pub fn doubt(&self) -> Option<TlsDoubt> {
        self.doubt
    }

    /// A handle that can replace its token and its certificate from any thread.
    #[must_use]
    pub fn changer(&self) -> CredentialsChanger {
        CredentialsChanger::new(&self.credentials)
    }

    /// A handle that can end it from any thread.
    #[must_use]
    pub fn stopper(&self) -> FlightStopper {
        FlightStopper(self.stop.clone())
    }

    /// Serves until [`FlightStopper::stop`]. Then runs are cancelled, and streams may end within
    /// [`DRAIN_PATIENCE`].
    ///
    /// # Errors
    /// When the listener breaks.
    pub fn run(self) -> io::Result<()> {
        let FlightServer { listener, credentials, runtime, router, sessions, stop, .. } = self;
        let stopped = async |stop: &watch::Sender<bool>| {
            let mut asked = stop.subscribe();
            // The sender is held here.
            let _ = asked.wait_for(|asked| *asked).await;
        };
        let result = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let connections = Box::pin(listener::connections(listener));
            let serving = async {
                if credentials.tls().is_none() {
                    return router.serve_with_incoming_shutdown(connections, stopped(&stop)).await;
                }
                let connections = Box::pin(secured(connections, credentials));
                router.serve_with_incoming_shutdown(connections, stopped(&stop)).await
            };
            let ending = async {
                stopped(&stop).await;
                let ending = Arc::clone(&sessions);
                let ended = tokio::task::spawn_blocking(move || ending.end(DRAIN_PATIENCE));
                let _ = ended.await;
                tokio::time::sleep(DRAIN_PATIENCE).await;
            };
            tokio::select! {
                served = serving => served.map_err(io::Error::other),
                () = ending => Ok(()),
            }
        });
        sessions.end(DRAIN_PATIENCE);
        // Streams that have not ended by now are cut off.
        runtime.shutdown_timeout(Duration::from_secs(1));
        result
    }
}
