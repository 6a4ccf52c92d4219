//! Looks for bytes that break a promise of `manifest` (`quality/fuzz/src/manifest.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("manifest", bytes));
