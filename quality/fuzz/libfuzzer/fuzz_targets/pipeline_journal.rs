//! Looks for bytes that break a promise of `pipeline_journal` (`quality/fuzz/src/pipeline_journal.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("pipeline_journal", bytes));
