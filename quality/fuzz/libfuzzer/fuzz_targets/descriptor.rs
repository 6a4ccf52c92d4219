//! Looks for bytes that break a promise of `descriptor` (`quality/fuzz/src/descriptor.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("descriptor", bytes));
