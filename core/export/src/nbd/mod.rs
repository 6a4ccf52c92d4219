//! Storages as exports of a network block device (NBD) server, read-only or writable.
//!
//! Clients are `nbdcopy`, `qemu-img`, virtual machines, and the kernels of Linux and others; they
//! reach a Unix socket or a TCP port. The protocol is public: "The NBD protocol", `doc/proto.md` of
//! NetworkBlockDevice/nbd.
//!
//! ```text
//!   client ──► handshake ──► transmission ──► reads (shared by all clients)
//!     ▲          option         request           │ each read answers
//!     │                                           ▼
//!     └──────────── writer ◄──────────────────── outbox (bounded, one a client)
//! ```
//!
//! Whatever a client does, it harms itself alone: what it may have asked for and not yet read is
//! bounded, in requests and in bytes; a client that stalls holds its own two threads and that
//! much memory; one that breaks the protocol is hung up on; and one that does not come to the point
//! loses its place. A failed read is an error of that request, with the storage's own words where
//! replies are structured.
//!
//! A writable export takes writes, trims, zeros and flushes, and FUA with each of the first three. What
//! was answered before a flush is durable after it, whichever connections the two came from.
//!
//! A device export ([`Export::device`]) is writable, and its storage decides when each request ends: nothing
//! is joined, put in order, or held back until another request is answered.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use merganser_export::nbd::{Address, Export, NbdServer, NbdOptions};
//!
//! fn serve(view: Arc<dyn merganser_storage::Storage>) -> Result<(), merganser_export::Error> {
//!     let exports = vec![Export::read_only("sorted", view)];
//!     let address = Address::Unix("/run/sorted.sock".into());
//!     let server = NbdServer::new(NbdOptions::new(address, exports))?;
//!     let stopper = server.stopper();
//!     std::thread::spawn(move || {
//!         // ... when a signal or a user says so:
//!         stopper.stop()
//!     });
//!     server.run() // meanwhile: nbdcopy 'nbd+unix:///sorted?socket=/run/sorted.sock' sorted.txt
//! }
//! ```

mod device;
mod handshake;
mod outbox;
mod replies;
mod server;
mod transmission;
mod wire;
mod writes;

use crate::READ_BYTES_MAX;
use outbox::InFlight;

pub use merganser_server::{Address, ListenError, Stopper};
pub use server::{Access, Export, NbdOptions, NbdServer, serve_streams};

/// Clients that may be connected at once. One more takes the place of the client that is idle for
/// longest, and is hung up on where none is idle.
pub const CONNECTIONS_MAX: usize = 32;
/// The longest read that a client may ask for, in bytes; the least that the protocol asks of
/// servers.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// The size in bytes that aligned reads should at least have, announced to clients. Any read is
/// served, but clients make block sizes of this, and kernels know none above their page.
const BLOCK_BYTES_PREFERRED: u32 = 4096;
/// The most that a client may have asked for and not yet read: enough to keep reading while replies are
/// written.
const IN_FLIGHT: InFlight = InFlight { requests: 32, bytes: IN_FLIGHT_BYTES_MAX };
/// The same of a device, whose queue the client fills: 32 requests of 1 MiB and more, or 256 small ones.
const DEVICE_IN_FLIGHT: InFlight = InFlight { requests: 256, bytes: 64 << 20 };
const IN_FLIGHT_BYTES_MAX: usize = 4 << 20;
/// More room for replies than this, in bytes, is no use to all clients together.
pub const REPLY_BYTES_USEFUL: usize = CONNECTIONS_MAX * (IN_FLIGHT_BYTES_MAX - READ_BYTES_MAX);
/// The same for one client of a device.
pub const DEVICE_REPLY_BYTES_USEFUL: usize = DEVICE_IN_FLIGHT.bytes - READ_BYTES_MAX;
