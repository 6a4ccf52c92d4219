//! The ordered bytes, written out: to a file in whole pages straight from the merge's buffers, or
//! to anything that takes bytes.

mod compressed;
mod consume;
mod copy;
mod copy_view;
mod file;
mod ordered;
mod resume;

pub use compressed::Compressed;
pub use consume::{Materialize, PARTIAL_NAME, Publish, finish, forget, materialize};
pub(crate) use copy::{Follow, Out, copy};
pub(crate) use file::{ALLOCATE_BYTES, FileSink};
pub(crate) use ordered::{InTurn, Top};
pub use resume::{RESUME_NAME, Resume};
