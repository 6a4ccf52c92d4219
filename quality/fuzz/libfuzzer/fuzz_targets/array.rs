//! Looks for bytes that break a promise of `array` (`quality/fuzz/src/array.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("array", bytes));
