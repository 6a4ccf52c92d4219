//! Looks for bytes that break a promise of `table_view` (`quality/fuzz/src/table_view.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("table_view", bytes));
