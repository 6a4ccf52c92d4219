//! What a program sees that runs near the data: inside a modelled device, or on a real storage node.
//!
//! ```text
//!   host ── read, write ──► device ── claimed? ──► Program ── read, work, answer ──► Inside
//!                              │ no                   ▲                                │
//!                              ▼                      └──────────── wake ──────────────┘
//!                        its own read and write path
//! ```
//!
//! A program never blocks: it starts reads and work, returns, and is woken when one of them ends, so
//! that flash, link and processor overlap as they do in hardware. Whoever runs it (an event loop of
//! a modelled device, or a thread over a real storage) calls it from one place at a time.

use std::io;

use crate::{Buffer, Geometry, Work};

/// A request of the host that a program has claimed, until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A request of the host to the addresses that a program claims. Offsets and lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRequest<'a> {
    /// Read `len` bytes at `offset`; answered with as many.
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        len: usize,
    },
    /// Write `bytes` at `offset`; answered with an empty buffer.
    Write {
        /// First byte.
        offset: u64,
        /// What to write.
        bytes: &'a [u8],
    },
}

/// Why a program is woken. Tokens are those it gave.
#[derive(Debug)]
pub enum Wake {
    /// [`Inside::read`] ended; the buffer comes back whatever the result, which is the bytes read.
    Read {
        /// The read's token.
        token: u64,
        /// The buffer it was given.
        buffer: Buffer,
        /// Bytes read, or the device's error.
        result: io::Result<usize>,
    },
    /// [`Inside::write`] ended; the buffer comes back whatever the result.
    Written {
        /// The write's token.
        token: u64,
        /// The buffer it was given.
        buffer: Buffer,
        /// Nothing, or the device's error.
        result: io::Result<()>,
    },
    /// [`Inside::work`] ended.
    Worked {
        /// The work's token.
        token: u64,
    },
}

/// The resources that a program near the data has.
pub trait Inside {
    /// Nanoseconds since the device's start.
    fn now_ns(&self) -> u64;

    /// Pages, channels and stripes of the device.
    fn geometry(&self) -> Geometry;

    /// The channel on which the page that holds byte `offset` lies now; 0 where that is unknown.
    fn channel_of(&self, offset: u64) -> u32;

    /// Whether a read given to `channel` now would wait for another. [`NearProgram::channel_idle`]
    /// says when this changes.
    fn is_busy(&self, channel: u32) -> bool;

    /// Starts to read into all of `buffer` from byte `offset` on; [`Wake::Read`] ends it.
    fn read(&mut self, token: u64, offset: u64, buffer: Buffer);

    /// Starts to write all of `buffer` from byte `offset` on, past the link; [`Wake::Written`] ends
    /// it. A device may take whole pages ([`Geometry::page_bytes`]) only.
    fn write(&mut self, token: u64, offset: u64, buffer: Buffer);

    /// Queues `work` on the device's processor, which does one thing at a time in the order of the
    /// calls; [`Wake::Worked`] ends it. A real processor has done it already.
    fn work(&mut self, token: u64, work: &[Work]);

    /// What the device copies at once, in bytes: a program charges its copies in whole units.
    fn copy_unit_bytes(&self) -> u32 {
        1
    }

    /// Claims `bytes` of the device's memory.
    ///
    /// # Errors
    /// `OutOfMemory` that says how much is free of how much.
    fn claim_memory(&mut self, bytes: u64) -> io::Result<()>;

    /// Gives claimed memory back.
    fn release_memory(&mut self, bytes: u64);

    /// Ends the host's request, exactly once. Its bytes then cross the link.
    fn answer(&mut self, request: RequestId, result: io::Result<Buffer>);
}

/// A program near the data that answers some of the host's requests itself.
pub trait NearProgram: Send {
    /// Whether requests for `len` bytes at `offset` are this program's: reads (`write` false) or
    /// writes. Others go the device's own way.
    fn claims(&self, write: bool, offset: u64, len: usize) -> bool;

    /// A claimed request has arrived.
    fn request(&mut self, id: RequestId, request: HostRequest<'_>, inside: &mut dyn Inside);

    /// Something that the program started has ended.
    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside);

    /// `channel` has become idle ([`Inside::is_busy`]), whatever it carried. In a device, that is before a page has
    /// also crossed the bus of the memory and [`Wake::Read`] ends its read. Where a read ends together with
    /// its channel, as over a real storage, [`Wake::Read`] is the only notice.
    fn channel_idle(&mut self, _channel: u32, _inside: &mut dyn Inside) {}
}
