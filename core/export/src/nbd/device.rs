//! Requests of a device export: each goes to the storage when it comes, whatever else is under way.
//!
//! ```text
//!   reader of requests ── submit ──► Storage ── its own thread ──► Ticket ──► writer of replies
//! ```
//!
//! A model of a disk must see requests as a client makes them, and decides itself when they end. So no
//! worker stands between: the thread that reads requests submits them, and the storage's completion
//! posts the reply. A request longer than [`READ_BYTES_MAX`] becomes several operations, as a kernel cuts
//! requests for a disk; all of them are under way together. Forced unit access is a flush after the write.
//! Requests for zeros are discards, or writes where the storage takes no discards: the thread that reads requests
//! waits for the first discard to know that.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, mpsc};

use merganser_storage::{Buffer, Collect, Completion, Completions, Operation, Storage};
use parking_lot::Mutex;

use super::outbox::{MessageContent, ReplyTicket};
use super::replies::{ClientReplies, NO_MEMORY, TransmissionEnd, is_last};
use super::wire::{self, NbdRequest, command_flag, errno};
use super::writes::{ChangeResult, NbdChange, number_of};
use crate::failures::Failures;
use crate::spare::SpareBuffers;
use crate::{Error, READ_BYTES_MAX};

/// A storage that gets requests as they come.
pub(super) struct NbdDevice {
    storage: Arc<dyn Storage>,
    failures: Arc<Failures>,
    spare: Arc<SpareBuffers>,
    /// Whether the storage takes discards; known since the first one ended.
    discards: OnceLock<bool>,
}

/// The function that gets a completion.
type CompletionFn = Box<dyn FnOnce(Completion) + Send>;

/// Takes one completion.
struct OneCompletion(Mutex<Option<CompletionFn>>);

impl Collect for OneCompletion {
    fn arrived(&self, completion: Completion) {
        let then = self.0.lock().take();
        if let Some(then) = then {
            then(completion);
        }
    }
}

impl NbdDevice {
    pub(super) fn new(storage: &Arc<dyn Storage>, failures: &Arc<Failures>) -> Arc<Self> {
        let (storage, failures) = (Arc::clone(storage), Arc::clone(failures));
        Arc::new(NbdDevice { storage, failures, spare: Arc::default(), discards: OnceLock::new() })
    }

    /// A buffer for the bytes of a write, with any content.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn buffer(&self, len: usize) -> io::Result<Buffer> {
        self.spare.take(len)
    }

    fn submit(&self, operation: Operation, then: impl FnOnce(Completion) + Send + 'static) {
        let then = OneCompletion(Mutex::new(Some(Box::new(then))));
        self.storage.submit(0, operation, &Completions::collected(Arc::new(then)));
    }

    /// Reads; `then` gets the bytes, or the error.
    fn read(
        self: &Arc<Self>,
        offset: u64,
        len: usize,
        then: impl FnOnce(Result<Buffer, String>) + Send + 'static,
    ) {
        let device = Arc::clone(self);
        let failed = move |source: io::Error| {
            let name = device.storage.name().to_owned();
            let error = Error::Read { name, offset, len, source };
            let why = error.to_string();
            device.failures.tell(error);
            why
        };
        let buffer = match self.buffer(len) {
            Ok(buffer) => buffer,
            Err(error) => return then(Err(failed(error))),
        };
        self.submit(Operation::Read { offset, buffer }, move |completion| {
            let Completion { buffer, result, .. } = completion;
            let read = match (result, buffer) {
                (Ok(count), Some(buffer)) if count == len && buffer.len() == len => Ok(buffer),
                (Ok(count), _) => {
                    let why = format!("it ended after {count} bytes, before its size");
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))
                }
                (Err(error), _) => Err(error),
            };
            then(read.map_err(failed));
        });
    }

    /// Does a change; `then` gets how it ended. `what` is said of a failure.
    fn apply(
        self: &Arc<Self>,
        what: &'static str,
        operation: Operation,
        then: impl FnOnce(ChangeResult) + Send + 'static,
    ) {
        let (offset, len) = match &operation {
            Operation::Write { offset, buffer } => (*offset, buffer.len() as u64),
            Operation::Discard { offset, len } => (*offset, *len),
            _ => (0, 0),
        };
        let is_discard = matches!(operation, Operation::Discard { .. });
        let device = Arc::clone(self);
        self.submit(operation, move |completion| {
            let Completion { buffer, result, .. } = completion;
            if let Some(buffer) = buffer {
                device.spare.give_back(buffer);
            }
            let result = result.map(drop);
            let unsupported =
                result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported);
            if is_discard && (result.is_ok() || unsupported) {
                // It may be known.
                let _ = device.discards.set(!unsupported);
            }
            then(result.map_err(|source| {
                let number = if unsupported { errno::NOTSUP } else { number_of(&source) };
                let name = device.storage.name().to_owned();
                let error = Error::Request { name, what, offset, len, source };
                let why = error.to_string();
                if !unsupported {
                    device.failures.tell(error);
                }
                (number, why)
            }));
        });
    }
}

