//! The host's side: the link, the queue of commands, and the commands in flight.

use std::collections::VecDeque;
use std::io;

use merganser_storage::Buffer;
use slab::Slab;

use crate::device::{CompletedCommand, Component, IoCommand, Use};
use crate::profile::SsdSettings;
use crate::request::{RequestKind, SimTime};
use crate::sim::Resource;
use crate::ssd::nand::timing::carry_ns;

/// A command that has not ended.
#[derive(Debug)]
pub(crate) struct HostCommand {
    pub id: u64,
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
    pub buffer: Option<Buffer>,
    pub submitted: SimTime,
    /// Pieces that have not ended.
    pub remaining: u32,
    /// The time at which the last byte so far has crossed the link.
    pub crossed: SimTime,
    pub error: Option<io::Error>,
    /// The program that answers it.
    pub program: Option<u32>,
}

/// The commands in flight by number; numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct HostCommands(Slab<HostCommand>);

impl HostCommands {
    pub(super) fn add(&mut self, submitted: SimTime, command: IoCommand) -> u32 {
        let IoCommand { id, kind, offset, len, buffer } = command;
        let job = HostCommand {
            id,
            kind,
            offset,
            len,
            buffer,
            submitted,
            remaining: 0,
            crossed: SimTime(0),
            error: None,
            program: None,
        };
        self.0.insert(job) as u32
    }

    pub(super) fn get(&mut self, number: u32) -> &mut HostCommand {
        &mut self.0[number as usize]
    }

    pub(super) fn end(&mut self, number: u32) -> HostCommand {
        self.0.remove(number as usize)
    }
}

/// The link, and the commands that wait for the queue.
#[derive(Debug)]
pub(crate) struct CommandLink {
    to_host: Resource,
    /// `None` if both directions share one link.
    from_host: Option<Resource>,
    interface: Resource,
    bytes_per_second: u64,
    latency_ns: u64,
    command: SimTime,
    depth: u64,
    taken: u64,
    waiting: VecDeque<u32>,
    pub done: VecDeque<CompletedCommand>,
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl CommandLink {
    pub(super) fn new(settings: &SsdSettings) -> CommandLink {
        CommandLink {
            to_host: Resource::new(),
            from_host: (settings.link_duplex == 1).then(Resource::new),
            interface: Resource::new(),
            bytes_per_second: settings.link_bytes_per_second,
            latency_ns: settings.link_latency_ns,
            command: SimTime(settings.command_ns),
            depth: settings.queue_depth,
            taken: 0,
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            reads: 0,
            writes: 0,
            others: 0,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// A command has arrived. Returns the time at which the device has it, or `None` if it waits.
    pub(super) fn arrive(&mut self, now: SimTime, job: u32) -> Option<SimTime> {
        if self.taken == self.depth {
            self.waiting.push_back(job);
            return None;
        }
        self.taken += 1;
        let service = self.interface.serve(now, self.command);
        Some(SimTime(service.end.0 + self.latency_ns))
    }

    /// The time at which all transfers so far have crossed.
    pub(super) fn links_free_at(&self) -> SimTime {
        let links = std::iter::once(&self.to_host).chain(&self.from_host);
        links.map(Resource::free_at).max().expect("there is a link")
    }

    /// A command has ended. Returns a waiting command, which may now arrive.
    pub(super) fn leave(&mut self) -> Option<u32> {
        self.taken -= 1;
        self.waiting.pop_front()
    }

    /// Sends `bytes` to the host, and returns the time at which they have arrived.
    pub(super) fn send(&mut self, ready: SimTime, bytes: u64) -> SimTime {
        let span = SimTime(carry_ns(bytes, self.bytes_per_second));
        self.to_host.serve(ready, span).end
    }

    /// Receives `bytes` from the host, and returns the time at which they have arrived.
    pub(super) fn take(&mut self, ready: SimTime, bytes: u64) -> SimTime {
        let span = SimTime(carry_ns(bytes, self.bytes_per_second));
        self.from_host.as_mut().unwrap_or(&mut self.to_host).serve(ready, span).end
    }

    /// The time at which the host gets a notice that the device sends at `at`.
    pub(super) fn told(&self, at: SimTime) -> SimTime {
        SimTime(at.0 + self.latency_ns)
    }

    /// Completes `job`, of whose end the host is notified.
    pub(super) fn finish(&mut self, at: SimTime, job: HostCommand) {
        let transfers = job.error.is_none();
        let bytes = match job.kind {
            RequestKind::Read if transfers => job.len,
            RequestKind::Write if transfers => job.len,
            _ => 0,
        };
        match job.kind {
            RequestKind::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            RequestKind::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            RequestKind::Trim | RequestKind::Flush => self.others += 1,
        }
        self.done.push_back(CompletedCommand {
            id: job.id,
            submitted: job.submitted,
            at,
            buffer: job.buffer,
            result: job.error.map_or(Ok(bytes), Err),
        });
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = Use> + '_ {
        let links = std::iter::once(&self.to_host).chain(&self.from_host);
        (0..).zip(links).map(|(index, link)| Use {
            part: Component::Link,
            index,
            busy: link.busy(),
            services: link.services(),
        })
    }
}
