//! The device models: against published figures, and write buffers against one another.

pub(crate) mod buffer;
pub(crate) mod validate;
