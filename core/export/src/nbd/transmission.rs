//! The second phase of a connection: requests and replies.
//!
//! One thread reads requests and hands the reads to the workers that all connections share; one
//! thread writes replies as they come, in any order.
//!
//! | request | reply |
//! |---|---|
//! | READ, structured | a chunk for each [`READ_BYTES_MAX`], each when its bytes are there |
//! | READ, structured, don't fragment | one chunk; EOVERFLOW beyond [`READ_BYTES_MAX`] |
//! | READ, simple | one reply; beyond [`READ_BYTES_MAX`] part by part, with nothing else under way, and a failure after the first part ends the connection, as the protocol asks |
//! | BLOCK_STATUS | one extent: all of it is data |
//! | FLUSH | done; on a writable export, when all that was answered before is durable |
//! | WRITE, TRIM, WRITE_ZEROES | EPERM; on a writable export, when it is done, with FUA when it is durable |
//! | WRITE_ZEROES, holes allowed | a discard; zeros are written to a storage that has none |
//! | any of a device | goes to the storage at once, and is answered when that has done it (`device`) |
//! | WRITE beyond [`READ_BYTES_MAX`] | in pieces, by the thread that reads requests; one reply |
//! | DISC, or the end of the stream | what is under way is answered, then the end |

use std::io::{self, Read, Write};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, mpsc};
use std::thread;

use merganser_storage::Buffer;
use merganser_storage::thread::spawn_scoped;

use super::REQUEST_BYTES_MAX;
use super::device::NbdDevice;
use super::handshake::Agreed;
use super::outbox::{Outbox, ReplyTicket};
use super::replies::{ClientReplies, NO_MEMORY, TransmissionEnd, is_last};
use super::wire::{self, NbdRequest, command, command_flag, errno};
use super::writes::{ChangeResult, NbdChange, QueuedChange, Writes};
use crate::READ_BYTES_MAX;
use crate::failures::Failures;
use crate::reads::{ReadReply, Reads};

/// Serves a client that has chosen an export, until it leaves or breaks the protocol. Its replies
/// go through `outbox`. `hang_up` ends blocked reads of `input` and writes to `output`.
///
/// # Errors
/// When there is no thread for it.
pub(super) fn serve(
    input: &mut impl Read,
    output: &mut (impl Write + Send),
    agreed: Agreed,
    storages: Storages<'_>,
    outbox: &Arc<Outbox>,
    hang_up: impl Fn() + Sync,
) -> io::Result<()> {
    thread::scope(|scope| {
        let writer = || {
            outbox.write_to(output);
            hang_up();
        };
        let writer = spawn_scoped(scope, "nbd-writer", writer)?;
        let replies = ClientReplies { outbox: Arc::clone(outbox), structured: agreed.structured };
        let requests = ClientRequests { agreed, storages, replies };
        match requests.serve(input) {
            TransmissionEnd::Left => outbox.end(),
            TransmissionEnd::Broken => {
                outbox.break_off();
                hang_up();
            }
        }
        // Otherwise clients that ask and leave, again and again, would pile up work.
        outbox.wait_for_tickets();
        writer.join().map_err(|_| io::Error::other("the writer panicked"))
    })
}

/// What serves requests.
#[derive(Clone, Copy)]
pub(super) struct Storages<'a> {
    pub(super) reads: &'a Reads<ReadAnswer>,
    pub(super) writes: &'a Writes,
    /// By export; none for one that is no device.
    pub(super) devices: &'a [Option<Arc<NbdDevice>>],
    pub(super) failures: &'a Failures,
}

struct ClientRequests<'a> {
    agreed: Agreed,
    storages: Storages<'a>,
    replies: ClientReplies,
}

