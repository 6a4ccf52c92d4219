//! Writes that continue while their caller does other things: pages are gathered in memory and written in
//! large pieces, and the next are gathered meanwhile.
//!
//! ```text
//!   take ──► a buffer, filled by the caller ── write ──► parts under way ──► spare again
//!                                                          │ wait_for_all waits for all of them
//!                                                          ▼
//!                                             a failure is the result of each later call
//! ```

use std::io;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Buffer, Completion, Completions, Operation, Storage};

/// A part of a buffer, in order: its bytes, and where they are written, if they are.
pub(crate) type BufferPart = (usize, Option<u64>);

/// The writes of one storage, from buffers of one size.
pub(crate) struct Flights {
    storage: Arc<dyn Storage>,
    bytes: usize,
    completions: Completions,
    /// Buffers under way, by number. As many as there may be at once.
    under_way: Vec<Option<SplitBuffer>>,
    spare: Vec<Buffer>,
    /// The first failure. The bytes of that write may be lost, so it stays.
    failed: Option<(io::ErrorKind, String)>,
}

/// A buffer whose parts are being written.
struct SplitBuffer {
    parts: Vec<Option<Buffer>>,
    left: usize,
}

impl Flights {
    /// No writes yet. `most` buffers of `bytes` bytes are under way at once.
    pub(crate) fn new(storage: Arc<dyn Storage>, bytes: usize, most: usize) -> Flights {
        let under_way = (0..most).map(|_| None).collect();
        let (completions, spare) = (Completions::new(), Vec::new());
        Flights { storage, bytes, completions, under_way, spare, failed: None }
    }

    /// A buffer with any content, to be filled. Waits while too many are under way.
    pub(crate) fn take(&mut self) -> io::Result<Buffer> {
        self.collect();
        while self.spare.is_empty() && self.under_way.iter().all(Option::is_some) {
            self.wait();
        }
        match self.spare.pop() {
            Some(buffer) => Ok(buffer),
            None => Buffer::try_new(self.bytes),
        }
    }

    /// Begins to write the parts of a buffer, which [`Flights::take`] gave. They are all of its bytes.
    ///
    /// # Errors
    /// A write that is known to have failed, this one or an earlier one.
    pub(crate) fn write(&mut self, mut buffer: Buffer, parts: &[BufferPart]) -> io::Result<()> {
        assert_eq!(parts.iter().map(|part| part.0).sum::<usize>(), self.bytes, "all of it");
        self.succeeded()?;
        let number = loop {
            match self.under_way.iter().position(Option::is_none) {
                Some(number) => break number,
                None => self.wait(),
            }
        };
        let (mut kept, mut writes) = (Vec::with_capacity(parts.len()), Vec::new());
        for (at, &(len, offset)) in parts.iter().enumerate() {
            let rest = buffer.split_off(len);
            let part = std::mem::replace(&mut buffer, rest);
            match offset {
                Some(offset) => {
                    writes.push((token(number, at), Operation::Write { offset, buffer: part }));
                    kept.push(None);
                }
                None => kept.push(Some(part)),
            }
        }
        // Before the first is submitted, because it may end at once.
        self.under_way[number] = Some(SplitBuffer { parts: kept, left: writes.len() });
        if writes.is_empty() {
            self.join(number);
        }
        for (token, write) in writes {
            self.storage.submit(token, write, &self.completions);
        }
        self.collect();
        self.succeeded()
    }

    /// Waits until all writes have ended.
    ///
    /// # Errors
    /// The first failure of any write since the beginning.
    pub(crate) fn wait_for_all(&mut self) -> io::Result<()> {
        self.land();
        self.succeeded()
    }

    /// Waits until all writes have ended, well or not. Reads then see the bytes that were written, or those that a
    /// failed write left; [`Flights::wait_for_all`] reports the failure.
    pub(crate) fn land(&mut self) {
        while self.under_way.iter().any(Option::is_some) {
            self.wait();
        }
    }

