//! Looks for bytes that break a promise of `sorted_files` (`quality/fuzz/src/sorted_files.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("sorted_files", bytes));
