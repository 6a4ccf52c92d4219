//! Storages: one program for all tests, because each program links the crate again. The test in
//! `../shutdown.rs` needs a process of its own.

mod file; // real files: what only they can do
mod model; // every storage against a plain vector, over random operations
mod places; // links, FIFOs and files of other users in the place of a file
