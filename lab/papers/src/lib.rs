//! The experiments of the papers, repeated: the paper's figure, ours, and the ratio.
//!
//! ```text
//!   list() ──► Experiment ── run(Setup, Progress, Caller) ──► Report ──► text   a table for people
//!              (one file)      lab    what it works with              ├─► json   for programs
//!                              outcome  the figures it found          └─► svg    a chart
//! ```
//!
//! Each experiment has one file in the folder of its paper. It has a function `run` that takes a
//! `Lab` and returns an `Outcome`, and a line in `experiment.rs`. The figures of a paper are
//! constants in the file of the experiment that repeats them.
//!
//! | folder | paper |
//! |---|---|
//! | `triton` | TritonSort: sorts in memory, and many files written at once |
//! | `activesort` | ActiveSort inside a modelled SSD |
//! | `isc` | In-Storage Computing for Hadoop, modelled |
//! | `ssd` | the device models against published figures |
//! | `hcdd` | HcDD: disks, deduplication and SSDs as one volume |
//!
//! Experiments that run whole processes need a checkout: `lab/bench/reproduce.py` there has them, and
//! `lab/bench/hadoop/compare.py` those on Hadoop's daemons.
//!
//! The crate does not know the command line. The program that calls it implements [`Caller`], which
//! says which folders are unfinished.
//!
//! ```
//! let names: Vec<&str> = merganser_papers::list().iter().map(|e| e.name).collect();
//! assert!(names.contains(&"triton-disk"));
//! ```

mod activesort;
mod error;
mod experiment;
mod folder;
pub mod hcdd;
mod isc;
mod lab;
mod look_alike;
mod machine;
mod outcome;
mod report;
mod ssd;
mod statistics;
mod triton;

pub use error::ExperimentError;
pub use experiment::{Experiment, list};
pub use lab::{Caller, ExperimentSetup};
pub use report::ExperimentReport;
