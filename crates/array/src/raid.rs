//! RAID 0: several storages as one, in chunks in turn.
//!
//! ```text
//!   array    │ chunk 0 │ chunk 1 │ chunk 2 │ chunk 3 │ …
//!               │          │         │         │
//!   member 0 ───┘──────────│─────────┘         │        base + chunk 0, chunk 2, …
//!   member 1 ──────────────┘───────────────────┘        base + chunk 1, chunk 3, …
//! ```
//!
//! A request inside one chunk goes straight to its member. A longer one becomes a request for each
//! chunk, all in flight at once, and [`Raid0::submit`] waits for them. One that fails is the error of
//! the whole, and names the member.

use std::io;
use std::sync::Arc;

use merganser_storage::{Buffer, Clock, Completion, Completions, Geometry, Operation, Storage};

/// Where the bytes of an array are on its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Striping {
    /// Number of members.
    pub members: usize,
    /// Consecutive bytes on one member.
    pub chunk_bytes: u64,
    /// Bytes at the start of each member that aren't used.
    pub base_bytes: u64,
}

/// The part of a request that is on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub member: usize,
    /// First byte on the member.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

impl Striping {
    /// Bytes of an array whose shortest member has `member_bytes`.
    #[must_use]
    pub fn size(&self, member_bytes: u64) -> u64 {
        let usable = member_bytes.saturating_sub(self.base_bytes);
        usable / self.chunk_bytes * self.chunk_bytes * self.members as u64
    }

    /// The parts of `len` bytes at `offset` of the array, in order.
    pub fn parts(self, offset: u64, len: u64) -> impl Iterator<Item = Part> {
        let (mut at, end) = (offset, offset + len);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (chunk, inside) = (at / self.chunk_bytes, at % self.chunk_bytes);
            let count = self.members as u64;
            let len = (self.chunk_bytes - inside).min(end - at);
            at += len;
            let offset = self.base_bytes + chunk / count * self.chunk_bytes + inside;
            Some(Part { member: (chunk % count) as usize, offset, len })
        })
    }
}

/// Several storages as one. Its size is fixed.
pub struct Raid0 {
    name: String,
    members: Vec<Arc<dyn Storage>>,
    striping: Striping,
    size: u64,
}

impl Raid0 {
    /// `members` as one storage called `name` in chunks of `chunk_bytes`, where the first `base_bytes`
    /// of each member aren't used. The shortest member decides the size.
    ///
    /// # Panics
    /// Without members, or with chunks of no bytes.
    #[must_use]
    pub fn new(
        name: &str,
        members: Vec<Arc<dyn Storage>>,
        chunk_bytes: u64,
        base_bytes: u64,
    ) -> Raid0 {
        assert!(!members.is_empty() && chunk_bytes > 0, "an array has members and chunks");
        let least = members.iter().map(|member| member.size()).min().expect("not empty");
        let striping = Striping { members: members.len(), chunk_bytes, base_bytes };
        let size = striping.size(least);
        Raid0 { name: name.to_owned(), members, striping, size }
    }

    /// Runs an operation on each of several members and waits for all. The results are in order.
    fn run_all(
        &self,
        operations: Vec<(usize, Operation)>,
    ) -> Vec<(Option<Buffer>, io::Result<usize>)> {
        let completions = Completions::new();
        let count = operations.len();
        let mut members = Vec::with_capacity(count);
        for (token, (member, operation)) in operations.into_iter().enumerate() {
            members.push(member);
            self.members[member].submit(token as u64, operation, &completions);
        }
        let mut done: Vec<Option<_>> = (0..count).map(|_| None).collect();
        for _ in 0..count {
            let clock = self.members[0].clock();
            let Completion { token, buffer, result } = completions.wait(&*clock);
            let at = usize::try_from(token).expect("ours");
            done[at] = Some((buffer, result.map_err(|error| self.of_member(members[at], &error))));
        }
        done.into_iter().map(|done| done.expect("each completes once")).collect()
    }

