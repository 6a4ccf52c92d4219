//! Hybrid volumes: one program for all tests, because each program links the crate again.

mod common; // volumes to build, their model, members that fail, tear, delay or change what they hold
mod crafted; // members with right checksums and wrong numbers
mod crash; // power cuts at chosen places
mod faults; // members that are full, fail, change places or are damaged
mod mutated; // members that are changed at random places
mod salvage; // copies of what is good of a volume that stays closed
mod torture; // random operations, power cuts and failures against a model
mod versions; // volumes that earlier versions made
