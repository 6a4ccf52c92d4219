//! A session on one node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use merganser_node::session::request::{OpenRequest, Range};
use merganser_node::session::{Opened, Status};

use super::meter::Meter;
use super::stream::Batch;
use super::{FarmError, LOOK};
use crate::client::{Client, ClientError, NodeAddress, Refusal, Result};
use crate::wire::{SessionTicket, SetBody, TextAs, Ticket};

/// A session that is open, and closed with this.
pub(super) struct Member {
    pub(super) node: String,
    pub(super) opened: Opened,
    client: Client,
}

impl Member {
    /// Opens a session; a guest that the node does not have is sent to it.
    pub(super) fn open(
        node: &NodeAddress,
        open: &OpenRequest,
        module: Option<&[u8]>,
    ) -> Result<Self, FarmError> {
        let failed = |source| FarmError::Node { node: node.to_string(), source };
        let mut client = Client::connect(node).map_err(failed)?;
        let opened = match (client.open(open), module) {
            (Err(ClientError::Refused { why: Refusal::Missing, .. }), Some(module)) => {
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
        mut self,
        ranges: &[Range],
        sender: &SyncSender<Batch>,
        ended: &AtomicBool,
        meter: &Meter<'_>,
    ) -> Result<Option<Status>> {
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
            if ended.load(Ordering::Relaxed) {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
        let ticket = SessionTicket { session: session.clone(), offset: 0, text: TextAs::Binary };
        let mut rows = self.client.rows(Ticket::Session(ticket));
        let mut batch = Batch::default();
        while rows.advance()? {
            batch.push(rows.key(), rows.value());
            if batch.is_full() && sender.send(std::mem::take(&mut batch)).is_err() {
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

impl Drop for Member {
    /// The node closes sessions that are idle, if this does not reach it.
    fn drop(&mut self) {
        let _ = self.client.close(&self.opened.session);
    }
}
