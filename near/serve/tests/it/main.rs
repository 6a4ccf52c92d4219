//! Sessions without a network, and calls through files: one program for all tests, because each program links the crate again.

mod session_wire; // golden bytes of the JSON of sessions
mod sessions; // the life and the limits of sessions
mod smart_fam; // smartFAM: kills, torn records, a full disk, too few open files
