//! The network door, with our own client: one file per part.

mod farm;
mod harness;
mod hostile;
mod hostile_node;
mod security;
mod sessions;
mod views;
