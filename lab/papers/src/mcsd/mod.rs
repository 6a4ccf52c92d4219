//! A memory group for experiments that run processes.

pub(crate) mod group;
