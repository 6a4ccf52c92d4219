//! Any storage for programs that know nothing of Merganser: as a regular file, or as a
//! network block device.
//!
//! A sorted view *is* a read-only [`merganser_storage::Storage`], so showing one needs nothing more than
//! this. There are two doors, and one way behind them:
//!
//! ```text
//!   fuse  file of exact size in a folder ──┐ requests
//!                                          ▼
//!              reads: lanes of the schedule ── one read a batch, in offset order ──► Storage
//!                                          ▲           workers
//!   nbd   exports of a socket, by name ────┘ replies, each request its part, or the error
//! ```
//!
//! - A storage that makes its bytes when asked is fast in order and slow out of it. The requests
//!   of one sequential reader therefore form a *lane*: they reach the storage one after another
//!   in offset order, neighbours joined to reads of up to [`READ_BYTES_MAX`]. Different lanes run
//!   in parallel, one a worker.
//! - An export of NBD may be writable. Writes don't pass the lanes; each is answered when it is done.
//! - A device (a disk that is mounted, or a device export) passes no lanes at all: each request reaches
//!   the storage alone, at its moment.
//! - A failed or short read is an error for exactly the requests it concerned. Nothing is ever
//!   filled with zeros.

mod error;
mod failures;
pub mod fuse;
pub mod nbd;

mod reads;
mod spare;

pub use error::Error;
pub use failures::OnError;

/// The largest read that one worker asks of a storage, in bytes, and the size of its buffer: a
/// mount or server holds `threads` times this much memory.
pub const READ_BYTES_MAX: usize = 1 << 20;
