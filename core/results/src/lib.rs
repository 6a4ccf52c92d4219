//! What a folder of unfinished work says of itself.
//!
//! A command that was killed leaves a folder next to its result. Whoever finds it must know what is in it, without the
//! program that made it: whether the records are anywhere else, and what continues the work. The formats of these
//! descriptions are here; the programs that write them stand above.
//!
//! [`pipeline`] is the journal of a pipeline of programs. The journal of a sort that consumes its inputs is
//! [`merganser_sort::journal`].

pub mod pipeline;
