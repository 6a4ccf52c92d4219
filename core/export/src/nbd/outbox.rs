//! The replies of one connection on their way out, and the bound on how many there may be.
//!
//! A request is *admitted* before it is done, and counts until its reply has been written to the
//! client. So what a client has asked for and not yet read is bounded, and a client that asks
//! faster than it reads waits for itself: its next request stays in its socket.
//!
//! ```text
//!   reader ── admit ──► Ticket ──► worker ── post ──► queue ──► writer ── socket
//!     ▲                                                           │
//!     └────────────── room again, when it is written ─────────────┘
//! ```

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_server::Presence;
use merganser_storage::Buffer;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::READ_BYTES_MAX;
use crate::spare::SpareBuffers;

/// Messages that are written by one system call, at most.
const MESSAGES_AT_ONCE: usize = 16;
/// No further message is added to a call that has this many bytes of content: who waits for room
/// is better told early.
const BYTES_AT_ONCE: usize = 512 << 10;

/// What the replies of all connections may take together beyond [`READ_BYTES_MAX`] of each, which a
/// connection always has: so no client, however slowly it reads, keeps another from going on.
pub(super) struct ReplyRoom {
    free_bytes: AtomicUsize,
}

impl ReplyRoom {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(ReplyRoom { free_bytes: AtomicUsize::new(bytes) })
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        self.free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.free_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The most that a client may have asked for and not yet read.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub(super) requests: usize,
    /// Bytes of content.
    pub(super) bytes: usize,
}

pub(super) struct Outbox {
    most: InFlight,
    shared: Arc<ReplyRoom>,
    /// Told when requests are admitted and answered.
    presence: Arc<Presence>,
    state: Mutex<OutboxState>,
    /// There is room again, or the connection broke.
    room: Condvar,
    /// There is something to write, or the end has come.
    work: Condvar,
}

#[derive(Default)]
struct OutboxState {
    queue: VecDeque<Message>,
    /// Admitted and not yet written.
    requests: usize,
    /// Of these, those whose message has not been posted.
    unanswered: usize,
    /// Bytes of content that all of them may have.
    bytes: usize,
    /// Of these, what is taken of the room that connections share.
    shared_bytes: usize,
    /// The client asks for nothing more.
    ended: bool,
    /// Nothing more can or may be written.
    broken: bool,
}

struct Message {
    head: Vec<u8>,
    content: MessageContent,
    admitted_bytes: usize,
}

/// The content of a message, in pieces that follow one another.
#[derive(Default)]
pub(super) struct MessageContent {
    bytes: Vec<u8>,
    buffers: Vec<Buffer>,
    /// Gets the buffers when they are written.
    spare: Option<Arc<SpareBuffers>>,
}

impl MessageContent {
    /// The bytes of these buffers, which `spare` gets back.
    pub(super) fn buffers(buffers: Vec<Buffer>, spare: &Arc<SpareBuffers>) -> Self {
        MessageContent { bytes: Vec::new(), buffers, spare: Some(Arc::clone(spare)) }
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.bytes).chain(self.buffers.iter().map(|buffer| &**buffer))
    }
}

impl From<Vec<u8>> for MessageContent {
    fn from(bytes: Vec<u8>) -> Self {
        MessageContent { bytes, buffers: Vec::new(), spare: None }
    }
}

impl Drop for MessageContent {
    fn drop(&mut self) {
        let Some(spare) = &self.spare else { return };
        self.buffers.drain(..).for_each(|buffer| spare.give_back(buffer));
    }
}

/// The right, and the duty, to post one message.
pub(super) struct ReplyTicket {
    outbox: Arc<Outbox>,
    bytes: usize,
    posted: bool,
}

impl Outbox {
    /// For a connection that shares room for replies with others.
    pub(super) fn new(
        most: InFlight,
        shared: Arc<ReplyRoom>,
        presence: Arc<Presence>,
    ) -> Arc<Self> {
        let (room, work) = Default::default();
        Arc::new(Outbox { most, shared, presence, state: Mutex::default(), room, work })
    }

