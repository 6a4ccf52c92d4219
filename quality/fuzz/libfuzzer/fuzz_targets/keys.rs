//! Looks for bytes that break a promise of `keys` (`quality/fuzz/src/keys.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("keys", bytes));
