//! Looks for bytes that break a promise of `blast_archive` (`quality/fuzz/src/blast_archive.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("blast_archive", bytes));