    /// Waits for room for a message with `bytes` of content; `None` when the connection broke.
    pub(super) fn admit(self: &Arc<Self>, bytes: usize) -> Option<ReplyTicket> {
        let full = |state: &mut OutboxState| !state.broken && !self.has_room(state, bytes);
        let mut state = self.lock();
        self.room.wait_while(&mut state, full);
        if state.broken {
            return None;
        }
        state.requests += 1;
        state.unanswered += 1;
        self.presence.owe();
        state.bytes += bytes;
        Some(ReplyTicket { outbox: Arc::clone(self), bytes, posted: false })
    }

    /// Whether there is room for `bytes` more; then their share of the shared room is taken. A
    /// client that is refused has replies under way, and asks again when they are written.
    fn has_room(&self, state: &mut OutboxState, bytes: usize) -> bool {
        let after = state.bytes + bytes;
        if state.requests >= self.most.requests {
            return false;
        }
        if state.bytes == 0 {
            return true;
        }
        let more = after.saturating_sub(READ_BYTES_MAX).saturating_sub(state.shared_bytes);
        if after > self.most.bytes || !self.shared.take(more) {
            return false;
        }
        state.shared_bytes += more;
        true
    }

    /// Gives back what of the shared room is not needed any more.
    fn give_back(&self, state: &mut OutboxState) {
        let unused =
            state.shared_bytes - state.shared_bytes.min(state.bytes.saturating_sub(READ_BYTES_MAX));
        state.shared_bytes -= unused;
        self.shared.give_back(unused);
    }

    /// Waits until everything admitted has been written; false when the connection broke.
    pub(super) fn drain(&self) -> bool {
        let under_way = |state: &mut OutboxState| !state.broken && state.requests > 0;
        let mut state = self.lock();
        self.room.wait_while(&mut state, under_way);
        !state.broken
    }

    /// Waits until every ticket is posted or dropped, even when no client hears the answers: until
    /// then workers have something to do for this client.
    pub(super) fn wait_for_tickets(&self) {
        let under_way = |state: &mut OutboxState| state.unanswered > 0;
        self.room.wait_while(&mut self.lock(), under_way);
    }

    /// Says that nothing more will be admitted: the writer ends with the last reply.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.work.notify_all();
    }

    /// Ends everything at once; what was not written is dropped.
    pub(super) fn break_off(&self) {
        let mut state = self.lock();
        state.broken = true;
        state.queue.clear();
        drop(state);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Writes messages until [`Outbox::end`] and the last one, or until the connection breaks.
    pub(super) fn write_to(&self, output: &mut impl Write) {
        let mut messages = Vec::new();
        while self.take(&mut messages) {
            if write_messages(output, &messages).is_err() {
                return self.break_off();
            }
            let mut state = self.lock();
            for message in messages.drain(..) {
                state.requests -= 1;
                state.bytes -= message.admitted_bytes;
            }
            self.give_back(&mut state);
            drop(state);
            self.room.notify_all();
        }
    }

    /// Takes the next messages, waiting for one; false at the end.
    fn take(&self, messages: &mut Vec<Message>) -> bool {
        let idle = |state: &mut OutboxState| {
            let over = state.broken || (state.ended && state.requests == 0);
            state.queue.is_empty() && !over
        };
        let mut state = self.lock();
        self.work.wait_while(&mut state, idle);
        let mut bytes = 0;
        while bytes < BYTES_AT_ONCE
            && messages.len() < MESSAGES_AT_ONCE
            && let Some(message) = state.queue.pop_front()
        {
            bytes += message.content.parts().map(<[u8]>::len).sum::<usize>();
            messages.push(message);
        }
        !messages.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        // A connection that broke has replies that were never written.
        let mut state = self.lock();
        self.shared.give_back(std::mem::take(&mut state.shared_bytes));
    }
}

impl ReplyTicket {
    /// Posts a message. `head` is made when its place in the order of messages is known.
    pub(super) fn post(
        mut self,
        head: impl FnOnce() -> Vec<u8>,
        content: impl Into<MessageContent>,
    ) {
        self.posted = true;
        self.outbox.presence.answered();
        let mut state = self.outbox.lock();
        state.unanswered -= 1;
        if state.broken {
            self.outbox.room.notify_all();
        } else {
            let content = content.into();
            let message = Message { head: head(), content, admitted_bytes: self.bytes };
            state.queue.push_back(message);
        }
        drop(state);
        self.outbox.work.notify_one();
    }
}

