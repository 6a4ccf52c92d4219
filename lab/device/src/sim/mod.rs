//! The basis of every modelled device: virtual time, an event queue, random numbers from one seed,
//! and resources that do one job at a time.

mod engine;
mod resource;

pub use engine::{EventQueue, SimEvent};
pub use resource::{Resource, ServiceTime};
