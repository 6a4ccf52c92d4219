//! The host's side of a session: commands written, status polled, the result read.
//!
//! It works through a [`DeviceDoor`]: a modelled device in virtual time, or a [`Runner`] over a real storage.

use std::io;

use merganser_storage::near::NearProgram;
use serde_json::Value;

use super::command::{ByteExtent, DeviceSplit, SessionCommand};
use super::status::{self, IscState, IscStatus, PAGE_BYTES};
use crate::run::Runner;
use merganser_map::frame::FrameError;

/// Bytes of a result that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// How a host reaches a device.
pub trait DeviceDoor {
    /// Reads `len` bytes at `offset`.
    ///
    /// # Errors
    /// The device's own.
    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// The device's own.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits a while before the next poll.
    ///
    /// # Errors
    /// When nothing can change any more.
    fn pause(&mut self) -> io::Result<()>;
}

impl<P: NearProgram> DeviceDoor for Runner<P> {
    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        Runner::read(self, offset, len).map(|buffer| buffer.to_vec())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        Runner::write(self, offset, bytes)
    }

    /// Lets one thing that is under way end.
    fn pause(&mut self) -> io::Result<()> {
        if self.turn() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "the session waits for its host"))
    }
}

/// An open session, as its host sees it. Close it: a session that is dropped stays open.
#[derive(Debug)]
pub struct HostSession {
    control: u64,
    number: u64,
    window: u64,
}

fn invalid(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl HostSession {
    /// OPEN: starts a session of the SSDlet `name`. `nonce` is a number that no other open session of
    /// the device has.
    ///
    /// # Errors
    /// The device refuses it, or can't be reached.
    pub fn open(
        door: &mut dyn DeviceDoor,
        control: u64,
        nonce: u64,
        name: &str,
        args: &Value,
        memory_bytes: u64,
    ) -> io::Result<HostSession> {
        let open =
            SessionCommand::Open { ssdlet: name.to_owned(), args: args.clone(), memory_bytes };
        door.write(control, &open.encode(nonce).map_err(invalid)?)?;
        let list = status::decode_list(&door.read(control, PAGE_BYTES)?).map_err(invalid)?;
        let mine = list.iter().find(|opened| opened.nonce == nonce).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "the device does not list the new session")
        })?;
        Ok(HostSession { control, number: mine.session, window: mine.window })
    }

    fn command(&self, door: &mut dyn DeviceDoor, command: &SessionCommand) -> io::Result<()> {
        door.write(self.control, &command.encode(self.number).map_err(invalid)?)
    }

    /// SET: gives the session a split; `more` says that another one of the same run follows.
    ///
    /// # Errors
    /// The device refuses it, or can't be reached.
    pub fn set(&self, door: &mut dyn DeviceDoor, split: DeviceSplit, more: bool) -> io::Result<()> {
        self.command(door, &SessionCommand::Set { split, more })
    }

    /// PUT: lets the session write its result to `extents`.
    ///
    /// # Errors
    /// As [`HostSession::set`].
    pub fn put(&self, door: &mut dyn DeviceDoor, extents: Vec<ByteExtent>) -> io::Result<()> {
        self.command(door, &SessionCommand::Put { extents })
    }

    /// GET: the status.
    ///
    /// # Errors
    /// The device can't be reached.
    pub fn status(&self, door: &mut dyn DeviceDoor) -> io::Result<IscStatus> {
        IscStatus::decode(&door.read(self.window, PAGE_BYTES)?).map_err(invalid)
    }

    /// Polls until the result can be read.
    ///
    /// # Errors
    /// What made the session fail, or the door's own.
    pub fn wait(&self, door: &mut dyn DeviceDoor) -> io::Result<IscStatus> {
        loop {
            let status = self.status(door)?;
            match status.state {
                IscState::Done => return Ok(status),
                IscState::Failed => return Err(io::Error::other(status.error)),
                IscState::Waiting | IscState::Running => door.pause()?,
            }
        }
    }

    /// GET: the result, after [`HostSession::wait`]; `status` is what that gave.
    ///
    /// # Errors
    /// The door's own, or a result that was PUT.
    pub fn result(&self, door: &mut dyn DeviceDoor, status: &IscStatus) -> io::Result<Vec<u8>> {
        let mut result = Vec::new();
        let bytes = status.result_bytes();
        while (result.len() as u64) < bytes {
            let at = result.len() as u64;
            let len = (bytes - at).min(READ_BYTES).next_multiple_of(PAGE_BYTES as u64);
            result.extend(door.read(self.window + PAGE_BYTES as u64 + at, len as usize)?);
        }
        result.truncate(bytes as usize);
        Ok(result)
    }

    /// CLOSE: ends the session, at once also if it is running.
    ///
    /// # Errors
    /// As [`HostSession::set`].
    pub fn close(self, door: &mut dyn DeviceDoor) -> io::Result<()> {
        self.command(door, &SessionCommand::Close)
    }
}
