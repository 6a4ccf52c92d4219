//! A program near the data over any real storage: a loop over its completions, without a thread.
//!
//! ```text
//!   caller ── request ──► Runner ── claimed? ──► Program
//!     ▲                     │ no                    │ read, work
//!     └── answer ◄──────────┴──── completions ◄─────┘ of the storage
//! ```
//!
//! Work is done when the program says so, so it only tells the storage's clock of it. A request that
//! no program claims goes to the storage.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use merganser_storage::near::{HostRequest, Inside, NearProgram, RequestId, Wake};
use merganser_storage::{
    Buffer, Completion, Completions, Geometry, Operation, Storage, StorageExt, Work,
};

/// Runs one program over one storage.
pub struct Runner<P> {
    program: P,
    node: ProgramNode,
    next_request: u64,
}

/// What the program sees.
struct ProgramNode {
    storage: Arc<dyn Storage>,
    geometry: Geometry,
    completions: Completions,
    /// Reads under way, and the channel of each.
    reads: BTreeMap<u64, u32>,
    by_channel: BTreeMap<u32, u32>,
    /// Writes under way. A program gives no token to a read and a write at once.
    writes: BTreeSet<u64>,
    worked: VecDeque<u64>,
    memory_bytes: u64,
    claimed_bytes: u64,
    answers: BTreeMap<RequestId, io::Result<Buffer>>,
}

impl<P: NearProgram> Runner<P> {
    /// Runs `program` over `storage`, with `memory_bytes` of memory to claim.
    #[must_use]
    pub fn new(program: P, storage: Arc<dyn Storage>, memory_bytes: u64) -> Self {
        let node = ProgramNode {
            geometry: storage.geometry(),
            storage,
            completions: Completions::new(),
            reads: BTreeMap::new(),
            by_channel: BTreeMap::new(),
            writes: BTreeSet::new(),
            worked: VecDeque::new(),
            memory_bytes,
            claimed_bytes: 0,
            answers: BTreeMap::new(),
        };
        Runner { program, node, next_request: 0 }
    }

    /// The program.
    pub fn program(&self) -> &P {
        &self.program
    }

    /// Bytes that the program has claimed.
    #[must_use]
    pub fn claimed_bytes(&self) -> u64 {
        self.node.claimed_bytes
    }

    /// Starts a request. The program is given it if it claims it, otherwise the storage, and then
    /// it has ended when this returns.
    pub fn start(&mut self, request: HostRequest<'_>) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let (write, offset, len) = match request {
            HostRequest::Read { offset, len } => (false, offset, len),
            HostRequest::Write { offset, bytes } => (true, offset, bytes.len()),
        };
        if self.program.claims(write, offset, len) {
            self.program.request(id, request, &mut self.node);
        } else {
            let result = self.node.directly(request);
            self.node.answers.insert(id, result);
        }
        id
    }

    /// The answer of a request, if there is one already.
    pub fn answer(&mut self, id: RequestId) -> Option<io::Result<Buffer>> {
        self.node.answers.remove(&id)
    }

    /// Lets one thing that is under way end; false when nothing is.
    pub fn turn(&mut self) -> bool {
        let wake = if let Some(token) = self.node.worked.pop_front() {
            Wake::Worked { token }
        } else if self.node.reads.is_empty() && self.node.writes.is_empty() {
            return false;
        } else {
            let clock = self.node.storage.clock();
            let done = self.node.completions.wait(&*clock);
            self.node.ended(done)
        };
        self.program.wake(wake, &mut self.node);
        true
    }

    /// Runs a request to its end.
    ///
    /// # Errors
    /// The program's own, the storage's own, or `WouldBlock` when the program has stopped without
    /// an answer, which is a defect of the program.
    pub fn run(&mut self, request: HostRequest<'_>) -> io::Result<Buffer> {
        let id = self.start(request);
        loop {
            if let Some(answer) = self.answer(id) {
                return answer;
            }
            if !self.turn() {
                let reason = "the program has stopped without an answer";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, reason));
            }
        }
    }

    /// Reads `len` bytes at `offset`.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn read(&mut self, offset: u64, len: usize) -> io::Result<Buffer> {
        self.run(HostRequest::Read { offset, len })
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.run(HostRequest::Write { offset, bytes }).map(|_| ())
    }
}

