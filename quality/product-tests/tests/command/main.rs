//! The command as its users see it. One binary; each test has a folder of its own.
//!
//! - `advise_job`: the table of predictions in the docs, held against today's model
//! - `count`: equal records, counted within a limit of memory
//! - `dropin`: in the place of GNU `sort`, under its name: random command lines next to it
//! - `hdfs`: map tasks of Hadoop, as a process; signals, kills
//! - `header_lines`: headers of lines by their prefix, on every road of a sort
//! - `help`: the help texts, the manual and the completions, as golden files
//! - `kept`: files of released versions, which later ones read
//! - `mistakes`: mistakes of users, and the sentence that each one gets; few descriptors
//! - `node`: sessions of a node, as a process; memory, refusals
//! - `generate`: test data, judged by `sha256sum`
//! - `magic`: what a file is, for every command; outputs whose names say that they are compressed
//! - `packed`: compressed inputs of sorts and checks
//! - `places`: links, FIFOs and files of other users in the place of outputs and of a view's files
//! - `reproduce`: each experiment of the papers, tiny
//! - `readme`: the examples of the README and the guides
//! - `reports`: the reports of every command that writes one
//! - `sequences`: FASTA and FASTQ, sorted, read in parts, checked, made
//! - `serve`: Hadoop's merges, as a process; signals, kills; advice
//! - `smart_fam`: calls through files, as a process; kills, torn requests, stops
//! - `simulate`: modelled devices: workloads, traces, sorts
//! - `simulate_over_time`: several workloads at once, steady states, a page map on flash
//! - `telling`: what long work says, in logs and at its end
//! - `usage`: arguments that can't be right, exit statuses, pipes and signals
//! - `verify`: checking, compared with GNU sort
//! - `views`: views made, read in parts, verified, copied out
//! - `wings`: commands that other programs have
#![cfg_attr(
    not(feature = "whole"),
    allow(dead_code, unused_imports, reason = "other wings use them")
)]

#[cfg(feature = "lab")]
mod active_sort;
#[cfg(feature = "whole")]
mod advise_job;
mod count;
mod dropin;
mod generate;
#[cfg(feature = "hadoop")]
mod hdfs;
mod header_lines;
#[cfg(feature = "whole")]
mod help;
#[cfg(feature = "whole")]
mod kept;
#[cfg(feature = "whole")]
mod magic;
#[cfg(feature = "whole")]
mod mistakes;
#[cfg(feature = "near")]
mod node;
mod packed;
mod places;
#[cfg(feature = "whole")]
mod readme;
mod reports;
#[cfg(feature = "lab")]
mod reproduce;
#[cfg(feature = "whole")]
mod sequences;
#[cfg(feature = "hadoop")]
mod serve;
#[cfg(feature = "lab")]
mod simulate;
#[cfg(feature = "lab")]
mod simulate_over_time;
#[cfg(feature = "near")]
mod smart_fam;
mod telling;
mod usage;
mod verify;
mod views;
#[cfg(feature = "whole")]
mod wings;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// `merganser` with these arguments, in `dir`, with nothing to read.
fn merganser<S: AsRef<OsStr>>(dir: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new(merganser_testkit::program());
    command.args(arguments).current_dir(dir).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// A folder that goes away with the test.
fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Runs it, expects success and silence on stderr, and returns its output.
fn prints<S: AsRef<OsStr>>(dir: &Path, arguments: &[S]) -> Vec<u8> {
    let output = merganser(dir, arguments).output().expect("it starts");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    output.stdout
}

/// Runs it and expects status 2, nothing on stdout and one sentence on stderr; gives the sentence
/// without the name of the command.
fn fails<S: AsRef<OsStr>>(dir: &Path, arguments: &[S]) -> String {
    let output = merganser(dir, arguments).output().expect("it starts");
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty());
    assert_eq!(stderr.matches('\n').count(), 1, "one line: {stderr}");
    stderr.trim_end().strip_prefix("merganser: ").expect("the command's name").to_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Sends a signal to a child that has not been waited for.
fn signal(child: &Child, signal: i32) {
    // SAFETY: the child was not waited for, so its id is not another process's.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// The names in a folder, sorted.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
