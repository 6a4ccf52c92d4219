//! Looks for bytes that break a promise of `array_volume` (`quality/fuzz/src/array_volume.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("array_volume", bytes));
