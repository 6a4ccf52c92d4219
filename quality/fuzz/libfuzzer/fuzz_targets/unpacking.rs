//! Looks for bytes that break a promise of `unpacking` (`quality/fuzz/src/unpacking.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("unpacking", bytes));