/// A change of one or several operations, whose reply is posted with the last of them.
struct Changing {
    device: Arc<NbdDevice>,
    cookie: u64,
    structured: bool,
    /// Whether it is flushed before it is answered.
    durable: bool,
    state: Mutex<ChangingState>,
}

struct ChangingState {
    /// Operations that have not ended.
    left: usize,
    /// How those that have ended did: the first failure.
    result: ChangeResult,
}

impl Changing {
    /// One of its operations has ended; its ticket carries the reply if it was the last.
    fn ended(self: &Arc<Self>, ticket: ReplyTicket, result: ChangeResult) {
        let mut state = self.state.lock();
        state.left -= 1;
        if state.result.is_ok() {
            state.result = result;
        }
        if state.left > 0 {
            drop(state);
            // Gives back what was admitted for it.
            return ticket.post(Vec::new, Vec::new());
        }
        let result = std::mem::replace(&mut state.result, Ok(()));
        drop(state);
        if self.durable && result.is_ok() {
            let changing = Arc::clone(self);
            let flushed = move |result| changing.reply(ticket, &result);
            return self.device.apply("flushing", Operation::Sync, flushed);
        }
        self.reply(ticket, &result);
    }

    fn reply(&self, ticket: ReplyTicket, result: &ChangeResult) {
        let cookie = self.cookie;
        let head = || match (result, self.structured) {
            (Ok(()), true) => wire::done_chunk(cookie),
            (Ok(()), false) => wire::simple_reply(cookie, 0),
            (Err((error, why)), true) => wire::error_chunk(cookie, *error, why),
            (Err((error, _)), false) => wire::simple_reply(cookie, *error),
        };
        ticket.post(head, Vec::new());
    }
}

/// A simple read of several operations: its one reply has the bytes of all, or an error.
struct WholeRead {
    spare: Arc<SpareBuffers>,
    cookie: u64,
    ticket: Option<ReplyTicket>,
    buffers: Vec<Buffer>,
    left: usize,
    failed: bool,
}

impl WholeRead {
    fn ended(&mut self, piece: usize, result: Result<Buffer, String>) {
        match result {
            Ok(buffer) => self.buffers[piece] = buffer,
            Err(_) => self.failed = true,
        }
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        let ticket = self.ticket.take().expect("the last piece ends once");
        let error = if self.failed { errno::IO } else { 0 };
        let buffers = if self.failed { Vec::new() } else { std::mem::take(&mut self.buffers) };
        let cookie = self.cookie;
        ticket.post(
            || wire::simple_reply(cookie, error),
            MessageContent::buffers(buffers, &self.spare),
        );
    }
}

impl NbdDevice {
    /// A chunk of a structured read.
    pub(super) fn read_chunk(
        self: &Arc<Self>,
        cookie: u64,
        offset: u64,
        len: usize,
        ticket: ReplyTicket,
        left: &Arc<AtomicUsize>,
    ) {
        let (left, spare) = (Arc::clone(left), Arc::clone(&self.spare));
        self.read(offset, len, move |read| match read {
            Ok(buffer) => {
                let head = || wire::data_chunk(cookie, is_last(&left), offset, len);
                ticket.post(head, MessageContent::buffers(vec![buffer], &spare));
            }
            Err(why) => {
                let head =
                    || wire::error_offset_chunk(cookie, is_last(&left), errno::IO, &why, offset);
                ticket.post(head, Vec::new());
            }
        });
    }

    /// A simple read.
    pub(super) fn read_whole(
        self: &Arc<Self>,
        replies: &ClientReplies,
        cookie: u64,
        pieces: impl ExactSizeIterator<Item = (u64, usize)> + Clone,
    ) -> Result<(), TransmissionEnd> {
        let left = pieces.len();
        let ticket = Some(replies.admit(pieces.clone().map(|(_, len)| len).sum())?);
        let buffers = (0..left).map(|_| Buffer::empty()).collect();
        let spare = Arc::clone(&self.spare);
        let whole = WholeRead { spare, cookie, ticket, buffers, left, failed: false };
        let whole = Arc::new(Mutex::new(whole));
        for (piece, (offset, len)) in pieces.enumerate() {
            let whole = Arc::clone(&whole);
            self.read(offset, len, move |read| whole.lock().ended(piece, read));
        }
        Ok(())
    }

