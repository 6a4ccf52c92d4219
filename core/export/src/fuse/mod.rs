//! Storages as regular files of exact size in one folder, through FUSE.
//!
//! ```text
//!   program ── read ──► kernel page cache ── misses, readahead ──► /dev/fuse
//!                                                                     │ one reader: kernel's order
//!                                                                     ▼
//!                                                       reads, each answered when it is done
//! ```
//!
//! - The content never changes, so the kernel may keep every page and attribute it has seen.
//! - A failed or short read is `EIO` for exactly the requests it concerned, is passed to
//!   [`MountOptions::on_error`] and comes back from [`Mount::run`].
//!
//! A disk ([`Mount::disk`]) is one file that can be written, too. Its requests bypass the page cache and
//! the queue: each goes to the storage when the kernel sends it.
//!
//! Mounting is the system call `mount(2)` where the process may use it (root, or a user
//! namespace), and `fusermount3` where it may not.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::SystemTime;
//!
//! use merganser_export::fuse::{ExportedFile, Mount, MountOptions};
//!
//! fn serve(view: Arc<dyn merganser_storage::Storage>) -> Result<(), merganser_export::Error> {
//!     let file = ExportedFile {
//!         name: "sorted.txt".into(),
//!         storage: view,
//!         modified: SystemTime::now(),
//!     };
//!     let mount = Mount::new(MountOptions {
//!         on_error: Some(Box::new(|e| eprintln!("merganser: {e}"))),
//!         ..MountOptions::new("/mnt/sorted", vec![file])
//!     })?;
//!     let unmounter = mount.unmounter();
//!     std::thread::spawn(move || {
//!         // ... when a signal or a user says so:
//!         unmounter.unmount()
//!     });
//!     mount.run()
//! }
//! ```

mod disk;
mod filesystem;
mod mount;
mod mountpoint;
mod requests;

pub use mount::{DiskOptions, ExportedFile, Mount, MountOptions, Unmounter};
