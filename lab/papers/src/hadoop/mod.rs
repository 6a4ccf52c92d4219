//! ActiveSort's jobs on Hadoop, with its merge in a process next to the NodeManager.

pub mod elapsed;
pub mod io;
pub mod memory;
pub mod nodes;
pub mod reducers;
mod results;