    fn of_member(&self, member: usize, error: &io::Error) -> io::Error {
        let (name, of) = (self.members[member].name(), self.members.len());
        let text = error.to_string();
        let named = if text.contains(name) { text } else { format!("{name}: {text}") };
        let place = format!("{}: member {member} of {of} failed: {named}", self.name);
        io::Error::new(error.kind(), place)
    }

    /// Moves `buffer` part by part; the count ends at the first part that is short.
    fn transfer(
        &self,
        offset: u64,
        mut buffer: Buffer,
        make: impl Fn(u64, Buffer) -> Operation,
    ) -> (Buffer, io::Result<usize>) {
        let parts: Vec<Part> = self.striping.parts(offset, buffer.len() as u64).collect();
        let mut pieces = Vec::with_capacity(parts.len());
        for part in &parts[..parts.len().saturating_sub(1)] {
            let rest = buffer.split_off(part.len as usize);
            pieces.push(std::mem::replace(&mut buffer, rest));
        }
        pieces.push(buffer);
        let operations = parts.iter().zip(pieces);
        let operations =
            operations.map(|(part, piece)| (part.member, make(part.offset, piece))).collect();
        let mut whole: Option<Buffer> = None;
        let (mut count, mut ended, mut failed) = (0, false, None);
        for (part, (piece, result)) in parts.iter().zip(self.run_all(operations)) {
            let piece = piece.expect("transfers return their buffer");
            match &mut whole {
                Some(whole) => whole.unsplit(piece).expect("cut above"),
                None => whole = Some(piece),
            }
            match result {
                Ok(moved) if !ended => {
                    count += moved;
                    ended = (moved as u64) < part.len;
                }
                Ok(_) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let whole = whole.unwrap_or_else(Buffer::empty);
        (whole, failed.map_or(Ok(count), Err))
    }

    fn request(&self, what: &str) -> io::Error {
        let why = format!("{}: {what} beyond the end of an array", self.name);
        io::Error::new(io::ErrorKind::InvalidInput, why)
    }

    /// Every operation that moves no bytes.
    fn alter(&self, operation: &Operation) -> io::Result<usize> {
        let inside =
            |offset: u64, len: u64| offset.checked_add(len).is_some_and(|end| end <= self.size);
        let operations = match *operation {
            Operation::Sync => (0..self.members.len()).map(|i| (i, Operation::Sync)).collect(),
            Operation::Discard { offset, len } if inside(offset, len) => self
                .striping
                .parts(offset, len)
                .map(|Part { member, offset, len }| (member, Operation::Discard { offset, len }))
                .collect(),
            Operation::Allocate { offset, len } if inside(offset, len) => self
                .striping
                .parts(offset, len)
                .map(|Part { member, offset, len }| (member, Operation::Allocate { offset, len }))
                .collect(),
            Operation::SetSize { size } if size == self.size => Vec::new(),
            _ => return Err(self.request("a change")),
        };
        self.run_all(operations).into_iter().try_for_each(|(_, result)| result.map(|_| ()))?;
        Ok(0)
    }
}

impl Storage for Raid0 {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn geometry(&self) -> Geometry {
        let one = self.members[0].geometry();
        let count = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        Geometry { queue_depth: one.queue_depth.saturating_mul(count), ..one }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.members[0].clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let (buffer, result) = match operation {
            Operation::Read { offset, mut buffer } => {
                let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
                let beyond = buffer.split_off(buffer.len().min(left));
                if beyond.is_empty() && is_one(self.striping.chunk_bytes, offset, buffer.len()) {
                    let part =
                        self.striping.parts(offset, buffer.len() as u64).next().expect("one");
                    let read = Operation::Read { offset: part.offset, buffer };
                    return self.members[part.member].submit(token, read, completions);
                }
                let (mut buffer, result) = match buffer.len() {
                    0 => (buffer, Ok(0)),
                    _ => self.transfer(offset, buffer, |offset, buffer| Operation::Read {
                        offset,
                        buffer,
                    }),
                };
                buffer.unsplit(beyond).expect("cut above");
                (Some(buffer), result)
            }
            Operation::Write { offset, buffer } => {
                let end = offset.checked_add(buffer.len() as u64);
                if end.is_none_or(|end| end > self.size) {
                    (Some(buffer), Err(self.request("a write")))
                } else if buffer.is_empty() {
                    (Some(buffer), Ok(0))
                } else if is_one(self.striping.chunk_bytes, offset, buffer.len()) {
                    let part =
                        self.striping.parts(offset, buffer.len() as u64).next().expect("one");
                    let write = Operation::Write { offset: part.offset, buffer };
                    return self.members[part.member].submit(token, write, completions);
                } else {
                    let make = |offset, buffer| Operation::Write { offset, buffer };
                    let (buffer, result) = self.transfer(offset, buffer, make);
                    (Some(buffer), result)
                }
            }
            other => (None, self.alter(&other)),
        };
        completions.post(Completion { token, buffer, result });
    }
}

/// Whether `len` bytes at `offset` are some and inside one chunk.
fn is_one(chunk_bytes: u64, offset: u64, len: usize) -> bool {
    len > 0 && offset / chunk_bytes == (offset + len as u64 - 1) / chunk_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_storage::StorageExt;
    use merganser_storage::memory::MemoryStorage;

    fn members(count: usize, bytes: u64) -> Vec<Arc<dyn Storage>> {
        let make = |i| {
            let member = MemoryStorage::new(&format!("disk{i}"));
            member.run(Operation::SetSize { size: bytes }).expect("sized");
            member as Arc<dyn Storage>
        };
        (0..count).map(make).collect()
    }

    #[test]
    fn chunks_go_to_the_members_in_turn() {
        let members = members(3, 1000 + 10 * 64 + 5);
        let array = Raid0::new("array", members.clone(), 64, 1000);
        assert_eq!(array.size(), 3 * 640);
        let bytes: Vec<u8> = (0..1920u32).map(|i| (i / 64) as u8).collect();
        array.write_at(0, &bytes).expect("written");
        assert_eq!(members[0].read_vec(1000, 128).expect("read"), [[0; 64], [3; 64]].concat());
        assert_eq!(members[2].read_vec(1064, 64).expect("read"), [5; 64]);
        assert_eq!(members[1].read_vec(0, 1000).expect("read"), [0; 1000]);
        for (offset, len) in [(0, 1920), (63, 2), (64, 64), (100, 777), (1919, 1), (5, 0)] {
            let read = array.read_vec(offset, len).expect("read");
            assert_eq!(read, bytes[offset as usize..offset as usize + len], "{len} at {offset}");
        }
        assert_eq!(array.read_at(1900, &mut [0; 64]).expect("read"), 20, "short at the end");
        assert_eq!(array.read_at(5000, &mut [0; 64]).expect("read"), 0);
        assert!(array.write_at(1900, &[0; 21]).is_err(), "an array does not grow");
        array.run(Operation::Discard { offset: 64, len: 128 }).expect("given back");
        assert_eq!(array.read_vec(64, 129).expect("read"), [&[0; 128][..], &[3]].concat());
    }

    #[test]
    fn a_member_that_fails_is_named() {
        let mut all = members(2, 4096);
        let directory = merganser_testkit::faulty::Plan {
            seed: 1,
            faults: vec![merganser_testkit::faulty::Fault::FailSync { nth: 1 }],
        };
        let inner = merganser_storage::memory::MemoryDirectory::new();
        let faulty = merganser_testkit::faulty::Faulty::new(inner, directory);
        let bad = merganser_storage::Directory::create(&*faulty, "bad").expect("made");
        bad.run(Operation::SetSize { size: 4096 }).expect("sized");
        all.push(bad);
        let array = Raid0::new("array", all, 512, 0);
        let error = array.sync().expect_err("fails").to_string();
        assert!(error.starts_with("array: member 2 of 3 failed: memory/bad"), "{error}");
    }
}
