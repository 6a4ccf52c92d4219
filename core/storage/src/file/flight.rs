//! One operation on its way: which system call comes next, and what its result means.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::error::FileError;
use super::open_file::OpenFile;
use crate::numbers::u64_of;
use crate::{ALIGNMENT, Buffer, Completion, Completions, Operation};

/// Longest single transfer; the kernel cuts anything above 2 GiB - 4 KiB anyway.
const PIECE_BYTES_MAX: usize = 1 << 30;

/// A system call to make. Its memory belongs to the [`Flight`] that asked for it and stays in place
/// until the flight gets the result.
#[derive(Debug, Clone, Copy)]
pub(super) enum SystemCall {
    Read { fd: RawFd, to: *mut u8, len: usize, offset: u64 },
    Write { fd: RawFd, from: *const u8, len: usize, offset: u64 },
    Sync { fd: RawFd },
    Allocate { fd: RawFd, mode: i32, offset: u64, len: u64 },
}

/// An operation in flight. Ends by posting its completion, from [`Flight::took`].
pub(super) struct Flight {
    token: u64,
    file: Arc<OpenFile>,
    completions: Completions,
    task: FlightTask,
    /// The piece under way goes past the page cache.
    pub(super) direct: bool,
    /// The last try would have blocked: the next one had better be allowed to.
    pub(super) retried: bool,
}

enum FlightTask {
    Read { offset: u64, buffer: Buffer, done: usize },
    Write { offset: u64, buffer: Buffer, done: usize },
    Sync,
    Discard { offset: u64, len: u64 },
    Allocate { offset: u64, len: u64 },
}

impl Flight {
    /// Prepares `operation`; posts it at once and returns nothing where no system call is needed or
    /// none may be made.
    pub(super) fn new(
        file: &Arc<OpenFile>,
        token: u64,
        operation: Operation,
        completions: &Completions,
    ) -> Option<Flight> {
        let changes = !matches!(operation, Operation::Read { .. } | Operation::Sync);
        let (task, range) = match operation {
            Operation::Read { offset, buffer } => {
                let len = u64_of(buffer.len());
                (FlightTask::Read { offset, buffer, done: 0 }, Some((offset, len)))
            }
            Operation::Write { offset, buffer } => {
                let len = u64_of(buffer.len());
                (FlightTask::Write { offset, buffer, done: 0 }, Some((offset, len)))
            }
            Operation::Sync => (FlightTask::Sync, None),
            Operation::Discard { offset, len } => {
                (FlightTask::Discard { offset, len }, Some((offset, len)))
            }
            Operation::Allocate { offset, len } => {
                (FlightTask::Allocate { offset, len }, Some((offset, len)))
            }
            Operation::SetSize { size } => {
                // Metadata alone: quick, and only recent rings know it, so the caller's own thread.
                let result = file.set_size(size);
                completions.post(Completion { token, buffer: None, result: result.map(|()| 0) });
                return None;
            }
        };
        let flight = Flight {
            token,
            file: Arc::clone(file),
            completions: completions.clone(),
            task,
            direct: false,
            retried: false,
        };
        if changes && !file.writable {
            flight.fail(io::Error::new(io::ErrorKind::PermissionDenied, "opened for reading only"));
            return None;
        }
        if let FlightTask::Sync = flight.task
            && let Err(lost) = flight.file.lost.check()
        {
            flight.fail(lost);
            return None;
        }
        if let Some((offset, len)) = range {
            if offset.checked_add(len).is_none_or(|end| end > i64::MAX.cast_unsigned()) {
                flight.fail(io::Error::new(io::ErrorKind::InvalidInput, "beyond any file's end"));
                return None;
            }
            if len == 0 {
                flight.finish(Ok(0));
                return None;
            }
        }
        Some(flight)
    }

