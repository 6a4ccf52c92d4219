//! Rows from a node, continued after a broken connection.

use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_flight::Ticket as FlightTicket;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_schema::DataType;
use futures::TryStreamExt;
use merganser_map::ssdlet::{key_of_f64, key_of_i64};

use super::{ClientError, NodeClient, Result, connected, is_broken};
use crate::decoding;
use crate::wire::GetTicket;

/// How often a broken stream is continued before it is given up. A stream that gives rows in between
/// starts counting again.
const TRIES: u32 = 5;
/// The pause before the second try; it doubles each time.
const PAUSE: Duration = Duration::from_millis(100);

/// Rows of a session or a view, one after another.
pub struct RemoteRows<'a> {
    client: &'a mut NodeClient,
    ticket: GetTicket,
    stream: Option<FlightRecordBatchStream>,
    batch: Option<RecordBatch>,
    /// The row in the batch, if there is one.
    at: usize,
    /// Rows before the batch.
    taken: u64,
    tries: u32,
    ended: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// How long the node may take for a message.
    patience: Option<Duration>,
}

impl<'a> RemoteRows<'a> {
    pub(super) fn new(client: &'a mut NodeClient, ticket: GetTicket) -> Self {
        RemoteRows {
            client,
            ticket,
            stream: None,
            batch: None,
            at: 0,
            taken: 0,
            tries: 0,
            ended: false,
            key: Vec::new(),
            value: Vec::new(),
            patience: None,
        }
    }

