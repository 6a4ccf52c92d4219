//! Work that several threads do and that leaves in order: written once, used by every stage.
//!
//! ```text
//!   ordered   items ──claimed in order──► workers make them ahead ──► made, taken in order by a reader
//!   turns     items ──any order─────────► workers ──in turn──► each acts on one thing, in order
//!   crew      threads of a scope that fail together: the first real error wins, a panic stops all
//! ```
//!
//! | who | what |
//! |---|---|
//! | `merge::stream` | `ordered`: windows; as many as memory holds are ahead of the reader |
//! | `distribute::stream` | `ordered`: pieces of buckets; each claims its memory in order |
//! | `distribute::store` | `turns`: batches are appended in input order; its threads are a `crew` |
//! | `output::ordered` | `turns`: pieces of one chunk into a stream |
//! | `generate` of the command line | `turns`: blocks of records; its threads are a `crew` |
//!
//! `distribute::one_pass::work` is of another shape: see there. Reading ahead by one thread
//! (`sorter::form`) is a channel.
//!
//! With `threads: 0` the caller's thread makes each item when it wants it, and nothing overlaps. Modelled clocks
//! need this, and the engine asks no clock what it is.

mod crew;
pub(crate) mod ordered;
#[cfg(test)]
mod tests;
mod turns;

pub use crew::{Crew, FirstError, Stops};
pub use turns::{Turn, Turns};

/// Which threads work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workers {
    count: usize,
    own: bool,
}

impl Workers {
    /// `threads` threads in addition to the caller's. With 0 the caller's thread is alone, and nothing
    /// overlaps.
    pub(crate) fn new(threads: usize) -> Self {
        Workers { count: threads.max(1), own: threads == 0 }
    }

    /// How many work at once, at least 1.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// Whether the caller's own thread is the only one.
    pub(crate) fn are_own(self) -> bool {
        self.own
    }
}
