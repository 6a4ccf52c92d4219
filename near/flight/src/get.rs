//! DoGet: rows and records on their way to a client.
//!
//! ```text
//!   a thread that blocks          channel of AHEAD batches      encoder ──► HTTP/2 ──► client
//!   reads, makes batches ──send──► full? it waits, at most ────► takes the next when
//!                                  the patience, then the        the client made room
//!                                  connection is closed
//! ```
//!
//! A client that reads slowly slows down the thread that reads for it, and nothing else. One that does
//! not read at all loses its connection after [`Getter::patience`], or sooner if other streams wait for memory
//! (`standstill`), and the memory is free again. It can continue at its row.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_schema::SchemaRef;
use futures::stream::{BoxStream, StreamExt};
use merganser_serve::session::{Getting, Grant, ROW_BYTES_MAX, Sessions};
use tokio::sync::oneshot;
use tonic::Status;

use crate::batches::RowBatch;
use crate::blocking::blocking;
use crate::error::status;
use crate::outlet::{
    BATCH_BYTES_MIN, BatchOutlet, COPIES, Sending, StreamEnd, StreamLender, batch_bytes,
};
use crate::presence::ConnectionPresence;
use crate::schema;
use crate::standstill::Moving;
use crate::views::OpenedView;
use crate::wire::{SessionTicket, ViewTicket};

/// The longest message of a stream, in bytes.
const FLIGHT_DATA_BYTES: usize = 2 << 20;
/// Bytes of a batch of rows, if there is memory. It pays to be well below [`FLIGHT_DATA_BYTES`].
const BATCH_BYTES: usize = 256 << 10;
/// Makes the streams of DoGet.
#[derive(Clone)]
pub(crate) struct Getter {
    lender: StreamLender,
    /// How long a client may take to make room for one more batch.
    patience: Duration,
}

impl Getter {
    pub(crate) fn new(sessions: Arc<Sessions>, patience: Duration) -> Self {
        Getter { lender: StreamLender::new(sessions), patience }
    }

    /// Where the memory of streams comes from.
    pub(crate) fn lender(&self) -> &StreamLender {
        &self.lender
    }

    /// Counts a stream of the connection `presence`.
    pub(crate) fn enter(&self, presence: Option<ConnectionPresence>) -> Moving {
        self.lender.enter(presence)
    }

    /// The rows of a run, once it is over.
    pub(crate) fn rows(
        &self,
        getting: Getting,
        ticket: &SessionTicket,
        sending: Sending,
    ) -> BoxStream<'static, Result<FlightData, Status>> {
        let schema = schema::of_results(getting.ssdlet().description(), ticket.text);
        let offset = ticket.offset;
        let of_rows = Arc::clone(&schema);
        let (sender, over) = oneshot::channel::<()>();
        getting.when_over(move || {
            // A client that is gone waits no more.
            let _ = sender.send(());
        });
        self.stream(schema, sending, Some(over), move |outlet| {
            send_rows(&getting, offset, of_rows, outlet)
        })
    }

    /// A part of a view. A fault of the ticket is reported before the stream begins.
    pub(crate) async fn view(
        &self,
        ticket: ViewTicket,
        sending: Sending,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let lender = self.lender.clone();
        let part = blocking(move || OpenedView::open(&lender, &ticket)).await?;
        Ok(self.stream(part.schema(), sending, None, move |outlet| part.send(outlet)))
    }

    /// A stream of what `work` hands out, in a thread that may block, after `begin`.
    fn stream(
        &self,
        schema: SchemaRef,
        sending: Sending,
        begin: Option<oneshot::Receiver<()>>,
        work: impl FnOnce(&BatchOutlet) -> Result<(), StreamEnd> + Send + 'static,
    ) -> BoxStream<'static, Result<FlightData, Status>> {
        let (outlet, mut receiver) = BatchOutlet::new(self.patience, sending, self.lender.clone());
        tokio::spawn(async move {
            if let Some(begin) = begin {
                let gone = outlet.sender().closed();
                tokio::select! {
                    _ = begin => {}
                    () = gone => return,
                }
            }
            let told = outlet.sender().clone();
            let done = tokio::task::spawn_blocking(move || {
                if let Err(StreamEnd::Error(error)) = work(&outlet) {
                    // A client that is gone does not hear it.
                    let _ = outlet.hand(Err(FlightError::Tonic(Box::new(status(&error)))));
                }
            });
            if done.await.is_err() {
                let mistake = Status::internal("the stream was ended by a mistake in this program");
                let _ = told.send(Err(FlightError::Tonic(Box::new(mistake)))).await;
            }
        });
        let batches = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        FlightDataEncoderBuilder::new()
            .with_schema(schema)
            .with_max_flight_data_size(FLIGHT_DATA_BYTES)
            // Columns of tables keep the types that they had.
            .with_dictionary_handling(DictionaryHandling::Resend)
            .build(batches)
            .map(|data| data.map_err(Status::from))
            .boxed()
    }
}

fn send_rows(
    getting: &Getting,
    offset: u64,
    schema: SchemaRef,
    outlet: &BatchOutlet,
) -> Result<(), StreamEnd> {
    let Some(results) = getting.results()? else {
        unreachable!("the stream begins when the run is over")
    };
    let (wanted, least) = (COPIES * BATCH_BYTES, COPIES * BATCH_BYTES_MIN);
    let grant = outlet.lender().memory(wanted as u64, least as u64)?;
    let batch_bytes = batch_bytes(grant.memory_bytes());
    let mut reader = results.read(offset)?;
    let mut batch = RowBatch::new(schema, getting.ssdlet().description());
    // Memory for rows that are longer than a batch.
    let mut more: Option<Grant> = None;
    while let Some(row) = reader.next_row()? {
        if !batch.is_empty() && batch.bytes() + row.len() > batch_bytes {
            outlet.send(batch.take())?;
        }
        if row.len() > batch_bytes && more.is_none() {
            more = Some(outlet.memory((COPIES * ROW_BYTES_MAX) as u64)?);
        }
        batch.push(row)?;
    }
    if !batch.is_empty() {
        outlet.send(batch.take())?;
    }
    Ok(())
}
