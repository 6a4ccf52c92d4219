//! Bytes that go out in order, to anything that takes bytes.

use std::io::Write;
use std::sync::{Condvar, Mutex};

use crate::activity::{State, wait};
use crate::key::Order;
use crate::record::{Framing, with_framing};
use crate::{Error, Result};

/// Threads write pieces in the order of their numbers.
pub(crate) struct Turn<'a, 'b> {
    state: Mutex<(u64, Option<&'a mut &'b mut (dyn Write + Send)>)>,
    changed: Condvar,
}

impl<'a, 'b> Turn<'a, 'b> {
    pub(crate) fn new(writer: &'a mut &'b mut (dyn Write + Send)) -> Self {
        Turn { state: Mutex::new((0, Some(writer))), changed: Condvar::new() }
    }

    /// Nothing more is written: whoever waits for its turn gives up.
    pub(crate) fn stop(&self) {
        self.state.lock().expect("writers do not panic").1 = None;
        self.changed.notify_all();
    }

    /// Writes piece `number` when all before it are written.
    pub(crate) fn write(&self, number: u64, bytes: &[u8]) -> Result<()> {
        let mut state = {
            // Who writes holds the lock.
            let _waiting = wait(State::Turn);
            self.state.lock().expect("writers do not panic")
        };
        while state.0 != number {
            if state.1.is_none() {
                return Err(Error::Cancelled);
            }
            let _waiting = wait(State::Turn);
            state = self.changed.wait(state).expect("writers do not panic");
        }
        let Some(writer) = state.1.as_mut() else { return Err(Error::Cancelled) };
        let written = {
            let _waiting = wait(State::Writing);
            writer.write_all(bytes)
        };
        state.0 += 1;
        if written.is_err() {
            state.1 = None;
        }
        self.changed.notify_all();
        written.map_err(Error::Io)
    }
}

/// Counts records off the front, when only so many are wanted or duplicates are removed.
pub(crate) struct Top {
    left: Option<u64>,
    /// How many were taken.
    pub(crate) taken: u64,
}

impl Top {
    pub(crate) fn new(top: Option<u64>) -> Self {
        Top { left: top, taken: 0 }
    }

    /// What of `bytes` is still wanted, and whether more is.
    pub(crate) fn take<'a>(&mut self, order: &Order, bytes: &'a [u8]) -> (&'a [u8], bool) {
        let left = self.left.unwrap_or(u64::MAX);
        let mut at = 0;
        with_framing!(order.format(), framing => {
            while self.taken < left {
                let Some(len) = framing.next(&bytes[at..]) else { break };
                at += len;
                self.taken += 1;
            }
        });
        (&bytes[..at], self.taken < left)
    }
}
