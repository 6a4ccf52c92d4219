//! Full members, failing members, members in wrong places, and damage.

mod damage;
mod duplicates;
mod members;
mod unreadable;
