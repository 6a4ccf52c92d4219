//! Modelled hardware: what a storage device does, in virtual time.
//!
//! A [`device::Device`] takes commands at times, and ends them at times that follow from its parts:
//! link, queue, write buffer, page map, flash, processor, memory ([`ssd`]). What the parts are like
//! is a [`profile`]: a preset with sources, and overrides. Data are really stored.
//!
//! ```text
//!   a trace, a generator ── Command ──►  Device  ── Done ──► results
//!   any program ── Storage, Directory ──► simulated::World ──► its devices, one clock
//!   ActiveSort and its kind ── storage::near::Program ──► inside an ssd::Ssd
//! ```
//!
//! Equations, sources and what was checked against published figures: docs/device-model.md.
//!
//! ```
//! use device::profile::SsdProfile;
//! use device::simulated::{HostCosts, SimulatedDirectory, World};
//! use device::ssd::Ssd;
//! use storage::{Clock, Directory, StorageExt};
//!
//! let mut profile = SsdProfile::preset("jasmine")?;
//! profile.set("channels=8")?;
//! let world = World::new(vec![Box::new(Ssd::new(&profile, 1)?)], HostCosts::default());
//! let volume = SimulatedDirectory::new(&world, 0);
//! let file = volume.create("numbers")?;
//! file.write_at(0, &[7; 100_000])?;
//! assert_eq!(file.read_vec(99_999, 1)?, [7]);
//! assert!(world.now_ns() > 2_000_000, "a page takes 1.3 ms to program alone");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod device;
pub mod profile;
pub mod request;
pub mod sim;
pub mod simulated;
pub mod ssd;
