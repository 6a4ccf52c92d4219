//! Looks for bytes that break a promise of `run_file` (`quality/fuzz/src/run_file.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("run_file", bytes));
