//! Modelled hardware: storage devices in virtual time.
//!
//! A [`device::Device`] gets commands at their arrival times. It computes when each one ends from
//! the work of its components: link, queue, write buffer, page map, flash, processor, memory
//! ([`ssd`]). The parameters of the components are a [`profile`]: a preset, with the source of each
//! value, and overrides. The devices really store the data.
//!
//! ```text
//!   a trace, a generator ── Command ──►  Device  ── Done ──► results
//!   any program ── Storage, Directory ──► simulated::World ──► its devices, one clock
//!   any program, in real time ── emulated::Emulated ──► a Device, against the wall clock
//!   ActiveSort and its kind ── merganser_storage::near::Program ──► inside an ssd::Ssd
//! ```
//!
//! docs/lab/device-model.md has the equations, the sources, and the published figures that the models
//! were compared with.
//!
//! ```
//! use merganser_device::profile::SsdProfile;
//! use merganser_device::simulated::{HostCosts, SimulatedDirectory, World};
//! use merganser_device::ssd::Ssd;
//! use merganser_storage::{Clock, Directory, StorageExt};
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
pub mod emulated;
pub mod hdd;
pub mod profile;
pub mod request;
pub mod results;
pub mod sim;
pub mod simulated;
pub mod ssd;
pub mod trace;
pub mod workload;