    /// A write; `bytes` gives the next of its bytes, or `None` where there is no memory for them.
    pub(super) fn write(
        self: &Arc<Self>,
        replies: &ClientReplies,
        request: NbdRequest,
        mut bytes: impl FnMut(usize) -> Result<Option<Buffer>, TransmissionEnd>,
    ) -> Result<(), TransmissionEnd> {
        let len = request.len as usize;
        let pieces = len.div_ceil(READ_BYTES_MAX);
        if pieces == 0 {
            return self.change(replies, request, &NbdChange::Write(Buffer::empty()));
        }
        let changing = self.changing(replies, request, pieces);
        for from in (0..len).step_by(READ_BYTES_MAX) {
            let part = READ_BYTES_MAX.min(len - from);
            // Taken before it is admitted: until all of it is here the client owes, not the server.
            let taken = bytes(part)?;
            let ticket = replies.admit(part)?;
            let Some(buffer) = taken else {
                changing.ended(ticket, Err((errno::NOMEM, NO_MEMORY.to_owned())));
                continue;
            };
            let offset = request.offset + from as u64;
            let changing = Arc::clone(&changing);
            self.apply("writing", Operation::Write { offset, buffer }, move |done| {
                changing.ended(ticket, done);
            });
        }
        Ok(())
    }

    /// A change that brings no bytes.
    pub(super) fn change(
        self: &Arc<Self>,
        replies: &ClientReplies,
        request: NbdRequest,
        change: &NbdChange,
    ) -> Result<(), TransmissionEnd> {
        let NbdRequest { flags, cookie, offset, .. } = request;
        let (what, operation) = match *change {
            NbdChange::Zeros { len, holes } if len > 0 => {
                let hole = Operation::Discard { offset, len };
                match self.discards.get() {
                    Some(true) if holes => ("zeroing", hole),
                    None if holes => return self.try_hole(replies, request, hole),
                    _ => return self.write_zeros(replies, request),
                }
            }
            NbdChange::Discard(len) if len > 0 => ("trimming", Operation::Discard { offset, len }),
            NbdChange::Flush => ("flushing", Operation::Sync),
            _ if flags & command_flag::FUA != 0 => ("flushing", Operation::Sync),
            _ => return replies.done(cookie),
        };
        let flushes = matches!(operation, Operation::Sync);
        let request = NbdRequest { flags: if flushes { 0 } else { flags }, ..request };
        let changing = self.changing(replies, request, 1);
        let ticket = replies.admit(0)?;
        self.apply(what, operation, move |done| changing.ended(ticket, done));
        Ok(())
    }

    /// Zeros, when it is not known yet whether the storage takes discards. This waits for the discard: the
    /// writes in its place have to be admitted by this thread.
    fn try_hole(
        self: &Arc<Self>,
        replies: &ClientReplies,
        request: NbdRequest,
        hole: Operation,
    ) -> Result<(), TransmissionEnd> {
        let ticket = replies.admit(0)?;
        let (ended, end) = mpsc::channel();
        self.apply("zeroing", hole, move |done| {
            // It is received below.
            let _ = ended.send(done);
        });
        let done = end.recv().map_err(|_| TransmissionEnd::Broken)?;
        if matches!(done, Err((errno::NOTSUP, _))) {
            ticket.post(Vec::new, Vec::new());
            return self.write_zeros(replies, request);
        }
        self.changing(replies, request, 1).ended(ticket, done);
        Ok(())
    }

    fn write_zeros(
        self: &Arc<Self>,
        replies: &ClientReplies,
        request: NbdRequest,
    ) -> Result<(), TransmissionEnd> {
        self.write(replies, request, |len| Ok(Buffer::try_new(len).ok()))
    }

    fn changing(
        self: &Arc<Self>,
        replies: &ClientReplies,
        request: NbdRequest,
        left: usize,
    ) -> Arc<Changing> {
        Arc::new(Changing {
            device: Arc::clone(self),
            cookie: request.cookie,
            structured: replies.structured,
            durable: request.flags & command_flag::FUA != 0,
            state: Mutex::new(ChangingState { left, result: Ok(()) }),
        })
    }
}
