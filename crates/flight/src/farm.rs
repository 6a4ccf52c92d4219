//! One SSDlet on several nodes, and one result.
//!
//! ```text
//!   node 0 ── a thread: open, set, rows ──batches──┐  keyed: merged by key, and combined
//!   node 1 ── a thread: open, set, rows ──batches──┼──► rows, in this thread
//!   node 2 ── a thread: open, set, rows ──batches──┘  ordered: node after node
//! ```
//!
//! There is no scheduler here: every node has its own part of the data, under the same paths. A node
//! that fails ends all of it, and is named.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use merganser_node::map::{Merge, RowSink, RowStream};
use merganser_node::session::request::{OpenRequest, Range};
use merganser_node::session::{Opened, Status};
use merganser_node::ssdlet::{Output, SsdletError};
use merganser_storage::thread::spawn_scoped;

use crate::client::{Client, ClientError, NodeAddress, Rows};
use crate::wire::{SessionTicket, SetBody, TextAs, Ticket};

/// Bytes of rows that a thread hands over at once.
const BATCH_BYTES: usize = 128 << 10;
/// Batches of a node that wait for the others.
const AHEAD: usize = 4;
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FarmError {
    /// A node failed.
    #[error("{node}: {source}")]
    Node {
        /// Its address.
        node: String,
        /// Why.
        source: ClientError,
    },
    /// Two nodes do not run the same SSDlet.
    #[error("{node}: its SSDlet is not the one of {other}: they take or give different records")]
    Different {
        /// A node.
        node: String,
        /// The first one.
        other: String,
    },
    /// The rows could not be merged, or the sink failed.
    #[error(transparent)]
    Rows(#[from] SsdletError),
    /// The caller asked for the end.
    #[error("cancelled")]
    Cancelled,
}

/// What the nodes did.
#[derive(Debug, Clone, PartialEq)]
pub struct FarmReport {
    /// The last status of each session, in the order of the nodes.
    pub nodes: Vec<Status>,
    /// Rows of the result.
    pub rows: u64,
}

/// A session on a node.
struct Member<'a> {
    node: &'a NodeAddress,
    client: Client,
    opened: Opened,
}

/// Runs the SSDlet of `open` over `ranges` on each of `nodes`, at least one, and hands the rows to
/// `sink`.
///
/// # Errors
/// The first failure, which ends all sessions.
pub fn map(
    nodes: &[NodeAddress],
    open: &OpenRequest,
    ranges: &[Range],
    sink: &mut dyn RowSink,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<FarmReport, FarmError> {
    let mut members: Vec<Member<'_>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let opened = Client::connect(node)
            .and_then(|mut client| client.open(open).map(|opened| (client, opened)));
        match opened {
            Ok((client, opened)) => members.push(Member { node, client, opened }),
            Err(source) => {
                members.iter_mut().for_each(Member::close);
                return Err(FarmError::Node { node: node.to_string(), source });
            }
        }
    }
    let first = members.first().expect("at least one node");
    let output = first.opened.description.output.clone();
    let other = first.node.to_string();
    if let Some(member) = members.iter().find(|member| member.opened.description.output != output) {
        let node = member.node.to_string();
        members.iter_mut().for_each(Member::close);
        return Err(FarmError::Different { node, other });
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut streams = Vec::with_capacity(members.len());
        let mut threads = Vec::with_capacity(members.len());
        for mut member in members {
            let (sender, receiver) = sync_channel(AHEAD);
            let (name, ended) = (member.node.to_string(), &ended);
            streams.push(Stream::new(name.clone(), receiver, is_cancelled));
            let work = move || {
                let done = member.work(ranges, &sender, ended);
                member.close();
                drop(sender);
                done.map_err(|source| FarmError::Node { node: name, source })
            };
            let started = spawn_scoped(scope, "node", work);
            threads.push(started.map_err(|e| SsdletError::Failed(e.to_string()))?);
        }
        let rows = match &output {
            Output::Keyed { value, combine, .. } => {
                let of = combine.result_type(*value);
                merge_into(Merge::new(streams.iter_mut().collect(), *combine, of), sink)
            }
            Output::Ordered { .. } => append_into(&mut streams, sink),
        };
        ended.store(true, Ordering::Relaxed);
        let is_whole = rows.is_ok() && streams.iter().all(|stream| stream.at_end);
        // Threads that wait for room end now.
        drop(streams);
        let results: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        if is_cancelled() {
            return Err(FarmError::Cancelled);
        }
        // The failure of a node is the reason for which its rows ended.
        let failed = |result: &Result<Option<Status>, FarmError>| result.is_err();
        if !results.iter().any(failed) || is_whole {
            let rows = rows?;
            let nodes = results.into_iter().filter_map(|result| result.ok().flatten()).collect();
            return Ok(FarmReport { nodes, rows });
        }
        let failure = results.into_iter().find_map(Result::err);
        Err(failure.expect("one has failed"))
    })
}

