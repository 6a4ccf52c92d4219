//! A session on one node.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use merganser_serve::session::request::{OpenRequest, SessionRange};
use merganser_serve::session::{OpenedSession, SessionStatus};

use super::meter::FarmMeter;
use super::stream::FetchedRows;
use super::{FarmError, LOOK};
use crate::client::{
    ClientError, NodeAddress, NodeClient, RefusalKind, RemoteRows, Result, StopFlag,
};
use crate::wire::{GetTicket, SessionTicket, SetBody, TextAs};

/// The first pause before it is looked again whether there is room for a batch. It doubles, up to [`LOOK`].
const PAUSE: Duration = Duration::from_millis(1);
/// How long a node may take for its next rows.
const ROW_PATIENCE: Duration = Duration::from_secs(90);
/// The interval of messages to a node whose rows wait for those of others.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// A session that is open, and closed with this.
pub(super) struct Member {
    pub(super) node: String,
    pub(super) opened: OpenedSession,
    client: NodeClient,
}

impl Member {
    /// Opens a session; a guest that the node does not have is sent to it.
    pub(super) fn open(
        node: &NodeAddress,
        open: &OpenRequest,
        module: Option<&[u8]>,
        ended: &StopFlag,
    ) -> Result<Self, FarmError> {
        let failed = |source| {
            let source = NodeClient::explain(node, source);
            FarmError::Node { node: node.to_string(), source }
        };
        let mut client = NodeClient::connect_until(node, ended).map_err(failed)?;
        let opened = match (client.open(open), module) {
            (Err(ClientError::Refused { why: RefusalKind::Missing, .. }), Some(module)) => {
                let kept = client.upload(module.to_vec());
                kept.map_err(|source| FarmError::Guest { node: node.to_string(), source })?;
                client.open(open)
            }
            (opened, _) => opened,
        };
        Ok(Member { node: node.to_string(), opened: opened.map_err(failed)?, client })
    }

    /// Runs, and hands over the rows. `None` when no more of them are wanted.
    pub(super) fn work(
        self,
        ranges: &[SessionRange],
        sender: &SyncSender<FetchedRows>,
        ended: &StopFlag,
        meter: &FarmMeter<'_>,
    ) -> Result<Option<SessionStatus>> {
        match self.rows(ranges, sender, ended, meter) {
            // Another thread ended all of it, and says why.
            Err(ClientError::Stopped) => Ok(None),
            done => done,
        }
    }

    fn rows(
        mut self,
        ranges: &[SessionRange],
        sender: &SyncSender<FetchedRows>,
        ended: &StopFlag,
        meter: &FarmMeter<'_>,
    ) -> Result<Option<SessionStatus>> {
        let session = self.opened.session.clone();
        let body = SetBody { session: session.clone(), ranges: ranges.to_vec(), run: true };
        self.client.set(&body)?;
        let mut mapped = meter.node();
        loop {
            let status = self.client.status(&session)?;
            mapped.is_at(&status);
            if !status.state.is_busy() {
                break;
            }
            if ended.is_set() {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
        let ticket = SessionTicket { session: session.clone(), offset: 0, text: TextAs::Binary };
        // The run is over, so its rows are there.
        let rows = self.client.rows(GetTicket::Session(ticket));
        let mut rows = rows.with_patience(ROW_PATIENCE);
        let mut batch = FetchedRows::default();
        while rows.advance()? {
            batch.push(rows.key(), rows.value());
            if batch.is_full() && !hand_over(std::mem::take(&mut batch), sender, &mut rows) {
                return Ok(None);
            }
        }
        let taken = rows.taken();
        let status = self.client.status(&session)?;
        if taken != status.rows {
            let told = format!("{taken} rows came of {}", status.rows);
            return Err(ClientError::Protocol(told));
        }
        Ok(sender.send(batch.into_last()).is_ok().then_some(status))
    }
}

/// Hands over a batch once there is room; false if no more are wanted. Meanwhile the node hears that its
/// session is in use: it may be hours before the rows of another node are there.
fn hand_over(
    mut batch: FetchedRows,
    sender: &SyncSender<FetchedRows>,
    rows: &mut RemoteRows<'_>,
) -> bool {
    let (mut pause, mut told) = (PAUSE, Instant::now());
    loop {
        batch = match sender.try_send(batch) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(batch)) => batch,
        };
        thread::sleep(pause);
        pause = (pause * 2).min(LOOK);
        if told.elapsed() >= KEEP_ALIVE {
            rows.keep_alive();
            told = Instant::now();
        }
    }
}

impl Drop for Member {
    /// The node closes sessions that are idle, if this does not reach it.
    fn drop(&mut self) {
        self.client.leave(&self.opened.session);
    }
}
