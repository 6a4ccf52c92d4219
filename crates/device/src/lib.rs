//! Modelled hardware: what a storage device does, in virtual time.

pub mod device;
pub mod hdd;
pub mod profile;
pub mod request;
pub mod results;
pub mod sim;
pub mod simulated;
pub mod ssd;
pub mod trace;
pub mod workload;
