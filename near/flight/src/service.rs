//! The calls of Arrow Flight, and what each means here.

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, IpcMessage, PollInfo, PutResult, Result as Answer,
    SchemaAsIpc, SchemaResult, Ticket as FlightTicket,
};
use arrow_schema::Schema;
use futures::stream::{self, BoxStream, StreamExt};
use merganser_serve::session::{SessionError, Sessions};
use merganser_storage::Storage;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

use crate::arrival::arrived;
use crate::blocking::blocking;
use crate::error::status;
use crate::get::Getter;
use crate::limits::STREAMS_MAX;
use crate::outlet::Sending;
use crate::presence::ConnectionPresence;
use crate::request_slot::RequestSlot;
use crate::wire::{self, GetTicket, Uploaded, ViewTicket, to_json};
use crate::{put, schema, views};

/// Requests up to this many bytes once parsed are a part of the fixed overhead.
const PARSED_FREE_BYTES: u64 = 512 << 10;

/// Memory of a request once it is parsed, per byte of its body.
fn parsed_per_byte(action: &str) -> u64 {
    match action {
        // Its bytes are kept as they came.
        "upload" => 0,
        // Arguments are any JSON: a value of one or two letters takes 32 bytes.
        "open" => 11,
        // The ranges of a set are bounded in number, and their names take what they took.
        _ => 2,
    }
}

/// The service. Clones are the same one.
#[derive(Clone)]
pub(crate) struct NodeService {
    sessions: Arc<Sessions>,
    getter: Getter,
    streams: Arc<Semaphore>,
    allow_upload: bool,
}

impl NodeService {
    pub(crate) fn new(sessions: Arc<Sessions>, getter: Getter, allow_upload: bool) -> Self {
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        NodeService { sessions, getter, streams, allow_upload }
    }

    /// Does `work` in a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sessions) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, Status> {
        let sessions = Arc::clone(&self.sessions);
        blocking(move || work(&sessions)).await
    }

    fn stream_place(&self) -> Result<tokio::sync::OwnedSemaphorePermit, Status> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let what = format!("all {STREAMS_MAX} streams are in use");
            status(&SessionError::Busy { what })
        })
    }

    fn act(&self, name: &str, body: &[u8]) -> Result<Vec<u8>, SessionError> {
        let sessions = &*self.sessions;
        Ok(match wire::Action::parse(name, body)? {
            wire::Action::List => to_json(&sessions.list()),
            wire::Action::Open(request) => to_json(&sessions.open(&request)?),
            wire::Action::Set(body) => {
                let (id, request) = body.into_request();
                to_json(&sessions.set(&id, &request)?)
            }
            wire::Action::Status(body) => to_json(&sessions.status(&body.session)?),
            wire::Action::Cancel(body) => to_json(&sessions.cancel(&body.session)?),
            wire::Action::Close(body) => {
                sessions.close(&body.session)?;
                b"{}".to_vec()
            }
            wire::Action::Stat(wire::PathBody { path }) => {
                let bytes = sessions.data().file(&path)?.size();
                to_json(&wire::FileStatus { path, bytes })
            }
            wire::Action::Upload(_) if !self.allow_upload => {
                return Err(SessionError::Refused {
                    path: "upload".to_owned(),
                    reason: "this server takes no SSDlets from clients".to_owned(),
                });
            }
            wire::Action::Upload(bytes) => {
                let sha256 = crate::sha256(bytes);
                let description = sessions.upload(&sha256, bytes)?;
                to_json(&Uploaded { sha256, description })
            }
        })
    }

    /// The subject of a descriptor: a path is a view, a command is a ticket.
    async fn info(&self, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
        let ticket = if descriptor.cmd.is_empty() {
            let view = descriptor.path.join("/");
            merganser_serve::session::request::check_path(&view).map_err(|e| status(&e))?;
            GetTicket::View(ViewTicket { view, ..ViewTicket::default() })
        } else {
            GetTicket::parse(&descriptor.cmd).map_err(|e| status(&e))?
        };
        let described = self.blocking(move |sessions| Described::new(sessions, ticket)).await?;
        described.into_info(descriptor)
    }
}

/// What a ticket gives.
struct Described {
    ticket: GetTicket,
    schema: Arc<Schema>,
    records: Option<u64>,
    bytes: Option<u64>,
}

impl Described {
    fn new(sessions: &Sessions, ticket: GetTicket) -> Result<Self, SessionError> {
        match &ticket {
            GetTicket::View(view) => {
                let found = views::describe(sessions, view)?;
                let whole = view.records.is_none() && view.bytes.is_none() && view.keys.is_none();
                let records = whole.then_some(found.records);
                let bytes = whole.then_some(found.bytes);
                Ok(Described { ticket, schema: found.schema, records, bytes })
            }
            GetTicket::Session(wanted) => {
                let getting = sessions.look(&wanted.session)?;
                let schema = schema::of_results(getting.ssdlet().description(), wanted.text);
                // Known once the run is done.
                let results = getting.results().ok().flatten();
                let records = results.as_ref().map(|results| results.rows());
                let bytes = results.as_ref().map(|results| results.bytes());
                Ok(Described { ticket, schema, records, bytes })
            }
        }
    }