impl ClientRequests<'_> {
    fn serve(&self, input: &mut impl Read) -> TransmissionEnd {
        loop {
            let mut bytes = [0; NbdRequest::BYTES];
            if input.read_exact(&mut bytes).is_err() {
                return TransmissionEnd::Left;
            }
            let Some(request) = NbdRequest::decode(&bytes) else { return TransmissionEnd::Broken };
            if let Err(end) = self.answer(self.without_needless_fua(request), input) {
                return end;
            }
        }
    }

    /// Where FUA was offered, any request may have it, and it means nothing for one that changes nothing:
    /// the protocol knows of clients that set it then.
    fn without_needless_fua(&self, request: NbdRequest) -> NbdRequest {
        let changes = [command::WRITE, command::TRIM, command::WRITE_ZEROES];
        if !self.agreed.writable || changes.contains(&request.command) {
            return request;
        }
        NbdRequest { flags: request.flags & !command_flag::FUA, ..request }
    }

    fn answer(&self, request: NbdRequest, input: &mut impl Read) -> Result<(), TransmissionEnd> {
        let NbdRequest { flags, command, cookie, len, .. } = request;
        match command {
            command::READ => self.read(request),
            command::DISC => Err(TransmissionEnd::Left),
            command::FLUSH if flags == 0 && self.agreed.writable => {
                self.change(request, NbdChange::Flush)
            }
            command::FLUSH if flags == 0 => self.replies.done(cookie),
            command::BLOCK_STATUS => self.block_status(request),
            command::WRITE => {
                // More than this is no mistake.
                if len > REQUEST_BYTES_MAX {
                    return Err(TransmissionEnd::Broken);
                }
                if self.agreed.writable {
                    return self.write(request, input);
                }
                skip(input, len)?;
                self.replies.refuse(cookie, errno::PERM, "this export is read-only")
            }
            command::TRIM | command::WRITE_ZEROES if self.agreed.writable => self.zero(request),
            command::TRIM | command::WRITE_ZEROES => {
                self.replies.refuse(cookie, errno::PERM, "this export is read-only")
            }
            command::FLUSH => self.replies.refuse(cookie, errno::INVAL, "unknown flags"),
            _ => self.replies.refuse(cookie, errno::INVAL, "unknown command"),
        }
    }

    fn read(&self, request: NbdRequest) -> Result<(), TransmissionEnd> {
        let NbdRequest { flags, cookie, offset, len, .. } = request;
        let structured = self.agreed.structured;
        let allowed = if structured { command_flag::DF } else { 0 };
        if flags & !allowed != 0 {
            return self.replies.refuse(cookie, errno::INVAL, "unknown flags");
        }
        if !self.is_inside(offset, len) {
            return self.replies.refuse(
                cookie,
                errno::INVAL,
                "the read passes the end of the export",
            );
        }
        if len > REQUEST_BYTES_MAX {
            let error = if structured { errno::OVERFLOW } else { errno::INVAL };
            return self.replies.refuse(cookie, error, "the read is longer than 32 MiB");
        }
        let pieces = || (0..len as usize).step_by(READ_BYTES_MAX);
        let piece = |from: usize| (offset + from as u64, READ_BYTES_MAX.min(len as usize - from));
        if len == 0 {
            return self.replies.done(cookie);
        }
        if !structured {
            if let Some(device) = self.device() {
                return device.read_whole(&self.replies, cookie, pieces().map(piece));
            }
            if len as usize > READ_BYTES_MAX {
                return self.read_in_parts(cookie, pieces().map(piece));
            }
            let ticket = self.replies.admit(len as usize)?;
            self.submit(offset, len as usize, ticket, cookie, ReplyForm::Simple);
            return Ok(());
        }
        if flags & command_flag::DF != 0 && len as usize > READ_BYTES_MAX {
            let why = "reads of more than 1 MiB are fragmented";
            return self.replies.refuse(cookie, errno::OVERFLOW, why);
        }
        let left = Arc::new(AtomicUsize::new(pieces().len()));
        for (offset, len) in pieces().map(piece) {
            let ticket = self.replies.admit(len)?;
            if let Some(device) = self.device() {
                device.read_chunk(cookie, offset, len, ticket, &left);
                continue;
            }
            self.submit(offset, len, ticket, cookie, ReplyForm::Chunk { left: Arc::clone(&left) });
        }
        Ok(())
    }

    /// A long simple read: its parts in order, nothing between them.
    fn read_in_parts(
        &self,
        cookie: u64,
        parts: impl Iterator<Item = (u64, usize)>,
    ) -> Result<(), TransmissionEnd> {
        if !self.replies.outbox.drain() {
            return Err(TransmissionEnd::Broken);
        }
        for (i, (offset, len)) in parts.enumerate() {
            let ticket = self.replies.admit(len)?;
            let (posted, heard) = mpsc::channel();
            self.submit(offset, len, ticket, cookie, ReplyForm::Part { is_first: i == 0, posted });
            match heard.recv() {
                Ok(true) => {}
                Ok(false) if i == 0 => return Ok(()),
                _ => return Err(TransmissionEnd::Broken),
            }
        }
        Ok(())
    }

    /// Takes the bytes of a write and hands them on; long ones piece by piece in this thread, so that
    /// no client has more than a piece in memory.
    fn write(&self, request: NbdRequest, input: &mut impl Read) -> Result<(), TransmissionEnd> {
        let NbdRequest { flags, cookie, offset, len, .. } = request;
        let problem = if flags & !command_flag::FUA != 0 {
            Some((errno::INVAL, "unknown flags"))
        } else if !self.is_inside(offset, len) {
            Some((errno::NOSPC, "the write passes the end of the export"))
        } else {
            None
        };
        if let Some((error, why)) = problem {
            skip(input, len)?;
            return self.replies.refuse(cookie, error, why);
        }
        if let Some(device) = self.device() {
            let next = |len| take(input, len, device.buffer(len));
            return device.write(&self.replies, request, next);
        }
        let durable = flags & command_flag::FUA != 0;
        if len as usize <= READ_BYTES_MAX {
            // Taken before it is admitted: until all of it is here the client owes, not the server.
            let buffer = self.storages.writes.spare.take(len as usize);
            return match take(input, len as usize, buffer)? {
                Some(bytes) => self.change(request, NbdChange::Write(bytes)),
                None => self.replies.refuse(cookie, errno::NOMEM, NO_MEMORY),
            };
        }
        let (mut done, mut result) = (0, Ok(()));
        while done < len {
            let part = (len - done).min(READ_BYTES_MAX as u32);
            if result.is_err() {
                skip(input, part)?;
            } else if let Some(bytes) =
                take(input, part as usize, self.storages.writes.spare.take(part as usize))?
            {
                let (export, at) = (self.agreed.export, offset + u64::from(done));
                let last = durable && done + part == len;
                let failed = |error| self.storages.failures.tell(error);
                let change = NbdChange::Write(bytes);
                result = self.storages.writes.change(export, at, change, last, &failed);
            } else {
                result = Err((errno::NOMEM, NO_MEMORY.to_owned()));
            }
            done += part;
        }
        match result {
            Ok(()) => self.replies.done(cookie),
            Err((error, why)) => self.replies.refuse(cookie, error, &why),
        }
    }

    fn zero(&self, request: NbdRequest) -> Result<(), TransmissionEnd> {
        let NbdRequest { flags, command, cookie, offset, len } = request;
        let zeroes = command == command::WRITE_ZEROES;
        let allowed = command_flag::FUA | if zeroes { command_flag::NO_HOLE } else { 0 };
        if flags & !allowed != 0 {
            return self.replies.refuse(cookie, errno::INVAL, "unknown flags");
        }
        if !self.is_inside(offset, len) {
            let error = if zeroes { errno::NOSPC } else { errno::INVAL };
            return self.replies.refuse(cookie, error, "the range passes the end of the export");
        }
        let len = u64::from(len);
        let holes = flags & command_flag::NO_HOLE == 0;
        let change = if zeroes { NbdChange::Zeros { len, holes } } else { NbdChange::Discard(len) };
        self.change(request, change)
    }

    /// Queues a change; its reply comes when it is done.
    fn change(&self, request: NbdRequest, change: NbdChange) -> Result<(), TransmissionEnd> {
        if let Some(device) = self.device() {
            return device.change(&self.replies, request, &change);
        }
        let NbdRequest { flags, cookie, offset, .. } = request;
        let bytes = if let NbdChange::Write(bytes) = &change { bytes.len() } else { 0 };
        let ticket = self.replies.admit(bytes)?;
        let structured = self.agreed.structured;
        let answer = move |result: ChangeResult| {
            let head = || match (result, structured) {
                (Ok(()), true) => wire::done_chunk(cookie),
                (Ok(()), false) => wire::simple_reply(cookie, 0),
                (Err((error, why)), true) => wire::error_chunk(cookie, error, &why),
                (Err((error, _)), false) => wire::simple_reply(cookie, error),
            };
            ticket.post(head, Vec::new());
        };
        self.storages.writes.submit(QueuedChange {
            export: self.agreed.export,
            offset,
            change,
            durable: flags & command_flag::FUA != 0,
            answer: Box::new(answer),
        });
        Ok(())
    }

    fn submit(&self, offset: u64, len: usize, ticket: ReplyTicket, cookie: u64, how: ReplyForm) {
        let answer = ReadAnswer { ticket, cookie, offset, how };
        self.storages.reads.read(self.agreed.export, offset, len, answer);
    }

    fn block_status(&self, request: NbdRequest) -> Result<(), TransmissionEnd> {
        let NbdRequest { flags, cookie, offset, len, .. } = request;
        let problem = if !self.agreed.block_status {
            "no metadata context was selected for this export"
        } else if flags & !command_flag::REQ_ONE != 0 {
            "unknown flags"
        } else if len == 0 || !self.is_inside(offset, len) {
            "the range is empty or passes the end of the export"
        } else {
            self.replies.admit(0)?.post(|| wire::status_chunk(cookie, len), Vec::new());
            return Ok(());
        };
        self.replies.refuse(cookie, errno::INVAL, problem)
    }

    fn is_inside(&self, offset: u64, len: u32) -> bool {
        offset.checked_add(u64::from(len)).is_some_and(|end| end <= self.agreed.size)
    }

    /// The export, if it is a device.
    fn device(&self) -> Option<&Arc<NbdDevice>> {
        self.storages.devices[self.agreed.export].as_ref()
    }
}

