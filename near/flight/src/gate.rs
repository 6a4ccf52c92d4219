//! In front of the service: the token is checked before anything of a request's body is read, and few
//! bodies are read at once.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow_flight::flight_service_server::FlightServiceServer;
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TlsConnectInfo;

use super::arrival::BodyArrival;
use super::credentials::Credentials;
use super::limits::MESSAGE_BYTES_MAX;
use super::presence::ConnectionPresence;
use super::request_slot::RequestSlot;
use super::service::NodeService;

/// Requests whose body is read, or that are answered, at once. A body has at most
/// [`MESSAGE_BYTES_MAX`], so together they take 32 MiB.
const REQUESTS_MAX: usize = 8;
/// How long a request may take from its place to its answer. The rows of a DoGet come after that.
const REQUEST_PATIENCE: Duration = Duration::from_secs(60);
/// How long its body may take to arrive while other requests wait for a place: a client that sends slowly, or not at
/// all, does not keep others away.
const BODY_PATIENCE: Duration = Duration::from_secs(5);
/// How often a running request is checked against its time limit.
const LOOK: Duration = Duration::from_millis(500);
/// How long a request waits for a place.
const PLACE_PATIENCE: Duration = Duration::from_secs(30);
/// A DoPut is a stream of messages, which counts them itself.
const PUT: &str = "/arrow.flight.protocol.FlightService/DoPut";

/// The service behind its gate.
#[derive(Clone)]
pub(crate) struct Gate {
    service: FlightServiceServer<NodeService>,
    credentials: Arc<Credentials>,
    places: Arc<Semaphore>,
    /// Requests that wait for a place.
    waiting: Arc<AtomicUsize>,
}

/// Counts a request that waits.
struct WaiterGuard(Arc<AtomicUsize>);

impl WaiterGuard {
    fn among(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        WaiterGuard(Arc::clone(waiting))
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate {
    pub(crate) fn new(node: NodeService, credentials: Arc<Credentials>) -> Self {
        let service = FlightServiceServer::new(node)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(usize::MAX);
        let places = Arc::new(Semaphore::new(REQUESTS_MAX));
        Gate { service, credentials, places, waiting: Arc::default() }
    }
}

impl NamedService for Gate {
    const NAME: &'static str = <FlightServiceServer<NodeService> as NamedService>::NAME;
}

/// The connection of a request.
fn presence(request: &http::Request<Body>) -> Option<ConnectionPresence> {
    let extensions = request.extensions();
    let plain = || extensions.get::<ConnectionPresence>().cloned();
    plain()
        .or_else(|| Some(extensions.get::<TlsConnectInfo<ConnectionPresence>>()?.get_ref().clone()))
}

impl Service<http::Request<Body>> for Gate {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let header = request.headers().get(http::header::AUTHORIZATION);
        let shown = header.map(http::HeaderValue::as_bytes);
        if !self.credentials.let_in(shown) {
            let told = match shown {
                Some(_) => "the token that was shown is not that of this server",
                None => "this server wants its token, in the header authorization: Bearer TOKEN",
            };
            let refusal = Status::unauthenticated(told).into_http();
            return Box::pin(std::future::ready(Ok(refusal)));
        }
        if let Some(presence) = presence(&request) {
            presence.known();
            request.extensions_mut().insert(presence);
        }
        let (mut service, places) = (self.service.clone(), Arc::clone(&self.places));
        if request.uri().path() == PUT {
            return service.call(request);
        }
        let (waiting, arrival) = (Arc::clone(&self.waiting), BodyArrival::default());
        request.extensions_mut().insert(arrival.clone());
        Box::pin(async move {
            let waits = WaiterGuard::among(&waiting);
            let permit = tokio::time::timeout(PLACE_PATIENCE, places.acquire_owned()).await;
            drop(waits);
            let Ok(Ok(permit)) = permit else {
                let told = "busy: too many requests at once; come again later";
                return Ok(Status::resource_exhausted(told).into_http());
            };
            let place = RequestSlot::new(permit);
            request.extensions_mut().insert(place.clone());
            let (mut answer, begun) = (service.call(request), Instant::now());
            let answer = loop {
                if let Ok(answer) = tokio::time::timeout(LOOK, &mut answer).await {
                    break answer;
                }
                let holds_up = !arrival.is_complete() && waiting.load(Ordering::Relaxed) > 0;
                let patience = if holds_up { BODY_PATIENCE } else { REQUEST_PATIENCE };
                if begun.elapsed() >= patience {
                    let told = "the request took too long to arrive or to be answered";
                    break Ok(Status::deadline_exceeded(told).into_http());
                }
            };
            place.give_back();
            answer
        })
    }
}
