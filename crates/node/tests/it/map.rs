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

#[path = "map/support.rs"]
mod support;

#[path = "map/faults.rs"]
mod faults;
#[path = "map/keyed.rs"]
mod keyed;
#[path = "map/memory.rs"]
mod memory;
#[path = "map/ordered.rs"]
mod ordered;
#[path = "map/packed.rs"]
mod packed;
#[path = "map/sources.rs"]
mod sources;
#[path = "map/spills.rs"]
mod spills;
#[path = "map/views.rs"]
mod views;