    /// The next system call. Its pointers stay valid until [`Flight::took`].
    pub(super) fn call(&mut self) -> SystemCall {
        match &mut self.task {
            FlightTask::Read { offset, buffer, done } => {
                let (fd, direct, at, len) = piece(&self.file, *offset, buffer, *done);
                self.direct = direct;
                SystemCall::Read { fd, to: at, len, offset: *offset + u64_of(*done) }
            }
            FlightTask::Write { offset, buffer, done } => {
                let (fd, direct, at, len) = piece(&self.file, *offset, buffer, *done);
                self.direct = direct;
                SystemCall::Write { fd, from: at, len, offset: *offset + u64_of(*done) }
            }
            FlightTask::Sync => SystemCall::Sync { fd: self.file.buffered_fd() },
            FlightTask::Discard { offset, len } => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                SystemCall::Allocate {
                    fd: self.file.buffered_fd(),
                    mode,
                    offset: *offset,
                    len: *len,
                }
            }
            FlightTask::Allocate { offset, len } => SystemCall::Allocate {
                fd: self.file.buffered_fd(),
                mode: 0,
                offset: *offset,
                len: *len,
            },
        }
    }

    /// Takes the result of the call: a count, or a negative error number. Returns itself when
    /// another call is due, else posts.
    pub(super) fn took(mut self, result: i32) -> Option<Flight> {
        if result < 0 {
            return self.took_error(-result);
        }
        self.retried = false;
        let moved = usize::try_from(result).expect("not negative");
        match &mut self.task {
            FlightTask::Read { buffer, done, .. } => {
                *done += moved;
                if moved > 0 && *done < buffer.len() {
                    return Some(self);
                }
                let done = *done;
                self.finish(Ok(done));
            }
            FlightTask::Write { buffer, done, .. } => {
                *done += moved;
                let done = *done;
                if done == buffer.len() {
                    self.finish(Ok(done));
                } else if moved > 0 {
                    return Some(self);
                } else {
                    self.fail(io::ErrorKind::WriteZero.into());
                }
            }
            // If there are two syncs at a time, only one gets the error.
            FlightTask::Sync => match self.file.lost.check() {
                Ok(()) => self.finish(Ok(0)),
                Err(lost) => self.fail(lost),
            },
            FlightTask::Discard { .. } | FlightTask::Allocate { .. } => self.finish(Ok(0)),
        }
        None
    }

    fn took_error(mut self, errno: i32) -> Option<Flight> {
        match (errno, &self.task) {
            (libc::EINTR | libc::EAGAIN, _) => {
                self.retried = true;
                Some(self)
            }
            (libc::EINVAL, _) if self.direct => {
                self.file.refuse_direct(&io::Error::from_raw_os_error(errno));
                Some(self)
            }
            (libc::EOPNOTSUPP, &FlightTask::Allocate { offset, len }) => {
                let result = self.file.grow(offset + len);
                self.finish(result.map(|()| 0));
                None
            }
            _ => {
                if let FlightTask::Sync = self.task {
                    self.file.lost.note();
                }
                self.fail(io::Error::from_raw_os_error(errno));
                None
            }
        }
    }

    fn fail(self, cause: io::Error) {
        let what = match &self.task {
            FlightTask::Read { offset, buffer, done } => {
                format!("read of {} bytes at {}", buffer.len() - done, offset + u64_of(*done))
            }
            FlightTask::Write { offset, buffer, done } => {
                format!("write of {} bytes at {}", buffer.len() - done, offset + u64_of(*done))
            }
            FlightTask::Sync => "sync".to_owned(),
            FlightTask::Discard { offset, len } => format!("discard of {len} bytes at {offset}"),
            FlightTask::Allocate { offset, len } => {
                format!("allocation of {len} bytes at {offset}")
            }
        };
        let error = FileError::wrap(&self.file.name, what, cause);
        self.finish(Err(error));
    }

    fn finish(self, result: io::Result<usize>) {
        let buffer = match self.task {
            FlightTask::Read { buffer, .. } | FlightTask::Write { buffer, .. } => Some(buffer),
            _ => None,
        };
        // First, so that whoever has seen the completion and holds no handle sees the file closed.
        drop(self.file);
        self.completions.post(Completion { token: self.token, buffer, result });
    }
}