    fn into_info(self, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
        let count = |count: Option<u64>| count.map_or(-1, |count| count as i64);
        let endpoint = FlightEndpoint::new().with_ticket(FlightTicket::new(self.ticket.to_json()));
        let info = FlightInfo::new()
            .try_with_schema(&self.schema)
            .map_err(|e| Status::internal(format!("schema: {e}")))?;
        Ok(info
            .with_descriptor(descriptor)
            .with_endpoint(endpoint)
            .with_total_records(count(self.records))
            .with_total_bytes(count(self.bytes))
            .with_ordered(true))
    }
}

#[tonic::async_trait]
impl FlightService for NodeService {
    type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;
    type ListFlightsStream = BoxStream<'static, Result<FlightInfo, Status>>;
    type DoGetStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoPutStream = BoxStream<'static, Result<PutResult, Status>>;
    type DoExchangeStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoActionStream = BoxStream<'static, Result<Answer, Status>>;
    type ListActionsStream = BoxStream<'static, Result<ActionType, Status>>;

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented("there is no handshake: send the token with each call"))
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        arrived(&request);
        let sessions = Arc::clone(&self.sessions);
        let place = self.stream_place()?;
        let paths = self.blocking(|sessions| sessions.data().views()).await?;
        let infos = stream::iter(paths).filter_map(move |view| {
            // The stream holds its place until its client has all, or hangs up.
            let _ = &place;
            let sessions = Arc::clone(&sessions);
            async move {
                let descriptor = FlightDescriptor::new_path(vec![view.clone()]);
                let ticket = GetTicket::View(ViewTicket { view, ..ViewTicket::default() });
                let described = blocking(move || Described::new(&sessions, ticket)).await;
                // A view that is removed or damaged meanwhile is not listed.
                Some(described.ok()?.into_info(descriptor))
            }
        });
        Ok(Response::new(infos.boxed()))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        arrived(&request);
        Ok(Response::new(self.info(request.into_inner()).await?))
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("use the action status"))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        arrived(&request);
        let info = self.info(request.into_inner()).await?;
        let schema = info.try_decode_schema().map_err(|e| Status::internal(e.to_string()))?;
        let message: IpcMessage = SchemaAsIpc::new(&schema, &Default::default())
            .try_into()
            .map_err(|e| Status::internal(format!("schema: {e}")))?;
        Ok(Response::new(SchemaResult { schema: message.0 }))
    }

    async fn do_get(
        &self,
        request: Request<FlightTicket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        arrived(&request);
        let presence = request.extensions().get::<ConnectionPresence>().cloned();
        let place = self.stream_place()?;
        // It may wait for memory, and has a place among the streams.
        if let Some(place) = request.extensions().get::<RequestSlot>() {
            place.give_back();
        }
        let ticket = GetTicket::parse(&request.into_inner().ticket).map_err(|e| status(&e))?;
        let sending = Sending::new(self.getter.enter(presence), place);
        let stream = match ticket {
            GetTicket::View(ticket) => self.getter.view(ticket, sending).await?,
            GetTicket::Session(ticket) => {
                let id = ticket.session.clone();
                let getting = self.blocking(move |sessions| sessions.get(&id)).await?;
                self.getter.rows(getting, &ticket, sending)
            }
        };
        Ok(Response::new(stream))
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let _place = self.stream_place()?;
        let moving = self.getter.enter(request.extensions().get::<ConnectionPresence>().cloned());
        let (lender, messages) = (self.getter.lender(), request.into_inner());
        let status = put::receive(&self.sessions, lender, moving, messages).await?;
        let told = PutResult { app_metadata: to_json(&status).into() };
        Ok(Response::new(stream::iter([Ok(told)]).boxed()))
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("use DoPut, then set and DoGet"))
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        arrived(&request);
        let service = self.clone();
        let Action { r#type, body } = request.into_inner();
        let answer = blocking(move || {
            // A long body takes memory when it is parsed, too.
            let parsed_bytes = body.len() as u64 * parsed_per_byte(&r#type);
            let _memory = match parsed_bytes {
                0..=PARSED_FREE_BYTES => None,
                bytes => Some(service.getter.lender().memory(bytes, bytes)?),
            };
            service.act(&r#type, &body)
        })
        .await?;
        Ok(Response::new(stream::iter([Ok(Answer { body: answer.into() })]).boxed()))
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        let action = |(name, about): (&str, &str)| {
            Ok(ActionType { r#type: name.to_owned(), description: about.to_owned() })
        };
        Ok(Response::new(stream::iter(wire::ACTIONS.map(action)).boxed()))
    }
}
