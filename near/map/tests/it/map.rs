//! The map engine: results do not depend on chunks, threads, partitions and memory.
//!
//! - `keyed` every combine against a naive model; spills; memory
//! - `ordered` records leave in the order of the input
//! - `sources` every record once, whatever cuts the input
//! - `packed` compressed inputs against the plain one
//! - `memory` the least is named, and it works
//! - `spills` data of many times the memory
//! - `views` results as views, and who may read them
//! - `faults` what fails, and what is left then

mod support;

mod faults;
mod keyed;
mod memory;
mod ordered;
mod packed;
mod sources;
mod spills;
mod views;
