//! Modelled devices as storages: what runs on a disk runs on them, in virtual time.
//!
//! ```text
//!   caller ── submit ──► SimulatedStorage, SimulatedDirectory ──► World: devices, one time
//!     └── Completions::wait ── clock().advance() ── the next event of any device ──┘
//! ```
//!
//! A [`World`] owns the devices and the time that they and the host share. Time moves when somebody
//! waits, to the next event of any device, and when the host charges its own work. With one thread a
//! run is the same every time; several threads share the time, and their order is the machine's.

mod directory;
mod storage;
mod world;

pub use directory::SimulatedDirectory;
pub use storage::SimulatedStorage;
pub use world::{HostCosts, World};
