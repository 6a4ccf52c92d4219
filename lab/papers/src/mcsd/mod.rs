//! McSD: MapReduce on a storage node whose data is nearly as large as its memory.
//!
//! ```text
//!   single, partition, pairs      one experiment each: what is measured, and the paper's figures
//!        │
//!        ▼
//!   contest ──► group             programs and jobs, timed in a memory group with a swap file
//!        │
//!        ├────► phoenix           the controls, built from a folder of sources
//!        ├────► text              the data
//!        └────► job               what they do
//! ```
//! The paper's machine has 2 GB. Here a memory group has less, and the data keeps its share of it.

mod contest;
pub(crate) mod group;
mod job;
pub(crate) mod pairs;
pub(crate) mod partition;
mod phoenix;
pub(crate) mod single;
mod text;
