//! DoPut: a blob of a session.
//!
//! The messages are a stranger's, and Arrow's decoder keeps all dictionaries that it is sent. So the schema is
//! judged before any batch or dictionary is decoded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::{DataType, Schema};
use futures::StreamExt;
use merganser_serve::session::{BlobStatus, BlobWriter, SessionError, Sessions};
use tonic::{Status, Streaming};

use crate::blocking::blocking;
use crate::decoding;
use crate::error::status;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::outlet::StreamLender;
use crate::standstill::Moving;

/// How long a client may take to send one more message.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

/// Memory of a DoPut: a message as it arrives, and as a batch.
const MEMORY_BYTES: u64 = 2 * MESSAGE_BYTES_MAX as u64;

/// Keeps what `messages` carry: the values of one column, end to end.
pub(crate) async fn receive(
    sessions: &Arc<Sessions>,
    lender: &StreamLender,
    moving: Moving,
    mut messages: Streaming<FlightData>,
) -> Result<BlobStatus, Status> {
    let late = |_| Status::deadline_exceeded("the next message of the blob took too long");
    let lender = lender.clone();
    let _memory = blocking(move || lender.memory(MEMORY_BYTES, MEMORY_BYTES)).await?;
    moving.waits();
    let first = tokio::time::timeout(PATIENCE, messages.message()).await.map_err(late)??;
    moving.moves();
    let first = first.ok_or_else(|| Status::invalid_argument("a DoPut has at least a schema"))?;
    let (id, name) = place(first.flight_descriptor.as_ref())?;
    let opened = Arc::clone(sessions);
    let mut writer = blocking(move || opened.put(&id, &name)).await?;
    let rest = messages.map(|message| message.map_err(|e| FlightError::Tonic(Box::new(e))));
    let all = futures::stream::iter([Ok(first)]).chain(rest);
    let mut decoder = FlightDataDecoder::new(all);
    let mut is_described = false;
    loop {
        moving.waits();
        let decoded = tokio::time::timeout(PATIENCE, decoding::next(&mut decoder)).await;
        moving.moves();
        let Some(decoded) = decoded.map_err(late)?.map_err(|_| senseless())? else { break };
        match decoded.map_err(refused)?.payload {
            DecodedPayload::None => {}
            DecodedPayload::Schema(_) if is_described => {
                return Err(Status::invalid_argument("a DoPut has one schema"));
            }
            DecodedPayload::Schema(schema) => {
                check(&schema).map_err(|error| status(&error))?;
                is_described = true;
            }
            DecodedPayload::RecordBatch(batch) => {
                writer = blocking(move || {
                    write(&mut writer, &batch)?;
                    Ok(writer)
                })
                .await?;
            }
        }
    }
    // The stream of a call that was cancelled ends like one that was whole. The server drops such a call when it has to
    // wait for the call's answer, and then nothing is kept.
    tokio::task::yield_now().await;
    blocking(move || writer.finish()).await
}

fn senseless() -> Status {
    Status::invalid_argument("a message of the blob makes no sense")
}

/// The error of a message that can't be read.
fn refused(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        error => status(&SessionError::Invalid(format!("the blob: {error}"))),
    }
}

/// Refuses all but one column of bytes or text.
fn check(schema: &Schema) -> Result<(), SessionError> {
    let [field] = &schema.fields()[..] else {
        let told = "a blob comes as one column of bytes or text".to_owned();
        return Err(SessionError::Invalid(told));
    };
    match field.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::Utf8 | DataType::LargeUtf8 => Ok(()),
        // The name of a type may be as long as its message.
        _ => {
            let told = "a blob comes as one column of bytes or text, not of another type";
            Err(SessionError::Invalid(told.to_owned()))
        }
    }
}

/// The session and the blob of a DoPut.
fn place(descriptor: Option<&FlightDescriptor>) -> Result<(String, String), Status> {
    match descriptor.map(|descriptor| &descriptor.path[..]) {
        Some([session, name]) => Ok((session.clone(), name.clone())),
        _ => Err(Status::invalid_argument("the path of a DoPut is [session, name of the blob]")),
    }
}

fn write(writer: &mut BlobWriter, batch: &RecordBatch) -> Result<(), SessionError> {
    let column = batch.column(0);
    if column.null_count() > 0 {
        return Err(SessionError::Invalid("the column of a blob has no nulls".to_owned()));
    }
    match column.data_type() {
        DataType::Binary => write_all(writer, column.as_binary::<i32>().iter().flatten()),
        DataType::LargeBinary => write_all(writer, column.as_binary::<i64>().iter().flatten()),
        DataType::Utf8 => {
            write_all(writer, column.as_string::<i32>().iter().flatten().map(str::as_bytes))
        }
        DataType::LargeUtf8 => {
            write_all(writer, column.as_string::<i64>().iter().flatten().map(str::as_bytes))
        }
        other => unreachable!("the schema was checked, and has no {other}"),
    }
}

fn write_all<'a>(
    writer: &mut BlobWriter,
    mut values: impl Iterator<Item = &'a [u8]>,
) -> Result<(), SessionError> {
    values.try_for_each(|value| writer.write(value))
}
