//! The write buffer and the read-ahead buffer.

mod ahead;
mod buffer;

pub(crate) use ahead::{Found, ReadAhead};
pub(crate) use buffer::{Group, WriteBuffer};
