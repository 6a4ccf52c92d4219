//! The events of an SSD, and the jobs that wait for them.

use std::collections::VecDeque;

use merganser_storage::near::Wake;

use crate::sim::SimEvent;

/// The owner of an operation of flash, which waits for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Collection; no request waits.
    Nobody,
    /// A read of the host.
    Read { job: u32, bytes: u32 },
    /// A write of the host.
    Write { job: u32 },
    /// A write of part of a unit, which reads the rest first.
    Rest { job: u32, piece: u32, next_edge: u8 },
    /// The write buffer.
    Buffer { units: u32 },
    /// Read-ahead.
    Ahead { unit: u32, units: u32 },
    /// A read of a program; its bytes that this operation gives.
    Inside { read: u32, bytes: u32 },
    /// A write of a program.
    InsideWrite { write: u32 },
    /// Entries of the page map, for which other operations wait.
    Map { lookup: u32 },
}

/// The events of an SSD.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SsdEvent {
    /// A command has arrived at the device.
    Arrive { job: u32 },
    /// The device has accepted the command.
    Begin { job: u32 },
    /// Firmware has decoded the command.
    Start { job: u32 },
    /// A piece of a write has crossed the link.
    Landed { job: u32, piece: u32 },
    /// A piece of a write is in the memory.
    Stored { job: u32, piece: u32 },
    /// All bytes that the host writes to a program are in the device.
    Claimed { job: u32 },
    /// Firmware has prepared an operation.
    Issue { op: u32 },
    /// Flash has completed a step.
    Flash(FlashEvent),
    /// A piece of a program's read is in the memory, or needed no flash.
    InsideDone { read: u32 },
    /// A program's write needed no flash.
    InsideWritten { write: u32 },
    /// A program's work is done. The token is in two halves, which keeps an event at 16 bytes.
    Worked { program: u32, token: [u32; 2] },
    /// The host is notified that its command has ended.
    Complete { job: u32 },
}

impl SimEvent for SsdEvent {
    fn fingerprint(&self) -> u64 {
        let (kind, a, b) = match *self {
            SsdEvent::Arrive { job } => (0, job, 0),
            SsdEvent::Begin { job } => (1, job, 0),
            SsdEvent::Start { job } => (2, job, 0),
            SsdEvent::Landed { job, piece } => (3, job, piece),
            SsdEvent::Claimed { job } => (4, job, 0),
            SsdEvent::Issue { op } => (5, op, 0),
            SsdEvent::Flash(FlashEvent::Sensed { die }) => (6, die, 0),
            SsdEvent::Flash(FlashEvent::Carried { channel }) => (7, channel, 0),
            SsdEvent::Flash(FlashEvent::Settled { die }) => (8, die, 0),
            SsdEvent::InsideDone { read } => (9, read, 0),
            SsdEvent::Worked { program, token } => {
                return 10 | u64::from(program) << 8 | whole(token).rotate_left(32);
            }
            SsdEvent::Complete { job } => (11, job, 0),
            SsdEvent::Stored { job, piece } => (12, job, piece),
            SsdEvent::InsideWritten { write } => (13, write, 0),
        };
        kind | u64::from(a) << 8 | u64::from(b) << 40
    }
}

/// The two halves of a token, low and high.
pub(crate) fn halves(token: u64) -> [u32; 2] {
    [token as u32, (token >> 32) as u32]
}

/// The token of two halves.
pub(crate) fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

// The queue holds an event and its time in half a cache line.
const _: () = assert!(size_of::<SsdEvent>() == 16);

/// A step of flash that ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FlashEvent {
    /// A die has sensed.
    Sensed { die: u32 },
    /// A channel has carried a page.
    Carried { channel: u32 },
    /// A die has programmed or erased.
    Settled { die: u32 },
}

/// A call of a program.
#[derive(Debug)]
pub(crate) enum ProgramCall {
    /// A claimed request.
    Request { program: u32, job: u32 },
    /// A read, a write or work that the program started has ended.
    Wake { program: u32, wake: Wake },
    /// A channel has become idle. All programs are called.
    ChannelIdle { channel: u32 },
}

/// Calls in the order in which they became due.
pub(crate) type ProgramCalls = VecDeque<ProgramCall>;
