//! The workers that turn requests into reads of storages and reads into replies: what both doors
//! have in common.

mod schedule;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use merganser_storage::{Buffer, Completions, Operation, Storage};
use parking_lot::{Condvar, Mutex};

use crate::failures::Failures;
use crate::{Error, READ_BYTES_MAX};
use schedule::{LaneSchedule, ReadBatch, ScheduledRead};

/// The way of an answer to the reader that asked. A worker calls it, so it must not wait for that
/// reader.
pub(crate) trait ReadReply: Send {
    /// All the bytes of the request that there are.
    fn data(self, bytes: &[u8]);
    /// The read failed; `why` is the sentence of the error.
    fn failed(self, why: &str);
}

/// A storage and the size it had when it was exported; it keeps that size.
pub(crate) struct ExportedStorage {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) size: u64,
}

impl ExportedStorage {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        let size = storage.size();
        ExportedStorage { storage, size }
    }
}

/// Everything the workers share. Requests come in by [`Reads::read`].
pub(crate) struct Reads<R> {
    contents: Vec<ExportedStorage>,
    state: Mutex<ReadsState<R>>,
    work: Condvar,
    failures: Arc<Failures>,
}

struct ReadsState<R> {
    schedule: LaneSchedule<R>,
    closed: bool,
}

impl<R: ReadReply> Reads<R> {
    pub(crate) fn new(contents: Vec<ExportedStorage>, failures: Arc<Failures>) -> Self {
        Reads {
            contents,
            state: Mutex::new(ReadsState { schedule: LaneSchedule::new(), closed: false }),
            work: Condvar::new(),
            failures,
        }
    }

    /// Queues a read of at most `len` bytes at `offset` of file `file`. Beyond the end there is
    /// nothing to read, and that is answered at once.
    pub(crate) fn read(&self, file: usize, offset: u64, len: usize, reply: R) {
        let rest = self.contents[file].size.saturating_sub(offset);
        let len = len.min(usize::try_from(rest).unwrap_or(usize::MAX));
        if len == 0 {
            return reply.data(&[]);
        }
        let mut state = self.state.lock();
        state.schedule.push(ScheduledRead { file, offset, len, reply });
        drop(state);
        self.work.notify_one();
    }

    /// Lets the workers end, without answering the requests that still wait: their readers are gone.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.work.notify_all();
    }

    /// The work of one worker, until [`Reads::close`].
    pub(crate) fn work(&self) {
        // Made by the first read that needs it.
        let mut buffer = Buffer::empty();
        while let Some(batch) = self.next_batch() {
            let content = &self.contents[batch.file];
            let result = read_exactly(content, batch.offset, batch.len, &mut buffer);
            // Another worker continues the lane while this one hands out the bytes.
            let more = {
                let mut state = self.state.lock();
                state.schedule.finished(&batch);
                state.schedule.is_waiting()
            };
            if more {
                self.work.notify_one();
            }
            match result {
                Ok(()) => answer(batch, &buffer),
                Err(source) => self.fail(batch, source),
            }
        }
    }

    fn next_batch(&self) -> Option<ReadBatch<R>> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(batch) = state.schedule.take() {
                return Some(batch);
            }
            self.work.wait(&mut state);
        }
    }

    /// A batch of several requests may fail for one of them alone, and a reader must not lose
    /// bytes that are fine because its neighbour's are not: then each is read by itself.
    fn fail(&self, batch: ReadBatch<R>, source: io::Error) {
        let content = &self.contents[batch.file];
        let alone = batch.requests.len() == 1;
        let mut source = Some(source);
        let mut buffer = Buffer::empty();
        for request in batch.requests {
            let result = match source.take() {
                Some(source) if alone => Err(source),
                _ => read_exactly(content, request.offset, request.len, &mut buffer),
            };
            match result {
                Ok(()) => request.reply.data(&buffer[..request.len]),
                Err(source) => {
                    let name = content.storage.name().to_owned();
                    let (offset, len) = (request.offset, request.len);
                    let error = Error::Read { name, offset, len, source };
                    let why = error.to_string();
                    // Told first: who hears the answer may end everything.
                    self.failures.tell(error);
                    request.reply.failed(&why);
                }
            }
        }
    }
}

/// Gives every request its part of the batch's bytes.
fn answer<R: ReadReply>(batch: ReadBatch<R>, bytes: &[u8]) {
    for request in batch.requests {
        let from = usize::try_from(request.offset - batch.offset).expect("inside the batch");
        request.reply.data(&bytes[from..from + request.len]);
    }
}

