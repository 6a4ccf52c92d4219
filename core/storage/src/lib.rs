//! The seam of Merganser: bytes that can be read, written and synced.
//!
//! [`Storage`] is one addressable stretch of bytes (a file, a region of a device, a sorted view);
//! [`Directory`] is where named storages live. Work is *submitted* and later *completes*: queue
//! depth is what an SSD is about, and a modelled [`Clock`] can only move between completions.
//! Blocking helpers ([`StorageExt`]) sit on top.
//!
//! ```text
//!   caller ── submit(token, Operation{buffer}) ──► Storage
//!     ▲                                              │   file::  io_uring + O_DIRECT, or threads
//!     └──── Completions::wait() ◄── Completion ──────┘   memory:: a vector
//! ```
//!
//! A layer has the same face as what it wraps: fault injection, modelled devices and views all
//! implement [`Storage`], so they stack in any order. This crate knows no other crate.
//!
//! Six modules are no storage: [`thread`] starts threads that the system may refuse, [`contained`] keeps
//! a panic to the work of one client, [`prefetch`] asks for memory before it is used, [`page_size`] says which pages
//! back large buffers, [`numbers`] converts sizes, and [`address`] knows the names that are no names of files.

// Tests cut numbers to bytes on purpose.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod address;
mod buffer;
mod clock;
pub mod closable;
mod completion;
pub mod contained;
mod directory;
mod directory_ext;
pub mod file;
pub mod memory;
pub mod metered;
pub mod near;
pub mod numbers;
mod operation;
pub mod page_size;
pub mod prefetch;
pub mod region;
pub mod spread;
pub mod thread;
pub mod wrapped;

pub use buffer::{ALIGNMENT, Backing, Buffer};
pub use clock::{Clock, RealClock, Work};
pub use completion::{Collect, Completion, Completions};
pub use directory::{Directory, Hold};
pub use directory_ext::DirectoryExt;
pub use operation::{Geometry, Operation, Storage, StorageExt};
