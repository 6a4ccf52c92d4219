//! Looks for bytes that break a promise of `records` (`quality/fuzz/src/records.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("records", bytes));
