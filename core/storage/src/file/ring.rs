//! The fast engine: one thread that owns an io_uring.
//!
//! ```text
//!  submit ──► inbox (mutex) ──► ready ──► submission queue ═══ kernel
//!               │ eventfd         ▲                              ║
//!               └── wakes ──►  the thread ◄── completion queue ══╝
//! ```
//!
//! Only this thread touches the ring, so the kernel may take its cheapest paths (single issuer,
//! deferred task work) and no caller is held up when a submission blocks or copies from the page
//! cache. A caller pays one short lock, and a system call only when the thread sleeps.
//!
//! Buffers are not registered with the ring. Reading 3 GiB in pieces of 1 MiB out of huge pages costs
//! 30 ms of system time in all, 10 µs a piece, while the device takes 350 µs a piece: pinning the
//! pages each time is a part of those 3 %, and every buffer would have to live where the ring knows
//! it.
//!
//! No more than `queue_depth` operations are in the kernel, so that the completion queue, twice the
//! size of the submission queue, cannot overflow; the others wait in `ready`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use slab::Slab;

use super::flight::{Flight, SystemCall};
use crate::numbers::{u64_of, usize_of_u32};

/// Token of the poll that waits for the eventfd.
const WAKE: u64 = u64::MAX;

/// Buffered transfers from this size on are made by the kernel's own worker threads, so that their
/// copies run in parallel.
const ASYNC_FROM: usize = 64 << 10;

/// The kernel's limit.
const ENTRIES_MAX: u32 = 32_768;

/// A running ring. Dropping it waits for everything submitted.
pub(super) struct Ring {
    inbox: Arc<RingInbox>,
    thread: Option<JoinHandle<()>>,
}

struct RingInbox {
    state: Mutex<RingState>,
    wake: File,
}

#[derive(Default)]
struct RingState {
    queue: VecDeque<Flight>,
    /// The thread waits in the kernel, or is about to, and has not been woken yet.
    sleeping: bool,
    closing: bool,
}

impl RingInbox {
    /// Changes the state and wakes the thread if it needs that.
    fn tell(&self, change: impl FnOnce(&mut RingState)) {
        let wake = {
            let mut state = self.state.lock();
            change(&mut state);
            std::mem::take(&mut state.sleeping)
        };
        if wake {
            (&self.wake).write_all(&1_u64.to_ne_bytes()).expect("an eventfd far from full");
        }
    }
}

impl Ring {
    /// Starts a ring, if the kernel has one that can do all we need and lets us have it.
    pub(super) fn start(queue_depth: u32) -> io::Result<Ring> {
        let wake = File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let inbox = Arc::new(RingInbox { state: Mutex::default(), wake });
        let (started, outcome) = mpsc::channel();
        let theirs = Arc::clone(&inbox);
        let builder = thread::Builder::new().name("storage-ring".to_owned());
        // A single-issuer ring belongs to the thread that makes it.
        let thread = builder.spawn(move || match build(queue_depth) {
            Ok(ring) => {
                started.send(Ok(())).expect("the starter waits");
                Reaper::new(ring, usize_of_u32(queue_depth)).run(&theirs);
            }
            Err(e) => started.send(Err(e)).expect("the starter waits"),
        })?;
        outcome.recv().expect("the thread answers")?;
        Ok(Ring { inbox, thread: Some(thread) })
    }

    pub(super) fn submit(&self, flight: Flight) {
        self.inbox.tell(|state| state.queue.push_back(flight));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.inbox.tell(|state| state.closing = true);
        // What collects the last completion may let go of the ring, in the ring's thread: that ends by itself then.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            thread.join().expect("the ring's thread does not panic");
        }
    }
}

/// Whether a ring can be had.
pub(super) fn check() -> io::Result<()> {
    build(1).map(drop)
}

fn build(queue_depth: u32) -> io::Result<IoUring> {
    if queue_depth >= ENTRIES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no ring is that deep"));
    }
    // One entry more, for the wake-up poll.
    let entries = (queue_depth + 1).next_power_of_two();
    let mut lean = IoUring::builder();
    lean.setup_single_issuer().setup_defer_taskrun();
    let ring = lean.build(entries).or_else(|_| IoUring::new(entries))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let needed = [
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::Fsync::CODE,
        opcode::Fallocate::CODE,
        opcode::PollAdd::CODE,
    ];
    if !needed.iter().all(|&code| probe.is_supported(code)) || !ring.params().is_feature_nodrop() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel's is too old"));
    }
    Ok(ring)
}

