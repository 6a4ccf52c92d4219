//! `merganser pipeline`, with small programs as stages.
//!
//! - `results`: what comes out, against the same programs without a pipeline
//! - `failures`: stages that fail, hang, talk or fill the disk; inputs that are damaged; other commands
//! - `crash`: killed and interrupted at any moment, then continued
//! - `damage`: files of a pipeline that ended early are damaged before it continues
//! - `names`: names that mean something to a shell, at every place of a command

mod crash;
mod damage;
mod failures;
mod names;
mod results;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Chance, Folder, merganser, merganser_itself, prints};

/// A pipeline with these words in `folder`, into `out`.
fn pipeline<S: AsRef<OsStr>>(folder: &Folder, words: &[S]) -> Command {
    in_folder(merganser(["pipeline", "-o", "out"]), folder, words)
}

/// The same as a process of its own.
fn pipeline_itself<S: AsRef<OsStr>>(folder: &Folder, words: &[S]) -> Command {
    in_folder(merganser_itself(["pipeline", "-o", "out"]), folder, words)
}

fn in_folder<S: AsRef<OsStr>>(mut command: Command, folder: &Folder, words: &[S]) -> Command {
    command.args(words).current_dir(folder.path());
    command
}

/// Runs it; gives the output, when nothing but that is left.
fn made<S: AsRef<OsStr>>(folder: &Folder, words: &[S]) -> Vec<u8> {
    let printed = prints(&mut pipeline(folder, words));
    assert!(printed.is_empty(), "{}", String::from_utf8_lossy(&printed));
    assert!(!folder.at(".out.unfinished").exists(), "left behind");
    let out = fs::read(folder.at("out")).expect("the output");
    fs::remove_file(folder.at("out")).expect("removed");
    out
}

/// The lines of a file, none if there is no file.
fn lines_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Records of FASTA of about `bytes`, with lines of different lengths.
fn fasta(chance: &mut Chance, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut number = 0;
    while out.len() < bytes {
        out.extend_from_slice(format!(">s{number} >not a start\n").as_bytes());
        for _ in 0..chance.below(6) {
            for _ in 0..1 + chance.below(70) {
                out.push(*chance.pick(&[&b'A', &b'C', &b'G', &b'T']));
            }
            out.push(b'\n');
        }
        number += 1;
    }
    out
}

/// Records of FASTQ of about `bytes`; qualities begin with any of their letters.
fn fastq(chance: &mut Chance, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut number = 0;
    while out.len() < bytes {
        let length = chance.below(80);
        out.extend_from_slice(format!("@r{number}\n").as_bytes());
        (0..length).for_each(|_| out.push(*chance.pick(&[&b'A', &b'C', &b'G', &b'T'])));
        out.extend_from_slice(b"\n+\n");
        (0..length).for_each(|_| out.push(*chance.pick(&[&b'@', &b'+', &b'I', &b'>'])));
        out.push(b'\n');
        number += 1;
    }
    out
}
