//! Looks for bytes that break a promise of `numbers_and_versions` (`quality/fuzz/src/numbers_and_versions.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("numbers_and_versions", bytes));
