//! Looks for bytes that break a promise of `journals` (`quality/fuzz/src/journals.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("journals", bytes));
