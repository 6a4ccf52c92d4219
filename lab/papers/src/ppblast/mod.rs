//! pp-mpiBLAST, chapter 4 of the dissertation: a storage node formats a partition of a database while the
//! compute nodes search the one before.
//!
//! ```text
//!   format, elapsed, speedup, partition     one experiment each: what is measured, what is compared
//!        │
//!        ├──► runs      a database that is formatted and searched: whole, in partitions, in two pools
//!        │      ├──► results    what such a run gives: seconds, hits, the pipeline's own report
//!        │      └──► bed      two processors, a memory group, programs that are timed
//!        │             ├──► tools      makeblastdb, blastp, mpirun
//!        │             └──► data       real and generated sequences, and queries
//!        ├──► reorder   how long formatdb's reads in order of length take on modelled disks
//!        ├──► line      straight lines through figures
//!        └──► paper     the chapter's figures, and where they contradict one another
//! ```
//! The paper has a storage node, twelve compute nodes, and 2 GB of memory in each. Here one processor is the
//! storage node and another one the compute nodes, and a memory group keeps the ratio of data to memory.

mod bed;
mod data;
pub(crate) mod elapsed;
pub(crate) mod format;
mod line;
mod paper;
pub(crate) mod partition;
mod reorder;
mod results;
mod runs;
pub(crate) mod speedup;
mod tools;