/// Fills the first `len` bytes of `buffer`, which is inside the content. A count that is short
/// there is an error: the kernel would take it for the end of the file and cut it.
fn read_exactly(
    content: &ExportedStorage,
    offset: u64,
    len: usize,
    buffer: &mut Buffer,
) -> io::Result<()> {
    let mut target = std::mem::replace(buffer, Buffer::empty());
    if target.len() < len {
        drop(target);
        target = Buffer::try_new(len.max(READ_BYTES_MAX))?;
    }
    let rest = target.split_off(len);
    let storage = &*content.storage;
    // A storage that panics must not take the worker with it: its lane would wait for ever.
    let completion = catch_unwind(AssertUnwindSafe(|| {
        let completions = Completions::new();
        storage.submit(0, Operation::Read { offset, buffer: target }, &completions);
        completions.wait(&*storage.clock())
    }))
    .map_err(|_| io::Error::other("the storage panicked"))?;
    let count = completion.result?;
    let mut returned = completion.buffer.unwrap_or_else(Buffer::empty);
    returned.unsplit(rest).map_err(|_| io::Error::other("the storage kept the buffer"))?;
    *buffer = returned;
    if count < len {
        let problem = format!("it ended after {count} bytes, before its size of {}", content.size);
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_storage::{Clock, Completion, RealClock};
    use std::sync::mpsc;

    /// Bytes `offset % 251`, except that reads which touch `bad` fail as `how` says.
    struct Counted {
        size: u64,
        bad: Option<u64>,
        how: How,
    }

    #[derive(Clone, Copy)]
    enum How {
        Error,
        Short,
        Panic,
        KeepBuffer,
    }

    impl Storage for Counted {
        fn name(&self) -> &str {
            "counted"
        }

        fn size(&self) -> u64 {
            self.size
        }

        fn clock(&self) -> Arc<dyn Clock> {
            Arc::new(RealClock::new())
        }

        fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
            let Operation::Read { offset, mut buffer } = operation else { panic!("only reads") };
            let end = offset + buffer.len() as u64;
            for (i, byte) in buffer.iter_mut().enumerate() {
                *byte = ((offset + i as u64) % 251) as u8;
            }
            let all = Ok(buffer.len());
            let (buffer, result) = match self.bad {
                Some(bad) if (offset..end).contains(&bad) => match self.how {
                    How::Error => (Some(buffer), Err(io::Error::other("block 7 is damaged"))),
                    How::Short => (Some(buffer), Ok((bad - offset) as usize)),
                    How::Panic => panic!("a bug in the storage"),
                    How::KeepBuffer => (None, all),
                },
                _ => (Some(buffer), all),
            };
            completions.post(Completion { token, buffer, result });
        }
    }

    struct ToChannel(mpsc::Sender<Option<Vec<u8>>>);

    impl ReadReply for ToChannel {
        fn data(self, bytes: &[u8]) {
            self.0.send(Some(bytes.to_vec())).expect("the test waits");
        }

        fn failed(self, why: &str) {
            assert!(why.starts_with("counted: reading "), "{why}");
            self.0.send(None).expect("the test waits");
        }
    }

    /// The answers to `reads` of a storage, with all of them queued before the worker starts.
    fn answers(storage: Counted, asked: &[(u64, usize)]) -> (Vec<Option<Vec<u8>>>, Option<Error>) {
        let failures = Arc::new(Failures::default());
        let reads =
            Reads::new(vec![ExportedStorage::new(Arc::new(storage))], Arc::clone(&failures));
        let replies = asked.iter().map(|&(offset, len)| {
            let (sender, receiver) = mpsc::channel();
            reads.read(0, offset, len, ToChannel(sender));
            receiver
        });
        let replies: Vec<_> = replies.collect();
        let answers = std::thread::scope(|scope| {
            scope.spawn(|| reads.work());
            let answers = replies.iter().map(|r| r.recv().expect("answered")).collect();
            reads.close();
            answers
        });
        (answers, failures.take_first())
    }

    fn expected(offset: u64, end: u64) -> Option<Vec<u8>> {
        Some((offset..end).map(|i| (i % 251) as u8).collect())
    }

    #[test]
    fn every_request_gets_its_part_and_the_end_is_exact() {
        let whole = Counted { size: 10_000, bad: None, how: How::Error };
        let reads = [(4096, 4096), (0, 4096), (8192, 4096), (9_999, 9), (10_000, 9), (u64::MAX, 9)];
        let (answers, error) = answers(whole, &reads);
        assert_eq!(answers[0], expected(4096, 8192));
        assert_eq!(answers[1], expected(0, 4096));
        assert_eq!(answers[2], expected(8192, 10_000));
        assert_eq!(answers[3], expected(9_999, 10_000));
        assert_eq!(answers[4], expected(0, 0));
        assert_eq!(answers[5], expected(0, 0));
        assert!(error.is_none());
    }

    #[test]
    fn a_failure_concerns_only_the_requests_it_lies_in() {
        for how in [How::Error, How::Short, How::Panic, How::KeepBuffer] {
            let damaged = Counted { size: 12_000, bad: Some(5_000), how };
            let (answers, error) = answers(damaged, &[(0, 4096), (4096, 4096), (8192, 4096)]);
            assert_eq!(answers[0], expected(0, 4096));
            assert_eq!(answers[1], None);
            assert_eq!(answers[2], expected(8192, 12_000));
            let Some(Error::Read { name, offset, len, .. }) = error else { panic!("{error:?}") };
            assert_eq!((&*name, offset, len), ("counted", 4096, 4096));
        }
    }
}