impl Member<'_> {
    /// Runs, and hands over the rows. `None` when the others have ended before.
    fn work(
        &mut self,
        ranges: &[Range],
        sender: &SyncSender<Batch>,
        ended: &AtomicBool,
    ) -> Result<Option<Status>, ClientError> {
        let session = self.opened.session.clone();
        let body = SetBody { session: session.clone(), ranges: ranges.to_vec(), run: true };
        self.client.set(&body)?;
        loop {
            let status = self.client.status(&session)?;
            if !status.state.is_busy() {
                break;
            }
            if ended.load(Ordering::Relaxed) {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
        let ticket = SessionTicket { session: session.clone(), offset: 0, text: TextAs::Binary };
        let mut rows = self.client.rows(Ticket::Session(ticket));
        let mut batch = Batch::default();
        while rows.advance()? {
            batch.push(&rows);
            if batch.bytes.len() >= BATCH_BYTES && sender.send(std::mem::take(&mut batch)).is_err()
            {
                return Ok(None);
            }
        }
        let taken = rows.taken();
        let status = self.client.status(&session)?;
        if taken != status.rows {
            let told = format!("{taken} rows came of {}", status.rows);
            return Err(ClientError::Protocol(told));
        }
        batch.is_last = true;
        Ok(sender.send(batch).is_ok().then_some(status))
    }

    /// The node closes sessions that are idle, if this does not reach it.
    fn close(&mut self) {
        let _ = self.client.close(&self.opened.session);
    }
}

/// Rows on their way between threads.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Ends of key and value of each row.
    ends: Vec<(usize, usize)>,
    /// All rows of the node have come.
    is_last: bool,
}

impl Batch {
    fn push(&mut self, rows: &Rows<'_>) {
        self.bytes.extend_from_slice(rows.key());
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(rows.value());
        self.ends.push((key_end, self.bytes.len()));
    }
}

/// The rows of a node, in this thread.
struct Stream<'a> {
    name: String,
    batches: Receiver<Batch>,
    is_cancelled: &'a dyn Fn() -> bool,
    batch: Batch,
    /// Number of the next row in the batch.
    next: usize,
    start: usize,
    at_end: bool,
}

impl<'a> Stream<'a> {
    fn new(name: String, batches: Receiver<Batch>, is_cancelled: &'a dyn Fn() -> bool) -> Self {
        let batch = Batch::default();
        Stream { name, batches, is_cancelled, batch, next: 0, start: 0, at_end: false }
    }

    fn ends(&self) -> (usize, usize) {
        self.batch.ends[self.next - 1]
    }
}

impl RowStream for &mut Stream<'_> {
    fn advance(&mut self) -> Result<bool, SsdletError> {
        while self.next >= self.batch.ends.len() {
            if self.batch.is_last {
                self.at_end = true;
                return Ok(false);
            }
            self.batch = match self.batches.recv_timeout(LOOK) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) if !(self.is_cancelled)() => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(SsdletError::Engine(merganser_sort::Error::Cancelled));
                }
                // Its thread says why.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(SsdletError::Failed(format!(
                        "{}: its rows ended early",
                        self.name
                    )));
                }
            };
            self.next = 0;
        }
        self.start = self.next.checked_sub(1).map_or(0, |last| self.batch.ends[last].1);
        self.next += 1;
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.batch.bytes[self.start..self.ends().0]
    }

    fn value(&self) -> &[u8] {
        let (key_end, end) = self.ends();
        &self.batch.bytes[key_end..end]
    }
}

fn merge_into(mut merged: impl RowStream, sink: &mut dyn RowSink) -> Result<u64, SsdletError> {
    let mut rows = 0;
    while merged.advance()? {
        rows += 1;
        if !sink.keyed(merged.key(), merged.value())? {
            break;
        }
    }
    Ok(rows)
}

fn append_into(streams: &mut [Stream<'_>], sink: &mut dyn RowSink) -> Result<u64, SsdletError> {
    let mut rows = 0;
    for mut stream in streams.iter_mut() {
        while RowStream::advance(&mut stream)? {
            rows += 1;
            if !sink.records(RowStream::key(&stream))? {
                return Ok(rows);
            }
        }
    }
    Ok(rows)
}
