//! Exports to real clients: one program for all tests, because each program links the crate again.

mod disk; // a mount of a disk that can be written
mod mount; // mounts that are read
mod nbd; // an NBD server and its clients
