//! Operations that wait for entries of the page map: what is in flight. `map_entries` says how they wait.

use slab::Slab;

use crate::ssd::nand::timing::Op;

/// Operations of a request, and the units whose entries they need.
#[derive(Debug, Default)]
pub(crate) struct AfterLookup {
    pub units: Vec<u32>,
    pub ops: Vec<Op>,
}

/// A lookup in flight.
#[derive(Debug)]
struct Lookup {
    /// Operations of the map that were not begun, the next one last.
    awaited: Vec<Op>,
    /// The operations that wait.
    then: Vec<Op>,
}

/// The lookups in flight by number; numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct Lookups(Slab<Lookup>);

impl Lookups {
    /// A lookup whose operations of the map are `awaited`, the first one first. `then` waits for all of them.
    pub(super) fn add(&mut self, mut awaited: Vec<Op>, then: Vec<Op>) -> u32 {
        awaited.reverse();
        self.0.insert(Lookup { awaited, then }) as u32
    }

    /// The next operation of the map that a lookup awaits.
    pub(super) fn next(&mut self, number: u32) -> Option<Op> {
        self.0[number as usize].awaited.pop()
    }

    /// Ends a lookup that awaits nothing more, and gives the operations that waited.
    pub(super) fn end(&mut self, number: u32) -> Vec<Op> {
        self.0.remove(number as usize).then
    }
}
