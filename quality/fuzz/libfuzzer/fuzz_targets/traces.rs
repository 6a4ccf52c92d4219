//! Looks for bytes that break a promise of `traces` (`quality/fuzz/src/traces.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("traces", bytes));