impl ProgramNode {
    fn directly(&self, request: HostRequest<'_>) -> io::Result<Buffer> {
        match request {
            HostRequest::Read { offset, len } => {
                let mut buffer = Buffer::try_new(len)?;
                let bytes = self.storage.read_at(offset, &mut buffer)?;
                let _unread = buffer.split_off(bytes);
                Ok(buffer)
            }
            HostRequest::Write { offset, bytes } => {
                self.storage.write_at(offset, bytes)?;
                Ok(Buffer::empty())
            }
        }
    }

    fn ended(&mut self, done: Completion) -> Wake {
        let Completion { token, buffer, result } = done;
        if self.writes.remove(&token) {
            let buffer = buffer.expect("a write returns its buffer");
            return Wake::Written { token, result: whole_write(&buffer, result), buffer };
        }
        let channel = self.reads.remove(&token).expect("it was submitted");
        *self.by_channel.get_mut(&channel).expect("it was counted") -= 1;
        Wake::Read { token, buffer: buffer.expect("a read returns its buffer"), result }
    }
}

impl Inside for ProgramNode {
    fn now_ns(&self) -> u64 {
        self.storage.clock().now_ns()
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn channel_of(&self, offset: u64) -> u32 {
        match u64::from(self.geometry.stripe_bytes) {
            0 => 0,
            stripe => (offset / stripe % u64::from(self.geometry.channels.max(1))) as u32,
        }
    }

    /// A channel reads one thing at a time; where channels are unknown, the device takes as many as
    /// its queue is deep.
    fn is_busy(&self, channel: u32) -> bool {
        let reads = self.by_channel.get(&channel).copied().unwrap_or(0);
        let at_once = if self.geometry.stripe_bytes > 0 { 1 } else { self.geometry.queue_depth };
        reads >= at_once
    }

    fn read(&mut self, token: u64, offset: u64, buffer: Buffer) {
        let channel = self.channel_of(offset);
        self.reads.insert(token, channel);
        *self.by_channel.entry(channel).or_default() += 1;
        self.storage.submit(token, Operation::Read { offset, buffer }, &self.completions);
    }

    fn write(&mut self, token: u64, offset: u64, buffer: Buffer) {
        self.writes.insert(token);
        self.storage.submit(token, Operation::Write { offset, buffer }, &self.completions);
    }

    fn work(&mut self, token: u64, work: &[Work]) {
        let clock = self.storage.clock();
        work.iter().for_each(|work| clock.charge(*work));
        self.worked.push_back(token);
    }

    fn claim_memory(&mut self, bytes: u64) -> io::Result<()> {
        let free = self.memory_bytes - self.claimed_bytes;
        if bytes > free {
            let text = format!("{free} of {} bytes are free", self.memory_bytes);
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, text));
        }
        self.claimed_bytes += bytes;
        Ok(())
    }

    fn release_memory(&mut self, bytes: u64) {
        assert!(bytes <= self.claimed_bytes, "released more than was claimed");
        self.claimed_bytes -= bytes;
    }

    fn answer(&mut self, request: RequestId, result: io::Result<Buffer>) {
        let before = self.answers.insert(request, result);
        assert!(before.is_none(), "request {} was answered twice", request.0);
    }
}

/// The result of a write of `buffer`, which must be complete.
fn whole_write(buffer: &Buffer, result: io::Result<usize>) -> io::Result<()> {
    match result? {
        bytes if bytes == buffer.len() => Ok(()),
        bytes => {
            let reason = format!("{bytes} of {} bytes were written", buffer.len());
            Err(io::Error::new(io::ErrorKind::WriteZero, reason))
        }
    }
}
