//! Full members, failing members, members in wrong places, and damage.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod duplicates;
mod members;
mod unreadable;
