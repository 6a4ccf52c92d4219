//! The library as programs use it, in temporary folders and without a process: names, claims, folders of unfinished
//! work, copies and leftovers.

mod claims;
mod copying;
mod folders;
mod interrupted;
mod leftovers;
mod names;
mod outputs;
mod place;
