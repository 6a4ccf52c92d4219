//! The map engine, its SSDlets and matrices: one program for all tests, because each program links the crate again.

mod builtin; // the built-in SSDlets against naive models, cut anywhere
mod map; // the map engine against naive models
mod matrix; // products of matrices
mod virtual_time; // the engine on a modelled SSD: right results, repeatable times
