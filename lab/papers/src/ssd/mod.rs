//! The device models: against published figures, and write buffers against one another.

pub mod buffer;
pub mod validate;
