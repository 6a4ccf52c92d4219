//! What every modelled device is built from: virtual time, an event queue, random numbers of one
//! seed, and things that do one job at a time.

mod engine;
mod random;
mod resource;

pub use engine::{Engine, Event};
pub use random::Random;
pub use resource::{Resource, Service};