/// Takes `len` bytes of a write into `buffer`; `None`, and the bytes are skipped, when there is no memory
/// for them.
fn take(
    input: &mut impl Read,
    len: usize,
    buffer: io::Result<Buffer>,
) -> Result<Option<Buffer>, TransmissionEnd> {
    let Ok(mut buffer) = buffer else {
        skip(input, len as u32)?;
        return Ok(None);
    };
    match input.read_exact(&mut buffer) {
        Ok(()) => Ok(Some(buffer)),
        Err(_) => Err(TransmissionEnd::Left),
    }
}

/// Reads what a write would have brought.
fn skip(input: &mut impl Read, len: u32) -> Result<(), TransmissionEnd> {
    match io::copy(&mut input.take(u64::from(len)), &mut io::sink()) {
        Ok(count) if count == u64::from(len) => Ok(()),
        _ => Err(TransmissionEnd::Left),
    }
}

/// How the bytes of a read, or of a piece of one, become a reply.
pub(super) struct ReadAnswer {
    ticket: ReplyTicket,
    cookie: u64,
    offset: u64,
    how: ReplyForm,
}

enum ReplyForm {
    /// A simple reply of all bytes.
    Simple,
    /// A part of a simple reply; `posted` gets whether it could be read.
    Part { is_first: bool, posted: mpsc::Sender<bool> },
    /// A chunk of a structured reply; `left` more are to come.
    Chunk { left: Arc<AtomicUsize> },
}

