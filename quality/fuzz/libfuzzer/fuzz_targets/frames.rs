//! Looks for bytes that break a promise of `frames` (`quality/fuzz/src/frames.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("frames", bytes));
