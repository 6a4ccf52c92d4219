//! One SSDlet on several nodes, and one result.
//!
//! ```text
//!   node 0 ── a thread: set, status, rows ──batches──┐  keyed: merged by key, and combined
//!   node 1 ── a thread: set, status, rows ──batches──┼──► rows, in the caller's thread
//!   node 2 ── a thread: set, status, rows ──batches──┘  ordered: node after node
//! ```
//!
//! There is no scheduler here: every node has its own part of the data, under the same paths. A node
//! that fails ends all of it, and is named.
//!
//! `member` is a session on a node, `stream` has its rows in the caller's thread, `meter` adds up how far
//! the nodes are.

mod member;
mod meter;
mod stream;

use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use merganser_map::ssdlet::{SsdletError, SsdletOutput};
use merganser_map::{RowSink, merge};
use merganser_serve::session::request::{OpenRequest, SessionRange};
use merganser_serve::session::{OpenedSession, SessionStatus};
use merganser_sort::Progress;
use merganser_storage::thread::spawn_scoped;

use crate::client::{ClientError, NodeAddress, StopFlag};
use member::Member;
use meter::FarmMeter;
use stream::{NodeRows, append_into};

/// Batches of a node that wait for the others.
const AHEAD: usize = 4;
/// How often a node is asked how far it is, and how often it is looked whether to stop.
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
    /// A node does not have the guest, and does not take it.
    #[error("{node}: it does not have this SSDlet, and it was refused: {source}")]
    Guest {
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
    /// The last status of each session, in the order of the nodes. A node whose rows were not all wanted
    /// is not in it.
    pub nodes: Vec<SessionStatus>,
    /// Rows of the result.
    pub rows: u64,
}

/// A session on each of several nodes, all of the same SSDlet. They are closed with this.
pub struct SessionFarm {
    members: Vec<Member>,
    /// Ends the calls of all members.
    ended: StopFlag,
}

impl SessionFarm {
    /// Opens the SSDlet of `open` on each of `nodes`. With `module`, `open` names a guest by its SHA-256,
    /// and a node that does not have it gets these bytes.
    ///
    /// # Errors
    /// The first failure, which closes all sessions.
    ///
    /// # Panics
    /// Without any node.
    pub fn open(
        nodes: &[NodeAddress],
        open: &OpenRequest,
        module: Option<&[u8]>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, FarmError> {
        assert!(!nodes.is_empty(), "at least one node");
        let ended = StopFlag::default();
        let caller = thread::current();
        let members = thread::scope(|scope| {
            let opening = || {
                let members = open_all(nodes, open, module, &ended);
                caller.unpark();
                members
            };
            let opening = spawn_scoped(scope, "nodes", opening)
                .map_err(|error| SsdletError::Failed(error.to_string()))?;
            while !opening.is_finished() {
                if is_cancelled() {
                    ended.set();
                }
                thread::park_timeout(LOOK);
            }
            opening.join().expect("no panic")
        });
        match members {
            Err(_) if ended.is_set() => Err(FarmError::Cancelled),
            members => Ok(SessionFarm { members: members?, ended }),
        }
    }

    /// The SSDlet's formats and options, as the first node describes them.
    #[must_use]
    pub fn opened(&self) -> &OpenedSession {
        &self.members[0].opened
    }

    /// Runs over `ranges` on each node, and hands the rows to `sink`.
    ///
    /// # Errors
    /// The first failure, which ends all sessions.
    pub fn map(
        self,
        ranges: &[SessionRange],
        sink: &mut dyn RowSink,
        progress: &dyn Progress,
    ) -> Result<FarmReport, FarmError> {
        let output = self.opened().description.output.clone();
        let meter = FarmMeter::of_nodes(self.members.len(), progress);
        let ended = self.ended;
        thread::scope(|scope| {
            let mut streams = Vec::with_capacity(self.members.len());
            let mut threads = Vec::with_capacity(self.members.len());
            for member in self.members {
                let (sender, receiver) = sync_channel(AHEAD);
                let (name, ended, meter) = (member.node.clone(), &ended, &meter);
                streams.push(NodeRows::new(name.clone(), receiver, ended, progress));
                let work = move || {
                    let done = member.work(ranges, &sender, ended, meter);
                    if done.is_err() {
                        // The caller's thread may be waiting for another node.
                        ended.set();
                    }
                    done.map_err(|source| FarmError::Node { node: name, source })
                };
                match spawn_scoped(scope, "node", work) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        ended.set();
                        return Err(SsdletError::Failed(error.to_string()).into());
                    }
                }
            }
            let rows = match &output {
                SsdletOutput::Keyed { value, combine, .. } => {
                    let of = combine.result_type(*value);
                    merge(streams.iter_mut().collect(), *combine, of, sink)
                }
                SsdletOutput::Ordered { format } => append_into(&mut streams, *format, sink),
            };
            let is_whole = rows.is_ok() && streams.iter().all(NodeRows::is_at_end);
            ended.set();
            // Threads that wait for room end now.
            drop(streams);
            let results: Vec<_> =
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
            if progress.cancelled() && !is_whole {
                return Err(FarmError::Cancelled);
            }
            // The failure of a node is the reason for which the rows ended.
            let mut nodes = Vec::with_capacity(results.len());
            for result in results {
                match result {
                    Ok(status) => nodes.extend(status),
                    Err(_) if is_whole => {}
                    Err(failure) => return Err(failure),
                }
            }
            Ok(FarmReport { nodes, rows: rows? })
        })
    }
}

/// Opens a session on each node, one after another.
fn open_all(
    nodes: &[NodeAddress],
    open: &OpenRequest,
    module: Option<&[u8]>,
    ended: &StopFlag,
) -> Result<Vec<Member>, FarmError> {
    let mut members: Vec<Member> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let member = Member::open(node, open, module, ended)?;
        if let Some(first) = members.first()
            && first.opened.description.output != member.opened.description.output
        {
            let (node, other) = (member.node.clone(), first.node.clone());
            return Err(FarmError::Different { node, other });
        }
        members.push(member);
    }
    Ok(members)
}
