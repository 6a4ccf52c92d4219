//! Bytes that go out in order, to anything that takes bytes.

use std::io::Write;

use crate::activity::{WorkerState, wait};
use crate::key::Order;
use crate::pipeline::Turns;
use crate::record::{Framing, with_framing};
use crate::{Error, Result};

/// Threads write pieces in the order of their numbers.
pub(crate) struct InTurn<'a>(Turns<&'a mut (dyn Write + Send)>);

impl<'a> InTurn<'a> {
    pub(crate) fn new(writer: &'a mut (dyn Write + Send)) -> Self {
        InTurn(Turns::new(writer))
    }

    /// Nothing more is written: threads that wait for their turn give up.
    pub(crate) fn stop(&self) {
        self.0.stop();
    }

    /// Writes piece `number` when all before it are written.
    pub(crate) fn write(&self, number: u64, bytes: &[u8]) -> Result<()> {
        let mut turn = self.0.wait(number).ok_or(Error::Cancelled)?;
        let written = {
            let _waiting = wait(WorkerState::Writing);
            turn.write_all(bytes)
        };
        if written.is_err() {
            turn.stop();
        }
        written.map_err(Error::Io)
    }
}

/// Counts records from the front, when only the first ones are wanted or duplicates are removed.
pub(crate) struct Top {
    left: Option<u64>,
    /// How many were taken.
    pub(crate) taken: u64,
}

impl Top {
    pub(crate) fn new(top: Option<u64>) -> Self {
        Top { left: top, taken: 0 }
    }

    /// The part of `bytes`, whole records, that is still wanted, and whether more is.
    pub(crate) fn take<'a>(&mut self, order: &Order, bytes: &'a [u8]) -> (&'a [u8], bool) {
        let left = self.left.unwrap_or(u64::MAX);
        let mut at = 0;
        with_framing!(order.format(), framing => {
            while self.taken < left {
                let Some(len) = framing.first(&bytes[at..]) else { break };
                at += len;
                self.taken += 1;
            }
        });
        (&bytes[..at], self.taken < left)
    }
}
