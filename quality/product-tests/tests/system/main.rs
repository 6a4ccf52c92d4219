//! The finished command against the rest of the system: other programs, full disks, signals,
//! limits. One binary; each test has a folder of its own.
//!
//! - `differential`: random options and inputs, judged by the system's GNU `sort`
//! - `csv`: random csv through every command that reads it, judged by Python's module `csv`
//! - `formats`: fixed, csv and keyed records, judged by a naive sort
//! - `ssdlet`: projects, checks and lists of WebAssembly SSDlets, good and bad
//! - `view`: ranges of a view, judged by the sorted file
//! - `buckets`: views of buckets against views of runs, on every input of the test kit
//! - `faults`: full disks, vanished and damaged files, records that can't be right
//! - `devices`: typing errors in names of devices, and who may read members and disk images
//! - `disks`: temporary files on two file systems, where one runs full or vanishes; needs root
//! - `inputs`: unusual inputs: made-up files, too many files, closed descriptors, failures that look
//!   like a closed pipe, hostile names
//! - `streams`: standard output whose reader reads all, stops early, or never reads
//! - `crash`: killed at random moments, again and again
//! - `consume`: inputs and views that are consumed: killed at every step, changed meanwhile, refused in
//!   time, in little space
//! - `sandbox`: where io_uring is refused, by a seccomp filter
//! - `limits`: refused memory and refused threads, by resource limits
//! - `hostile`: views with right checksums and wrong numbers
//! - `memory`: the memory limit of a sort, enforced by a memory control group
//! - `map`: SSDlets over records: results, inputs, forms, memory, kills
//! - `pipeline`: stages over partitions: results, failures, kills
//! - `blast`: BLAST over partitions, judged by BLAST in one piece
//! - `mount`: a mounted view, read by the programs that people use
//! - `emulate`: emulated disks: kills, signals, and whether programs wait as long as the model says
//! - `export`: views served to NBD clients
//! - `ready`: servers and mounts that tell a service manager when they answer
//! - `apart`: reports and tables that are named like an input or the result
//! - `array`: a volume served to NBD clients and killed, again and again
//! - `reported`: what reports and attacks found, a script for each
//!
//! Chance comes from `MERGANSER_SEED`, which every failure names. `MERGANSER_GNU_CASES`,
//! `MERGANSER_BLAST_CASES`, `MERGANSER_CSV_CASES`, `MERGANSER_CRASHES` and `MERGANSER_DAMAGES` ask for more cases than a quick run takes.
//! `MERGANSER` names another binary to test.
#![allow(clippy::print_stderr, reason = "skipped tests and seeds are printed")]
#![cfg_attr(
    not(feature = "whole"),
    allow(dead_code, unused_imports, reason = "other wings use them")
)]

#[cfg(feature = "whole")]
mod apart;
#[cfg(feature = "array")]
mod array;
#[cfg(feature = "near")]
mod blast;
mod buckets;
mod consume;
mod crash;
mod csv;
#[cfg(feature = "whole")]
mod devices;
mod differential;
#[cfg(feature = "whole")]
mod disks;
#[cfg(feature = "lab")]
mod emulate;
#[cfg(feature = "whole")]
mod export;
mod faults;
mod formats;
mod harness;
mod hostile;
mod inputs;
mod limits;
#[cfg(feature = "near")]
mod map;
mod memory;
mod mount;
#[cfg(feature = "near")]
mod pipeline;
mod preload;
mod ready;
#[cfg(feature = "whole")]
mod reported;
mod sandbox;
#[cfg(feature = "near")]
mod ssdlet;
#[cfg(feature = "whole")]
mod streams;
mod view;
