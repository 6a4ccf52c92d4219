//! Modelled devices: one program for all tests, because each program links the crate again. The tests in
//! `../emulated.rs` need a process of their own.

mod closed_forms; // where theory gives the answer, the model gives the same
mod common; // drivers that the tests share
mod jasmine; // the prototype of ActiveSort: its raw figures
mod mapping; // the page map on flash: its traffic against formulas, and what it must not change
mod model; // reads return the written bytes
mod msr; // the SSD extension of DiskSim: its validation runs
mod physics; // what happens when parts of a device change; nothing is lost; runs repeat
mod presets; // the other presets against their sources
mod programs; // programs inside a device: what they see and what they cost
mod settings; // every parameter makes a difference
mod volume; // modelled devices as storages
