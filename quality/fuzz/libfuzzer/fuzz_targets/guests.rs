//! Looks for bytes that break a promise of `guests` (`quality/fuzz/src/guests.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("guests", bytes));
