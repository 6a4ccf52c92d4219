//! RAID 0: several storages as one, in chunks in turn.
//!
//! ```text
//!   array    │ chunk 0 │ chunk 1 │ chunk 2 │ chunk 3 │ …
//!               │          │         │         │
//!   member 0 ───┘──────────│─────────┘         │        base + chunk 0, chunk 2, …
//!   member 1 ──────────────┘───────────────────┘        base + chunk 1, chunk 3, …
//! ```
//!
//! A request inside one chunk goes straight to its member, and so does each of an array of one member. Another
//! one becomes a request for each chunk, all in flight at once, and ends with the last of them. One that
//! fails is the error of the whole, and names the member.

use std::io;
use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{
    Buffer, Clock, Collect, Completion, Completions, Geometry, Operation, Storage,
};
use parking_lot::Mutex;

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
pub struct MemberPart {
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
        usable / self.chunk_bytes * self.chunk_bytes * u64_of(self.members)
    }

    /// The parts of `len` bytes at `offset` of the array, in order.
    pub fn parts(mut self, offset: u64, len: u64) -> impl Iterator<Item = MemberPart> {
        if self.members == 1 {
            // Its chunks follow one another.
            self.chunk_bytes = u64::MAX;
        }
        let (mut at, end) = (offset, offset + len);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (chunk, inside) = (at / self.chunk_bytes, at % self.chunk_bytes);
            let count = u64_of(self.members);
            let len = (self.chunk_bytes - inside).min(end - at);
            at += len;
            let offset = self.base_bytes + chunk / count * self.chunk_bytes + inside;
            Some(MemberPart { member: usize_of(chunk % count), offset, len })
        })
    }
}

/// Several storages as one. Its size is fixed.
pub struct Raid0 {
    name: Arc<str>,
    members: Arc<[Arc<dyn Storage>]>,
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
        Raid0 { name: name.into(), members: members.into(), striping, size }
    }

    /// Begins operations on members, which end as one. `beyond` follows the buffers of all of them.
    fn submit_all(
        &self,
        token: u64,
        operations: Vec<(usize, Operation)>,
        beyond: Option<Buffer>,
        completions: &Completions,
    ) {
        let ends = operations.iter().map(|(member, operation)| MemberOutcome {
            member: *member,
            len: match operation {
                Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => buffer.len(),
                _ => 0,
            },
            done: None,
        });
        let state = JoinProgress { left: operations.len(), ends: ends.collect(), beyond };
        let joined = JoinedOperation {
            name: Arc::clone(&self.name),
            members: Arc::clone(&self.members),
            token,
            completions: completions.clone(),
            state: Mutex::new(state),
        };
        let completions = Completions::collected(Arc::new(joined));
        for (i, (member, operation)) in operations.into_iter().enumerate() {
            self.members[member].submit(u64_of(i), operation, &completions);
        }
    }

    /// Cuts `buffer` into parts, and begins to move them. The count of bytes ends at the first part that is
    /// short.
    fn transfer(
        &self,
        token: u64,
        offset: u64,
        mut buffer: Buffer,
        beyond: Option<Buffer>,
        completions: &Completions,
        make: impl Fn(u64, Buffer) -> Operation,
    ) {
        let parts = self.striping.parts(offset, u64_of(buffer.len()));
        let operations = parts.map(|MemberPart { member, offset, len }| {
            let rest = buffer.split_off(usize_of(len));
            (member, make(offset, std::mem::replace(&mut buffer, rest)))
        });
        let operations = operations.collect();
        self.submit_all(token, operations, beyond, completions);
    }

    fn request(&self, what: &str) -> io::Error {
        let why = format!("{}: {what} beyond the end of an array", self.name);
        io::Error::new(io::ErrorKind::InvalidInput, why)
    }

    /// The operations on members that one which moves no bytes becomes.
    fn alterations(&self, operation: &Operation) -> io::Result<Vec<(usize, Operation)>> {
        let inside =
            |offset: u64, len: u64| offset.checked_add(len).is_some_and(|end| end <= self.size);
        Ok(match *operation {
            Operation::Sync => (0..self.members.len()).map(|i| (i, Operation::Sync)).collect(),
            Operation::Discard { offset, len } if inside(offset, len) => self
                .striping
                .parts(offset, len)
                .map(|MemberPart { member, offset, len }| {
                    (member, Operation::Discard { offset, len })
                })
                .collect(),
            Operation::Allocate { offset, len } if inside(offset, len) => self
                .striping
                .parts(offset, len)
                .map(|MemberPart { member, offset, len }| {
                    (member, Operation::Allocate { offset, len })
                })
                .collect(),
            Operation::SetSize { size } if size == self.size => Vec::new(),
            _ => return Err(self.request("a change")),
        })
    }

    /// The only part of `len` bytes at `offset`, if they are not several.
    fn only_part(&self, offset: u64, len: usize) -> Option<MemberPart> {
        let mut parts = self.striping.parts(offset, u64_of(len));
        parts.next().filter(|part| part.len == u64_of(len))
    }
}

