//! ActiveSort: merges inside a modelled SSD, in virtual time. The figures are the same on every
//! machine.

mod aim;
pub(crate) mod channels;
mod data;
pub(crate) mod host;
pub(crate) mod sort;
mod swap;
pub(crate) mod throughput;
