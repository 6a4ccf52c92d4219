//! The write buffer on board, and what is read ahead.

mod ahead;
mod buffer;

pub(crate) use ahead::{Found, ReadAhead};
pub(crate) use buffer::{Group, WriteBuffer};
