//! The write buffer and the read-ahead buffer.

mod ahead;
mod buffer;

pub(crate) use ahead::{AheadState, ReadAhead};
pub(crate) use buffer::{ProgramGroup, WriteBuffer};