impl ReadReply for ReadAnswer {
    fn data(self, bytes: &[u8]) {
        let ReadAnswer { ticket, cookie, offset, how } = self;
        let content = bytes.to_vec();
        match how {
            ReplyForm::Simple => ticket.post(|| wire::simple_reply(cookie, 0), content),
            ReplyForm::Part { is_first, posted } => {
                let head = || if is_first { wire::simple_reply(cookie, 0) } else { Vec::new() };
                ticket.post(head, content);
                // Nobody listens when the connection broke meanwhile.
                let _ = posted.send(true);
            }
            ReplyForm::Chunk { left } => {
                let head = || wire::data_chunk(cookie, is_last(&left), offset, bytes.len());
                ticket.post(head, content);
            }
        }
    }

    fn failed(self, why: &str) {
        let ReadAnswer { ticket, cookie, offset, how } = self;
        match how {
            ReplyForm::Simple => ticket.post(|| wire::simple_reply(cookie, errno::IO), Vec::new()),
            ReplyForm::Part { is_first, posted } => {
                if is_first {
                    ticket.post(|| wire::simple_reply(cookie, errno::IO), Vec::new());
                } else {
                    // Too late for an error: the client was promised all bytes.
                    drop(ticket);
                }
                let _ = posted.send(false);
            }
            ReplyForm::Chunk { left } => {
                let head =
                    || wire::error_offset_chunk(cookie, is_last(&left), errno::IO, why, offset);
                ticket.post(head, Vec::new());
            }
        }
    }
}
