//! HcDD: a volume of hard disks, deduplication and SSDs, after chapter 5 of Ding's dissertation, "An
//! Active and Hybrid Storage System for Data-intensive Applications" (Auburn, 2011).
//!
//! ```text
//!   user ── Storage ──► Volume ── write ──► log on the buffer members (hard disks, RAID 0)
//!                          │                  │ migration, in order
//!                          │                  ▼
//!                          │               store: fingerprint, look-up, share or store, remove
//!                          └── read ───────►  │ maps, index and pages on the data members (SSDs, RAID 0)
//!                               (log first)
//! ```
//!
//! A [`Volume`] is a [`merganser_storage::Storage`] over others, so it can be exported, and be stacked.
//! Its promises:
//!
//! - A write is old or new in each page of 4096 bytes until it was flushed, and new from then on,
//!   whatever ends the process or the power.
//! - Each page and each block of maps has a checksum. Damage is an error, and never data.
//! - Memory is bounded by [`OpenOptions::memory_bytes`] and a few MB for each TB.
//!
//! ```
//! use std::sync::Arc;
//! use merganser_array::{Members, OpenOptions, VolumeSettings, Volume};
//! use merganser_storage::memory::MemoryStorage;
//! use merganser_storage::{Operation, Storage, StorageExt};
//!
//! let disk = |name: &str| {
//!     let disk = MemoryStorage::new(name);
//!     disk.run(Operation::SetSize { size: 16 << 20 }).expect("sized");
//!     disk as Arc<dyn Storage>
//! };
//! let members = Members {
//!     data: vec![disk("ssd0"), disk("ssd1")],
//!     buffer: vec![disk("hdd0"), disk("hdd1")],
//! };
//! Volume::create("vol", &members, &VolumeSettings::new(8 << 20), false)?;
//! let volume = Volume::open("vol", &members, OpenOptions::default())?;
//! volume.write_at(4096, b"a page, or less")?;
//! volume.sync()?;
//! assert_eq!(volume.read_vec(4096, 6)?, b"a page");
//! volume.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Formats, states and limits: docs/array/array.md.

// Tests cut numbers to bytes on purpose.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod bulk;
mod bytes;
mod check;
mod counters;
mod error;
mod fingerprint;
mod flights;
#[doc(hidden)]
pub mod formats;
#[cfg(test)]
mod golden;
mod index;
mod journal;
mod label;
mod layout;
mod log;
pub mod outline;
mod overlay;
mod raid;
mod salvage;
mod sessions;
mod settings;
mod states;
mod store;
mod superblock;
mod table;
mod volume;

pub use check::{Finding, VolumeCheck};
pub use counters::VolumeCounters;
pub use error::{Error, Result};
pub use fingerprint::content_hash;
pub use label::Role;
pub use raid::{MemberPart, Raid0, Striping};
pub use salvage::{Salvage, Trust};
pub use settings::{Hash, MEMORY_BYTES_MIN, Migration, OpenOptions, VolumeSettings};
pub use volume::{Members, Migrator, Volume, VolumeDescription, VolumeSpace, VolumeUsage};
