//! `merganser map`, judged by naive programs.
//!
//! - `ssdlets`: each SSDlet through the command
//! - `inputs`: pipes, compressed files, many files, other records
//! - `naive`: odd texts, against naive models
//! - `results`: forms, orders and views of rows
//! - `bounds`: memory, disks, signals, kills

mod bounds;
mod inputs;
mod naive;
mod results;
mod ssdlets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::harness::{Chance, Folder, merganser, prints};

/// Text of about `bytes`: lines of words, some of them frequent, `distinct` at most.
fn text(chance: &mut Chance, bytes: usize, distinct: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 100);
    while out.len() < bytes {
        let most = 1 + chance.below(distinct);
        let word = chance.below(most);
        out.extend_from_slice(format!("w{word:x}").as_bytes());
        if chance.once_in(50) {
            out.push(0x80 | (chance.next() as u8 & 0x7f));
        }
        out.push(if chance.once_in(9) { b'\n' } else { *chance.pick(&[&b' ', &b'\t', &b' ']) });
    }
    out.push(b'\n');
    out
}

/// How often each word occurs.
fn words(text: &[u8]) -> BTreeMap<Vec<u8>, u64> {
    let mut counts = BTreeMap::new();
    for word in text.split(|byte| b" \t\n\x0c\r".contains(byte)).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_vec()).or_default() += 1;
    }
    counts
}

/// Rows as tsv.
fn tsv<'a>(rows: impl IntoIterator<Item = (&'a Vec<u8>, &'a u64)>) -> Vec<u8> {
    let row = |(key, count): (&'a Vec<u8>, &'a u64)| {
        [key, &b"\t"[..], count.to_string().as_bytes(), b"\n"].concat()
    };
    rows.into_iter().flat_map(row).collect()
}

/// The rows with the largest counts first; ties by key.
fn by_count(counts: &BTreeMap<Vec<u8>, u64>) -> Vec<(&Vec<u8>, &u64)> {
    let mut rows: Vec<_> = counts.iter().collect();
    rows.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    rows
}

/// Runs `map` with these words over `inputs`; gives what it prints.
fn map<P: AsRef<Path>>(words: &[&str], inputs: &[P]) -> Vec<u8> {
    let mut command = merganser(["map"]);
    command.args(words);
    inputs.iter().for_each(|input| {
        command.arg(input.as_ref());
    });
    prints(&mut command)
}

/// A `--memory` in which a map of [`many_words`] spills.
const SMALL_MEMORY: &str = "--memory=6M";

/// A file of many distinct words, more than [`SMALL_MEMORY`] holds; its text.
fn many_words(folder: &Folder) -> (PathBuf, Vec<u8>) {
    words_of(folder, 4 << 20)
}

/// Such a file of about this many bytes.
fn words_of(folder: &Folder, bytes: usize) -> (PathBuf, Vec<u8>) {
    let text = text(&mut Chance::new(), bytes, 2_000_000);
    (folder.write("input", &text), text)
}
