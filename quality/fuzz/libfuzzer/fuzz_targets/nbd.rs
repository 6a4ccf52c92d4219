//! Looks for bytes that break a promise of `nbd` (`quality/fuzz/src/nbd.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("nbd", bytes));