/// Descriptor, directness, memory and length of the next piece of a transfer.
fn piece(
    file: &OpenFile,
    offset: u64,
    buffer: &mut Buffer,
    done: usize,
) -> (RawFd, bool, *mut u8, usize) {
    let (base, len) = buffer.raw();
    let at = base.wrapping_add(done);
    let left = (len - done).min(PIECE_BYTES_MAX);
    let aligned = (offset + u64_of(done)).is_multiple_of(u64_of(ALIGNMENT))
        && at.addr().is_multiple_of(ALIGNMENT)
        && left >= ALIGNMENT;
    match file.direct_fd() {
        Some(fd) if aligned => (fd, true, at, left / ALIGNMENT * ALIGNMENT),
        _ => (file.buffered_fd(), false, at, left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageExt;
    use crate::file::{FileOptions, FileStorage};

    /// A flight on a fresh file of 3 pages, and where its completion arrives.
    fn flight(operation: Operation) -> (Flight, Completions, Arc<FileStorage>) {
        let file = tempfile::tempfile().expect("file");
        let options = FileOptions::default();
        let storage = FileStorage::from_file(file, "a file".to_owned(), true, options);
        let storage = storage.expect("storage");
        storage.write_at(0, &[1; 3 * ALIGNMENT]).expect("write");
        let completions = Completions::new();
        let flight = Flight::new(&storage.file, 7, operation, &completions).expect("has calls");
        (flight, completions, storage)
    }

    fn next_read(flight: &mut Flight) -> (RawFd, u64, usize) {
        match flight.call() {
            SystemCall::Read { fd, len, offset, .. } => (fd, offset, len),
            other => panic!("not a read: {other:?}"),
        }
    }

    #[test]
    fn a_refused_direct_transfer_goes_on_buffered_and_the_reason_is_kept() {
        let read = Operation::Read { offset: 4096, buffer: Buffer::new(4096) };
        let (mut flight, completions, storage) = flight(read);
        let direct = storage.file.direct_fd();
        assert_eq!(next_read(&mut flight).0, direct.unwrap_or(storage.file.buffered_fd()));
        if direct.is_some() {
            flight = flight.took(-libc::EINVAL).expect("another try");
            assert_eq!(next_read(&mut flight), (storage.file.buffered_fd(), 4096, 4096));
            let mode = storage.mode();
            assert!(!mode.direct && mode.reason.is_some_and(|r| r.contains("Invalid argument")));
        }
        assert!(flight.took(-libc::EINVAL).is_none(), "no third try");
        let error = completions.poll().expect("posted").result.expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn short_and_interrupted_transfers_go_on_where_they_stopped() {
        let read = Operation::Read { offset: 0, buffer: Buffer::new(3 * ALIGNMENT) };
        let (mut flight, completions, storage) = flight(read);
        assert_eq!(next_read(&mut flight).1, 0);
        let mut flight = flight.took(4096).expect("more to read");
        assert_eq!((next_read(&mut flight).1, next_read(&mut flight).2), (4096, 8192));
        let mut flight = flight.took(-libc::EINTR).expect("again");
        assert_eq!(next_read(&mut flight).1, 4096);
        let mut flight = flight.took(10).expect("more to read");
        let odd = (storage.file.buffered_fd(), 4106, 8182);
        assert_eq!(next_read(&mut flight), odd, "unaligned now");
        assert!(completions.poll().is_none(), "not before its end");
        assert!(flight.took(0).is_none(), "the end of the file");
        assert_eq!(completions.poll().expect("posted").result.expect("no error"), 4106);
    }

    #[test]
    fn a_write_that_moves_nothing_is_an_error_and_a_full_disk_keeps_its_kind() {
        let write = || Operation::Write { offset: 4096, buffer: Buffer::new(4096) };
        for (result, kind) in
            [(0, io::ErrorKind::WriteZero), (-libc::ENOSPC, io::ErrorKind::StorageFull)]
        {
            let (mut flight, completions, _storage) = flight(write());
            flight.call();
            assert!(flight.took(result).is_none());
            let done = completions.poll().expect("posted");
            assert_eq!((done.token, done.buffer.map(|b| b.len())), (7, Some(4096)));
            let error = done.result.expect_err("failed");
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().starts_with("a file: write of 4096 bytes at 4096: "));
        }
    }

    /// The system tells a failure once; a caller that asks again must not take what is lost for durable.
    #[test]
    fn after_a_failed_sync_none_succeeds() {
        let (mut first, completions, storage) = flight(Operation::Sync);
        let mut second =
            Flight::new(&storage.file, 8, Operation::Sync, &completions).expect("has a call");
        first.call();
        second.call();
        assert!(first.took(-libc::EIO).is_none());
        let error = completions.poll().expect("posted").result.expect_err("failed");
        assert!(error.to_string().starts_with("a file: sync: Input/output error"), "{error}");
        assert!(second.took(0).is_none());
        let lost =
            "a file: sync: an earlier sync failed, and what was written before it may be lost";
        let error = completions.poll().expect("posted").result.expect_err("lost");
        assert_eq!(error.to_string(), lost);
        storage.write_at(0, b"more").expect("written");
        assert_eq!(storage.sync().expect_err("lost").to_string(), lost);
    }

    #[test]
    fn where_space_cannot_be_reserved_the_size_is_set() {
        let (mut flight, completions, storage) =
            flight(Operation::Allocate { offset: 5, len: 99_995 });
        flight.call();
        assert!(flight.took(-libc::EOPNOTSUPP).is_none());
        completions.poll().expect("posted").result.expect("good enough");
        assert_eq!(crate::Storage::size(&*storage), 100_000);
    }
}