    fn succeeded(&self) -> io::Result<()> {
        match &self.failed {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }

    /// Takes what has ended.
    fn collect(&mut self) {
        while let Some(done) = self.completions.poll() {
            self.ended(done);
        }
    }

    fn wait(&mut self) {
        let done = self.completions.wait(&*self.storage.clock());
        self.ended(done);
    }

    fn ended(&mut self, Completion { token, buffer, result }: Completion) {
        let (number, at) = (usize_of(token >> 32), usize_of(token & u64::from(u32::MAX)));
        let cut = self.under_way[number].as_mut().expect("its parts are under way");
        let short = match (&buffer, result) {
            (_, Err(error)) => Some((error.kind(), error.to_string())),
            (Some(buffer), Ok(count)) if count < buffer.len() => {
                let why = format!("{}: a write ended early", self.storage.name());
                Some((io::ErrorKind::WriteZero, why))
            }
            _ => None,
        };
        cut.parts[at] = buffer;
        cut.left -= 1;
        let is_last = cut.left == 0;
        self.failed = self.failed.take().or(short);
        if is_last {
            self.join(number);
        }
    }

    /// All parts of a buffer are back.
    fn join(&mut self, number: usize) {
        let parts = self.under_way[number].take().expect("callers look").parts;
        let mut parts = parts.into_iter();
        let Some(Some(mut whole)) = parts.next() else { return };
        for part in parts {
            // A storage that gave back another buffer costs a new one.
            let Some(part) = part else { return };
            if whole.unsplit(part).is_err() {
                return;
            }
        }
        self.spare.push(whole);
    }
}

impl Drop for Flights {
    /// A write that ends later could hit what the next opening has written.
    fn drop(&mut self) {
        self.land();
    }
}

fn token(number: usize, at: usize) -> u64 {
    u64_of(number) << 32 | u64_of(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_storage::StorageExt;
    use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
    use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

    #[test]
    fn parts_are_written_and_the_buffer_is_used_again() {
        let disk = MemoryStorage::new("disk");
        disk.run(Operation::SetSize { size: 100 }).expect("sized");
        let mut flights = Flights::new(Arc::clone(&disk) as Arc<dyn Storage>, 10, 1);
        for round in 1..4 {
            let mut buffer = flights.take().expect("memory");
            buffer.fill(round);
            let address = buffer.as_ptr();
            let at = u64::from(round) * 20;
            flights.write(buffer, &[(3, Some(at)), (2, None), (5, Some(at + 10))]).expect("begun");
            flights.wait_for_all().expect("written");
            let expected = [vec![round; 3], vec![0; 7], vec![round; 5], vec![0; 5]].concat();
            assert_eq!(disk.read_vec(at, 20).expect("read"), expected);
            assert_eq!(flights.spare[0].as_ptr(), address);
        }
        let buffer = flights.take().expect("memory");
        flights.write(buffer, &[(10, None)]).expect("nothing to write");
        assert_eq!((flights.spare.len(), flights.spare[0].len()), (1, 10));
    }

    #[test]
    fn a_failure_is_the_result_of_each_later_call() {
        let plan = FaultPlan { seed: 1, faults: vec![Fault::FailWrite { nth: 2 }] };
        let disk = Faulty::new(MemoryDirectory::new(), plan);
        let disk = merganser_storage::Directory::create(&*disk, "bad").expect("made");
        disk.run(Operation::SetSize { size: 100 }).expect("sized");
        let mut flights = Flights::new(disk, 10, 2);
        let mut write = |at| {
            let buffer = flights.take().expect("memory");
            (flights.write(buffer, &[(10, Some(at))]), flights.wait_for_all())
        };
        let (begun, waited) = write(0);
        assert!(begun.is_ok() && waited.is_ok());
        assert!(write(10).1.expect_err("fails").to_string().contains("memory/bad"));
        let (begun, waited) = write(20);
        assert!(begun.is_err() && waited.is_err(), "the second was lost");
    }
}
