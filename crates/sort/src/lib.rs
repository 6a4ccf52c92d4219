//! The engine.
pub mod key;
pub mod record;
