//! Results in a store: whole, or not there.
//!
//! ```text
//!   bytes ─► part ─► part ─► ...      each is sent while the next one is filled
//!                                └─► complete, the last step: only now there is an object
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `plan` | how large parts are, and their memory |
//! | `parts` | one upload: its parts in flight, its completion, its end after an error |
//! | `object` | a result that is one object |
//! | `folder` | a result that is a folder of objects, which are all completed at the end |
//! | `left` | uploads that a killed process left, which are aborted |

mod folder;
mod left;
mod object;
mod parts;
mod plan;

pub use folder::ObjectFolder;
pub use object::ObjectWriter;
pub use plan::UploadPlan;
