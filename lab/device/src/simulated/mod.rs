//! Modelled devices as storages: a program that runs on a disk runs on them, in virtual time.
//!
//! ```text
//!   caller ── submit ──► SimulatedStorage, SimulatedDirectory ──► World: devices, one time
//!     └── Completions::wait ── clock().advance() ── the next event of any device ──┘
//! ```
//!
//! A [`World`] owns the devices and the time that they share with the host. Time moves in two ways:
//! when a caller waits, it moves to the next event of any device; and it moves when the host
//! charges its own work. A run with one thread is the same every time. Several threads share the
//! time, and the operating system decides their order.

mod directory;
mod storage;
mod world;

pub use directory::SimulatedDirectory;
pub use storage::SimulatedStorage;
pub use world::{HostCosts, World};
