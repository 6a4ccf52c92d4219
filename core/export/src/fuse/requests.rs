//! Requests of the kernel to a disk, from the storage's `submit` to the answer.

use std::io;
use std::sync::Arc;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use merganser_storage::{Collect, Completion, Completions, Operation, Storage};
use parking_lot::Mutex;

use crate::Error;
use crate::failures::{Failures, is_full};
use crate::spare::SpareBuffers;

/// What requests under way share.
pub(super) struct DiskShared {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) spare: SpareBuffers,
    pub(super) failures: Failures,
}

impl DiskShared {
    /// Gives the storage a request, whose end answers it.
    pub(super) fn submit(self: &Arc<Self>, operation: Operation, reply: KernelReply) {
        let (offset, len) = match &operation {
            Operation::Read { offset, buffer } | Operation::Write { offset, buffer } => {
                (*offset, buffer.len() as u64)
            }
            Operation::Discard { offset, len } => (*offset, *len),
            _ => (0, 0),
        };
        let shared = Arc::clone(self);
        let waiting = WaitingRequest { reply: Mutex::new(Some(reply)), shared, offset, len };
        self.storage.submit(0, operation, &Completions::collected(Arc::new(waiting)));
    }
}

/// How to answer the kernel.
pub(super) enum KernelReply {
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
struct WaitingRequest {
    reply: Mutex<Option<KernelReply>>,
    shared: Arc<DiskShared>,
    offset: u64,
    len: u64,
}

impl Collect for WaitingRequest {
    fn arrived(&self, completion: Completion) {
        let Some(reply) = self.reply.lock().take() else { return };
        let Completion { buffer, result, .. } = completion;
        match (reply, result) {
            (KernelReply::DurableWrite(reply), Ok(count)) => {
                self.shared.submit(Operation::Sync, KernelReply::WriteFlush { reply, count });
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
    reply: KernelReply,
    bytes: &[u8],
    result: io::Result<usize>,
) -> Option<(&'static str, io::Error)> {
    let error = match (reply, result) {
        (KernelReply::Read { reply, len }, Ok(count)) if count >= len && bytes.len() >= len => {
            reply.data(&bytes[..len]);
            return None;
        }
        (KernelReply::Read { reply, .. }, Ok(count)) => {
            // A program would take it for the end of the disk.
            reply.error(Errno::EIO);
            let why = format!("it ended after {count} bytes, before its size");
            ("reading", io::Error::new(io::ErrorKind::UnexpectedEof, why))
        }
        (KernelReply::Write(reply) | KernelReply::DurableWrite(reply), Ok(count))
        | (KernelReply::WriteFlush { reply, count }, Ok(_)) => {
            reply.written(u32::try_from(count).unwrap_or(u32::MAX));
            return None;
        }
        (KernelReply::Flush(reply) | KernelReply::Discard(reply), Ok(_)) => {
            reply.ok();
            return None;
        }
        (KernelReply::Read { reply, .. }, Err(error)) => {
            reply.error(Errno::EIO);
            ("reading", error)
        }
        (KernelReply::Write(reply) | KernelReply::DurableWrite(reply), Err(error)) => {
            reply.error(number_of(&error));
            ("writing", error)
        }
        (KernelReply::WriteFlush { reply, .. }, Err(error)) => {
            reply.error(number_of(&error));
            ("flushing", error)
        }
        // A storage that cannot free space gives this error; programs continue without.
        (KernelReply::Discard(reply), Err(error)) if error.kind() == io::ErrorKind::Unsupported => {
            reply.error(Errno::EOPNOTSUPP);
            return None;
        }
        (KernelReply::Discard(reply), Err(error)) => {
            reply.error(number_of(&error));
            ("trimming", error)
        }
        (KernelReply::Flush(reply), Err(error)) => {
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