impl Drop for ReplyTicket {
    /// A request that will never be answered leaves nothing to say but goodbye.
    fn drop(&mut self) {
        if !self.posted {
            self.outbox.presence.answered();
            self.outbox.lock().unanswered -= 1;
            self.outbox.break_off();
        }
    }
}

fn write_messages(output: &mut impl Write, messages: &[Message]) -> io::Result<()> {
    let parts = messages
        .iter()
        .flat_map(|message| std::iter::once(&*message.head).chain(message.content.parts()));
    let mut slices: Vec<_> = parts.map(IoSlice::new).collect();
    let mut rest = &mut slices[..];
    // Also skips empty slices at the front: writing them would look like a closed connection.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match output.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut rest, count),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::super::{IN_FLIGHT, IN_FLIGHT_BYTES_MAX};
    use super::*;

    fn of_room(room: &Arc<ReplyRoom>) -> Arc<Outbox> {
        Outbox::new(IN_FLIGHT, Arc::clone(room), Arc::new(Presence::new()))
    }

    /// A connection with room of its own.
    fn alone() -> Arc<Outbox> {
        of_room(&ReplyRoom::new(IN_FLIGHT_BYTES_MAX))
    }

    #[test]
    fn connections_share_room_and_each_has_its_own() {
        let room = ReplyRoom::new(2 * READ_BYTES_MAX);
        let (greedy, late) = (of_room(&room), of_room(&room));
        let held: Vec<_> = (0..3).map(|_| greedy.admit(READ_BYTES_MAX).expect("open")).collect();
        // All that is shared is taken; what is a connection's own is not.
        assert!(!greedy.has_room(&mut greedy.lock(), 1));
        let own = late.admit(READ_BYTES_MAX).expect("its own");
        assert!(!late.has_room(&mut late.lock(), 1));
        std::thread::scope(|scope| {
            scope.spawn(|| greedy.write_to(&mut io::sink()));
            held.into_iter().for_each(|ticket| ticket.post(Vec::new, vec![1]));
            assert!(greedy.drain());
            greedy.end();
        });
        let more = late.admit(2 * READ_BYTES_MAX).expect("room again");
        assert_eq!(room.free_bytes.load(Ordering::Relaxed), 0);
        // A connection that breaks keeps nothing.
        drop((own, more));
        drop(late);
        assert_eq!(room.free_bytes.load(Ordering::Relaxed), 2 * READ_BYTES_MAX);
    }

    /// Takes one byte a call.
    struct Drip(Vec<u8>);

    impl Write for Drip {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.extend(bytes.first());
            Ok(bytes.len().min(1))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_leave_in_order_whole() {
        let outbox = alone();
        let tickets: Vec<_> = (0..20).map(|_| outbox.admit(3).expect("open")).collect();
        for (i, ticket) in (0u8..).zip(tickets) {
            ticket.post(|| vec![i], if i % 2 == 0 { Vec::new() } else { vec![i; 3] });
        }
        outbox.end();
        let mut out = Drip(Vec::new());
        outbox.write_to(&mut out);
        let expected = (0..20u8).flat_map(|i| vec![i; if i % 2 == 0 { 1 } else { 4 }]);
        assert_eq!(out.0, expected.collect::<Vec<_>>());
    }

    #[test]
    fn who_asks_for_too_much_waits_until_it_is_read() {
        let outbox = alone();
        let first = outbox.admit(IN_FLIGHT_BYTES_MAX).expect("open");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| outbox.admit(1).expect("open").post(Vec::new, vec![2]));
            scope.spawn(|| outbox.write_to(&mut io::sink()));
            assert_eq!(outbox.lock().requests, 1, "the second is not admitted");
            first.post(Vec::new, vec![1]);
            second.join().expect("admitted");
            assert!(outbox.drain());
            outbox.end();
        });
    }

    #[test]
    fn even_one_larger_than_the_bound_is_admitted_alone() {
        let outbox = alone();
        assert!(outbox.admit(IN_FLIGHT_BYTES_MAX + 1).is_some());
    }

    #[test]
    fn a_broken_connection_admits_nothing_and_keeps_nobody() {
        let outbox = alone();
        let whole: Vec<_> = (0..IN_FLIGHT.requests).map(|_| outbox.admit(0)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(outbox.admit(0).is_none()));
            scope.spawn(|| outbox.write_to(&mut io::sink()));
            drop(whole);
        });
        assert!(!outbox.drain());
    }
}
