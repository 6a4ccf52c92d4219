//! The network door, with our own client: one file per part.

mod farm;
mod harness;
mod hostile;
mod security;
mod sessions;
mod views;
