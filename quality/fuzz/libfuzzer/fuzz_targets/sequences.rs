//! Looks for bytes that break a promise of `sequences` (`quality/fuzz/src/sequences.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("sequences", bytes));
