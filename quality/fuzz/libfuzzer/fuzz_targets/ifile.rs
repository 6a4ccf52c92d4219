//! Looks for bytes that break a promise of `ifile` (`quality/fuzz/src/ifile.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("ifile", bytes));