    /// Gives the node `patience` for each message. Without it, rows of a run that is not over are waited for.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        RemoteRows { patience: Some(patience), ..self }
    }

    /// Rows that were passed.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken + self.at as u64
    }

    /// Goes to the next row; false behind the last.
    ///
    /// # Errors
    /// The node's own; a connection that broke too often.
    pub fn advance(&mut self) -> Result<bool> {
        self.at += 1;
        while self.batch.as_ref().is_none_or(|batch| self.at >= batch.num_rows()) {
            if !self.next_batch()? {
                return Ok(false);
            }
        }
        self.split()?;
        Ok(true)
    }

    /// Tells the node that its rows are still wanted, while there is no room for more of them: it closes
    /// connections that are silent and sessions that are idle. A failure shows with the next row.
    pub fn keep_alive(&mut self) {
        if let GetTicket::Session(ticket) = &self.ticket {
            let _ = self.client.status(&ticket.session);
        }
    }

    /// The next batch as it came, if rows are not wanted one by one; `None` behind the last.
    ///
    /// # Errors
    /// As [`RemoteRows::advance`].
    pub fn batch(&mut self) -> Result<Option<RecordBatch>> {
        Ok(if self.next_batch()? { self.batch.clone() } else { None })
    }

    /// The key of the row, or the whole record of ordered output.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value of the row; empty for ordered output. Numbers have 8 bytes, little-endian.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Makes the next batch with rows the current one.
    fn next_batch(&mut self) -> Result<bool> {
        if let Some(batch) = self.batch.take() {
            self.taken += batch.num_rows() as u64;
        }
        self.at = 0;
        while !self.ended {
            match self.receive() {
                Ok(None) => self.ended = true,
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(Some(batch)) => {
                    self.tries = 0;
                    self.batch = Some(batch);
                    return Ok(true);
                }
                Err(Broken::Status(status)) if is_broken(&status) && self.can_continue() => {
                    self.stream = None;
                    self.tries += 1;
                    std::thread::sleep(PAUSE * 2_u32.pow(self.tries - 1));
                }
                Err(Broken::Status(status)) => return Err(ClientError::of_status(&status)),
                Err(Broken::Given(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    fn can_continue(&self) -> bool {
        let known = match &self.ticket {
            GetTicket::Session(_) => true,
            // Rows of other parts have no number.
            GetTicket::View(ticket) => self.taken == 0 || ticket.records.is_some(),
        };
        known && self.tries < TRIES
    }

    /// The ticket for the rows that are left.
    fn rest(&self) -> GetTicket {
        let mut ticket = self.ticket.clone();
        match &mut ticket {
            GetTicket::Session(ticket) => ticket.offset += self.taken,
            GetTicket::View(ticket) => {
                if let Some((start, _)) = &mut ticket.records {
                    *start += self.taken;
                }
            }
        }
        ticket
    }

    fn receive(&mut self) -> Result<Option<RecordBatch>, Broken> {
        let rest = self.rest();
        let client = &mut *self.client;
        let stop = client.stop.clone();
        let patience = self.patience;
        let message = async {
            if self.stream.is_none() {
                if self.tries > 0 {
                    let again = connected(&client.endpoint, &client.token).await;
                    client.calls = again.map_err(|e| tonic::Status::unavailable(e.to_string()))?;
                }
                let ticket = FlightTicket::new(rest.to_json());
                let data = client.calls.do_get(ticket).await?.into_inner();
                let data = data.map_err(|e| FlightError::Tonic(Box::new(e)));
                self.stream = Some(FlightRecordBatchStream::new_from_flight_data(data));
            }
            let stream = self.stream.as_mut().expect("begun above");
            match decoding::next(stream).await {
                Ok(None) => Ok(None),
                Ok(Some(Ok(batch))) => Ok(Some(batch)),
                Ok(Some(Err(FlightError::Tonic(status)))) => Err(*status),
                Ok(Some(Err(error))) => Err(tonic::Status::data_loss(error.to_string())),
                Err(_) => Err(tonic::Status::data_loss("a message with rows makes no sense")),
            }
        };
        let received = client.runtime.block_on(async {
            match patience {
                Some(patience) => stop.within(patience, message).await,
                None => stop.unless_set(message).await,
            }
        });
        received.map_err(Broken::Given)?.map_err(Broken::Status)
    }

    /// Copies key and value of the row.
    fn split(&mut self) -> Result<()> {
        let batch = self.batch.as_ref().expect("at a row");
        self.value.clear();
        match batch.columns() {
            [record] => put(&**record, self.at, &mut self.key),
            [key, value] => {
                put_key(&**key, self.at, &mut self.key)?;
                put(&**value, self.at, &mut self.value)
            }
            columns => Err(ClientError::Protocol(format!("rows of {} columns", columns.len()))),
        }
    }
}

/// Why no message came.
enum Broken {
    /// The node, or the connection to it.
    Status(tonic::Status),
    /// The caller's end, or its patience.
    Given(ClientError),
}

/// The bytes of a key of `column`, which are in the order of keys.
fn put_key(column: &dyn Array, row: usize, into: &mut Vec<u8>) -> Result<()> {
    into.clear();
    match column.data_type() {
        DataType::Int64 => {
            into.extend_from_slice(&key_of_i64(column.as_primitive::<Int64Type>().value(row)));
        }
        DataType::Float64 => {
            into.extend_from_slice(&key_of_f64(column.as_primitive::<Float64Type>().value(row)));
        }
        _ => return put(column, row, into),
    }
    Ok(())
}

/// The bytes of a value of `column`.
fn put(column: &dyn Array, row: usize, into: &mut Vec<u8>) -> Result<()> {
    into.clear();
    match column.data_type() {
        DataType::Binary => into.extend_from_slice(column.as_binary::<i32>().value(row)),
        DataType::Utf8 => into.extend_from_slice(column.as_string::<i32>().value(row).as_bytes()),
        DataType::Int64 => {
            into.extend_from_slice(&column.as_primitive::<Int64Type>().value(row).to_le_bytes());
        }
        DataType::Float64 => {
            into.extend_from_slice(&column.as_primitive::<Float64Type>().value(row).to_le_bytes());
        }
        other => return Err(ClientError::Protocol(format!("a column of {other}"))),
    }
    Ok(())
}
