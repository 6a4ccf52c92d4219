//! Programs that answer a host's requests from inside a storage device.
//!
//! A program ([`merganser_storage::near::NearProgram`]) sees a device's pages, processor and memory and never
//! blocks. It runs inside a modelled device, in virtual time, or over any real storage
//! ([`run::Runner`]); it is the same code.
//!
//! - [`isc`] runs SSDlets in sessions.
//! - [`active_sort`] merges sorted chunks while the host reads the result.
//! - [`place`] tells where a file's bytes are on a device, for a program inside it.

pub mod active_sort;
pub mod isc;
pub mod place;
pub mod run;
