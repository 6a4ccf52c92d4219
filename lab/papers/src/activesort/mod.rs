//! ActiveSort: merges inside a modelled SSD, in virtual time. The figures are the same on every
//! machine.

mod aim;
pub mod channels;
mod data;
pub mod host;
pub mod sort;
mod swap;
pub mod throughput;