/// The thread's own side.
struct Reaper {
    ring: IoUring,
    /// The operations in the kernel, by token.
    flights: Slab<Flight>,
    /// The most that may be in the kernel at once.
    depth: usize,
    /// Waits for room there.
    ready: VecDeque<Flight>,
    /// The wake-up poll is in the kernel.
    armed: bool,
}

impl Reaper {
    fn new(ring: IoUring, depth: usize) -> Reaper {
        let flights = Slab::with_capacity(depth);
        Reaper { ring, flights, depth, ready: VecDeque::new(), armed: false }
    }

    fn run(mut self, inbox: &RingInbox) {
        loop {
            {
                let mut state = inbox.state.lock();
                self.ready.append(&mut state.queue);
                let idle = self.ready.is_empty() && self.flights.is_empty();
                if idle && state.closing {
                    return;
                }
                state.sleeping = true;
            }
            self.arm(inbox.wake.as_raw_fd());
            self.launch();
            // Interrupted, short of kernel memory, or completions waiting: in each case nothing is
            // lost, what the queue still holds goes with the next call.
            if self.ring.submit_and_wait(1).is_err() {
                thread::yield_now();
            }
            self.reap(inbox);
        }
    }

    fn arm(&mut self, wake: RawFd) {
        if !self.armed {
            let poll = opcode::PollAdd::new(
                types::Fd(wake),
                u32::from(PollFlags::IN.bits().cast_unsigned()),
            )
            .build();
            self.armed = self.push(&poll.user_data(WAKE));
        }
    }

    /// Moves from `ready` into the submission queue what fits.
    fn launch(&mut self) {
        while self.flights.len() < self.depth {
            let Some(mut flight) = self.ready.pop_front() else { break };
            let token = self.flights.vacant_key();
            let entry = entry(flight.call(), flight.retried, flight.direct);
            let entry = entry.user_data(u64_of(token));
            if !self.push(&entry) {
                self.ready.push_front(flight);
                break;
            }
            self.flights.insert(flight);
            // At once: within a batch the block layer holds the first request until the last one
            // is prepared, which took 8 % off sequential reads of 1 MiB. What an error leaves in
            // the queue goes with the next call.
            let _ = self.ring.submit();
        }
    }

    fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: the memory of an entry belongs to its flight, which stays in `flights` (or whose
        // buffer is a mapping that does not move with it) until the entry's completion is reaped;
        // the thread does not end before.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    fn reap(&mut self, inbox: &RingInbox) {
        let done: Vec<cqueue::Entry> = self.ring.completion().collect();
        for entry in done {
            if entry.user_data() == WAKE {
                self.armed = false;
                // The count does not matter, and neither does an empty one.
                let _ = (&inbox.wake).read(&mut [0; 8]);
                continue;
            }
            let token = usize::try_from(entry.user_data()).expect("one of ours");
            let flight = self.flights.remove(token);
            if let Some(more) = flight.took(entry.result()) {
                self.ready.push_front(more);
            }
        }
    }
}

fn entry(call: SystemCall, retried: bool, direct: bool) -> squeue::Entry {
    let short = |len: usize| u32::try_from(len).expect("a piece is at most 1 GiB");
    let waits = |len: usize| retried || (!direct && len >= ASYNC_FROM);
    let (entry, waits) = match call {
        SystemCall::Read { fd, to, len, offset } => {
            let entry = opcode::Read::new(types::Fd(fd), to, short(len)).offset(offset);
            (entry.build(), waits(len))
        }
        SystemCall::Write { fd, from, len, offset } => {
            let entry = opcode::Write::new(types::Fd(fd), from, short(len)).offset(offset);
            (entry.build(), waits(len))
        }
        SystemCall::Sync { fd } => {
            let entry = opcode::Fsync::new(types::Fd(fd)).flags(types::FsyncFlags::DATASYNC);
            (entry.build(), false)
        }
        SystemCall::Allocate { fd, mode, offset, len } => {
            let entry = opcode::Fallocate::new(types::Fd(fd), len).offset(offset).mode(mode);
            (entry.build(), false)
        }
    };
    if waits { entry.flags(squeue::Flags::ASYNC) } else { entry }
}
