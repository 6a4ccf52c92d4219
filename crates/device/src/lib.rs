//! Modelled hardware: what a storage device does, in virtual time.

pub mod device;
pub mod profile;
pub mod request;
pub mod sim;
pub mod simulated;
pub mod ssd;
