//! Modelled hardware: what a storage device does, in virtual time.

pub mod request;
