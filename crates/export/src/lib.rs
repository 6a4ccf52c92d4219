//! Any read-only storage as a regular file, through FUSE.
//!
//! A [`Mount`] shows storages as files of exact size in one folder, so that programs that know
//! nothing of Merganser (`cat`, `cmp`, `tail -c`, DuckDB, anything with `mmap`) read them. A sorted
//! view *is* a read-only [`storage::Storage`], so mounting one needs nothing more than this.
//!
//! ```text
//!   program ── read ──► kernel page cache ── misses, readahead ──► /dev/fuse
//!                                                                     │ one reader: kernel's order
//!                                                                     ▼
//!   Storage ◄── one read a batch, in offset order ── workers ◄── lanes of the schedule
//!      └──────────── bytes, or the error as EIO ────────► replies, each request its part
//! ```
//!
//! - The content never changes, so the kernel may keep every page and attribute it has seen.
//! - A storage that makes its bytes when asked is fast in order and slow out of it. The requests
//!   of one sequential reader therefore form a *lane*: they reach the storage one after another
//!   in offset order, neighbours joined to reads of up to [`READ_BYTES_MAX`]. Different lanes run
//!   in parallel, one a worker.
//! - A failed or short read is `EIO` for exactly the requests it concerned, is told to
//!   [`MountOptions::on_error`] and comes back from [`Mount::run`]. Nothing is ever filled with
//!   zeros.
//!
//! Mounting is the system call `mount(2)` where the process may use it (root, or a user
//! namespace), and `fusermount3` where it may not.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::SystemTime;
//!
//! fn serve(view: Arc<dyn storage::Storage>) -> Result<(), export::Error> {
//!     let file = export::ExportedFile {
//!         name: "sorted.txt".into(),
//!         storage: view,
//!         modified: SystemTime::now(),
//!     };
//!     let mount = export::Mount::new(export::MountOptions {
//!         on_error: Some(Box::new(|e| eprintln!("merganser: {e}"))),
//!         ..export::MountOptions::new("/mnt/sorted", vec![file])
//!     })?;
//!     let unmounter = mount.unmounter();
//!     std::thread::spawn(move || {
//!         // ... when a signal or a user says so:
//!         unmounter.unmount()
//!     });
//!     mount.run()
//! }
//! ```

mod error;
mod filesystem;
mod mount;
mod mountpoint;
mod schedule;
mod server;

pub use error::Error;
pub use mount::{ExportedFile, Mount, MountOptions, OnError, Unmounter};

/// The largest read that one worker asks of a storage, in bytes, and the size of its buffer: a
/// mount holds `threads` times this much memory.
pub const READ_BYTES_MAX: usize = 1 << 20;
