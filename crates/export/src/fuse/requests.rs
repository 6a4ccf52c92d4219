//! Requests of the kernel to a disk, from the storage's `submit` to the answer.

use std::io;
use std::sync::Arc;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use merganser_storage::{Collect, Completion, Completions, Operation, Storage};
use parking_lot::Mutex;

use crate::Error;
use crate::failures::{Failures, is_full};
use crate::spare::Spare;

/// What requests under way share.
pub(super) struct Shared {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) spare: Spare,
    pub(super) failures: Failures,
}

impl Shared {
    /// Gives the storage a request, whose end answers it.
    pub(super) fn submit(self: &Arc<Self>, operation: Operation, reply: Reply) {
        let (offset, len) = match &operation {
            Operation::Read { offset, buffer } | Operation::Write { offset, buffer } => {
                (*offset, buffer.len() as u64)
            }
            Operation::Discard { offset, len } => (*offset, *len),
            _ => (0, 0),
        };
        let shared = Arc::clone(self);
        let waiting = Waiting { reply: Mutex::new(Some(reply)), shared, offset, len };
        self.storage.submit(0, operation, &Completions::collected(Arc::new(waiting)));
    }
}

/// How to answer the kernel.
pub(super) enum Reply {
    /// With the bytes that the disk has there.
    Read {
        reply: ReplyData,
        len: usize,
    },
    Write(ReplyWrite),
    /// A write that is flushed before it is answered.
    DurableWrite(ReplyWrite),
    /// Its flush, after this number of bytes was written.
    WriteFlush {
        reply: ReplyWrite,
        count: usize,
    },
    Flush(ReplyEmpty),
    Discard(ReplyEmpty),
}

/// A request that the kernel waits for.
struct Waiting {
    reply: Mutex<Option<Reply>>,
    shared: Arc<Shared>,
    offset: u64,
    len: u64,
}

impl Collect for Waiting {
    fn arrived(&self, completion: Completion) {
        let Some(reply) = self.reply.lock().take() else { return };
        let Completion { buffer, result, .. } = completion;
        match (reply, result) {
            (Reply::DurableWrite(reply), Ok(count)) => {
                self.shared.submit(Operation::Sync, Reply::WriteFlush { reply, count });
            }
            (reply, result) => {
                if let Some((what, source)) =
                    answer(reply, buffer.as_deref().unwrap_or_default(), result)
                {
                    let name = self.shared.storage.name().to_owned();
                    let (offset, len) = (self.offset, self.len);
                    self.shared.failures.tell(Error::Request { name, what, offset, len, source });
                }
            }
        }
        if let Some(buffer) = buffer {
            self.shared.spare.give_back(buffer);
        }
    }
}

/// Answers the kernel; what was to be done and the error, if it failed.
fn answer(
    reply: Reply,
    bytes: &[u8],
    result: io::Result<usize>,
) -> Option<(&'static str, io::Error)> {
    let error = match (reply, result) {
        (Reply::Read { reply, len }, Ok(count)) if count >= len && bytes.len() >= len => {
            reply.data(&bytes[..len]);
            return None;
        }
        (Reply::Read { reply, .. }, Ok(count)) => {
            // A program would take it for the end of the disk.
            reply.error(Errno::EIO);
            let why = format!("it ended after {count} bytes, before its size");
            ("reading", io::Error::new(io::ErrorKind::UnexpectedEof, why))
        }
        (Reply::Write(reply) | Reply::DurableWrite(reply), Ok(count))
        | (Reply::WriteFlush { reply, count }, Ok(_)) => {
            reply.written(u32::try_from(count).unwrap_or(u32::MAX));
            return None;
        }
        (Reply::Flush(reply) | Reply::Discard(reply), Ok(_)) => {
            reply.ok();
            return None;
        }
        (Reply::Read { reply, .. }, Err(error)) => {
            reply.error(Errno::EIO);
            ("reading", error)
        }
        (Reply::Write(reply) | Reply::DurableWrite(reply), Err(error)) => {
            reply.error(number_of(&error));
            ("writing", error)
        }
        (Reply::WriteFlush { reply, .. }, Err(error)) => {
            reply.error(number_of(&error));
            ("flushing", error)
        }
        // A storage that cannot free space gives this error; programs continue without.
        (Reply::Discard(reply), Err(error)) if error.kind() == io::ErrorKind::Unsupported => {
            reply.error(Errno::EOPNOTSUPP);
            return None;
        }
        (Reply::Discard(reply), Err(error)) => {
            reply.error(number_of(&error));
            ("trimming", error)
        }
        (Reply::Flush(reply), Err(error)) => {
            reply.error(number_of(&error));
            ("flushing", error)
        }
    };
    Some(error)
}

/// The error number that a program gets for a failed change.
fn number_of(error: &io::Error) -> Errno {
    if is_full(error) { Errno::ENOSPC } else { Errno::EIO }
}
