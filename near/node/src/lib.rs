//! What runs near the data: programs that answer a host's requests from inside a storage device or on
//! a storage node.
//!
//! A program ([`merganser_storage::near::NearProgram`]) sees a device's pages, processor and memory and never
//! blocks. It runs inside a modelled device, in virtual time, or over any real storage
//! ([`run::Runner`]); it is the same code.
//!
//! - [`isc`] runs SSDlets in sessions.
//! - [`active_sort`] merges sorted chunks while the host reads the result.
//!
//! Other modules are parts of a process on the node:
//!
//! - [`ssdlet`] is the trait of programs over records, with the built-in ones. [`map`] runs one over
//!   inputs of any size, [`session`] for clients, [`smart_fam`] through files in a shared folder.
//! - [`matrix`] multiplies matrices larger than memory.
//! - [`pipeline`] runs stages of any programs over partitions of a stream. [`blast`] makes BLAST over partitions exact.
//! - [`shuffle`] merges Hadoop's spills while reducers fetch them.
//! - [`hdfs`] runs map tasks of Hadoop on the blocks of this node.
//!
//! Three doors lead to the same SSDlets: `session`, which has no network itself and which the crate
//! `merganser-flight` carries over Arrow Flight; `smart_fam`, over files; and `isc`, over reads and writes of a
//! device. A hostile client can end its own session only. `message` and `talk` are what the protocols of `shuffle`
//! and `hdfs` have in common.

pub mod active_sort;
mod beneath;
pub mod blast;
pub mod frame;
pub mod hdfs;
pub mod isc;
pub mod map;
pub mod matrix;
mod message;
pub mod pipeline;
pub mod place;
pub mod run;
pub mod session;
pub mod shuffle;
pub mod smart_fam;
pub mod ssdlet;
mod table;
mod talk;