/// Operations on members that end as one.
struct JoinedOperation {
    name: Arc<str>,
    members: Arc<[Arc<dyn Storage>]>,
    token: u64,
    completions: Completions,
    state: Mutex<JoinProgress>,
}

struct JoinProgress {
    left: usize,
    ends: Vec<MemberOutcome>,
    /// A part of the buffer that no member has.
    beyond: Option<Buffer>,
}

/// How an operation on a member ended.
struct MemberOutcome {
    member: usize,
    len: usize,
    done: Option<(Option<Buffer>, io::Result<usize>)>,
}

impl Collect for JoinedOperation {
    fn arrived(&self, Completion { token, buffer, result }: Completion) {
        let mut state = self.state.lock();
        state.ends[usize::try_from(token).expect("ours")].done = Some((buffer, result));
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let (ends, beyond) = (std::mem::take(&mut state.ends), state.beyond.take());
        drop(state);
        self.completions.post(self.join(ends, beyond));
    }
}

impl JoinedOperation {
    fn join(&self, ends: Vec<MemberOutcome>, beyond: Option<Buffer>) -> Completion {
        let mut whole: Option<Buffer> = None;
        let mut add = |piece: Buffer| match &mut whole {
            Some(whole) => whole.unsplit(piece).expect("transfers return their buffer"),
            None => whole = Some(piece),
        };
        let (mut count, mut ended, mut failed) = (0, false, None);
        for MemberOutcome { member, len, done } in ends {
            let (piece, result) = done.expect("each completes once");
            piece.into_iter().for_each(&mut add);
            match result {
                Ok(moved) if !ended => {
                    count += moved;
                    ended = moved < len;
                }
                Ok(_) => {}
                Err(error) => failed = failed.or(Some(self.of_member(member, &error))),
            }
        }
        beyond.into_iter().for_each(add);
        Completion { token: self.token, buffer: whole, result: failed.map_or(Ok(count), Err) }
    }

    fn of_member(&self, member: usize, error: &io::Error) -> io::Error {
        let (name, of) = (self.members[member].name(), self.members.len());
        let text = error.to_string();
        let named = if text.contains(name) { text } else { format!("{name}: {text}") };
        let place = format!("{}: member {member} of {of} failed: {named}", self.name);
        io::Error::new(error.kind(), place)
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
        let post = |buffer, result| completions.post(Completion { token, buffer, result });
        match operation {
            Operation::Read { offset, mut buffer } => {
                let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
                let beyond = buffer.split_off(buffer.len().min(left));
                if buffer.is_empty() {
                    return post(Some(beyond), Ok(0));
                }
                let make = |offset, buffer| Operation::Read { offset, buffer };
                match self.only_part(offset, buffer.len()) {
                    Some(part) if beyond.is_empty() => {
                        self.members[part.member].submit(
                            token,
                            make(part.offset, buffer),
                            completions,
                        );
                    }
                    _ => self.transfer(token, offset, buffer, Some(beyond), completions, make),
                }
            }
            Operation::Write { offset, buffer } => {
                let end = offset.checked_add(u64_of(buffer.len()));
                if end.is_none_or(|end| end > self.size) {
                    return post(Some(buffer), Err(self.request("a write")));
                }
                if buffer.is_empty() {
                    return post(Some(buffer), Ok(0));
                }
                let make = |offset, buffer| Operation::Write { offset, buffer };
                match self.only_part(offset, buffer.len()) {
                    Some(part) => self.members[part.member].submit(
                        token,
                        make(part.offset, buffer),
                        completions,
                    ),
                    None => self.transfer(token, offset, buffer, None, completions, make),
                }
            }
            other => match self.alterations(&other) {
                Ok(operations) if operations.is_empty() => post(None, Ok(0)),
                Ok(operations) => self.submit_all(token, operations, None, completions),
                Err(error) => post(None, Err(error)),
            },
        }
    }
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
        let directory = merganser_testkit::faulty::FaultPlan {
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
