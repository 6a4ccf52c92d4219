//! What runs near the data: programs that answer a host's requests from inside a storage device or on
//! a storage node.
//!
//! A program ([`merganser_storage::near::Program`]) sees a device's pages, processor and memory and never
//! blocks. It runs inside a modelled device, in virtual time, or over any real storage
//! ([`run::Runner`]); it is the same code.
//!
//! - [`isc`] runs SSDlets in sessions.
//! - [`active_sort`] merges sorted chunks while the host reads the result.
//!
//! [`smart_fam`] calls SSDlets through files in a shared folder. [`shuffle`] is a service of a storage node: it merges Hadoop's spills while reducers fetch them.

pub mod active_sort;
mod beneath;
pub mod frame;
pub mod isc;
pub mod map;
pub mod matrix;
pub mod place;
pub mod run;
pub mod session;
pub mod shuffle;
pub mod smart_fam;
pub mod ssdlet;
mod table;
